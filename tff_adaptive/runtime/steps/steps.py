# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs computations that are not a round, step by step.

A `CompiledRound` is one graph: the server sends, clients work, the server adds
up. Other computations send what they have added up, leave results at the
clients, or have no clients at all. They are run here as TFF writes them, one
intrinsic after the other:

- without clients, or if all that clients have are tensors of one shape, the
  whole computation is one graph;
- else, work on the clients' datasets is a `CompiledRound` that returns the
  clients' results side by side, so that it is as fast;
- any other function is a graph that runs for one client after the other.
"""

from collections.abc import Callable, Sequence
import functools
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _error_texts
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.steps import expressions
from tff_adaptive.runtime.steps import local_functions
from tff_adaptive.runtime.steps import made_datasets
from tff_adaptive.runtime.steps import placed_values
from tff_adaptive.runtime.steps import step_functions
from tff_adaptive.runtime.steps import step_graphs
from tff_adaptive.runtime.steps import step_runs


class Steps:
  """A computation that runs step by step.

  Attributes:
    takes_clients: Whether it takes a value at the clients.
    takes_seed: Whether it draws random numbers.
    takes_sequences: Whether it takes sequences.
  """

  def __init__(
      self,
      computation: tff.framework.ConcreteComputation,
      plan: plans.Plan,
      cache: dataset_cache.DatasetCache,
      note_pipelines: Callable[[str], None],
  ):
    """Converts the computation; see `rounds.Round`.

    Raises:
      UnsupportedComputationError: If an op or an intrinsic is unsupported.
    """
    computation, self._add_datasets = made_datasets.extract(computation)
    self._type = computation.type_signature
    for place in [
        *placed_values.places(self._type.parameter),
        *placed_values.places(self._type.result),
    ]:
      expressions.leaf_types(place)
    self._root = _simplify(computation)
    self._functions = step_functions.StepFunctions(
        self._root, plan, cache, note_pipelines
    )
    self.takes_clients = computations.takes_clients(self._type)
    self.takes_seed = self._functions.takes_seed
    self.takes_sequences = any(
        map(
            expressions.has_sequences,
            placed_values.places(self._type.parameter),
        )
    )
    # None if the whole is a function without clients.
    self._graph: Optional[step_graphs.StepGraph] = None
    if self.takes_clients or not local_functions.is_without_clients(self._root):
      _check_intrinsics(self._root)
      self._graph = step_graphs.StepGraph(
          self._root, self._type, self._functions, cache
      )
    self._path = plans.STEPS
    flatten = values.build_flatten(self._type.parameter, into_members=False)
    self._flatten = flatten
    self._pack = values.build_pack(self._type.result, into_members=False)

  @property
  def path(self) -> str:
    """How it is executed, see `CompiledContext.path_of`."""
    return self._path

  @property
  def plan(self) -> Optional[plans.Plan]:
    """The plan of the clients' work; None without clients."""
    return None if self._graph is None else self._functions.plan

  def split(self, argument: Any) -> tuple[list[Any], Optional[Sequence[Any]]]:
    """Splits an argument at places.

    Returns:
      The values in order, and those of the clients that bring the key of random
      numbers; None if the argument does not tell the number of clients.
    """
    found = self._flatten(self._add_datasets(argument))
    at_clients = [
        value
        for value, place in zip(
            found, placed_values.places(self._type.parameter)
        )
        if placed_values.differs(place)
    ]
    computations.check_clients(at_clients)
    cohorts = [v for v in at_clients if isinstance(v, cohort_lib.Cohort)]
    return found, next(iter([*cohorts, *at_clients]), None)

  def __call__(
      self, found: list[Any], num_clients: int, key: round_keys.RoundKey
  ) -> Any:
    """Runs the computation.

    Args:
      found: The values of `split`.
      num_clients: The number of clients.
      key: The key of the round's random numbers.

    Returns:
      The result, with NumPy arrays for tensors and datasets for sequences.

    Raises:
      TypeError: If a value does not match its type.
      UnsupportedComputationError: If a step cannot be compiled.
      ValueError: If TensorFlow rejects the data.
    """
    try:
      result = self._evaluate(found, num_clients, key)
    except tf.errors.InvalidArgumentError as e:
      said = _error_texts.graph_error_line(e)
      raise ValueError(f'TensorFlow failed in a step: {said}.') from e
    converted = map(
        functools.partial(placed_values.to_value, num_clients=num_clients),
        result,
        placed_values.places(self._type.result),
    )
    return self._pack(converted)

  def _evaluate(
      self, found: list[Any], num_clients: int, key: round_keys.RoundKey
  ) -> list[Any]:
    """Returns the values of the result at places."""
    parameter, argument = self._type.parameter, None
    root = expressions.Closure(self._root, {})
    read = list(map(placed_values.read, found, placed_values.places(parameter)))
    run = step_runs.Run(self._functions, num_clients, key)
    if self._graph is None:
      leaves = [leaf for value in read for leaf in placed_values.flatten(value)]
      results = run.run(root, leaves)
      self._path = self._functions.of(self._root).path
      return self._of_leaves(results)
    result = self._graph(read, num_clients, key)
    if result is not None:
      self._path = self._graph.path
      return result
    if parameter is not None:
      argument = expressions.pack(iter(read), parameter, into_members=False)
    self._path = plans.STEPS
    return expressions.flatten(run.apply(root, argument))

  def _of_leaves(self, leaves: list[Any]) -> list[Any]:
    """Returns the values at places, given all leaves of the result."""
    rest = iter(leaves)
    return [
        placed_values.Placed(
            [next(rest) for _ in expressions.leaf_types(place)]
        )
        for place in placed_values.places(self._type.result)
    ]


def _simplify(
    computation: tff.framework.ConcreteComputation,
) -> expressions.Block:
  """Returns an expression of few intrinsics, in the call-dominant form."""
  with computations.errors_as_unsupported('the computation is malformed'):
    if computations.uses_secure_sums(computation):
      computation = tff.backends.test.replace_secure_intrinsics_with_bodies(
          computation
      )
    block, _ = tff.tensorflow.replace_intrinsics_with_bodies(
        computation.to_building_block()
    )
    return tff.framework.to_call_dominant(block)


def _check_intrinsics(root: expressions.Block) -> None:
  for part in expressions.walk(root):
    if isinstance(part, tff.framework.Data):
      raise computations.UnsupportedComputationError(
          "TFF's worker looks up its data by name; pass them as an argument "
          'instead'
      )
    if isinstance(part, tff.framework.Intrinsic) and not (
        part.uri in step_runs.INTRINSICS
        or part.uri in local_functions.SEQUENCE_INTRINSICS
    ):
      raise computations.UnsupportedComputationError(
          f'`{part.uri}` is unknown here; use the operators of TFF 0.87'
      )

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds that TensorFlow differentiates.

The graph of `CompiledRound` cannot be differentiated: its loops are those of
TensorFlow 1, and it calls functions by their names alone. Here the same parts
of a round are built with the loops of TensorFlow 2, then saved and loaded,
which gives each function its gradient.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import functools
import logging
import tempfile
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import batching
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime import running
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import client_tensors
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.graphs import graph_functions

# A function of flat tensors.
FlatFn = Callable[..., Sequence[tf.Tensor]]
# One entry per tensor; None for those that are not floating.
Gradients = list[Optional[tf.Tensor]]

_SEED = tf.TensorSpec([2], tf.int32)
_SQRT = 'TffAdaptiveSqrt'
# Ops through which no gradient passes, and what to do about them.
_OBSTACLES = {
    'VarHandleOp': (
        'it keeps tensors in variables: take a '
        '`tff.learning.models.FunctionalModel`, and no iterator over the data'
    ),
    'Enter': 'it has a loop of TensorFlow 1: build it with `tf.while_loop`',
    'Switch': 'it has a branch of TensorFlow 1: build it with `tf.cond`',
}


def _sqrt_gradient(op: tf.Operation, upstream: tf.Tensor) -> tf.Tensor:
  """The gradient of a root, 0 at 0: norms and moments begin there."""
  return tf.math.divide_no_nan(0.5 * upstream, op.outputs[0])


# It is registered already if this module is loaded again, as notebooks do.
with contextlib.suppress(KeyError):
  tf.RegisterGradient(_SQRT)(_sqrt_gradient)


def _prepare(function: graph_functions.GraphFunction) -> None:
  """Gives the roots of a function a finite gradient everywhere, in place.

  Args:
    function: The function.

  Raises:
    UnsupportedComputationError: If no gradient passes through the function.
  """
  for node in function.nodes():
    if node.op in _OBSTACLES:
      raise computations.UnsupportedComputationError(
          f'cannot differentiate the round: {_OBSTACLES[node.op]}'
      )
    if node.op == 'IdentityN' and '_gradient_op_type' in node.attr:
      raise computations.UnsupportedComputationError(
          'cannot differentiate the round: it has an op with a gradient of its '
          f'own ({node.name!r}), which cannot be differentiated again: take a '
          'model without `tf.custom_gradient`'
      )
    if node.op == 'Sqrt':
      node.attr['_gradient_op_type'].s = _SQRT.encode()


def _prepare_round(function: graph_functions.GraphFunction) -> None:
  """Prepares a part of a round, in place, see `_prepare`.

  Gradients of losses are part of its graph, which is differentiated as it is,
  without regard to `tf.stop_gradient`: with it, `tf.nn.moments` holds the mean
  back, as in normalization layers, and only first derivatives would be right.
  """
  _prepare(function)
  for node in function.nodes():
    if node.op == 'StopGradient':
      node.op = 'Identity'


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
  """Silences what TensorFlow logs as it saves and loads."""
  before = logging.root.manager.disable
  logging.disable(logging.WARNING)
  try:
    yield
  finally:
    logging.disable(before)


def _build(fn: FlatFn, specs: Sequence[tf.TensorSpec]) -> FlatFn:
  """Builds a function that a `tf.GradientTape` passes through.

  Args:
    fn: A function of flat tensors that calls `GraphFunction`s.
    specs: The specs of its arguments.

  Returns:
    The same, as one graph.
  """
  module = tf.Module()
  module.run = tf.function(fn, input_signature=list(specs), autograph=False)
  # The gradients that we register need not be saved.
  options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
  with tempfile.TemporaryDirectory() as folder, _quiet():
    tf.saved_model.save(module, folder, options=options)
    loaded = tf.saved_model.load(folder)
  # Not `run` itself, which is traced once more for tensors of other shapes.
  (concrete,) = loaded.run.concrete_functions
  return concrete


def build_function(computation: tff.framework.ConcreteComputation) -> FlatFn:
  """Builds the function of a computation of TensorFlow alone.

  Args:
    computation: The computation; it draws no random numbers.

  Returns:
    A function from the leaves of its argument to those of its result.

  Raises:
    UnsupportedComputationError: If no gradient passes through it.
  """
  function = graph_functions.build_graph_function(computation)
  _prepare(function)
  specs = values.tensor_specs(computation.type_signature.parameter)
  return _build(lambda *leaves: function(*leaves), specs)


def pull_back(
    fn: FlatFn, arguments: Sequence[tf.Tensor], upstream: Gradients
) -> Gradients:
  """Returns the gradients by the arguments from those by the results.

  Args:
    fn: A function.
    arguments: Its arguments.
    upstream: The gradients of something by each of its results.

  Returns:
    The gradients of the same by each argument.

  Raises:
    UnsupportedComputationError: If an op has no gradient.
  """
  sources = [tensor for tensor in arguments if tensor.dtype.is_floating]
  try:
    with tf.GradientTape() as tape:
      tape.watch(sources)
      results = fn(*arguments)
    places = [i for i, gradient in enumerate(upstream) if gradient is not None]
    found = iter(
        tape.gradient(
            [results[i] for i in places],
            sources,
            output_gradients=[upstream[i] for i in places],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
    )
  except LookupError as error:
    raise computations.UnsupportedComputationError(
        f'cannot differentiate the round: {error}'
    ) from error
  return [next(found) if t.dtype.is_floating else None for t in arguments]


def _add(left: Gradients, right: Gradients) -> Gradients:
  return [None if a is None else a + b for a, b in zip(left, right)]


def _sends_nothing(report: Sequence[tf.Tensor]) -> bool:
  """Returns whether a client is rejected: no sum and no extremum counts it.

  Its weight is 0, but the gradient would pass through numbers that may be NaN.
  """
  return all(
      tf.reduce_all((leaf == 0) | tf.math.is_inf(leaf))
      for leaf in report
      if leaf.dtype.is_floating
  )


def _are_equal(left: Sequence[tf.Tensor], right: Sequence[tf.Tensor]) -> bool:
  """Returns whether a round has changed no number but counts."""
  return all(
      np.array_equal(a, b) for a, b in zip(left, right) if a.dtype.is_floating
  )


def _own_rows(leaf: client_tensors.Leaf) -> client_tensors.Leaf:
  """Returns the leaf of one client without the rows of the others.

  A loop that reads rows also computes their gradient, which is as large.
  """
  if not isinstance(leaf, batching.PackedClients):
    return leaf
  # Of a sequence with several reads, the first start and the last end.
  start = tf.reduce_min(leaf.starts)
  elements = slice(start, tf.reduce_max(leaf.ends))
  bounds = {'starts': leaf.starts - start, 'ends': leaf.ends - start}
  if isinstance(leaf.order, tuple):
    rows = tuple(rows[elements] for rows in leaf.rows)
    return leaf._replace(rows=rows, **bounds)
  begins, sizes = leaf.begins[elements], leaf.sizes[elements]
  first = tf.reduce_sum(begins[:1])
  order = leaf.order[first : first + tf.reduce_sum(sizes)]
  return leaf._replace(
      rows=tuple(tf.gather(rows, order) for rows in leaf.rows),
      order=tf.range(tf.size(order, tf.int64)),
      begins=begins - first,
      sizes=sizes,
      **bounds,
  )


def _refuse_pipelines(reason: str) -> None:
  raise computations.UnsupportedComputationError(
      "cannot differentiate the round: clients' `tf.data` pipelines would have "
      f'to run, because {reason}'
  )


class DifferentiableRound(rounds.Round):
  """A computation from (state, clients) to (state, result), differentiated.

  Clients work one after the other. Each is trained again to take its gradient,
  so that the steps of only one client are in memory.
  """

  def __init__(self, computation: tff.framework.ConcreteComputation):
    """Builds the parts at the server.

    Args:
      computation: A computation such as `process.next`.

    Raises:
      UnsupportedComputationError: If it cannot be compiled or differentiated.
    """
    super().__init__(
        computations.get_round_form(computation),
        rounds.Setting(
            plans.Plan('CPU:0', num_parallel_clients=1),
            dataset_cache.DatasetCache(),
            _refuse_pipelines,
        ),
    )
    self._setting.note(self._pipelines)
    _prepare_round(self._work)
    parts, part = self._parts, self._parts.with_seed
    for name in ('prepare', 'zero', 'accumulate', 'report', 'update'):
      _prepare_round(parts[name])
    self._state_specs = values.tensor_specs(self._form.state_type)
    num_leaves = len(self._state_specs)
    self._broadcast_specs = values.tensor_specs(
        parts['prepare'].type_signature.result
    )
    total_specs = values.tensor_specs(parts['accumulate'].type_signature.result)
    report_specs = values.tensor_specs(
        self._form.parts['work'].type_signature.result
    )
    appends = parts['accumulate'].appends

    def prepare(seed, *state):
      return part('prepare', seed)(*state)

    def zero(seed):
      return part('zero', seed)()

    def add(seed, *total_and_report):
      added = part('accumulate', seed)(*total_and_report)
      return [
          tf.concat([total_and_report[place], leaf], 0)
          if place in appends
          else leaf
          for place, leaf in enumerate(added)
      ]

    def update(seed, *state_and_total):
      state = state_and_total[:num_leaves]
      reported = part('report', seed)(*state_and_total[num_leaves:])
      # The metrics are left out.
      return part('update', seed)(*state, *reported)[:num_leaves]

    self._prepare = _build(prepare, [_SEED, *self._state_specs])
    self._zero = _build(zero, [_SEED])
    self._add = _build(add, [_SEED, *total_specs, *report_specs])
    self._update = _build(update, [_SEED, *self._state_specs, *total_specs])
    self._works: dict[client_tensors.Layouts, FlatFn] = {}

  def flatten_state(self, state: Any) -> list[tf.Tensor]:
    """Returns the leaves of a state."""
    return self._convert_state(state)

  def _build_work(self, layouts: client_tensors.Layouts) -> FlatFn:
    """Builds a client's work, from its number and what the server sends."""
    work = self._work.for_leaves(layouts)
    arguments = (
        layouts,
        tf.TensorSpec([], tf.int32),
        _SEED,
        self._broadcast_specs,
    )

    def run(*flat):
      clients, number, seed, broadcast = tf.nest.pack_sequence_as(
          arguments, flat
      )
      picked = [
          _own_rows(client_tensors.pick(leaf, number)) for leaf in clients
      ]
      seed = seed if work.takes_seed else None
      return work(*picked, *broadcast, seed=seed)

    return _build(run, tf.nest.flatten(arguments))

  def _trainings(
      self,
      clients: Sequence[Any],
      key: round_keys.RoundKey,
      seeds: Sequence[tf.Tensor],
  ) -> list[FlatFn]:
    """Returns each client's work, from what the server sends."""
    collected = self._collect(clients, key)
    self._setting.note(collected.pipelines)
    layouts = collected.layouts()
    if layouts not in self._works:
      self._works[layouts] = self._build_work(layouts)
    leaves = tf.nest.flatten(collected.leaves)
    return [
        functools.partial(
            self._works[layouts], *leaves, tf.constant(number), seed
        )
        for number, seed in enumerate(seeds)
    ]

  def __call__(  # type: ignore[override]
      self, state: Sequence[tf.Tensor], clients: Sequence[Any], round_num: int
  ) -> tuple[Sequence[tf.Tensor], Callable[[Gradients], Gradients]]:
    """Runs the round.

    Args:
      state: The leaves of the state.
      clients: The clients: a `Cohort`, or a list.
      round_num: The round on which random numbers depend, unless `clients` is
        a `Cohort`.

    Returns:
      The leaves of the next state, and a function from the gradients by these
      to those by `state`.
    """
    running.check_process()
    key = round_keys.RoundKey.of(clients) or round_keys.RoundKey(0, round_num)
    seeds = key.seeds(len(clients))
    server_seed = tf.constant(seeds.server)
    client_seeds = tf.unstack(tf.constant(seeds.clients))
    trainings = self._trainings(clients, key, client_seeds)
    prepare = functools.partial(self._prepare, server_seed)
    broadcast = prepare(*state)
    reports = [list(train(*broadcast)) for train in trainings]
    num_leaves = len(self._state_specs)

    def update(*flat):
      total, begin = self._zero(server_seed), num_leaves
      for seed, report in zip(client_seeds, reports):
        end = begin + len(report)
        total, begin = self._add(seed, *total, *flat[begin:end]), end
      return self._update(server_seed, *flat[:num_leaves], *total)

    arguments = [*state, *(leaf for report in reports for leaf in report)]
    results = update(*arguments)
    if all(map(_sends_nothing, reports)) and _are_equal(state, results):
      return results, lambda upstream: upstream

    def back(upstream):
      found = pull_back(update, arguments, upstream)
      of_state, of_reports = found[:num_leaves], iter(found[num_leaves:])
      of_broadcast: Gradients = [
          tf.zeros_like(t) if t.dtype.is_floating else None for t in broadcast
      ]
      for train, report in zip(trainings, reports):
        of_report = [next(of_reports) for _ in report]
        if not _sends_nothing(report):
          of_broadcast = _add(
              of_broadcast, pull_back(train, broadcast, of_report)
          )
      return _add(of_state, pull_back(prepare, state, of_broadcast))

    return results, back

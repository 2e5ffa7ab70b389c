# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""A whole federated round as one TensorFlow graph."""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import functools
from typing import Any, NamedTuple, Optional

from absl import logging
import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _compat
from tff_adaptive.runtime import client_tensors
from tff_adaptive.runtime import conversion
from tff_adaptive.runtime import graph_functions
from tff_adaptive.runtime import map_reduce_forms
from tff_adaptive.runtime import materialization
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import shared_arrays
from tff_adaptive.runtime import values

_SERVER_PARTS = ('prepare', 'zero', 'accumulate', 'merge', 'report', 'update')


class Seeds(NamedTuple):
  """What fixes the random numbers of a round; int32 arrays.

  Attributes:
    server: For what happens at the server, [2].
    clients: One for each client, [num_clients, 2].
  """

  server: np.ndarray
  clients: np.ndarray


@attrs.frozen(eq=False)
class _Parts:
  """What happens at the server, see `tff.backends.mapreduce`."""

  prepare: graph_functions.GraphFunction
  zero: graph_functions.GraphFunction
  accumulate: graph_functions.GraphFunction
  merge: graph_functions.GraphFunction
  report: graph_functions.GraphFunction
  update: graph_functions.GraphFunction

  def with_seed(self, name: str, seed: tf.Tensor) -> Any:
    """A part, its random numbers fixed."""
    part = getattr(self, name)
    if not part.takes_seed:
      return part
    # Each part draws numbers of its own.
    place = _SERVER_PARTS.index(name) + 1
    return functools.partial(part, seed=seed + place)


@attrs.frozen(eq=False)
class _Fold:
  """The loop over the clients of a cohort, inside a graph.

  The cohort is cut into chunks of consecutive clients. Each chunk is summed up
  from zero, client by client, and the sums of the chunks are merged in their
  order, so that the bits do not depend on which clients were worked on at the
  same time.

  Attributes:
    work: Maps the number of a client to what it reports.
    vectorized_work: The same for several clients at once, their numbers and
      reports stacked; or None.
    accumulate: Adds a report to a sum.
    merge: Adds two sums.
    zero: The empty sum.
    shapes: The shapes of a sum's tensors.
    num_parallel: How many chunks are worked on at once.
  """

  work: Callable[[tf.Tensor], list[tf.Tensor]]
  vectorized_work: Optional[Callable[[tf.Tensor], list[tf.Tensor]]]
  accumulate: Callable[..., list[tf.Tensor]]
  merge: Callable[..., list[tf.Tensor]]
  zero: list[tf.Tensor]
  shapes: list[tf.TensorShape]
  num_parallel: int

  def __call__(
      self, num_clients: tf.Tensor, chunk_size: tf.Tensor
  ) -> list[tf.Tensor]:
    """Adds the loop to the graph; returns the sum over all clients."""

    def add_chunk(start, total):
      end = tf.minimum(start + chunk_size, num_clients)
      chunk = self._sum(start, end)
      return end, _with_shapes(self.merge(*total, *chunk), self.shapes)

    return self._loop(
        tf.zeros([], tf.int32),
        num_clients,
        add_chunk,
        # Chunks run at the same time; only their sums wait for each other.
        self.num_parallel,
    )

  def _sum(self, start: tf.Tensor, end: tf.Tensor) -> list[tf.Tensor]:
    """Sums up the clients from one number to another."""
    report = self.work
    if self.vectorized_work is not None:
      reports = self.vectorized_work(tf.range(start, end))
      report = lambda number: [tf.gather(r, number - start) for r in reports]

    def add_client(number, chunk):
      chunk = self.accumulate(*chunk, *report(number))
      return number + 1, _with_shapes(chunk, self.shapes)

    return self._loop(start, end, add_client, 1)

  def _loop(self, start, end, body, num_parallel):
    # Numbers are int32: on a GPU, too, TensorFlow counts them on the CPU, where
    # the loop is steered.
    _, total = tf.while_loop(
        lambda number, _: number < end,
        body,
        (start, self.zero),
        shape_invariants=(tf.TensorShape([]), self.shapes),
        parallel_iterations=num_parallel,
    )
    return total


def _with_shapes(
    tensors: list[tf.Tensor], shapes: list[tf.TensorShape]
) -> list[tf.Tensor]:
  """The tensors, whose shapes are known by their types."""
  for tensor, shape in zip(tensors, shapes):
    tensor.set_shape(shape)
  return tensors


@contextlib.contextmanager
def _quiet_tensorflow() -> Iterator[None]:
  """Keeps TensorFlow from logging what an exception says anyway."""
  logger = tf.get_logger()
  level = logger.level
  logger.setLevel('CRITICAL')
  try:
    yield
  finally:
    logger.setLevel(level)


class CompiledRound:
  """A computation over clients, compiled.

  Attributes:
    type_signature: The `tff.FunctionType` of the computation.
    plan: How the clients' work runs.
    takes_client_seeds: Whether the clients draw random numbers.
  """

  def __init__(
      self,
      computation: tff.framework.ConcreteComputation,
      choose_plan: Callable[[int], plans.Plan],
      cache: materialization.DatasetCache,
  ):
    """Converts the computation; the graph is built in the first round.

    Args:
      computation: A computation with an argument at the clients.
      choose_plan: From how many numbers a client receives to how it works.
      cache: Keeps the clients' data that was read.

    Raises:
      UnsupportedComputationError: If the computation cannot be compiled.
    """
    self._form = map_reduce_forms.get_round_form(computation)
    build = graph_functions.build_graph_function
    self.type_signature = computation.type_signature
    parts = self._form.form
    broadcast_type = parts.prepare.type_signature.result
    self.plan = choose_plan(values.num_elements(broadcast_type))
    self._work = build(parts.work)
    self._parts = _Parts(
        **{name: build(getattr(parts, name)) for name in _SERVER_PARTS}
    )
    self._convert_state = conversion.build_conversion(self._form.state_type)
    self._pack = values.build_pack(self._form.result_type)
    self._cache = cache
    self._functions: dict[Any, Any] = {}

  @property
  def takes_client_seeds(self) -> bool:
    return self._work.takes_seed

  @functools.cached_property
  def _work_on_datasets(self) -> graph_functions.GraphFunction:
    """The clients' work for sequences that cannot be kept as rows."""
    if not self._work.reads_tensors:
      return self._work
    return graph_functions.build_graph_function(
        self._form.form.work, tensor_sequences=False
    )

  def _build(self, layouts: tuple[Any, ...]) -> Any:
    """The function of a round for clients of some layout."""
    kinds = {layout[0] for layout in layouts}
    if self.plan.name == plans.VECTORIZED and kinds <= client_tensors.ALIKE:
      flat_work = self._work.flatten()
      if flat_work is not None:
        try:
          with _quiet_tensorflow():
            return self._build_for(layouts, flat_work, vectorize=True)
        except Exception as e:  # Of any kind: an op cannot be vectorized.
          logging.info("The clients' work is not vectorized: %s", e)
    work = self._work
    if client_tensors.DATASETS in kinds:
      work = self._work_on_datasets
    elif self.plan.name == plans.XLA:
      compiled_work = work.with_compiled_steps()
      if compiled_work is None:
        logging.info("The clients' work is not compiled by XLA.")
      else:
        work = compiled_work
    return self._build_for(layouts, work, vectorize=False)

  def _build_for(
      self,
      layouts: tuple[Any, ...],
      work: graph_functions.GraphFunction,
      vectorize: bool,
  ) -> Any:
    """The function of a round for one form of the clients' work."""
    state_specs = [
        values.tensor_spec(leaf)
        for leaf in values.leaf_types(self._form.state_type)
    ]
    arguments = (
        state_specs,
        [list(layout[1:]) for layout in layouts],
        tf.TensorSpec([], tf.int32),
        tf.TensorSpec([], tf.int32),
        tf.TensorSpec([2], tf.int32),
        tf.TensorSpec([None, 2], tf.int32),
    )

    def run(*flat):
      state, client_leaves, num_clients, chunk_size, *seeds = (
          tf.nest.pack_sequence_as(arguments, flat)
      )
      clients = [
          client_tensors.LeafTensors(layout[0], tuple(tensors))
          for layout, tensors in zip(layouts, client_leaves)
      ]
      part = functools.partial(self._parts.with_seed, seed=seeds[0])
      with tf.device(f'/device:{self.plan.device}'):
        broadcast = part('prepare')(*state)

        def run_client(number):
          picked = [client_tensors.pick(leaf, number) for leaf in clients]
          seed = tf.gather(seeds[1], number) if work.takes_seed else None
          return work(*picked, *broadcast, seed=seed)

        fold = self._build_fold(run_client, part, vectorize)
        total = fold(num_clients, chunk_size)
      return part('update')(*state, *part('report')(*total))

    return graph_functions.build(run, tf.nest.flatten(arguments))

  def _build_fold(
      self,
      run_client: Callable[[tf.Tensor], list[tf.Tensor]],
      part: Callable[[str], Any],
      vectorize: bool,
  ) -> _Fold:
    """What sums up the reports of the clients, in the graph being built."""
    result = self._parts.accumulate.type_signature.result
    return _Fold(
        work=run_client,
        vectorized_work=functools.partial(
            tf.vectorized_map, run_client, fallback_to_while_loop=False
        )
        if vectorize
        else None,
        accumulate=part('accumulate'),
        merge=part('merge'),
        zero=part('zero')(),
        shapes=[
            values.tensor_spec(leaf).shape for leaf in values.leaf_types(result)
        ],
        num_parallel=self.plan.num_parallel_clients,
    )

  def __call__(self, state: Any, clients: Sequence[Any], seeds: Seeds) -> Any:
    """Runs the computation.

    Args:
      state: The value at the server; `()` if the computation takes none.
      clients: The values at the clients.
      seeds: What fixes the random numbers.

    Returns:
      What the computation returns, with NumPy arrays for tensors.

    Raises:
      TypeError: If a value does not fit its type.
    """
    leaves = client_tensors.collect(
        clients,
        self._form.clients_type,
        self._cache,
        self._work.reads_tensors,
    )
    layouts = tuple(leaf.layout() for leaf in leaves)
    if layouts not in self._functions:
      self._functions[layouts] = self._build(layouts)
    num_clients = len(clients)
    result = self._functions[layouts](
        *self._convert_state(state),
        *(tensor for leaf in leaves for tensor in leaf.tensors),
        tf.constant(num_clients),
        tf.constant(self.plan.chunk_size_of(num_clients)),
        *map(tf.constant, seeds),
    )
    packed = self._pack(map(shared_arrays.to_array, result))
    return packed if self._form.returns_state else packed[1]


class CompiledFunction:
  """A computation of TensorFlow alone, or without clients, compiled."""

  def __init__(
      self,
      computation: tff.framework.ConcreteComputation,
      type_signature: _compat.FunctionType,
  ):
    """Builds the function.

    Args:
      computation: A computation of TensorFlow alone.
      type_signature: The type whose containers the result has.

    Raises:
      UnsupportedComputationError: If the computation cannot be compiled.
    """
    function = graph_functions.build_graph_function(
        computation, tensor_sequences=False
    )
    specs = [
        tf.TensorSpec([], tf.variant)
        if isinstance(leaf, _compat.SequenceType)
        else values.tensor_spec(leaf)
        for leaf in values.leaf_types(computation.type_signature.parameter)
    ]
    self._function = graph_functions.build(
        lambda *leaves: function(*leaves[:-1], seed=leaves[-1]),
        [*specs, tf.TensorSpec([2], tf.int32)],
    )
    self._convert = conversion.build_conversion(type_signature.parameter)
    self._pack = values.build_pack(type_signature.result)

  def __call__(self, argument: Any, seed: np.ndarray) -> Any:
    """Runs the computation.

    Args:
      argument: Its argument; None if it takes none.
      seed: What fixes its random numbers, int32 of shape [2].

    Returns:
      What the computation returns, with NumPy arrays for tensors.
    """
    result = self._function(*self._convert(argument), tf.constant(seed))
    return self._pack(map(shared_arrays.to_array, result))

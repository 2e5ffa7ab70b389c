# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums the clients' results of a cohort, chunk by chunk, inside a graph.

A cohort is cut into chunks of consecutive clients. Each chunk is summed from
zero, client by client, and the sums of the chunks are merged in order, so that
the bits do not depend on where and in which order chunks were computed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
import contextlib
import functools
from typing import Any, Iterator, Optional

import numpy as np
import tensorflow as tf

# The list ops of TensorFlow's own loops.
from tensorflow.python.ops import list_ops
import tensorflow_federated as tff

from tff_adaptive import _error_texts
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import client_tensors
from tff_adaptive.runtime.graphs import graph_functions

# The parts that add to a sum.
_ADDING = ('accumulate', 'merge')


class ServerParts:
  """The parts of a round as functions of flat tensors, for building a graph.

  Where `accumulate` and `merge` only append rows to a leaf of a sum, they
  return only these rows, see `graph_functions.GraphFunction.appending`.
  """

  def __init__(self, parts: Mapping[str, tff.framework.ConcreteComputation]):
    """Converts the parts given by name, some or all of `SERVER_PARTS`.

    Raises:
      UnsupportedComputationError: If one cannot be compiled.
    """
    self._functions = {
        name: graph_functions.build_graph_function(computation)
        for name, computation in parts.items()
    }
    self._full_merge = self._functions.get('merge')
    for name in _ADDING:
      if name in self._functions:
        self._functions[name] = self._functions[name].appending()

  def __getitem__(self, name: str) -> graph_functions.GraphFunction:
    """Returns a part."""
    return self._functions[name]

  def __iter__(self) -> Iterator[str]:
    """Yields the names of the parts."""
    return iter(self._functions)

  def with_seed(
      self, name: str, seed: tf.Tensor, number: Optional[tf.Tensor] = None
  ) -> Any:
    """Returns a part with its random numbers fixed by a seed.

    Args:
      name: The name of the part.
      seed: The seed of the server in this round, or of a client for
        `accumulate`, int32 of shape [2].
      number: The index of the run, a scalar int32: a part may run repeatedly.

    Returns:
      A function of the part's tensors; each part draws its own numbers.
    """
    part = self._functions[name]
    if not part.takes_seed:
      return part
    if number is not None:
      seed = tf.random.experimental.stateless_fold_in(seed, number)
    return functools.partial(
        part, seed=seed + (computations.SERVER_PARTS.index(name) + 1)
    )

  @functools.cached_property
  def sum_specs(self) -> list[tf.TensorSpec]:
    """The specs of the leaves of a sum over clients."""
    return values.tensor_specs(self['accumulate'].type_signature.result)

  @functools.cached_property
  def has_neutral_zero(self) -> bool:
    """Returns whether zero adds nothing, so that sums from zero can be merged.

    TFF uses the zero of `tff.federated_aggregate` only once, and a sum over
    chunks has to do the same.
    """

    def add_zeros(seed):
      zero = self.with_seed('zero', seed)()
      merge_seed = seed if self._full_merge.takes_seed else None
      return [*zero, *self._full_merge(*zero, *zero, seed=merge_seed)]

    spec = tf.TensorSpec([2], tf.int32)
    try:
      tensors = graph_functions.build(add_zeros, [spec])(
          tf.zeros([2], tf.int32)
      )
    except tf.errors.OpError:
      return False  # If zeros cannot be merged, zero adds something.
    # As objects, since NumPy's strings have no zero bytes at their end.
    arrays = [
        np.asarray(t.numpy(), object if t.dtype == tf.string else None)
        for t in tensors
    ]
    half = len(arrays) // 2
    return all(
        np.array_equal(a, b, equal_nan=a.dtype != object)
        for a, b in zip(arrays[:half], arrays[half:])
    )


# The start of a failed assertion's message.
_ASSERTION = 'assertion failed:'


@contextlib.contextmanager
def errors_of_round(
    work: graph_functions.GraphFunction, parts: ServerParts
) -> Iterator[None]:
  """Turns an op's error into a `ValueError` that says what failed where."""
  try:
    yield
  except tf.errors.InvalidArgumentError as e:
    of_server = {name: _node_names(parts[name]) for name in parts}
    raise ValueError(_explain(e, _node_names(work), of_server)) from e


def _node_names(function: graph_functions.GraphFunction) -> set[str]:
  """Returns the names of the nodes of a function, and of those it calls."""
  return {node.name for node in function.nodes()}


def _explain(
    error: tf.errors.InvalidArgumentError,
    of_clients: Collection[str],
    of_server: Mapping[str, Collection[str]],
) -> str:
  """Explains an error; blames the clients' data only if they are at fault.

  Args:
    error: The error of an op.
    of_clients: The names of the nodes of the clients' work.
    of_server: The names of the nodes of the server's parts, by part.
  """
  said = _error_texts.graph_error_line(error)
  node = _error_texts.failed_node(error)
  # The name of a node follows those of the scopes into which it was imported.
  scopes = node.split('/')
  # A node of neither belongs to the clients' data.
  where, at, may_be_data = 'the round', node, True
  for name in ('/'.join(scopes[i:]) for i in range(len(scopes))):
    found = [part for part, names in of_server.items() if name in names]
    if name in of_clients or found:
      at, may_be_data = name, not found
      if not found:
        where = "the clients' work"
      elif name not in of_clients:
        where = f"the server's part ({found[0]!r})"
      break
  at = f' at {at!r}' if at else ''
  if said.startswith(_ASSERTION):
    said = said.removeprefix(_ASSERTION)
    return f'An assertion of {where} failed{at}:{said}.'
  if not may_be_data or not _error_texts.is_about_data(error):
    return f'TensorFlow failed in {where}{at}: {said}.'
  return (
      f"TensorFlow rejected the clients' data{at}: {said}; "
      '`data.check_clients` finds the client.'
  )


class ChunkSum:
  """The sum over consecutive clients, in the graph that is being built."""

  def __init__(
      self,
      *,
      work: graph_functions.GraphFunction,
      parts: ServerParts,
      clients: Sequence[client_tensors.Leaf],
      broadcast: Sequence[tf.Tensor],
      server_seed: tf.Tensor,
      client_seeds: tf.Tensor,
  ):
    """Adds the zero sum to the graph.

    Args:
      work: The clients' work.
      parts: The parts `zero` and `accumulate`.
      clients: The clients' data.
      broadcast: The value that the server broadcasts.
      server_seed: The seed of the zero's random numbers, int32 of shape [2].
      client_seeds: The seeds of the clients' work and of accumulating their
        results, int32 of shape [num_clients, 2]; [0, 2] if neither draws any.
    """
    self._work = work
    self._parts = parts
    self._clients = clients
    self._broadcast = broadcast
    self._client_seeds = client_seeds
    self._zero = parts.with_seed('zero', server_seed)()
    self._shapes = [spec.shape for spec in parts.sum_specs]

  def __call__(self, start: tf.Tensor, end: tf.Tensor) -> list[tf.Tensor]:
    """Adds the sum over the clients `start` to `end` - 1 to the graph."""

    def add_client(number, total):
      return number + 1, self._accumulate(number, total)

    return self.loop(
        start,
        end,
        add_client,
        appends=self._parts['accumulate'].appends,
        num_parallel=1,
    )

  def _accumulate(
      self, number: tf.Tensor, total: Sequence[tf.Tensor]
  ) -> list[Any]:
    """Adds the result of a client to a sum."""
    add = self._parts['accumulate']
    if add.takes_seed:
      seed = tf.gather(self._client_seeds, number)
      add = self._parts.with_seed('accumulate', seed)
    return add(*total, *map(tf.convert_to_tensor, self._train(number)))

  def _train(self, number: tf.Tensor) -> list[tf.Tensor]:
    """Adds the work of a client; `sequences.reduce` is its loop."""
    picked = [client_tensors.pick(leaf, number) for leaf in self._clients]
    seed = None
    if self._work.takes_seed:
      seed = tf.gather(self._client_seeds, number)
    return self._work(*picked, *self._broadcast, seed=seed)

  def loop(
      self,
      start: tf.Tensor,
      end: tf.Tensor,
      body: Callable[..., tuple[tf.Tensor, Sequence[tf.Tensor]]],
      *,
      appends: frozenset[int],
      num_parallel: int,
  ) -> list[tf.Tensor]:
    """Adds a loop over numbers, starting from the zero sum.

    Args:
      start: The first number.
      end: The number after the last one.
      body: Maps a number and a sum to the next number and sum.
      appends: The leaves of the sum that `body` does not read and for which it
        returns rows to append.
      num_parallel: The number of iterations that run at once.

    Returns:
      The sum after the last iteration.
    """

    held = {
        place: _RowList(self._zero[place], self._shapes[place])
        for place in appends
    }
    unread = {place: self._zero[place] for place in held}
    shapes = _put(self._shapes, dict.fromkeys(held, tf.TensorShape([])))

    def turn(number, carried):
      number, total = body(number, _put(carried, unread))
      added = {
          place: one.add(total[place], after=carried[place])
          for place, one in held.items()
      }
      total = _put(total, added)
      for tensor, shape in zip(total, shapes):
        tensor.set_shape(shape)
      return number, total

    first = {place: one.start for place, one in held.items()}
    _, carried = tf.while_loop(
        lambda number, _: number < end,
        turn,
        (start, _put(self._zero, first)),
        shape_invariants=(tf.TensorShape([]), shapes),
        parallel_iterations=num_parallel,
    )
    last = {p: one.read(after=carried[p]) for p, one in held.items()}
    for place, tensor in last.items():
      tensor.set_shape(self._shapes[place])
    return _put(carried, last)


class _RowList:
  """Rows that are appended to a leaf of a sum, as a list until its end.

  Attributes:
    start: The list that holds the rows of the zero sum.
  """

  def __init__(self, zero: tf.Tensor, shape: tf.TensorShape):
    self._dtype = zero.dtype
    self._shape = tf.TensorShape([None]).concatenate(shape[1:])
    empty = list_ops.empty_tensor_list(self._shape, zero.dtype)
    self.start = list_ops.tensor_list_push_back(empty, zero)

  def add(self, rows: tf.Tensor, after: tf.Tensor) -> tf.Tensor:
    """Returns the list with more rows."""
    rows.set_shape(self._shape)
    return list_ops.tensor_list_push_back(after, rows)

  def read(self, after: tf.Tensor) -> tf.Tensor:
    """Returns all rows of a list."""
    return list_ops.tensor_list_concat(after, self._dtype, self._shape)


def _put(leaves: Sequence[Any], others: Mapping[int, Any]) -> list[Any]:
  """Returns the leaves with some of them replaced, by position."""
  return [others.get(place, leaf) for place, leaf in enumerate(leaves)]

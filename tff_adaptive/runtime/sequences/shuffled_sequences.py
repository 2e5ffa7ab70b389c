# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sequences that are shuffled inside the clients' work.

TensorFlow shuffles the numbers of the elements in place of the elements, so
that each iteration has the order that its seeds give, or the law of its buffer.
Shuffles without a seed get one from the seed of the client.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from tff_adaptive import _graph_defs
from tff_adaptive import _random_ops
from tff_adaptive.runtime.sequences import derived_sequences
from tff_adaptive.runtime.sequences import sequences

# Datasets have no other.
_DEVICE = 'CPU:0'
_NUMBER: dict[str, Any] = {'output_types': [tf.int64], 'output_shapes': [[]]}


class _Shuffled(sequences.Sequence):
  """The elements of a sequence, in the order of a dataset of their numbers."""

  is_fixed = False

  def __init__(self, source: sequences.Sequence, numbers: tf.Tensor):
    self._source, self._numbers = source, numbers
    num_all = source.size()
    assert num_all is not None
    self._num_all = num_all
    own_shapes = [sequences.SCALAR, tf.TensorShape([None])]
    self.shapes = [*own_shapes, *source.shapes]
    self.state = [*self._begin_order(), *source.state]

  def begin(self):
    return [*self._begin_order(), *self._source.begin()]

  def _begin_order(self) -> sequences.Tensors:
    """Returns the number of elements that were read, and the order of all."""
    with tf.device(_DEVICE):
      return [tf.zeros([], tf.int64), self._read_order()]

  def _read_order(self) -> tf.Tensor:
    """Returns the order of the next iteration of the numbers."""
    batch = tf.raw_ops.BatchDatasetV2(
        input_dataset=self._numbers,
        batch_size=tf.maximum(self._num_all, 1),
        drop_remainder=False,
        output_types=[tf.int64],
        output_shapes=[[None]],
    )
    (order,) = tf.cond(
        self._num_all > 0,
        lambda: tf.raw_ops.DatasetToSingleElement(
            dataset=batch, output_types=[tf.int64], output_shapes=[[None]]
        ),
        lambda: [tf.zeros([0], tf.int64)],
    )
    return order

  def more(self, state):
    return state[0] < tf.size(state[1], tf.int64)

  def visit(self, state, carry, step):
    number, *rest = state
    found = self.gather(state, number[tf.newaxis])
    carry = step(carry, [tf.squeeze(tensor, 0) for tensor in found])
    return [number + 1, *rest], carry

  def size(self):
    return self._num_all

  def gather(self, state, numbers):
    order = tf.gather(state[1], numbers)
    return self._source.gather(state[2:], order)


def shuffle(
    source: sequences.Sequence,
    node: Any,
    buffer_size: tf.Tensor,
    seed: tf.Tensor,
    seed2: tf.Tensor,
    known: list[tf.Tensor],
) -> tf.Tensor:
  """Returns the dataset of the numbers of a sequence's elements, shuffled.

  Args:
    source: The sequence, of known size.
    node: The `NodeDef` of the shuffle.
    buffer_size: Its input.
    seed: Its input.
    seed2: Its input.
    known: The datasets of its other readers; this one is added.
  """
  if has_drawn_seed(node):
    # Readers may be in any order, which must not change what they draw.
    seed2 += len(known)
  elif known and node.op != 'ShuffleDataset':
    # Of the older op, each reader has an own copy, which begins anew.
    return known[0]
  while isinstance(source, derived_sequences.Mapped):
    source = source.source
  num_all = source.size()
  assert num_all is not None
  with tf.device(_DEVICE):
    known.append(_shuffle_numbers(node, num_all, buffer_size, seed, seed2))
  return known[-1]


def _shuffle_numbers(
    node: Any,
    num_all: tf.Tensor,
    buffer_size: tf.Tensor,
    seed: tf.Tensor,
    seed2: tf.Tensor,
) -> tf.Tensor:
  """Returns a dataset of shuffled numbers, see `shuffle`."""
  options: dict[str, Any] = {}
  if node.op != 'ShuffleDataset':
    options['seed_generator'] = tf.raw_ops.DummySeedGenerator()
  return getattr(tf.raw_ops, node.op)(
      input_dataset=tf.raw_ops.RangeDataset(
          start=tf.zeros_like(num_all),
          stop=num_all,
          step=tf.ones_like(num_all),
          **_NUMBER,
      ),
      # A larger buffer has the same orders.
      buffer_size=tf.where(
          buffer_size < 0, buffer_size, tf.minimum(buffer_size, num_all + 1)
      ),
      seed=seed,
      seed2=seed2,
      reshuffle_each_iteration=_graph_defs.is_set(
          node, 'reshuffle_each_iteration'
      ),
      **_NUMBER,
      **options,
  )


def shuffled(
    source: sequences.Sequence, numbers: tf.Tensor
) -> sequences.Sequence:
  """Returns a sequence in the order of a dataset of `shuffle`."""
  if isinstance(source, derived_sequences.Mapped):
    return source.of(shuffled(source.source, numbers))
  return _Shuffled(source, numbers)


def draw_seeds(graph_def: Any) -> None:
  """Gives shuffles random seeds, in place of those that TensorFlow draws.

  So it does for other datasets that draw. Those of functions that no random op
  could be in, as those of `map`, stay as they are.
  """
  called = _graph_defs.all_called(
      graph_def.node,
      _graph_defs.functions_of(graph_def),
      follows=_random_ops.passes_seed,
  )
  _draw_seeds_in(graph_def.node, ':0')
  for function in called:
    _draw_seeds_in(function.node_def, ':output:0')


def _draw_seeds_in(nodes: Any, output: str) -> None:
  """Gives shuffles random seeds in a graph or a function, in place.

  Args:
    nodes: The nodes.
    output: The suffix of an output after its node's name.
  """
  constants = {node.name: node for node in nodes if node.op == 'Const'}
  for node in list(nodes):
    if _has_no_seed(node, constants):
      for place in _graph_defs.SEED_PLACES[node.op]:
        added = list(_random_number(_seed_name(node, place), output))
        node.input[place] = added[-1].name + output
        nodes.extend(added)


def _seed_name(node: Any, place: int) -> str:
  """Returns the name of the node that draws a seed of a shuffle."""
  return f'{node.name}/seed_{place}'


def has_drawn_seed(node: Any) -> bool:
  """Returns whether `draw_seeds` gave a shuffle its seeds."""
  place = _graph_defs.SEED_PLACES[node.op][0]
  return _graph_defs.node_of(node.input[place]) == _seed_name(node, place)


def _has_no_seed(node: Any, constants: Mapping[str, Any]) -> bool:
  """Returns whether a node has seeds, both of which are constant zeros."""
  names = [
      _graph_defs.node_of(node.input[place])
      for place in _graph_defs.SEED_PLACES.get(node.op, ())
  ]
  return bool(names) and all(
      name in constants
      and not tf.make_ndarray(constants[name].attr['value'].tensor)
      for name in names
  )


def _random_number(name: str, output: str) -> Iterator[Any]:
  """Yields nodes of which the last one draws a positive int64."""
  inputs = []
  for part, value, dtype in (
      ('shape', [], tf.int32),
      ('first', 1, tf.int64),
      ('end', 2**31 - 1, tf.int64),
  ):
    constant = tf.compat.v1.NodeDef(name=f'{name}/{part}', op='Const')
    constant.attr['dtype'].type = dtype.as_datatype_enum
    constant.attr['value'].tensor.CopyFrom(tf.make_tensor_proto(value, dtype))
    inputs.append(constant.name + output)
    yield constant
  drawn = tf.compat.v1.NodeDef(name=name, op='RandomUniformInt', input=inputs)
  drawn.attr['T'].type = tf.int32.as_datatype_enum
  drawn.attr['Tout'].type = tf.int64.as_datatype_enum
  yield drawn

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
"""Clients' sequences as tensors inside a graph.

A TensorFlow computation of TFF takes a sequence as the variant tensor of a
`tf.data.Dataset`, and setting up a dataset costs milliseconds for every client.
Here the variant holds tensors instead: the rows of all clients, and which of
them are in which element of this client's sequence. It passes through function
calls as before; only the ops that read a dataset are replaced, one for one.

The variant is an optional (as of `tf.experimental.Optional`) of

- one tensor of rows for each component of an element, [num_rows, ...];
- `order`, the row numbers of all elements one after the other, [num_picks];
- where in `order` each element starts, and how many rows it has, both
  [num_elements, 1];
- the numbers of the client's first element and of the one after its last;
- 1 if elements are batches of rows, 0 if each is one row without that axis.
"""

import abc
from typing import Any, NamedTuple, Optional

import attrs
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

# Dtype and shape of what a variant holds besides rows.
_INDICES: tuple[tuple[tf.DType, list[Optional[int]]], ...] = (
    (tf.int64, [None]),
    (tf.int64, [None, 1]),
    (tf.int64, [None, 1]),
    (tf.int32, []),
    (tf.int32, []),
    (tf.int32, []),
)
# What `AnonymousIteratorV3` and the variables of TensorFlow call a resource
# that no name leads to; it lives as long as its handle.
ANONYMOUS = 'cd2c89b7-88b7-44c8-ad83-06c2a9158347'

REDUCE_OP = 'ReduceDataset'
ITERATOR_OP = 'AnonymousIteratorV3'
MAKE_ITERATOR_OP = 'MakeIterator'
GET_NEXT_OP = 'IteratorGetNextAsOptional'
# All ops on datasets and iterators that can be replaced.
REPLACED_OPS = frozenset(
    {REDUCE_OP, ITERATOR_OP, MAKE_ITERATOR_OP, GET_NEXT_OP}
)


class Sequence(abc.ABC):
  """One client's sequence inside a graph.

  Attributes:
    rows: The rows of all clients, one tensor for each component of an element.
    start: The number of the first element.
    end: The number of the one after the last element.
  """

  rows: tuple[tf.Tensor, ...]
  start: tf.Tensor
  end: tf.Tensor

  @abc.abstractmethod
  def element(self, number: tf.Tensor) -> list[tf.Tensor]:
    """The components of the element with a number."""

  @abc.abstractmethod
  def to_variant(self) -> tf.Tensor:
    """The variant tensor that stands for the sequence, see the module."""


@attrs.frozen(eq=False)
class RaggedSequence(Sequence):
  """A sequence of batches that differ in size.

  Attributes:
    order: See the module.
    begins: See the module.
    sizes: See the module.
  """

  rows: tuple[tf.Tensor, ...]
  order: tf.Tensor
  begins: tf.Tensor
  sizes: tf.Tensor
  start: tf.Tensor
  end: tf.Tensor

  def element(self, number):
    picks = self.picks(number)
    return [tf.gather(rows, picks) for rows in self.rows]

  def picks(self, number: tf.Tensor) -> tf.Tensor:
    """The numbers of the rows that are in the element with a number."""
    return tf.slice(
        self.order,
        tf.gather(self.begins, number),
        tf.gather(self.sizes, number),
    )

  def to_variant(self):
    return _to_variant(self, tf.ones([], tf.int32))


@attrs.frozen(eq=False)
class ElementSequence(Sequence):
  """A sequence whose elements have one shape: each is a row."""

  rows: tuple[tf.Tensor, ...]
  start: tf.Tensor
  end: tf.Tensor

  def element(self, number):
    return [tf.gather(rows, number) for rows in self.rows]

  def to_variant(self):
    order = tf.range(tf.shape(self.rows[0], tf.int64)[0])
    begins = order[:, tf.newaxis]
    ragged = RaggedSequence(
        self.rows, order, begins, tf.ones_like(begins), self.start, self.end
    )
    return _to_variant(ragged, tf.zeros([], tf.int32))


@attrs.frozen(eq=False)
class _VariantSequence(RaggedSequence):
  """What a variant holds.

  Attributes:
    are_batches: See the module.
  """

  are_batches: tf.Tensor

  def element(self, number):
    picks = self.picks(number)
    batch_shape = tf.shape(picks)[: tf.cast(self.are_batches, tf.int32)]
    return [
        tf.reshape(
            tf.gather(rows, picks),
            tf.concat([batch_shape, tf.shape(rows)[1:]], 0),
        )
        for rows in self.rows
    ]

  def to_variant(self):
    return _to_variant(self, self.are_batches)


def _to_variant(ragged: RaggedSequence, are_batches: tf.Tensor) -> tf.Tensor:
  return tf.raw_ops.OptionalFromValue(
      components=[
          *ragged.rows,
          ragged.order,
          ragged.begins,
          ragged.sizes,
          ragged.start,
          ragged.end,
          are_batches,
      ]
  )


def from_variant(variant: tf.Tensor, dtypes: list[tf.DType]) -> Sequence:
  """Returns what a variant tensor of `Sequence.to_variant` holds.

  Args:
    variant: A scalar of dtype variant.
    dtypes: The dtypes of an element's components.

  Returns:
    The sequence.
  """
  components = tf.raw_ops.OptionalGetValue(
      optional=variant,
      output_types=[*dtypes, *(dtype for dtype, _ in _INDICES)],
      output_shapes=[
          *(tf.TensorShape(None) for _ in dtypes),
          *(shape for _, shape in _INDICES),
      ],
  )
  return _VariantSequence(
      tuple(components[: len(dtypes)]), *components[len(dtypes) :]
  )


class ReplacedOp(NamedTuple):
  """What stands in for an op.

  Attributes:
    function: What computes its outputs from its inputs.
    input_dtypes: The dtypes of its inputs.
  """

  function: Any
  input_dtypes: list[tf.DType]


def _attr_dtypes(node: Any, name: str) -> list[tf.DType]:
  return [tf.as_dtype(t) for t in node.attr[name].list.type]


def _call_by_name(
    signature: Any,
    output_dtypes: list[tf.DType],
    jit_compile: bool,
    *arguments: tf.Tensor,
) -> list[tf.Tensor]:
  """Calls a function that the runtime knows by its name."""
  call = (
      tf.raw_ops.StatefulPartitionedCall
      if signature.is_stateful
      else tf.raw_ops.PartitionedCall
  )
  results = call(args=arguments, Tout=output_dtypes, f=signature.name)
  if jit_compile and results:
    # As `tf.function(jit_compile=True)` does it. A scope for attributes would
    # reach the ops that bring arguments into a loop, too.
    results[0].op._set_attr(  # pylint: disable=protected-access
        '_XlaMustCompile', attr_value_pb2.AttrValue(b=True)
    )
  return results


def build_reduction(
    node: Any,
    reduce_signature: Any,
    jit_compile: bool = False,
) -> ReplacedOp:
  """Returns the loop over a sequence that stands in for `ReduceDataset`.

  Args:
    node: The `NodeDef` of the op.
    reduce_signature: The `OpDef` of the function that is applied to (state,
      element, other arguments).
    jit_compile: Whether XLA compiles the function; it never compiles one that
      takes strings.

  Returns:
    A function of (sequence or its variant, state, other arguments) to the final
    state.
  """
  states = _attr_dtypes(node, 'Tstate')
  others = _attr_dtypes(node, 'Targuments')
  arguments = [tf.as_dtype(arg.type) for arg in reduce_signature.input_arg]
  elements = arguments[len(states) : len(arguments) - len(others)]
  jit_compile = jit_compile and tf.string not in arguments
  shapes = [
      tf.TensorShape(shape) for shape in node.attr['output_shapes'].list.shape
  ]

  def reduce(sequence, *arguments):
    if not isinstance(sequence, Sequence):
      sequence = from_variant(sequence, elements)
    initial = arguments[: len(states)]
    captured = arguments[len(states) :]

    def step(number, *state):
      new_state = _call_by_name(
          reduce_signature,
          states,
          jit_compile,
          *state,
          *sequence.element(number),
          *captured,
      )
      for tensor, shape in zip(new_state, shapes):
        tensor.set_shape(shape)
      return (number + 1, *new_state)

    _, *final = tf.while_loop(
        lambda number, *_: number < sequence.end,
        step,
        (sequence.start, *initial),
        shape_invariants=(tf.TensorShape([]), *shapes),
        # A step begins when all effects of the one before it have taken place.
        parallel_iterations=1,
    )
    return final

  return ReplacedOp(reduce, [tf.variant, *states, *others])


def build_get_next(node: Any) -> ReplacedOp:
  """Returns what stands in for `IteratorGetNextAsOptional`.

  Args:
    node: The `NodeDef` of the op.

  Returns:
    A function from the handle of a variable, which holds the variant of the
    elements to come, to an optional with the next one.
  """
  dtypes = _attr_dtypes(node, 'output_types')

  def get_next(handle):
    variant = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.variant)
    variant = tf.ensure_shape(variant, [])
    sequence = from_variant(variant, dtypes)

    def some():
      rest = attrs.evolve(sequence, start=sequence.start + 1)
      with tf.control_dependencies([variant]):
        tf.raw_ops.AssignVariableOp(resource=handle, value=rest.to_variant())
      return tf.raw_ops.OptionalFromValue(
          components=sequence.element(sequence.start)
      )

    return tf.cond(sequence.start < sequence.end, some, tf.raw_ops.OptionalNone)

  return ReplacedOp(get_next, [tf.resource])

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The variant tensor of one client's sequence.

A TFF TensorFlow computation takes a sequence as the variant tensor of a
`tf.data.Dataset`, and creating a dataset costs milliseconds for each client.
Here the variant holds tensors instead: the rows of all clients, and the indices
of the rows in each element of this client's sequence. It passes unchanged
through function calls. It is an optional (see `tf.experimental.Optional`) of

- the fields of a `PackedClients` of one client, with one tensor of rows for
  each component of an element;
- 1 if elements are batches of rows, 0 if each is one row without a batch axis.
"""

from typing import NamedTuple, Optional

import tensorflow as tf

from tff_adaptive.data import batching
from tff_adaptive.runtime.sequences import sequences

# The dtype and shape of the fields of a variant other than rows.
_INDICES: tuple[tuple[tf.DType, list[Optional[int]]], ...] = (
    (tf.int64, [None]),
    (tf.int64, [None, 1]),
    (tf.int64, [None, 1]),
    (tf.int32, []),
    (tf.int32, []),
    (tf.int32, []),
)


def to_variant(client: batching.PackedClients) -> tf.Tensor:
  """Returns the variant tensor for one client's sequence."""
  if not isinstance(client.order, tuple):
    return _pack(client, tf.ones([], tf.int32))
  order = tf.range(tf.shape(client.rows[0], tf.int64)[0])
  begins = order[:, tf.newaxis]
  ragged = client._replace(
      order=order, begins=begins, sizes=tf.ones_like(begins)
  )
  return _pack(ragged, tf.zeros([], tf.int32))


def _pack(client: batching.PackedClients, are_batches: tf.Tensor) -> tf.Tensor:
  return tf.raw_ops.OptionalFromValue(
      components=[*client.rows, *client[1:], are_batches]
  )


class Variant(NamedTuple):
  """The fields of a variant, see the module docstring."""

  client: batching.PackedClients
  are_batches: tf.Tensor

  def rest(self) -> tf.Tensor:
    """Returns the variant tensor of what follows the first element."""
    rest = self.client._replace(starts=self.client.starts + 1)
    return _pack(rest, self.are_batches)

  def element(self, number: tf.Tensor) -> list[tf.Tensor]:
    """Returns an element, if only a tensor tells whether it is a batch."""
    size = tf.gather(self.client.sizes, number)
    picks = sequences.picks_of(self.client, number, size)
    batch_shape = tf.shape(picks)[: tf.cast(self.are_batches, tf.int32)]
    return [
        tf.reshape(
            tf.gather(rows, picks),
            tf.concat([batch_shape, tf.shape(rows)[1:]], 0),
        )
        for rows in self.client.rows
    ]


def from_variant(variant: tf.Tensor, dtypes: list[tf.DType]) -> Variant:
  """Returns the fields of a variant tensor of `to_variant`."""
  components = tf.raw_ops.OptionalGetValue(
      optional=variant,
      output_types=[*dtypes, *(dtype for dtype, _ in _INDICES)],
      output_shapes=[
          *(tf.TensorShape(None) for _ in dtypes),
          *(shape for _, shape in _INDICES),
      ],
  )
  *indices, are_batches = components[len(dtypes) :]
  client = batching.PackedClients(tuple(components[: len(dtypes)]), *indices)
  return Variant(client, are_batches)

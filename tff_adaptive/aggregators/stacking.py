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
"""Stacking of what clients report, one row or a few for each of them."""

from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff


def _check(spec: tf.TensorSpec, value_type: tff.Type) -> None:
  """Raises unless a tensor is a number of rows of one shape."""
  if not (spec.shape.rank and spec.shape[1:].is_fully_defined()):
    raise TypeError(
        'Each tensor to be stacked must have a first axis, its rows, and '
        f'otherwise a known shape, found {spec.shape} in {value_type}; give it '
        'an axis with `tensor[tf.newaxis]`.'
    )


def stack_at_server(value: Any, keep: Optional[Any] = None) -> Any:
  """Concatenates the rows of all clients at the server.

  Called within a `federated_computation`. A client that has nothing to say
  reports no rows; or rows and a false `keep`, so that the reports of all
  clients have the same shapes and the clients may be worked on at once. Each
  client's rows stay together, and clients come in the order of the argument: so
  the compiled runtime has it, with Ray or without, and TFF's native runtime,
  whoever is done first.

  Args:
    value: A value placed at clients: a structure of tensors of any dtype, whose
      first axis counts rows. Its size may be unknown, and 0.
    keep: A boolean placed at clients: whether the rows of a client count, by
      default those of all.

  Returns:
    The same structure, placed at the server, every tensor of shape [rows of all
    clients, ...]; without a client there are 0 rows.

  Raises:
    TypeError: If a tensor is a scalar, or unknown in another axis than its
      first.

  Example:

    >>> rows_type = tff.TensorType(np.float32, [None, 2])
    >>> @tff.federated_computation(tff.FederatedType(rows_type, tff.CLIENTS))
    ... def stack(rows):
    ...   return stack_at_server(rows)
    >>> reports = [np.ones([size, 2], np.float32) for size in (1, 0, 3)]
    >>> with runtime.native_context():
    ...   rows = stack(reports)
    >>> rows.shape
    (4, 2)
  """
  value_type = value.type_signature.member
  specs = tff.types.type_to_tf_tensor_specs(value_type)
  for spec in tf.nest.flatten(specs):
    _check(spec, value_type)
  stacked_type = tff.types.tensorflow_to_type(
      tf.nest.map_structure(
          lambda spec: tf.TensorSpec([None, *spec.shape[1:]], spec.dtype), specs
      )
  )

  @tff.tensorflow.computation
  def zero():
    return tf.nest.map_structure(
        lambda spec: tf.zeros([0, *spec.shape[1:]], spec.dtype), specs
    )

  def concatenate(left, right):
    return tf.nest.map_structure(
        lambda *rows: tf.concat(rows, axis=0), left, right
    )

  def concatenate_kept(left, right):
    rows, keep = right
    # Chosen, not multiplied: what is dropped may be NaN.
    kept = tf.nest.map_structure(
        lambda leaf: leaf[: tf.where(keep, tf.shape(leaf)[0], 0)], rows
    )
    return concatenate(left, kept)

  @tff.tensorflow.computation(stacked_type)
  def report(rows):
    return rows

  add = concatenate
  if keep is not None:
    value, add = tff.federated_zip((value, keep)), concatenate_kept
  reported_type = value.type_signature.member
  accumulate = tff.tensorflow.computation(add, stacked_type, reported_type)
  merge = tff.tensorflow.computation(concatenate, stacked_type, stacked_type)
  return tff.federated_aggregate(value, zero(), accumulate, merge, report)

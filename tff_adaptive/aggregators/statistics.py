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
"""Aggregation of scalars that describe the clients of a round."""

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

_REDUCERS = collections.OrderedDict(sum=tf.add, min=tf.minimum, max=tf.maximum)


def _neutral(reduction: str, dtype: Any) -> tf.Tensor:
  """What changes nothing when it is reduced with another value."""
  dtype = tf.as_dtype(dtype)
  value = {
      'sum': 0,
      'min': float('inf') if dtype.is_floating else dtype.max,
      'max': -float('inf') if dtype.is_floating else dtype.min,
  }[reduction]
  return tf.constant(value, dtype)


def aggregate_statistics(client_statistics: Any) -> Any:
  """Reduces scalars at clients to scalars at the server.

  Called within a `federated_computation`.

  Args:
    client_statistics: A value placed at clients: an ordered dictionary from
      'sum', 'min' and 'max', in this order, to ordered dictionaries from names
      to scalars, which are reduced by what their key says.

  Returns:
    The same structure, placed at the server. Without a client, sums are 0,
    minima are the largest and maxima the smallest value of their dtype.

  Raises:
    ValueError: If the outer keys are not those three.
  """
  value_type = client_statistics.type_signature.member
  names = [name for name, _ in tff.structure.iter_elements(value_type)]
  if names != list(_REDUCERS):
    raise ValueError(
        f'Statistics must have the keys {list(_REDUCERS)}, found {names}.'
    )

  @tff.tensorflow.computation
  def zero():
    return collections.OrderedDict(
        (
            reduction,
            collections.OrderedDict(
                (name, _neutral(reduction, scalar.dtype))
                for name, scalar in tff.structure.iter_elements(
                    value_type[reduction]
                )
            ),
        )
        for reduction in _REDUCERS
    )

  @tff.tensorflow.computation(value_type, value_type)
  def reduce(left, right):
    return collections.OrderedDict(
        (
            reduction,
            tf.nest.map_structure(reducer, left[reduction], right[reduction]),
        )
        for reduction, reducer in _REDUCERS.items()
    )

  @tff.tensorflow.computation(value_type)
  def identity(value):
    return value

  return tff.federated_aggregate(
      client_statistics, zero(), reduce, reduce, identity
  )

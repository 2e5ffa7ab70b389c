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
"""The largest value of a cohort."""

from typing import Any

import tensorflow as tf
import tensorflow_federated as tff


class MaximumFactory(tff.aggregators.WeightedAggregationFactory):
  """The largest value of the clients with a weight above zero.

  A maximum is no sum: nothing protects it, and secure summation or noise cannot
  be put on it. Without such a client it is the smallest number of its dtype.
  """

  def create(
      self, value_type: Any, weight_type: Any
  ) -> tff.templates.AggregationProcess:
    """Creates the process, see `tff.aggregators.WeightedAggregationFactory`."""
    dtype = value_type.dtype

    @tff.federated_computation
    def initialize():
      return tff.federated_value((), tff.SERVER)

    @tff.tensorflow.computation
    def smallest():
      return tf.constant(tf.as_dtype(dtype).min, dtype)

    @tff.tensorflow.computation(value_type, weight_type)
    def select(value, weight):
      return tf.where(weight > 0, value, tf.as_dtype(dtype).min)

    @tff.tensorflow.computation(value_type, value_type)
    def larger(left, right):
      return tf.maximum(left, right)

    @tff.tensorflow.computation(value_type)
    def identity(value):
      return value

    @tff.federated_computation(
        initialize.type_signature.result,
        tff.FederatedType(value_type, tff.CLIENTS),
        tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      selected = tff.federated_map(select, (value, weight))
      largest = tff.federated_aggregate(
          selected, smallest(), larger, larger, identity
      )
      return tff.templates.MeasuredProcessOutput(
          state, largest, tff.federated_value((), tff.SERVER)
      )

    return tff.templates.AggregationProcess(initialize, next_fn)

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
"""What a round reports of its clients."""

import collections
from typing import Any

import tensorflow as tf

_OrderedDict = collections.OrderedDict


def measure_clients(
    aggregated: Any, bytes_down: int, bytes_up: int
) -> '_OrderedDict[str, tf.Tensor]':
  """The round's metrics, from the aggregated statistics of its clients.

  Args:
    aggregated: What `tff_adaptive.aggregators.aggregate_statistics` gives.
    bytes_down: How many bytes a client receives.
    bytes_up: How many bytes a client sends.

  Returns:
    See `build_local_training_client_work`, under `clients`.
  """
  sums = aggregated['sum']
  examples, steps = (
      tf.cast(sums[key], tf.float32) for key in ('num_examples', 'num_steps')
  )
  measured = _OrderedDict(
      [
          ('loss', sums['loss'] / examples),
          ('num_clients', sums['num_clients']),
          ('num_rejected', sums['num_clients'] - sums['num_healthy']),
          ('num_examples', sums['num_examples']),
          ('num_steps', sums['num_steps']),
          ('num_gradient_evaluations', sums['num_gradient_evaluations']),
      ]
  )
  nothing = tf.constant(float('nan'))
  for name in aggregated['min']:
    measured[f'{name}_mean'] = sums[name] / steps
    for key in ('min', 'max'):
      value = aggregated[key][name]
      measured[f'{name}_{key}'] = tf.where(steps > 0.0, value, nothing)
  measured['bytes_down'] = sums['num_clients'] * bytes_down
  measured['bytes_up'] = sums['num_clients'] * bytes_up
  return measured

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
"""What an evaluation finds client by client, and its summary."""

import collections
from collections.abc import Iterable, Mapping
import math
from typing import Any

import attrs
import numpy as np

LOSS_KEY = 'loss'
_MEAN = 'mean'
_WEIGHTED_MEAN = 'weighted_mean'
_MEDIAN = 'median'
_WORST_DECILE = 'worst_decile'


def _as_ids(client_ids: Iterable[str]) -> tuple[str, ...]:
  return tuple(client_ids)


def _as_values(
    values: Mapping[str, Any],
) -> 'collections.OrderedDict[str, np.ndarray]':
  return collections.OrderedDict(
      (name, np.asarray(array, np.float64)) for name, array in values.items()
  )


def smaller_is_better(metric: str) -> bool:
  """Returns whether the largest values of a metric are the worst ones.

  Args:
    metric: Its name, such as 'accuracy'.

  Returns:
    True for a loss, False for everything else.

  Example:

    >>> smaller_is_better('loss')
    True
  """
  return metric == LOSS_KEY or metric.endswith('_loss')


@attrs.frozen(eq=False)
class ClientMetrics:
  """The metrics of every client that was evaluated.

  Attributes:
    client_ids: The clients, in the order of their source.
    num_examples: How many examples of each were evaluated, int64 of shape
      [num_clients].
    values: Names of metrics and their values, float64 of shape [num_clients],
      the loss first.

  Raises:
    ValueError: If an array has not one value a client.

  Example:

    >>> found = ClientMetrics(
    ...     ['a', 'b'], [1, 3], {'accuracy': [1.0, 0.5]})
    >>> found.summarize()['accuracy_weighted_mean']
    0.625
  """

  client_ids: tuple[str, ...] = attrs.field(converter=_as_ids)
  num_examples: np.ndarray = attrs.field(
      converter=lambda array: np.asarray(array, np.int64)
  )
  values: Mapping[str, np.ndarray] = attrs.field(converter=_as_values)

  def __attrs_post_init__(self):
    expected = (len(self.client_ids),)
    arrays = {'num_examples': self.num_examples, **self.values}
    for name, array in arrays.items():
      if array.shape != expected:
        raise ValueError(
            f'`{name}` must have one value for each of {expected[0]} clients, '
            f'found shape {array.shape}.'
        )

  def summarize(
      self, prefix: str = ''
  ) -> 'collections.OrderedDict[str, float]':
    """Returns what all clients together say of every metric.

    With the values v_i of n clients and their examples m_i:

    - `mean`: sum_i v_i / n, every client counts the same;
    - `weighted_mean`: sum_i m_i v_i / sum_i m_i, every example counts the same:
      what one evaluation of all examples gives, where a metric is a mean over
      them;
    - `median`: of the v_i;
    - `worst_decile`: the mean of the worst n / 10 of the v_i, rounded down,
      but of one at least. The worst are the largest of a loss, and the smallest
      of other metrics.

    A value that is NaN makes the numbers of its metric NaN.

    Args:
      prefix: What the names begin with, such as 'clients/'. Nothing by default.

    Returns:
      An ordered dictionary of '<prefix><metric>_<number>' and floats.

    References:
      Li et al., Fair Resource Allocation in Federated Learning, ICLR 2020,
      https://arxiv.org/abs/1905.10497, reports the worst 10 % of clients in
      this way.
    """
    summary = collections.OrderedDict()
    for metric, values in self.values.items():
      for name, value in _summarize(metric, values, self.num_examples).items():
        summary[f'{prefix}{metric}_{name}'] = value
    return summary


def _summarize(
    metric: str, values: np.ndarray, num_examples: np.ndarray
) -> dict[str, float]:
  """Returns the four numbers of one metric."""
  if not len(values):
    return dict.fromkeys(
        (_MEAN, _WEIGHTED_MEAN, _MEDIAN, _WORST_DECILE), math.nan
    )
  sign = 1.0 if smaller_is_better(metric) else -1.0
  # Sorting puts NaN last, so that it is among the worst.
  from_best = sign * np.sort(sign * values)
  num_worst = max(1, len(values) // 10)
  return {
      _MEAN: float(values.mean()),
      _WEIGHTED_MEAN: float(np.average(values, weights=num_examples)),
      _MEDIAN: float(np.median(values)),
      _WORST_DECILE: float(from_best[-num_worst:].mean()),
  }

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The metrics of clients, and their statistics."""

import collections
from collections.abc import Mapping
import math
from typing import Any, NamedTuple, Optional

import attrs
import numpy as np

from tff_adaptive import _metric_modes


def _as_values(
    values: Mapping[str, Any],
) -> 'collections.OrderedDict[str, np.ndarray]':
  return collections.OrderedDict(
      (name, np.asarray(array, np.float64)) for name, array in values.items()
  )


@attrs.frozen(eq=False)
class ClientMetrics:
  """The metrics of each evaluated client.

  Attributes:
    client_ids: The clients, in the order of their source.
    num_examples: The number of evaluated examples of each client, int64 of
      shape [num_clients].
    values: The values of each metric by name, float64 of shape [num_clients],
      the loss first.
    modes: 'max' or 'min' by metric, for metrics whose name does not tell
      whether larger values are better. Defaults to none.

  Raises:
    ValueError: If an array does not have one value per client, or a mode is
      unknown.

  Example:
    >>> found = ClientMetrics(
    ...     ['a', 'b'], [1, 3], {'accuracy': [1.0, 0.5]})
    >>> found.summarize()['accuracy_weighted_mean']
    0.625
  """

  client_ids: tuple[str, ...] = attrs.field(converter=tuple[str, ...])
  num_examples: np.ndarray = attrs.field(
      converter=lambda array: np.asarray(array, np.int64)
  )
  values: Mapping[str, np.ndarray] = attrs.field(converter=_as_values)
  modes: Mapping[str, str] = attrs.field(factory=dict)

  def __attrs_post_init__(self):
    expected = (len(self.client_ids),)
    arrays = {'num_examples': self.num_examples, **self.values}
    for name, array in arrays.items():
      if array.shape != expected:
        raise ValueError(
            f'`{name}` must have one value for each of {expected[0]} clients, '
            f'found shape {array.shape}.'
        )
    _metric_modes.check_modes(self.modes, self.modes, '`modes`')

  def summarize(
      self, prefix: str = ''
  ) -> 'collections.OrderedDict[str, float]':
    """Returns statistics of every metric over clients.

    With the values v_i of n clients and their examples m_i:

    - `mean`: sum_i v_i / n, every client counts the same;
    - `weighted_mean`: sum_i m_i v_i / sum_i m_i, every example counts the same:
      the value on all examples together, if a metric is a mean over examples;
    - `median`: the median of the v_i;
    - `worst_decile`: the mean of the worst floor(n / 10) of the v_i, at least
      one. The worst are the largest values of a metric whose mode is 'min',
      such as a loss, and the smallest if it is 'max'. Left out for counts, such
      as `num_examples`, and for names without a mode.

    A NaN makes all statistics of its metric NaN, as does a lack of examples.

    Args:
      prefix: A prefix of the names, such as 'clients/'. Defaults to ''.

    Returns:
      An ordered dictionary of floats, named '<prefix><metric>_<statistic>'.

    References:
      Li et al., Fair Resource Allocation in Federated Learning, ICLR 2020,
      https://arxiv.org/abs/1905.10497, reports the worst 10 % of clients in
      this way.
    """
    summary = collections.OrderedDict()
    for metric, values in self.values.items():
      mode = self.modes.get(metric) or _metric_modes.find_mode(metric)
      for name, value in _summarize(values, self.num_examples, mode).items():
        summary[f'{prefix}{metric}_{name}'] = value
    return summary


def _summarize(
    values: np.ndarray, num_examples: np.ndarray, mode: Optional[str]
) -> dict[str, float]:
  """Returns the statistics of one metric; `worst_decile` needs a mode."""
  if not np.any(num_examples):  # Statistics of no examples are NaN.
    values, num_examples = np.array([math.nan]), np.ones([1])
  found = {
      'mean': float(values.mean()),
      'weighted_mean': float(np.average(values, weights=num_examples)),
      'median': float(np.median(values)),
  }
  if mode is not None:
    sign = -1.0 if mode == _metric_modes.MAX else 1.0
    # Sorting puts NaN last, so that it counts as worst.
    from_best = sign * np.sort(sign * values)
    num_worst = max(1, len(values) // 10)
    found['worst_decile'] = float(from_best[-num_worst:].mean())
  return found


class PersonalizedMetrics(NamedTuple):
  """The metrics of clients before and after fine-tuning.

  Attributes:
    before: The metrics of the weights that every client received.
    after: The metrics of the fine-tuned weights, for the same clients.
  """

  before: ClientMetrics
  after: ClientMetrics

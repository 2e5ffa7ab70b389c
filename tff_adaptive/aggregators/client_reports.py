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
"""What clients report to a server rule besides the change of their model."""

import collections
from collections.abc import Mapping, Sequence
import enum

from tff_adaptive.aggregators import maximum
from tff_adaptive.aggregators import named
from tff_adaptive.aggregators import weighting

_OrderedDict = collections.OrderedDict


class ClientReport(enum.Enum):
  """A scalar that every client reports, and how clients' scalars are combined.

  All are means with the weights of the model's change, but for
  `LAST_STEP_SIZE`, of which the largest counts. The values are the names in
  `payload_aggregators` and in what a `ReportsOptimizer` sees.

  Attributes:
    SQUARED_NORM: The squared norm of the change, over all trainable weights.
    MEAN_LOSS: The mean over local batches of the loss before each step; batches
      count the same, whatever their size.
    RECEIVED_MODEL_LOSS: The same mean, of the losses of the model that was
      received.
    LAST_LOSS: The loss before the last local step.
    LAST_STEP_SIZE: The step size of the last local step.
  """

  SQUARED_NORM = 'squared_norm'
  MEAN_LOSS = 'mean_loss'
  RECEIVED_MODEL_LOSS = 'received_model_loss'
  LAST_LOSS = 'last_loss'
  LAST_STEP_SIZE = 'last_step_size'

  @property
  def is_maximum(self) -> bool:
    """Whether the largest of the clients' scalars counts, not their mean."""
    return self is ClientReport.LAST_STEP_SIZE


def build_reports_factory(
    reports: Sequence[ClientReport],
    aggregators: Mapping[str, weighting.Aggregator],
    weighs_examples: bool,
) -> named.NamedFactory:
  """Builds the aggregation of clients' reports.

  Args:
    reports: What clients report.
    aggregators: Aggregation factories by the names of reports; a report without
      one is averaged, or its maximum is taken, in the clear.
    weighs_examples: Whether clients are weighted by their examples.

  Returns:
    The factory for ordered dictionaries of scalars by the reports' names.

  Raises:
    TypeError: If an aggregator is no aggregation factory.
    ValueError: If an aggregator is given for a maximum, or an unweighted one
      where clients are weighted by their examples.

  Example:

    >>> factory = build_reports_factory(
    ...     [ClientReport.SQUARED_NORM], {}, weighs_examples=True)
    >>> isinstance(factory, tff.aggregators.WeightedAggregationFactory)
    True
  """
  factories = _OrderedDict()
  for report in reports:
    given = aggregators.get(report.value)
    if not report.is_maximum:
      factories[report.value] = weighting.to_weighted(
          given, weighs_examples, f'The aggregator of {report.value!r}'
      )
      continue
    if given is not None:
      raise ValueError(
          f'Of the report {report.value!r} the largest counts, which is no sum:'
          f' {type(given).__name__} cannot be put on it. Leave its aggregator '
          'out, or choose a server rule that needs no maximum.'
      )
    factories[report.value] = maximum.MaximumFactory()
  return named.NamedFactory(factories)

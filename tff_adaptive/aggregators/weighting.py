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
"""The weighted form of the aggregators that users give."""

from collections.abc import Collection, Mapping
from typing import Any, Optional, Union

import tensorflow_federated as tff

Aggregator = Union[
    tff.aggregators.WeightedAggregationFactory,
    tff.aggregators.UnweightedAggregationFactory,
]


def to_weighted(
    aggregator: Optional[Aggregator], weighs_examples: bool, argument: str
) -> tff.aggregators.WeightedAggregationFactory:
  """The weighted form of what the user gave.

  Args:
    aggregator: A weighted or an unweighted factory; `None` for the mean.
    weighs_examples: Whether clients are weighted by their examples.
    argument: Where the user gave it, for messages.

  Returns:
    The factory; that of an unweighted one ignores the weights.

  Raises:
    TypeError: If it is no aggregation factory.
    ValueError: If an unweighted factory would ignore numbers of examples.
  """
  if aggregator is None:
    return tff.aggregators.MeanFactory()
  if isinstance(aggregator, tff.aggregators.WeightedAggregationFactory):
    return aggregator
  if not isinstance(aggregator, tff.aggregators.UnweightedAggregationFactory):
    raise TypeError(
        f'{argument} must be a `tff.aggregators` factory, found '
        f'{type(aggregator)}.'
    )
  if weighs_examples:
    raise ValueError(
        f'{argument} is unweighted ({type(aggregator).__name__}) and would '
        'ignore the number of examples: pass '
        '`client_weighting=tff.learning.ClientWeighting.UNIFORM`, or a weighted'
        ' aggregator.'
    )
  return tff.aggregators.as_weighted_aggregator(aggregator)


def check_names(given: Any, sent: Collection[str], argument: str) -> None:
  """Raises if aggregators are given for parts that nobody sends.

  Args:
    given: What the user gave, aggregators by name.
    sent: The names of what clients send besides the change of the model.
    argument: Where the user gave them, for messages.

  Raises:
    TypeError: If they are not given by name.
    ValueError: If a name is not known.
  """
  if not isinstance(given, Mapping):
    raise TypeError(
        f'{argument} must map names to aggregators, found {type(given)}.'
    )
  unknown = [name for name in given if name not in sent]
  if unknown:
    raise ValueError(
        f'{argument} has an aggregator for {unknown[0]!r}, which no client '
        'sends; besides the change of the model clients send '
        f'{sorted(sent) or "nothing"}.'
    )

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
"""Several aggregations side by side."""

import collections
from collections.abc import Mapping
from typing import Any

import tensorflow_federated as tff

_OrderedDict = collections.OrderedDict


class NamedFactory(tff.aggregators.WeightedAggregationFactory):
  """Aggregates each part of an ordered dictionary by a factory of its own.

  State and measurements are ordered dictionaries with the same names.
  """

  def __init__(
      self,
      factories: Mapping[str, tff.aggregators.WeightedAggregationFactory],
  ):
    """Initializes the factory.

    Args:
      factories: A factory for each name of the values, in their order.
    """
    self._factories = _OrderedDict(factories)

  def create(
      self, value_type: Any, weight_type: Any
  ) -> tff.templates.AggregationProcess:
    """Creates the process, see `tff.aggregators.WeightedAggregationFactory`."""
    processes = _OrderedDict(
        (name, factory.create(value_type[name], weight_type))
        for name, factory in self._factories.items()
    )

    def zip_parts(parts):
      return tff.federated_zip(_OrderedDict(parts))

    @tff.federated_computation
    def initialize():
      return zip_parts((n, p.initialize()) for n, p in processes.items())

    @tff.federated_computation(
        initialize.type_signature.result,
        tff.FederatedType(value_type, tff.CLIENTS),
        tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      outputs = _OrderedDict(
          (name, process.next(state[name], value[name], weight))
          for name, process in processes.items()
      )
      return tff.templates.MeasuredProcessOutput(
          *(
              zip_parts((n, getattr(o, part)) for n, o in outputs.items())
              for part in ('state', 'result', 'measurements')
          )
      )

    return tff.templates.AggregationProcess(initialize, next_fn)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that TFF's aggregators give the same on compiled and native runtime.

Values are scalars, vectors, structs and structs of several dtypes. What draws
random numbers is in `random_aggregators_test`.
"""

import collections
import itertools
from typing import Any

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing

_Dict = collections.OrderedDict
_aggregators = tff.aggregators
_FACTORS = (1, 2, 30)


def _quantile(initial: float) -> Any:
  return _aggregators.PrivateQuantileEstimationProcess.no_noise(
      initial, 0.5, 0.2
  )


_AGGREGATORS = {
    'sum': _aggregators.SumFactory,
    'mean': _aggregators.MeanFactory,
    'unweighted_mean': _aggregators.UnweightedMeanFactory,
    'clipping': lambda: _aggregators.clipping_factory(
        _quantile(2.0), _aggregators.SumFactory()
    ),
    'zeroing': lambda: _aggregators.zeroing_factory(
        5.0, _aggregators.MeanFactory(), norm_order=1.0
    ),
    'zeroing_by_largest': lambda: _aggregators.zeroing_factory(
        5.0, _aggregators.SumFactory(), norm_order=np.inf
    ),
    'robust': tff.learning.robust_aggregator,
    'secure': tff.learning.secure_aggregator,
    'secure_sum': lambda: _aggregators.SecureSumFactory(100, -100),
    'secure_sum_that_adapts': lambda: _aggregators.SecureSumFactory(
        _quantile(50.0)
    ),
    'secure_modular': lambda: _aggregators.SecureModularSumFactory(
        8, symmetric_range=True
    ),
    'concatenation': lambda: _aggregators.concat_factory(
        _aggregators.SumFactory()
    ),
    'noise': lambda: _aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
        1e-9, 10, 2.0
    ),
}
_VALUES = {
    'scalar': (np.float32, lambda k: 1.0 * k),
    'vector': ((np.float32, [3]), lambda k: k * np.float32([1, 2, 3])),
    'struct': (
        _Dict(a=np.float32, b=((np.float32, [2, 2]),)),
        lambda k: _Dict(a=1.0 * k, b=(k * np.ones([2, 2], np.float32),)),
    ),
    'several_dtypes': (
        (np.float32, (np.float64, [2])),
        lambda k: (1.0 * k, k * np.float64([1, 2])),
    ),
    'integers': ((np.int32, [2]), lambda k: k * np.array([1, 2], np.int32)),
}
# The dtypes that TFF's aggregators accept.
_OF_INTEGERS = ('sum', 'secure_sum', 'secure_modular')
_OF_INTEGERS_ALONE = ('secure_sum', 'secure_modular')
_OF_ONE_DTYPE = ('concatenation', 'noise', 'secure', 'secure_sum_that_adapts')


def _pairs() -> list[tuple[str, str, str]]:
  return [
      (f'{aggregator}_of_{value}', aggregator, value)
      for aggregator, value in itertools.product(_AGGREGATORS, _VALUES)
      if (value == 'integers') <= (aggregator in _OF_INTEGERS)
      and (aggregator in _OF_INTEGERS_ALONE) <= (value == 'integers')
      and (aggregator in _OF_ONE_DTYPE) <= (value != 'several_dtypes')
  ]


@pytest.mark.filterwarnings('ignore:Secure sums are computed in the clear')
class AggregatorsTest(equality_testing.TestCase):

  @pytest.fixture(autouse=True)
  def _use_secure_runtime(self, secure_test_runtime):
    with tff.framework.get_context_stack().install(secure_test_runtime):
      yield

  @parameterized.named_parameters(*_pairs())
  @pytest.mark.sample(4)
  def test_give_the_same(self, aggregator, value):
    factory = _AGGREGATORS[aggregator]()
    value_type, build = _VALUES[value]
    types = [tff.to_type(value_type)]
    arguments = [list(map(build, _FACTORS))]
    if isinstance(factory, _aggregators.WeightedAggregationFactory):
      types.append(tff.to_type(np.float32))
      arguments.append([1.0, 2.0, 3.0])
    process = factory.create(*types)
    state = process.initialize()
    for _ in range(2):
      # The second round has the state that the first one leaves.
      expected = process.next(state, *arguments)
      with equality_testing.compiled():
        found = process.next(state, *arguments)
      for name in ('state', 'result', 'measurements'):
        self.assert_same(
            getattr(expected, name), getattr(found, name), 1e-5, name
        )
      state = expected.state

  @pytest.mark.slow
  def test_hierarchical_histograms(self):
    process = tff.analytics.build_hierarchical_histogram_process(
        0.0,
        1.0,
        4,
        dp_mechanism='distributed-discrete-gaussian',
        noise_multiplier=1e-5,
        expected_clients_per_round=3,
    )
    clients = [
        tf.data.Dataset.from_tensor_slices(np.float32(numbers))
        for numbers in ([0.1, 0.5, 0.6], [0.2], [0.9, 0.95])
    ]
    _, expected = process.next(process.initialize(), clients)
    with equality_testing.compiled():
      _, found = process.next(process.initialize(), clients)
    for left, right in zip(tf.nest.flatten(expected), tf.nest.flatten(found)):
      self.assertAllEqual(left, right)

  @parameterized.parameters('functional', 'variable')
  @pytest.mark.slow
  def test_secure_aggregator(self, kind):
    process = tff.learning.algorithms.build_weighted_fed_avg(
        testing.either_model(kind),
        tff.learning.optimizers.build_sgdm(0.1),
        model_aggregator=tff.learning.secure_aggregator(),
    )
    cohorts = [equality_testing.cohort(0), equality_testing.cohort(1)]
    self.assert_process_equals(process, map(list, cohorts), cohorts)

  def test_secure_sums(self):
    @tff.federated_computation(testing.at_clients((np.int32, (np.int32, [2]))))
    def add_up(values):
      return tff.federated_secure_sum_bitwidth(values, 8)

    found = self.assert_equals(add_up, [(1, [2, 3]), (4, [5, 6])])
    self.assertAllEqual(found[1], [7, 9])

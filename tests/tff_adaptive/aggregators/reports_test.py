# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reports."""

import collections
import functools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing
from tff_adaptive import aggregators
from tff_adaptive.aggregators import reports as reports_lib

_Dict = collections.OrderedDict
# Names that are not in order.
_VALUE = tff.to_type(
    _Dict(vector=(np.float32, [2]), largest=np.float32, clipped=np.float32)
)
_WEIGHT = tff.TensorType(np.float32)


def _value(scale):
  scale = np.float32(scale)
  return _Dict(
      vector=scale * np.array([1, 2], np.float32), largest=scale, clipped=scale
  )


def _factory():
  return reports_lib.NamedFactory(
      _Dict(
          vector=tff.aggregators.MeanFactory(),
          largest=reports_lib.MaximumFactory(),
          clipped=tff.learning.robust_aggregator(zeroing=False),
      )
  )


@functools.cache
def _process():
  return _factory().create(_VALUE, _WEIGHT)


@pytest.mark.usefixtures('native_runtime')
class NamedTest(tf.test.TestCase):

  def test_aggregates_each_part_by_its_factory(self):
    output = _process().next(
        _process().initialize(), [_value(1.0), _value(0.5)], [1.0, 3.0]
    )
    self.assertEqual(list(output.result), ['vector', 'largest', 'clipped'])
    self.assertAllClose(output.result['vector'], [0.625, 1.25])
    self.assertEqual(output.result['largest'], 1.0)
    self.assertAllClose(output.result['clipped'], 0.625)

  def test_each_part_has_a_state_and_measurements(self):
    state = _process().initialize()
    self.assertEqual(list(state), ['vector', 'largest', 'clipped'])
    output = _process().next(state, [_value(9.0)], [1.0])
    self.assertEqual(list(output.measurements), list(state))
    # The clipping norm, 1 at first, goes up; nothing else has a state.
    self.assertAllClose(output.result['clipped'], 1.0)
    self.assertEqual(output.result['largest'], 9.0)
    second = _process().next(output.state, [_value(9.0)], [1.0])
    self.assertGreater(second.result['clipped'], 1.0)
    self.assertEqual(second.result['largest'], 9.0)


@functools.cache
def _create(dtype=np.float32):
  return reports_lib.MaximumFactory().create(
      tff.TensorType(dtype), tff.TensorType(np.float32)
  )


@pytest.mark.usefixtures('native_runtime')
class MaximumTest(tf.test.TestCase, parameterized.TestCase):

  def _next(self, values, weights):
    process = _create()
    return process.next(process.initialize(), values, weights)

  @parameterized.named_parameters(
      ('one_client', [0.5], [3.0], 0.5),
      ('not_the_first', [0.5, 0.7, 0.2], [1.0, 1.0, 1.0], 0.7),
      ('not_the_heaviest', [0.5, 0.7], [9.0, 1.0], 0.7),
      ('negative', [-0.5, -0.7], [1.0, 1.0], -0.5),
      ('no_weight_does_not_count', [-0.5, 0.7, 0.0], [1.0, 0.0, 0.0], -0.5),
      ('nor_do_nans_without', [np.nan, 0.5, np.inf], [0.0, 1.0, 0.0], 0.5),
  )
  def test_takes_the_largest(self, values, weights, expected):
    output = self._next(values, weights)
    self.assertAllClose(output.result, expected)
    self.assertEqual(output.state, ())

  @parameterized.parameters(([], []), ([0.5], [0.0]))
  def test_without_a_healthy_client_is_the_smallest_number(self, values, zeros):
    self.assertEqual(self._next(values, zeros).result, np.finfo(np.float32).min)

  def test_keeps_the_dtype(self):
    process = _create(np.int32)
    result = process.next(process.initialize(), [3, 7], [1.0, 1.0]).result
    self.assertEqual((result, result.dtype), (7, np.int32))


_OrderedDict = collections.OrderedDict


def _type(names=('sum', 'min', 'max')):
  return tff.FederatedType(
      tff.to_type(
          _OrderedDict(
              (name, _OrderedDict(f=np.float32, n=np.int64)) for name in names
          )
      ),
      tff.CLIENTS,
  )


def _client(f, n):
  return _OrderedDict(
      (name, _OrderedDict(f=np.float32(f), n=np.int64(n)))
      for name in ('sum', 'min', 'max')
  )


@pytest.mark.usefixtures('native_runtime')
class StatisticsTest(tf.test.TestCase):

  def setUp(self):
    super().setUp()
    self._aggregate = tff.federated_computation(
        aggregators.aggregate_statistics, _type()
    )

  def test_reduces_by_key(self):
    result = self._aggregate([_client(1, 5), _client(-2, 7), _client(4, 6)])
    self.assertEqual(result['sum'], _OrderedDict(f=3.0, n=18))
    self.assertEqual(result['min'], _OrderedDict(f=-2.0, n=5))
    self.assertEqual(result['max'], _OrderedDict(f=4.0, n=7))

  def test_without_clients_is_neutral(self):
    result = self._aggregate([])
    self.assertEqual(result['sum'], _OrderedDict(f=0.0, n=0))
    self.assertEqual(result['min']['f'], np.inf)
    self.assertEqual(result['max']['n'], np.iinfo(np.int64).min)

  def test_other_keys_raise(self):
    with self.assertRaisesRegex(ValueError, "found \\['sum', 'mean'\\]"):
      tff.federated_computation(
          aggregators.aggregate_statistics, _type(('sum', 'mean'))
      )


def _build(reductions, aggregators=None, weighs_examples=True, expected=None):
  return reports_lib.build_reports_factory(
      reductions, aggregators or {}, weighs_examples, expected
  )


_REDUCTIONS = {'a': 'mean', 'b': 'sum', 'c': 'max', 'd': 'count'}


@pytest.mark.usefixtures('native_runtime')
class ReductionsTest(tf.test.TestCase, parameterized.TestCase):

  def _aggregate(self, factory, names, *clients):
    """Returns the result of clients, each a pair of values and a weight."""
    process = factory.create(
        tff.to_type(_Dict((name, np.float32) for name in names)),
        tff.TensorType(np.float32),
    )
    values = [_Dict(zip(names, map(np.float32, given))) for given, _ in clients]
    weights = [np.float32(weight) for _, weight in clients]
    return process.next(process.initialize(), values, weights).result

  def test_reduces_each_in_its_own_way(self):
    result = self._aggregate(
        _build(_REDUCTIONS), 'abcd', ([1.0] * 4, 3.0), ([2.0] * 4, 1.0)
    )
    self.assertEqual(result, _Dict(a=1.25, b=3.0, c=2.0, d=2.0))

  def test_client_without_weight_counts_nowhere(self):
    # It sends zeros, and the others have less.
    result = self._aggregate(
        _build(_REDUCTIONS), 'abcd', ([-3.0] * 4, 2.0), ([0.0] * 4, 0.0)
    )
    self.assertEqual(result, _Dict(a=-3.0, b=-3.0, c=-3.0, d=1.0))

  def test_under_privacy_sums_and_counts_are_of_the_expected_clients(self):
    factory = _build({'b': 'sum', 'd': 'count'}, {}, False, 7)
    result = self._aggregate(
        factory, 'bd', ([1.0, 1.0], 1.0), ([2.0, 1.0], 1.0)
    )
    self.assertEqual(result, _Dict(b=7 * 1.5, d=7.0))


_CLIENT_TYPE = tff.to_type(_Dict(name=np.str_, place=np.int32, num=np.int32))


@tff.tensorflow.computation(_CLIENT_TYPE)
def _report(client):
  """Returns as many rows as the client says, and one in any case."""
  place, num = client['place'], client['num']
  return _Dict(
      name=tf.repeat(client['name'], num),
      rows=(
          tf.fill([num, 2], tf.cast(place, tf.float32)),
          tf.range(tf.cast(num, tf.int64)),
      ),
      place=place[tf.newaxis],
  )


@tff.federated_computation(testing.at_clients(_CLIENT_TYPE))
def _stack(clients):
  return aggregators.stack_at_server(tff.federated_map(_report, clients))


def _clients(*nums):
  return [
      _Dict(name=f'client {place}', place=place, num=num)
      for place, num in enumerate(nums)
  ]


@pytest.mark.usefixtures('native_runtime')
class StackingTest(equality_testing.TestCase):

  def test_stacks_the_rows_of_all_clients(self):
    found = self.assert_equals(_stack, _clients(1, 0, 3))
    self.assertEqual(found['name'].tolist(), [b'client 0', *[b'client 2'] * 3])
    self.assertAllEqual(found['rows'][0], [[0, 0], [2, 2], [2, 2], [2, 2]])
    self.assertAllEqual(found['rows'][1], [0, 0, 1, 2])
    self.assertAllEqual(found['place'], [0, 1, 2])

  @pytest.mark.slow
  def test_clients_stay_in_order_whoever_is_done_first(self):
    @tff.tensorflow.computation(tff.SequenceType(np.int32))
    def work_long(numbers):
      def multiply(place, number):
        matrix = tf.random.stateless_uniform([100, 100], [0, number])
        wasted = tf.reduce_max(matrix @ matrix) < 0.0
        return tf.where(wasted, place, number)

      return numbers.reduce(-1, multiply)[tf.newaxis]

    @tff.federated_computation(
        testing.at_clients(work_long.type_signature.parameter)
    )
    def stack(clients):
      return aggregators.stack_at_server(tff.federated_map(work_long, clients))

    durations = np.random.default_rng(0).permutation(40) ** 2
    clients = [
        [place] * (duration + 1) for place, duration in enumerate(durations)
    ]
    found = self.assert_equals(stack, clients)
    self.assertAllEqual(found, range(40))

  @parameterized.named_parameters(('clients', ()), ('rows', (0, 0)))
  def test_without(self, nums):
    found = self.assert_equals(_stack, _clients(*nums))
    self.assertEqual(found['name'].shape, (0,))
    self.assertEqual(found['rows'][0].shape, (0, 2))
    self.assertEqual(found['rows'][0].dtype, np.float32)
    self.assertAllEqual(found['place'], range(len(nums)))

  def test_drops_what_is_not_kept(self):
    @tff.tensorflow.computation(_CLIENT_TYPE)
    def is_odd(client):
      return tf.equal(client['place'] % 2, 1)

    @tff.federated_computation(testing.at_clients(_CLIENT_TYPE))
    def stack(clients):
      return aggregators.stack_at_server(
          tff.federated_map(_report, clients),
          tff.federated_map(is_odd, clients),
      )

    found = self.assert_equals(stack, _clients(1, 2, 3, 0))
    self.assertEqual(found['name'].tolist(), [b'client 1'] * 2)
    self.assertAllEqual(found['place'], [1, 3])

  def test_keeps_the_containers(self):
    found = _stack.type_signature.result.member
    expected = _Dict(
        name=tff.TensorType(np.str_, [None]),
        rows=(
            tff.TensorType(np.float32, [None, 2]),
            tff.TensorType(np.int64, [None]),
        ),
        place=tff.TensorType(np.int32, [None]),
    )
    self.assertTrue(found.is_identical_to(tff.to_type(expected)))

  @parameterized.parameters(
      (tff.TensorType(np.float32),), (tff.TensorType(np.float32, [None, None]),)
  )
  def test_other_shapes_raise(self, tensor_type):
    with self.assertRaisesRegex(TypeError, 'must have rows along.*tf.newaxis'):
      tff.federated_computation(
          lambda rows: aggregators.stack_at_server(rows),
          testing.at_clients(_Dict(a=tensor_type)),
      )

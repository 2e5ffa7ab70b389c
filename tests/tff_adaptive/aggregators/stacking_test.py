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
"""Tests of stacking."""

import collections

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing
from tff_adaptive import aggregators

_Dict = collections.OrderedDict
_CLIENT_TYPE = tff.to_type(_Dict(name=np.str_, place=np.int32, num=np.int32))


@tff.tensorflow.computation(_CLIENT_TYPE)
def _report(client):
  """As many rows as the client says, and one in any case."""
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
      (tff.TensorType(np.float32),),
      (tff.TensorType(np.float32, [None, None]),),
  )
  def test_other_shapes_raise(self, tensor_type):
    with self.assertRaisesRegex(
        TypeError, 'must have a first axis.*tf.newaxis'
    ):
      tff.federated_computation(
          lambda rows: aggregators.stack_at_server(rows),
          testing.at_clients(_Dict(a=tensor_type)),
      )


if __name__ == '__main__':
  tf.test.main()

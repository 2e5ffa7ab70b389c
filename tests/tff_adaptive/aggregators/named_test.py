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
"""Tests of several aggregations side by side."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import maximum
from tff_adaptive.aggregators import named

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
  return named.NamedFactory(
      _Dict(
          vector=tff.aggregators.MeanFactory(),
          largest=maximum.MaximumFactory(),
          clipped=tff.learning.robust_aggregator(zeroing=False),
      )
  )


@pytest.mark.usefixtures('native_runtime')
class NamedTest(tf.test.TestCase):

  def setUp(self):
    super().setUp()
    self._process = _factory().create(_VALUE, _WEIGHT)

  def test_aggregates_each_part_by_its_factory(self):
    output = self._process.next(
        self._process.initialize(), [_value(1.0), _value(0.5)], [1.0, 3.0]
    )
    self.assertEqual(list(output.result), ['vector', 'largest', 'clipped'])
    self.assertAllClose(output.result['vector'], [0.625, 1.25])
    self.assertEqual(output.result['largest'], 1.0)
    self.assertAllClose(output.result['clipped'], 0.625)

  def test_each_part_has_a_state_and_measurements(self):
    state = self._process.initialize()
    self.assertEqual(list(state), ['vector', 'largest', 'clipped'])
    output = self._process.next(state, [_value(9.0)], [1.0])
    self.assertEqual(list(output.measurements), list(state))
    # The clipping norm, 1 at first, goes up; nothing else has a state.
    self.assertAllClose(output.result['clipped'], 1.0)
    self.assertEqual(output.result['largest'], 9.0)
    second = self._process.next(output.state, [_value(9.0)], [1.0])
    self.assertGreater(second.result['clipped'], 1.0)
    self.assertEqual(second.result['largest'], 9.0)

  def test_value_without_a_named_part_raises(self):
    with self.assertRaisesRegex(AttributeError, 'largest'):
      _factory().create(tff.to_type(_Dict(vector=np.float32)), _WEIGHT)


if __name__ == '__main__':
  tf.test.main()

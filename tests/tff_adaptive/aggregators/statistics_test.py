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
"""Tests of the aggregation of statistics."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import aggregators

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


if __name__ == '__main__':
  tf.test.main()

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
"""Tests of `digits_tasks`."""

import os
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow_federated as tff

from tasks.digits import digits_preprocessing
from tasks.digits import digits_tasks
from tff_adaptive.data import checks
from tff_adaptive.data import client_data
from tff_adaptive.simulation import task


def _create(**kwargs):
  return digits_tasks.create_digits_task(**{'model_id': 'logistic', **kwargs})


def _labels(digits):
  source = digits.train_data
  return [source.examples(i)['y'].tolist() for i in source.client_ids]


class DigitsTasksTest(parameterized.TestCase):

  def test_defaults(self):
    digits = digits_tasks.create_digits_task()
    self.assertEqual(digits.name, 'digits')
    self.assertLen(digits.train_data.client_ids, 50)
    self.assertEqual(digits.train_data.total_examples, 1438)
    self.assertLen(digits.central_test['y'], 359)
    self.assertEqual(digits.protocol, digits_tasks.DEFAULT_PROTOCOL)
    self.assertLen(digits.functional_model.initial_weights[0], 8)
    classes = [len(set(labels)) for labels in _labels(digits)]
    self.assertBetween(np.mean(classes), 4.0, 6.0)

  def test_deep_models_alone_have_representations(self):
    deep = digits_tasks.create_digits_task()
    self.assertTrue(callable(deep.representation_fn))
    self.assertIsNone(_create().representation_fn)

  def test_data_are_good(self):
    digits = _create()
    checked = checks.check_clients(
        digits.train_data, num_classes=digits.num_classes
    )
    self.assertEmpty(checked.bad_clients)
    checks.check_central_examples(
        digits.central_test, num_classes=digits.num_classes
    )

  def test_seed_decides_partition_and_weights_but_not_the_test_set(self):
    first, again, other = _create(seed=1), _create(seed=1), _create(seed=2)
    self.assertEqual(_labels(first), _labels(again))
    self.assertNotEqual(_labels(first), _labels(other))
    kernels = [
        digits.functional_model.initial_weights[0][0]
        for digits in (first, again, other)
    ]
    np.testing.assert_array_equal(kernels[0], kernels[1])
    self.assertTrue(np.any(kernels[0] != kernels[2]))
    np.testing.assert_array_equal(
        first.central_test['x'], other.central_test['x']
    )

  def test_clients_share_the_images(self):
    source = _create(num_clients=100).train_data
    self.assertLen(source.values['y'], 1438)
    self.assertLen(source.client_ids, 100)

  def test_infinite_alpha_gives_even_clients(self):
    digits = _create(num_clients=10, alpha=np.inf)
    self.assertGreater(min(len(set(y)) for y in _labels(digits)), 8)

  @parameterized.named_parameters(
      ('alpha', dict(alpha=0.0), ValueError, '`alpha`'),
      ('clients', dict(num_clients=0), ValueError, '`num_clients`'),
      ('model', dict(model_id='mlp'), ValueError, '`model_id`'),
      (
          'few_clients',
          dict(num_clients=5),
          ValueError,
          '`clients_per_round` must be at most 5',
      ),
  )
  def test_bad_argument_raises(self, change, error, message):
    with self.assertRaisesRegex(error, message):
      _create(**change)

  def test_from_data_takes_the_callers_clients(self):
    examples = {
        'x': np.zeros([3, 8, 8, 1], np.float32),
        'y': np.arange(3, dtype=np.int32),
    }
    clients = client_data.PackedClientArrays.from_clients({'mine': examples})
    digits = digits_tasks.create_digits_task_from_data(
        clients,
        examples,
        model_id='logistic',
        protocol=task.Protocol(2, 1, clients_per_round=1, total_rounds=3),
    )
    self.assertIs(digits.train_data, clients)
    self.assertEqual(digits.protocol.total_rounds, 3)

  def test_from_data_takes_arrays_and_files(self):
    train, test = digits_preprocessing.load_digits()
    halves = {
        'even': {name: rows[::2] for name, rows in train.items()},
        'odd': {name: rows[1::2] for name, rows in train.items()},
    }
    folder = self.enter_context(tempfile.TemporaryDirectory())
    path = os.path.join(folder, 'mine.npz')
    is_odd = np.arange(len(train['y'])) % 2
    np.savez(path, client_id=np.array(['even', 'odd'])[is_odd], **train)
    protocol = task.Protocol(2, 1, clients_per_round=2, total_rounds=3)
    for data in (halves, path):
      digits = digits_tasks.create_digits_task_from_data(
          data, test, model_id='logistic', protocol=protocol
      )
      self.assertEqual(digits.train_data.client_ids, ('even', 'odd'))
      np.testing.assert_array_equal(
          digits.train_data.examples('odd')['x'], train['x'][1::2]
      )

  def test_from_data_of_another_type_raises(self):
    examples = {'x': np.zeros([3, 8, 8, 1]), 'y': [0, 1, 2]}
    with self.assertRaisesRegex(
        TypeError, 'must be a path, a mapping, .*, found list.$'
    ):
      digits_tasks.create_digits_task_from_data([examples], examples)

  def test_from_data_of_another_shape_raises(self):
    examples = {
        'x': np.zeros([3, 28, 28, 1], np.float32),
        'y': np.arange(3, dtype=np.int32),
    }
    clients = client_data.PackedClientArrays.from_clients({'mine': examples})
    with self.assertRaisesRegex(ValueError, r"28,28,1\] in field 'x'.*8,8,1\]"):
      digits_tasks.create_digits_task_from_data(
          clients, examples, model_id='logistic'
      )

  @pytest.mark.slow
  def test_baseline_task_and_stock_algorithms_build(self):
    digits = _create()
    baseline = digits.to_baseline_task()
    self.assertIsInstance(baseline, tff.simulation.baselines.BaselineTask)
    for model in (digits.variable_model_fn, digits.functional_model):
      process = tff.learning.algorithms.build_weighted_fed_avg(
          model, tff.learning.optimizers.build_sgdm(0.1)
      )
      self.assertIn(
          '<x=float32[?,8,8,1],y=int32[?]>*',
          str(process.next.type_signature.parameter),
      )


if __name__ == '__main__':
  absltest.main()

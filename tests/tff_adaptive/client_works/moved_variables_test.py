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
"""Tests of `moved_variables`."""

import warnings

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive.client_works import moved_variables

_LAYERS = tf.keras.layers


def _frozen(layer):
  layer.trainable = False
  return layer


def _model_fn(layer_fn):
  """Returns a factory of a classifier with a layer before the last one."""

  def build():
    keras_model = tf.keras.Sequential(
        [
            _LAYERS.InputLayer((testing.NUM_FEATURES,)),
            layer_fn(),
            _LAYERS.Dense(testing.NUM_CLASSES),
        ]
    )
    return tff.learning.models.from_keras_model(
        keras_model,
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        input_spec=testing.INPUT_SPEC,
    )

  return build


def _warnings_of(model_fn):
  """Returns what is warned of where a process is built."""
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    algorithms.build_fed_opt(model_fn, optimizers.build_sgd(0.1))
  return [
      str(warning.message)
      for warning in caught
      if 'moves' in str(warning.message)
  ]


class MovedVariablesTest(parameterized.TestCase):

  def test_batch_normalization_is_warned_of_once(self):
    model_fn = _model_fn(lambda: _LAYERS.BatchNormalization(name='norm'))
    self.assertEqual(
        _warnings_of(model_fn),
        [
            'The model moves `norm/moving_mean` and 1 more as it trains, and a '
            'process carries trained weights only, so that it is evaluated '
            'with the values that these began with: take '
            '`tf.keras.layers.GroupNormalization` in place of batch '
            'normalization.'
        ],
    )

  @parameterized.named_parameters(
      ('frozen', lambda: _frozen(_LAYERS.BatchNormalization())),
      ('constant', lambda: _frozen(_LAYERS.Dense(4))),
      ('group', lambda: _LAYERS.GroupNormalization(5)),
  )
  def test_what_does_not_move_is_not_warned_of(self, layer_fn):
    self.assertEmpty(_warnings_of(_model_fn(layer_fn)))

  def test_writes_are_told_from_reads(self):
    written, read = tf.Variable(1.0, name='a'), tf.Variable(2.0, name='b')
    found = []

    @tf.function
    def compute():
      read.assign(3.0)  # Before the block.
      with moved_variables.find_moved([written, read]) as moved:
        written.assign_add(read)
      found.append(moved)
      with moved_variables.find_moved([written, read]) as moved:
        tf.identity(written)
      found.append(moved)

    compute()
    self.assertEqual(found, [['a'], []])

  def test_nothing_is_found_eagerly(self):
    variable = tf.Variable(1.0)
    with moved_variables.find_moved([variable]) as moved:
      variable.assign(2.0)
    self.assertEmpty(moved)


if __name__ == '__main__':
  absltest.main()

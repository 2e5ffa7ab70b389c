# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the central evaluation."""

import collections
import functools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.evaluation import evaluation_testing
from tff_adaptive import evaluation

_SPEC = testing.INPUT_SPEC
_expected = evaluation_testing.expected
_functional_model = functools.partial(testing.functional_model, dropout=0.5)
_keras_model = functools.partial(testing.keras_model, dropout=0.5)
_variable_model = testing.variable_model_fn(dropout=0.5)
_weights = evaluation_testing.weights


def _arrays(num_examples=11):
  generator = np.random.default_rng(1)
  return collections.OrderedDict(
      x=generator.normal(size=(num_examples, 5)).astype(np.float32),
      y=generator.integers(0, 3, num_examples).astype(np.int32),
  )


class _Doubled(tf.keras.metrics.Metric):
  """A metric with a variable whose initial value is read from another one."""

  def __init__(self, name='doubled', **kwargs):
    super().__init__(name, **kwargs)
    self.one = self.add_weight('one', initializer='ones')
    self.two = tf.Variable(2.0 * self.one, trainable=False)

  def update_state(self, y_true, y_pred, sample_weight=None):
    del y_true, y_pred, sample_weight  # Unused.

  def result(self):
    return self.two

  def reset_state(self):
    """Keeps both, which nothing changes."""


class EvaluationTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(
      model=[_functional_model, _variable_model], batch_size=[3, 4, 11, 100]
  )
  @pytest.mark.sample(2)
  def test_equals_the_mean_over_all_examples(self, model, batch_size):
    built = model() if model is _functional_model else model
    arrays = _arrays()
    evaluate = evaluation.build_central_evaluation(built, arrays, batch_size)
    for seed in (1, 2):
      weights = _weights(seed)
      found = evaluate(weights)
      loss, accuracy = _expected(weights.trainable, arrays)
      self.assertEqual(list(found)[0], 'loss')
      self.assertIsInstance(found['accuracy'], float)
      self.assertAllClose(found['loss'], loss, rtol=1e-6)
      self.assertAllClose(found['accuracy'], accuracy, rtol=1e-6)
      self.assertEqual(evaluate(weights), found)

  @parameterized.named_parameters(
      ('functional', _functional_model), ('variable', _variable_model)
  )
  def test_traces_nothing_after_the_first_evaluation(self, model):
    count = [0]

    class CountingLoss(tf.keras.losses.SparseCategoricalCrossentropy):

      def call(self, y_true, y_pred):
        count[0] += 1
        return super().call(y_true, y_pred)

    loss = CountingLoss(from_logits=True)
    if model is _functional_model:
      built = tff.learning.models.functional_model_from_keras(
          _keras_model(), loss, _SPEC
      )
    else:
      built = lambda: tff.learning.models.from_keras_model(
          _keras_model(), loss=loss, input_spec=_SPEC
      )
    evaluate = evaluation.build_central_evaluation(built, _arrays(), 4)
    evaluate(_weights(1))
    traced = count[0]
    evaluate(_weights(2))
    self.assertGreater(traced, 0)
    self.assertEqual(count[0], traced)

  def test_other_examples_in_each_round(self):
    arrays = _arrays(30)
    asked = []

    def sample(round_num):
      asked.append(round_num)
      rows = slice(5 * round_num, 5 * round_num + 10)
      return collections.OrderedDict((k, v[rows]) for k, v in arrays.items())

    evaluate = evaluation.build_sampled_evaluation(
        _functional_model(), sample, 4
    )
    weights = _weights(1)
    for round_num in (0, 3, 0):
      found = evaluate(weights, round_num=round_num)
      loss, accuracy = _expected(weights.trainable, sample(round_num))
      self.assertAllClose(found['loss'], loss, rtol=1e-6)
      self.assertAllClose(found['accuracy'], accuracy, rtol=1e-6)
    self.assertEqual(asked, [0, 0, 3, 3, 0, 0])

  def test_samples_are_checked(self):
    evaluate = evaluation.build_sampled_evaluation(
        _functional_model(), lambda round_num: _arrays(round_num)
    )
    with self.assertRaisesRegex(ValueError, 'at least one'):
      evaluate(_weights(1), round_num=0)

  def test_arrays_must_be_dense(self):
    for convert in (
        np.ndarray.tolist,
        tf.RaggedTensor.from_tensor,
        tf.sparse.from_dense,
    ):
      arrays = _arrays()
      arrays['x'] = convert(arrays['x'])
      with self.assertRaisesRegex(TypeError, 'dense tensors, found .*:'):
        evaluation.build_central_evaluation(_functional_model(), arrays)

  def test_takes_a_model_of_nested_weights_and_pairs(self):
    @tf.function
    def predict(weights, x, training):
      del training  # Unused.
      return x * weights[0]['scale'] + weights[0]['offset']

    model = tff.learning.models.FunctionalModel(
        initial_weights=(
            collections.OrderedDict(scale=np.float32(0), offset=np.float32(0)),
            (),
        ),
        predict_on_batch_fn=predict,
        loss_fn=lambda output, label, sample_weight=None: tf.reduce_mean(
            tf.square(output - label)
        ),
        input_spec=(
            tf.TensorSpec([None], tf.float32),
            tf.TensorSpec([None], tf.float32),
        ),
    )
    weights = tff.learning.models.ModelWeights(
        collections.OrderedDict(scale=np.float32(2), offset=np.float32(1)), ()
    )
    x = np.arange(5, dtype=np.float32)
    evaluate = evaluation.build_central_evaluation(model, (x, 2 * x), 2)
    self.assertEqual(evaluate(weights), {'loss': 1.0})

  def test_variable_that_is_read_for_another_one(self):
    model = lambda: tff.learning.models.from_keras_model(
        _keras_model(),
        loss=testing.loss(),
        input_spec=_SPEC,
        metrics=[_Doubled()],
    )
    evaluate = evaluation.build_central_evaluation(model, _arrays())
    self.assertEqual(evaluate(_weights(1))['doubled'], 2.0)

  def test_spec_of_any_shape_takes_any(self):
    @tf.function
    def predict(weights, x, training):
      del training  # Unused.
      return weights[0][0] * tf.reduce_sum(x, axis=1)

    model = tff.learning.models.FunctionalModel(
        initial_weights=((np.float32(1),), ()),
        predict_on_batch_fn=predict,
        loss_fn=lambda output, label, sample_weight=None: tf.reduce_mean(
            tf.square(output - label)
        ),
        input_spec=(
            tf.TensorSpec(None, tf.float32),
            tf.TensorSpec([None], tf.float32),
        ),
    )
    weights = tff.learning.models.ModelWeights((np.float32(2),), ())
    arrays = np.ones([3, 2], np.float32), np.ones([3], np.float32)
    evaluate = evaluation.build_central_evaluation(model, arrays)
    self.assertEqual(evaluate(weights), {'loss': 9.0})
    with self.assertRaisesRegex(ValueError, 'found float64.*make it float32'):
      evaluation.build_central_evaluation(model, (np.ones([3, 2]), arrays[1]))

  def test_label_out_of_range_is_one_sentence(self):
    arrays = _arrays()
    arrays['y'][3] = 7
    evaluate = evaluation.build_central_evaluation(_functional_model(), arrays)
    with self.assertRaisesRegex(ValueError, '^TensorFlow rejected .* 7 '):
      evaluate(_weights(1))

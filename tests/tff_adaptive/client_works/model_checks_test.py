# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the checks of Keras models."""

import collections
import functools
from typing import Any
import warnings

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import error_testing
from tests.tff_adaptive import testing
from tff_adaptive import algorithms
from tff_adaptive import evaluation
from tff_adaptive import optimizers
from tff_adaptive.client_works import model_adapter
from tff_adaptive.client_works import model_checks
from tff_adaptive.evaluation import computations

_LAYERS = tf.keras.layers
_INPUT = (testing.NUM_FEATURES,)
_FORMS = ('functional', 'variable')


def _chain(*layers):
  return tf.keras.Sequential(
      [tf.keras.Input(_INPUT), *layers, _LAYERS.Dense(testing.NUM_CLASSES)]
  )


class _AddsLoss(tf.keras.layers.Layer):

  def call(self, inputs):
    self.add_loss(tf.reduce_mean(inputs))
    return inputs


class _Subclassed(tf.keras.Model):

  def __init__(self):
    super().__init__()
    self._layer = _LAYERS.Dense(testing.NUM_CLASSES)

  def call(self, inputs, training=False):
    return self._layer(inputs)


def _of_own_class(model):
  """Wraps a `VariableModel` into one that TFF did not make."""
  base = tff.learning.models.VariableModel
  delegates = {
      name: property(lambda self, name=name: getattr(model, name))
      for name in base.__abstractmethods__
  }
  return type('_Own', (base,), delegates)()


class _Unread(tf.keras.layers.Layer):
  """A layer that does not use its weights."""

  def build(self, input_shape):
    del input_shape
    self.add_weight('unused', [3])
    self.add_weight('other', [2])

  def call(self, inputs):
    return tf.identity(inputs)


def _with_unread_weights(form):
  """Returns a model with trainable weights on which nothing depends."""
  if form == 'variable':
    return _model(form, lambda: _chain(_Unread(name='unread')))
  model = testing.functional_model()
  trainable, non_trainable = model.initial_weights

  @tf.function(autograph=False)
  def predict(weights, x, training):
    used = (weights[0][:-1], weights[1])
    return model.predict_on_batch(used, x, training)

  return tff.learning.models.FunctionalModel(
      initial_weights=((*trainable, np.zeros(5, np.float32)), non_trainable),
      predict_on_batch_fn=predict,
      loss_fn=tf.function(model.loss, autograph=False),
      input_spec=model.input_spec,
  )


def _frozen():
  layer = _LAYERS.Dense(4, name='fixed')
  layer.trainable = False
  return _chain(layer)


def _nested():
  norm = _LAYERS.BatchNormalization(name='n')
  return _chain(tf.keras.Sequential([tf.keras.Input(_INPUT), norm]))


def _add_loss_of_model():
  inputs = tf.keras.Input(_INPUT)
  hidden = _LAYERS.Dense(4)(inputs)
  model = tf.keras.Model(inputs, _LAYERS.Dense(testing.NUM_CLASSES)(hidden))
  model.add_loss(tf.reduce_mean(hidden))
  return model


def _two_outputs():
  inputs = tf.keras.Input(_INPUT)
  return tf.keras.Model(inputs, [_LAYERS.Dense(3)(inputs) for _ in range(2)])


def _masked():
  return tf.keras.Sequential(
      [
          tf.keras.Input([6], dtype='int32'),
          _LAYERS.Embedding(10, 4, mask_zero=True, name='tokens'),
          _LAYERS.Dense(10),
      ]
  )


_TOKENS_SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, 6], tf.int32), y=tf.TensorSpec([None, 6], tf.int32)
)


def _model(
    form, build, loss=testing.loss, spec=testing.INPUT_SPEC, metrics=list
):
  """Returns a Keras model in one of TFF's forms."""
  if form == 'variable':
    return lambda: tff.learning.models.from_keras_model(
        build(), loss(), spec, metrics=metrics()
    )

  def construct():
    return collections.OrderedDict((m.name, m) for m in metrics())

  return tff.learning.models.functional_model_from_keras(
      build(), loss(), spec, metrics_constructor=construct
  )


def _adapt(*args, **kwargs):
  return model_adapter.build_model_adapter(_model(*args, **kwargs))


def _warnings_of(*args, **kwargs):
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    _adapt(*args, **kwargs)
  return [str(w.message) for w in caught if w.category is UserWarning]


_value, _type = error_testing.value_error, error_testing.type_error
_WEIGHTS = tf.constant([1.0, 2.0, 3.0])
_FLOATS = tf.TensorSpec([None], tf.float32)
_LABELS = tf.TensorSpec([None, testing.NUM_CLASSES], tf.float32)
_RAGGED = tf.RaggedTensorSpec([None, None], tf.float32)
_MIXED = 'mixed_bfloat16'


class _FromOutside(tf.keras.losses.Loss):
  """A loss that reads a tensor of another graph."""

  def call(self, y_true, y_pred):
    return tf.gather(_WEIGHTS, y_true) * y_pred[:, 0]


_evaluation: Any = lambda *args, **kwargs: (
    computations.build_evaluation_computation(_model(*args, **kwargs))
)
_functional = functools.partial(_adapt, 'functional')
_variable = functools.partial(_evaluation, 'variable')
_with: Any = functools.partial(dict, testing.INPUT_SPEC)
_of_layer: Any = lambda build, *args, **kwargs: (
    lambda: _chain(build(*args, **kwargs))
)
_dense = functools.partial(_of_layer, _LAYERS.Dense, 4)
_lstm = functools.partial(_LAYERS.LSTM, 2, recurrent_regularizer='l2')
test_models_are_refused = error_testing.refused(
    # Parts that the functional form lacks.
    _value("'fixed' is frozen.*models.from_keras", _functional, _frozen),
    _value("'n' moves .*from_keras.*GroupNormalization", _functional, _nested),
    _value("'m' casts .*bfloat16", _functional, _dense(dtype=_MIXED, name='m')),
    _value(
        "'r' has bias_reg.*models.from_keras",
        _functional,
        _dense(bias_regularizer='l2', name='r'),
    ),
    _value(
        'recurrent_regularizer',
        _functional,
        lambda: _chain(_LAYERS.Reshape((1, -1)), _lstm()),
    ),
    _value("'a'.*add_loss", _functional, _of_layer(_AddsLoss, name='a')),
    _value('add_loss.*models.from_keras', _functional, _add_loss_of_model),
    *(
        row
        for form in _FORMS
        for row in (
            _value(
                "'a'.*activity_regularizer",
                _adapt,
                form,
                _of_layer(_LAYERS.ActivityRegularization, 0.1, name='a'),
            ),
            _value('2 outputs.*loss_weights', _adapt, form, _two_outputs),
            _value(
                'makes its variables.*num_labels',
                _evaluation,
                form,
                _chain,
                tf.keras.losses.MeanSquaredError,
                _with(y=_LABELS),
                lambda: [tf.keras.metrics.AUC(multi_label=True, name='auc')],
            ),
        )
    ),
    _value('no weights yet.*call it once', _adapt, 'variable', _Subclassed),
    _value(
        '0 trainable.* but 2 after',
        lambda: computations.build_evaluation_computation(
            lambda: _of_own_class(_model('variable', _Subclassed)())
        ),
    ),
    _value("'w'.*sample w", _functional, _chain, spec=_with(w=_FLOATS)),
    _type('ragged.*pad', _functional, _chain, spec=_with(x=_RAGGED)),
    _value('made outside.*NumPy array', _variable, _chain, _FromOutside),
    _type(r'list\(metrics.values\(\)\)', _variable, _chain, metrics=dict),
    _value('add_loss.*models.from_keras', _variable, _of_layer(_AddsLoss)),
)


class ChecksTest(tf.test.TestCase, parameterized.TestCase):

  def test_own_loss_of_several_outputs_is_taken(self):

    class Loss(tf.keras.losses.Loss):

      def call(self, y_true, y_pred):
        return tf.reduce_mean(y_pred[0] - y_pred[1], -1)

    self.assertNotEmpty(_adapt('functional', _two_outputs, Loss).weights_spec)

  @parameterized.product(form=_FORMS)
  def test_lost_mask_is_warned_of(self, form):
    (text,) = _warnings_of(form, _masked, spec=_TOKENS_SPEC)
    self.assertRegex(text, "'tokens'.*padding counts.*ignore_class")

  @parameterized.product(form=_FORMS)
  def test_loss_that_skips_padding_is_not_warned_of(self, form):
    skips = lambda: tf.keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=0
    )
    self.assertEmpty(_warnings_of(form, _masked, skips, _TOKENS_SPEC))

  def test_loss_that_counts_padding_on_purpose_is_not_warned_of(self):

    def counts():
      loss = testing.loss()
      loss.counts_padding = True
      return loss

    found = _warnings_of('functional', _masked, counts, _TOKENS_SPEC)
    self.assertEmpty(found)

  def test_compiled_model_is_warned_of(self):

    def build():
      model = _chain()
      model.compile(loss=testing.loss(), loss_weights=[2.0])
      return model

    (text,) = _warnings_of('functional', build)
    self.assertIn('loss weights', text)

  @parameterized.parameters(*_FORMS)
  @pytest.mark.sample(1)
  def test_op_without_a_gradient_is_named_with_a_mend(self, form):
    stop = _LAYERS.Lambda(tf.stop_gradient)

    def build(*layers):
      image = _LAYERS.Reshape((testing.NUM_FEATURES, 1, 1))
      hue = _LAYERS.Lambda(
          lambda x: tf.image.adjust_hue(tf.image.grayscale_to_rgb(x), 0.1)
      )
      return _chain(image, hue, *layers, _LAYERS.Flatten())

    optimizer = optimizers.build_sgd(0.1)
    with self.assertRaisesRegex(ValueError, 'AdjustHue.*stop_gradient'):
      algorithms.build_fed_opt(_model(form, build), optimizer)
    if form == 'functional':
      mended = _model(form, lambda: build(stop))
      algorithms.build_fed_opt(mended, optimizer)

  @parameterized.parameters(
      algorithms.build_fed_opt, algorithms.build_centralized
  )
  def test_arguments_of_stock_builders_are_named(self, build):
    with self.assertRaisesRegex(TypeError, 'for `model_fn`: `model`'):
      build(model_fn=testing.functional_model())

  @parameterized.parameters(
      'aggregation_process',
      'broadcast_process',
      'client_weight_fn',
      'client_optimizer_fn',
      'model_distributor',
      'model_update_aggregation_factory',
      'server_optimizer_fn',
      'use_experimental_simulation_loop',
  )
  def test_each_argument_of_stock_builders_of_all_ages_is_named(self, name):
    arguments = {'client_optimizer': optimizers.build_sgd(0.1), name: None}
    with self.assertRaisesRegex(TypeError, f'for `{name}`: (`|none, )'):
      algorithms.build_fed_opt(testing.functional_model(), **arguments)

  @parameterized.parameters(
      (_FORMS[0], "'2' of shape .5.`, which is"),
      (_FORMS[1], 'unread/unused` and 1 more, which are'),
  )
  @pytest.mark.sample(1)
  def test_trainable_weight_without_gradient_is_warned_of(self, form, text):
    model = _with_unread_weights(form)
    with self.assertWarnsRegex(UserWarning, f'does not depend on .*{text}'):
      algorithms.build_fed_opt(model, optimizers.build_sgd(0.1))

  @pytest.mark.slow
  def test_clone_of_a_gru_is_warned_of(self):
    start = tf.keras.Sequential(
        [
            _LAYERS.Embedding(6, 4, batch_input_shape=[2, None]),
            _LAYERS.GRU(3, return_sequences=True),
            _LAYERS.Dense(6),
        ]
    )
    spec = (tf.TensorSpec([2, 5], tf.int64), tf.TensorSpec([2, 5], tf.int64))

    def model_fn():
      return tff.learning.models.from_keras_model(
          tf.keras.models.clone_model(start), testing.loss(), input_spec=spec
      )

    with self.assertWarnsRegex(UserWarning, 'gru/gru_cell/kernel` and 2 more'):
      algorithms.build_fed_opt(model_fn, optimizers.build_sgd(0.1))
    # The copy that the warning proposes.
    copy = start.from_config(start.get_config())
    with tf.GradientTape() as tape:
      outputs = copy(tf.zeros([2, 5], tf.int64))
    gradients = tape.gradient(outputs, copy.trainable_weights)
    self.assertTrue(all(gradient is not None for gradient in gradients))

  def test_matrices_are_warned_of(self):
    metrics_type = tff.StructType(
        [
            ('per_class', tff.TensorType(np.float32, [3])),
            ('matrix', (tff.TensorType(np.float32, [3, 3]))),
        ]
    )
    with self.assertWarnsRegex(UserWarning, "'matrix'.*metrics.csv"):
      model_checks.warn_of_matrices(metrics_type)


class KerasClassesTest(tf.test.TestCase):

  def test_models_are_usable_after_others_were_built_in_a_graph(self):
    model = _chain(_LAYERS.Dropout(0.5))
    model.compile('sgd', testing.loss())
    subclassed = _Subclassed()
    x, y = np.ones([2, 5], np.float32), np.zeros(2)
    before = model.predict(x, verbose=0), subclassed(x)

    def build():
      with tf.Graph().as_default():
        _chain(_LAYERS.Dropout(0.5))
        _Subclassed()

    build()
    with self.assertRaisesRegex(ValueError, 'invalid state'):
      model.predict(x, verbose=0)
    model_checks.builds_models(build)()
    self.assertAllEqual(model.predict(x, verbose=0), before[0])
    self.assertAllEqual(subclassed(x), before[1])
    model.fit(x, y, verbose=0)
    model.set_weights(model.get_weights())

  def test_models_are_usable_after_a_process_was_built(self):
    model = _chain()
    x = np.ones([2, 5], np.float32)
    before = model.predict(x, verbose=0)
    functional = tff.learning.models.functional_model_from_keras(
        model, testing.loss(), testing.INPUT_SPEC
    )
    algorithms.build_fed_opt(functional, optimizers.build_sgd(0.1))
    self.assertAllEqual(model.predict(x, verbose=0), before)


def _examples():
  generator = np.random.default_rng(0)
  x = generator.normal(size=[8, testing.NUM_FEATURES]).astype(np.float32)
  return x, generator.integers(0, testing.NUM_CLASSES, 8).astype(np.int32)


class MeaningTest(tf.test.TestCase, parameterized.TestCase):

  def _evaluate(self, model, x, y, batch_size):
    weights = model_adapter.build_model_adapter(model).weights_spec
    generator = np.random.default_rng(1)
    values = tf.nest.map_structure(
        lambda spec: generator.normal(size=spec.shape).astype(np.float32),
        weights,
    )
    evaluate = evaluation.build_central_evaluation(
        model, {'x': x, 'y': y}, batch_size
    )
    logits = x @ values.trainable[0] + values.trainable[1]
    return evaluate(values), logits, values.trainable[0]

  @parameterized.product(form=_FORMS)
  @pytest.mark.sample(1)
  def test_sum_is_reported_as_the_mean_of_examples(self, form):
    x, y = _examples()
    penalty = 0.01 if form == 'variable' else 0.0
    build = lambda: tf.keras.Sequential(
        [
            tf.keras.Input(_INPUT),
            _LAYERS.Dense(
                testing.NUM_CLASSES,
                kernel_regularizer=(
                    tf.keras.regularizers.L2(penalty) if penalty else None
                ),
            ),
        ]
    )
    loss = lambda: tf.keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction='sum'
    )
    found, logits, kernel = self._evaluate(_model(form, build, loss), x, y, 3)
    log_sums = np.log(np.exp(logits).sum(-1))
    expected = np.mean(log_sums - logits[np.arange(8), y])
    expected += penalty * np.sum(kernel**2)
    self.assertAllClose(found['loss'], expected, rtol=1e-5)

  @parameterized.product(form=_FORMS)
  @pytest.mark.sample(1)
  def test_late_metrics_and_vectors_are_reported(self, form):
    x, labels = _examples()
    y = np.eye(testing.NUM_CLASSES, dtype=np.float32)[labels]
    spec = dict(
        testing.INPUT_SPEC,
        y=tf.TensorSpec([None, testing.NUM_CLASSES], tf.float32),
    )
    model = _model(
        form,
        _chain,
        lambda: tf.keras.losses.CategoricalCrossentropy(from_logits=True),
        spec,
        lambda: [
            tf.keras.metrics.F1Score(name='f1'),
            tf.keras.metrics.R2Score(name='r2'),
        ],
    )
    found, logits, _ = self._evaluate(model, x, y, 3)
    chosen = logits.argmax(-1)
    hits = chosen == labels
    f1 = [
        2
        * np.sum(hits & (labels == c))
        / (np.sum(chosen == c) + np.sum(labels == c))
        for c in range(testing.NUM_CLASSES)
    ]
    self.assertAllClose([found[f'f1_{i}'] for i in range(3)], f1)
    r2 = 1 - ((y - logits) ** 2).sum(0) / ((y - y.mean(0)) ** 2).sum(0)
    self.assertAllClose(found['r2'], r2.mean(), rtol=1e-5)

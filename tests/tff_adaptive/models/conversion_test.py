# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the conversion of Keras models; `zoo_test` has their numbers."""

import collections
import pathlib
import sys
import tempfile

from absl.testing import parameterized
import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import program_testing
from tff_adaptive import algorithms
from tff_adaptive import evaluation
from tff_adaptive import models
from tff_adaptive import optimizers
from tff_adaptive import runtime

_SPEC = (tf.TensorSpec([None, 5]), tf.TensorSpec([None], tf.int32))
_LOSS = 'sparse_categorical_crossentropy'
_VERSIONS = (('keras_3', keras), ('keras_2', tf.keras))
_IMPORTS = """
import {}, {}, sys
import numpy as np
import tensorflow as tf
from tff_adaptive import models
import tensorflow_federated as tff
assert 'torch' not in sys.modules
import keras
model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
spec = (tf.TensorSpec([None, 2]), tf.TensorSpec([None, 1]))
model = models.from_keras(model, 'mse', input_spec=spec)
print(keras.__version__[0], tf.keras.Model.__module__[:8])
"""
_OTHER_BACKEND = """
import keras
import tensorflow as tf
from tff_adaptive import models
model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
spec = (tf.TensorSpec([None, 2]), tf.TensorSpec([None, 1]))
try:
  models.from_keras(model, 'mse', input_spec=spec)
except ValueError as error:
  print(error)
"""


def _sequential(version, *layers, shape=(5,), dtype=None):
  return version.Sequential(
      [
          version.Input(shape, dtype=dtype),
          *layers,
          version.layers.Dense(3, activation='softmax'),
      ]
  )


def _convert(model, loss=_LOSS, spec=_SPEC, **kwargs):
  return models.from_keras(model, loss, input_spec=spec, **kwargs)


def _examples(size=8):
  generator = np.random.default_rng(0)
  x = generator.normal(size=[size, 5]).astype('f')
  return x, generator.integers(3, size=size).astype('i')


def _clients(num_clients=2):
  return [
      tf.data.Dataset.from_tensor_slices(_examples()).batch(4)
  ] * num_clients


def _build(model):
  return algorithms.build_fed_opt(model, optimizers.build_sgd(0.1))


class FromKerasTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(*_VERSIONS)
  def test_initial_weights_are_those_of_the_model(self, version):
    model = _sequential(version, version.layers.BatchNormalization())
    with self.assertWarnsRegex(UserWarning, 'moves .*moving_mean.* 1 more'):
      trainable, non_trainable = _convert(model).initial_weights
    self.assertAllEqual(
        [w.shape for w in trainable], [(5,), (5,), (5, 3), (3,)]
    )
    self.assertAllEqual(non_trainable[1], np.ones(5))

  @parameterized.named_parameters(*_VERSIONS)
  def test_variables_of_the_model_stay_as_they_are(self, version):
    model = _sequential(version, version.layers.Dropout(0.5))
    before = model.get_weights()
    attributes = [set(vars(w)) for w in model.weights]
    functional_model = _convert(model, metrics=['accuracy'])
    self.assertAllEqual(attributes, [set(vars(w)) for w in model.weights])
    state = functional_model.initialize_metrics_state()
    x, y = _examples()
    output = functional_model.predict_on_batch(
        functional_model.initial_weights, x, training=False
    )
    self.assertAllClose(output, model(x))
    loss = functional_model.loss(output, y)
    state = functional_model.update_metrics_state(
        state, y, tff.learning.models.BatchOutput(loss, output, 8)
    )
    self.assertAllClose(functional_model.finalize_metrics(state)['loss'], loss)
    self.assertAllClose(before, model.get_weights())

  @parameterized.named_parameters(*_VERSIONS)
  def test_dropout_repeats_by_seed(self, version):
    model = _sequential(
        version, version.layers.Dense(20), version.layers.Dropout(0.5)
    )
    process = _build(_convert(model))

    def train(seed):
      with runtime.CompiledContext(seed=seed):
        output = process.next(process.initialize(), _clients())
      weights = process.get_model_weights(output.state).trainable
      return np.concatenate([np.ravel(weight) for weight in weights])

    first = train(1)
    self.assertAllEqual(first, train(1))
    self.assertNotAllClose(first, train(2))

  @parameterized.named_parameters(*_VERSIONS)
  def test_dropout_differs_between_steps_and_is_off_at_inference(self, version):
    layer = version.layers.Dropout(0.5, seed=1)
    model = _convert(
        version.Sequential(
            [version.Input([5]), layer, version.layers.Dense(50)]
        ),
        'mse',
        (_SPEC[0], tf.TensorSpec([None, 50])),
    )
    x, weights = np.ones([8, 5], 'f'), model.initial_weights
    predict = lambda training: model.predict_on_batch(weights, x, training)
    self.assertNotAllClose(predict(True), predict(True))
    self.assertAllEqual(predict(False), predict(False))
    self.assertAllEqual(predict(False), model.keras_model(x))

  @parameterized.named_parameters(*_VERSIONS)
  def test_loss_added_in_training_alone(self, version):
    class Penalty(version.layers.Layer):

      def call(self, x, training=False):
        if training:
          self.add_loss(tf.constant(7.0))
        return x

    model = _convert(_sequential(version, Penalty()))
    x, y = _examples()
    losses = [
        model.loss(
            model.predict_on_batch(model.initial_weights, x, training), y
        )
        for training in (False, True)
    ]
    self.assertAllClose(losses[0] + 7.0, losses[1])

  @parameterized.named_parameters(*_VERSIONS)
  def test_named_inputs_and_outputs_in_another_order(self, version):
    a, b = version.Input([2], name='a'), version.Input([3], name='b')
    dense = version.layers.Dense
    outputs = {'p': dense(2, name='p')(a), 'q': dense(3, name='q')(b)}
    keras_model = version.Model({'a': a, 'b': b}, outputs)
    specs = {
        name: tf.TensorSpec([None, size])
        for name, size in dict(a=2, b=3, p=2, q=3).items()
    }

    def pick(values, *names):
      return collections.OrderedDict((name, values[name]) for name in names)

    spec = pick(specs, 'b', 'a'), pick(specs, 'q', 'p')
    model = _convert(keras_model, {'p': 'mse', 'q': 'mae'}, spec)
    generator = np.random.default_rng(0)
    values = {
        name: generator.normal(size=[4, s.shape[1]]).astype('f')
        for name, s in specs.items()
    }
    output = model.predict_on_batch(
        model.initial_weights, pick(values, 'b', 'a'), training=False
    )
    expected = keras_model({'a': values['a'], 'b': values['b']})
    self.assertAllClose(output['p'], expected['p'])
    self.assertAllClose(
        model.loss(output, pick(values, 'q', 'p')),
        np.mean((expected['p'] - values['p']) ** 2)
        + np.mean(np.abs(expected['q'] - values['q'])),
    )

  @parameterized.named_parameters(*_VERSIONS)
  def test_mapping_with_sample_weights(self, version):
    spec = collections.OrderedDict(
        sample_weight=tf.TensorSpec([None]), x=_SPEC[0], y=_SPEC[1]
    )
    model = _convert(_sequential(version), spec=spec)
    x, y = _examples()
    arrays = {'x': x, 'y': y, 'sample_weight': np.eye(8, dtype='f')[0]}
    keras_model = model.keras_model
    keras_model.compile(loss=_LOSS)
    evaluate = evaluation.build_central_evaluation(model, arrays)
    found = evaluate(model.initial_weights)['loss']
    wanted = keras_model.evaluate(
        x, y, sample_weight=arrays['sample_weight'], verbose=0
    )
    self.assertNear(found, wanted, 1e-6)
    with self.assertRaisesRegex(ValueError, "'x', 'y' and 'sample_weight'"):
      evaluation.build_central_evaluation(model, {'x': x, 'y': y})

  @parameterized.named_parameters(*_VERSIONS)
  @pytest.mark.usefixtures('native_runtime')
  def test_processes_of_tff_take_it(self, version):
    model = _convert(_sequential(version), metrics=['accuracy'])
    process = tff.learning.algorithms.build_weighted_fed_avg(
        model, tff.learning.optimizers.build_sgdm(0.1)
    )
    output = process.next(process.initialize(), _clients())
    metrics = output.metrics['client_work']['train']
    self.assertCountEqual(metrics, ['loss', 'accuracy'])

  @pytest.mark.slow  # Imports TensorFlow three times.
  def test_imports_in_any_order(self):
    for modules in (
        ('tensorflow_federated', 'keras'),
        ('keras', 'tensorflow_federated'),
        ('tensorflow', 'keras'),
    ):
      result = program_testing.run_command(
          sys.executable, '-c', _IMPORTS.format(*modules)
      )
      self.assertEqual(result.stdout, '3 tf_keras\n', result.stderr)

  @pytest.mark.slow  # Imports TensorFlow.
  def test_other_backend_is_one_sentence(self):
    with tempfile.TemporaryDirectory() as folder:
      config = pathlib.Path(folder, 'keras.json')
      config.write_text('{"backend": "jax"}', encoding='utf-8')
      result = program_testing.run_command(
          sys.executable, '-c', _OTHER_BACKEND, KERAS_HOME=folder
      )
    self.assertStartsWith(result.stdout, 'A Keras 3 model needs the backend')
    self.assertEndsWith(
        result.stdout,
        'with that of jax: set KERAS_BACKEND=tensorflow before'
        ' the import.\n',
    )


class ToKerasTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(*_VERSIONS)
  def test_saved_model_predicts_as_the_trained_one(self, version):
    model = _convert(_sequential(version, version.layers.Dense(4)))
    process = _build(model)
    with runtime.CompiledContext():
      output = process.next(process.initialize(), _clients())
    weights = process.get_model_weights(output.state)
    keras_model = models.to_keras(model, weights)
    self.assertIs(keras_model, model.keras_model)
    with tempfile.TemporaryDirectory() as folder:
      path = str(pathlib.Path(folder, 'model.keras'))
      keras_model.save(path)
      loaded = version.models.load_model(path)
    # The file is a warm start.
    initial, _ = _convert(loaded).initial_weights
    for found, wanted in zip(initial, weights.trainable, strict=True):
      self.assertAllEqual(found, wanted)
    x, _ = _examples()
    found = model.predict_on_batch(
        (tuple(weights.trainable), ()), x, training=False
    )
    self.assertAllClose(loaded.predict(x, verbose=0), found)

  def test_other_weights_raise(self):
    model = _convert(_sequential(keras))
    with self.assertRaisesRegex(
        ValueError, r'shapes \[\(5, 3\), \(3,\)\], fou'
    ):
      models.to_keras(model, model.initial_weights[0][:1])


class _Largest:
  """The largest prediction, a state that is no sum."""

  def __new__(cls, version):
    class Largest(version.metrics.Metric):

      def __init__(self):
        super().__init__(name='largest')
        self.value = self.add_weight(name='v', shape=(), initializer='zeros')

      def update_state(self, y_true, y_pred, sample_weight=None):
        largest = tf.reduce_max(y_pred)
        self.value.assign(tf.maximum(tf.convert_to_tensor(self.value), largest))

      def result(self):
        return tf.convert_to_tensor(self.value)

    return Largest()


class RefusalsTest(parameterized.TestCase):

  @parameterized.named_parameters(*_VERSIONS)
  def test_metric_that_is_no_sum_raises(self, version):
    metrics = ['accuracy', _Largest(version)]
    with self.assertRaisesRegex(ValueError, "metric 'largest' is not a sum"):
      _convert(_sequential(version), metrics=metrics)

  @parameterized.named_parameters(*_VERSIONS)
  def test_table_without_words_raises(self, version):
    lookup = version.layers.TextVectorization(
        output_sequence_length=2, name='lookup'
    )
    model = _sequential(version, lookup, shape=(1,), dtype='string')
    spec = (tf.TensorSpec([None, 1], tf.string), _SPEC[1])
    with self.assertRaisesRegex(
        ValueError, "layer 'lookup' looks .* without words: .*`adapt`"
    ):
      _convert(model, spec=spec)

  def test_table_that_changes_raises(self):
    class Looks(keras.layers.Layer):

      def build(self, shape):
        self.table = tf.lookup.experimental.MutableHashTable(
            tf.int32, tf.float32, 0.0
        )

      def call(self, x):
        return tf.ensure_shape(self.table.lookup(x), x.shape)

      def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, 'float32')

    model = _sequential(keras, Looks(), dtype='int32')
    spec = (tf.TensorSpec([None, 5], tf.int32), _SPEC[1])
    with self.assertRaisesRegex(ValueError, "keeps 'a resource'"):
      _convert(model, spec=spec)

  def test_unknown_treatment_of_batch_statistics_raises(self):
    with self.assertRaisesRegex(ValueError, "'batch', 'aggregate', 'local'"):
      _convert(_sequential(keras), batch_statistics='mean')

  def test_class_weights_that_cannot_be_raise(self):
    with self.assertRaisesRegex(ValueError, r'0 to their .* found \{1: 2.0\}'):
      _convert(_sequential(keras), class_weight={1: 2.0})
    with self.assertRaisesRegex(ValueError, 'models with one output'):
      _convert(
          _sequential(keras),
          spec=(_SPEC[0], [_SPEC[1], _SPEC[1]]),
          class_weight={0: 1.0, 1: 2.0},
      )

  @parameterized.named_parameters(*_VERSIONS)
  def test_integers_without_mean_raise(self, version):
    class Counts(version.layers.Layer):

      def build(self, shape):
        self.count = self.add_weight(
            name='count',
            shape=(),
            dtype='int32',
            initializer='zeros',
            trainable=False,
        )

      def call(self, x, training=False):
        if training:
          self.count.assign(self.count + 1)
        return x

    model = _sequential(version, Counts())
    _convert(model, batch_statistics='local')
    with self.assertRaisesRegex(ValueError, "count'.* int32 .*'local'"):
      _convert(model, batch_statistics='aggregate')

  @parameterized.named_parameters(*_VERSIONS)
  def test_constraint_raises(self, version):
    dense = version.layers.Dense(3, kernel_constraint='unit_norm', name='dense')
    with self.assertRaisesRegex(
        ValueError, "'.*dense/kernel' has a constraint"
    ):
      _convert(_sequential(version, dense))

  @parameterized.named_parameters(*_VERSIONS)
  def test_assigned_trainable_weight_raises(self, version):
    layer = version.layers.SpectralNormalization(version.layers.Dense(3))
    with self.assertRaisesRegex(ValueError, "assigns its .* '.*/kernel'"):
      _convert(_sequential(version, layer))

  @parameterized.named_parameters(*_VERSIONS)
  def test_model_without_weights_raises(self, version):
    model = version.Sequential([version.layers.Dense(3)])
    with self.assertRaisesRegex(ValueError, 'has no weights yet: .*call it'):
      _convert(model)

  @parameterized.named_parameters(*_VERSIONS)
  def test_own_training_raises(self, version):
    class Mine(version.Model):

      def train_step(self, data):
        raise NotImplementedError

    x = version.Input([5])
    model = Mine(x, version.layers.Dense(3)(x))
    with self.assertRaisesRegex(ValueError, 'its own `train_step`'):
      _convert(model)

  @parameterized.named_parameters(*_VERSIONS)
  def test_missing_loss_raises(self, version):
    with self.assertRaisesRegex(ValueError, 'no loss: give `loss`'):
      _convert(_sequential(version), None)

  def test_hidden_state_raises(self):
    class Draws(keras.layers.Layer):

      def call(self, x):
        return x + keras.random.normal((5,))

    class Counts(keras.layers.Layer):

      def build(self, shape):
        self.count = tf.Variable(1.0, name='count')

      def call(self, x):
        return x * self.count

    for layer, regex in (
        (Draws(), 'global seed: .*SeedGenerator'),
        (Counts(), "'.*count.*', which is none of its weights"),
    ):
      with self.assertRaisesRegex(ValueError, regex):
        _convert(_sequential(keras, layer))

  @parameterized.parameters(
      (_SPEC[0],), (_SPEC * 2,), ({'a': _SPEC[0], 'y': _SPEC[1]},)
  )
  def test_other_parts_raise(self, spec):
    with self.assertRaisesRegex(ValueError, r'`input_spec` .*\(x, y\) or'):
      _convert(_sequential(keras), spec=spec)

  def test_ragged_tensors_raise(self):
    spec = (tf.RaggedTensorSpec([None, None], tf.int32), _SPEC[1])
    with self.assertRaisesRegex(TypeError, 'pad ragged tensors'):
      _convert(_sequential(keras), spec=spec)

  @parameterized.parameters(3, keras.layers.Dense(3))
  def test_other_objects_raise(self, model):
    with self.assertRaisesRegex(
        TypeError, '`model` must be a model of Keras 3'
    ):
      _convert(model)

  def test_graph_raises(self):
    model = _sequential(keras)
    with tf.Graph().as_default():
      with self.assertRaisesRegex(ValueError, 'outside of graphs'):
        _convert(model)

  @parameterized.named_parameters(*_VERSIONS)
  def test_keras_model_without_conversion_raises(self, version):
    with self.assertRaisesRegex(
        TypeError, 'convert it by `tff_adaptive.models'
    ):
      _build(_sequential(version))


if __name__ == '__main__':
  tf.test.main()

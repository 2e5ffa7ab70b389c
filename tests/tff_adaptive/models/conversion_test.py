# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the conversion of Keras models; `zoo_test` has their numbers."""

import collections
from concurrent import futures
import math
import pathlib
import sys
import tempfile
import time
from unittest import mock

from absl.testing import parameterized
import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import program_testing
from tests.tff_adaptive import error_testing
from tff_adaptive import algorithms
from tff_adaptive import data
from tff_adaptive import evaluation
from tff_adaptive import models
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive import tuning
from tff_adaptive.client_works import model_adapter
from tff_adaptive.models import tracing
from tff_adaptive.tuning import rate_tuning

_Batch = collections.namedtuple('_Batch', ['x', 'y', 'sample_weight'])
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
  @pytest.mark.sample(1)
  def test_dropout_repeats_by_seed(self, version):
    model = _sequential(
        version, version.layers.Dense(20), version.layers.Dropout(0.5)
    )
    process = _build(_convert(model))

    found = []
    with runtime.CompiledContext() as context:
      state = process.initialize()
      for seed in (1, 1, 2):
        context.begin_round(seed, 0)
        output = process.next(state, _clients())
        weights = process.get_model_weights(output.state).trainable
        found.append(np.concatenate([np.ravel(weight) for weight in weights]))
    self.assertAllEqual(found[0], found[1])
    self.assertNotAllClose(found[0], found[2])

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

  @parameterized.product(
      version=(keras, tf.keras),
      call=(
          lambda self, x: self.double(self.dense(x)),
          lambda self, x, **_: self.double(self.dense(x)),
      ),
  )
  def test_layers_of_a_call_without_training_are_as_in_fit(self, version, call):
    class Double(version.layers.Layer):

      def call(self, x, training=False):
        return 2.0 * x if training else x

    class Own(version.Model):

      def __init__(self):
        super().__init__()
        self.dense = version.layers.Dense(5, kernel_initializer='identity')
        self.double = Double()

    keras_model = type('Own', (Own,), {'call': call})()
    x, y = np.ones([8, 5], 'f'), np.zeros([8, 5], 'f')
    keras_model(x)
    model = _convert(keras_model, 'mse', (_SPEC[0], tf.TensorSpec([None, 5])))

    def loss(training):
      weights = model.initial_weights
      return float(model.loss(model.predict_on_batch(weights, x, training), y))

    keras_model.compile('sgd', 'mse')
    history = keras_model.fit(x, y, verbose=0).history
    self.assertEqual([loss(True)], history['loss'])
    # Keras 2 tells the layers all the same.
    self.assertEqual(loss(True), 4.0 if version is tf.keras else 1.0)
    self.assertEqual(loss(False), 1.0)

  @parameterized.named_parameters(*_VERSIONS)
  def test_functions_of_tensorflow_are_part_of_the_model(self, version):
    class Scale(version.layers.Layer):

      def build(self, shape):
        self.scale = self.add_weight(
            name='scale', shape=(), initializer='ones', trainable=False
        )

      @tf.function
      def call(self, x, training=False):
        if training:
          self.scale.assign(3.0)
        if tf.reduce_sum(x) > 0.0:
          x = 2.0 * x
        return x * tf.convert_to_tensor(self.scale)

    class Own(version.Model):

      def __init__(self):
        super().__init__()
        self.dense = version.layers.Dense(5, kernel_initializer='identity')
        self.scale = Scale()

      @tf.function
      def call(self, x, training=False):
        return self.scale(self.dense(x), training=training)

    keras_model = Own()
    x, y = np.ones([8, 5], 'f'), np.zeros([8, 5], 'f')
    keras_model(x)
    spec = _SPEC[0], tf.TensorSpec([None, 5])
    model = _convert(keras_model, 'mse', spec, batch_statistics='aggregate')
    weights = model.initial_weights
    output = model.predict_on_batch(weights, x, training=False)
    self.assertEqual(float(model.loss(output, y)), 2.0**2)
    output, moved = model.predict_and_move(weights, x)
    self.assertEqual(float(model.loss(output, y)), 6.0**2)
    self.assertAllEqual(moved, [3.0])
    keras_model.compile('sgd', 'mse')
    self.assertEqual(keras_model.fit(x, y, verbose=0).history['loss'], [36.0])

  @parameterized.parameters(
      (None, (0.1**2 + 3 * 0.9**2) / 2),
      ([4.0, 1.0], (4 * 0.1**2 + 3 * 0.9**2) / 2),
      ([[4.0], [1.0]], (4 * 0.1**2 + 3 * 0.9**2) / 2),
  )
  def test_class_weights_of_smoothed_labels(self, weights, wanted):
    keras_model = keras.Sequential(
        [keras.Input([5]), keras.layers.Dense(1, kernel_initializer='zeros')]
    )
    x, y = np.ones([2, 5], 'f'), np.array([[0.1], [0.9]], 'f')
    examples = (x, y) if weights is None else (x, y, np.array(weights, 'd'))
    spec = tf.data.Dataset.from_tensor_slices(examples).batch(2).element_spec
    model = _convert(keras_model, 'mse', spec, class_weight={0: 1.0, 1: 3.0})
    output = model.predict_on_batch(model.initial_weights, x, training=True)
    labels = y if weights is None else examples[1:]
    self.assertAllClose(model.loss(output, labels), wanted)

  def test_class_weights_are_in_the_loss_at_the_end_of_a_round(self):
    dense = keras.layers.Dense(1, kernel_initializer='zeros')
    model = _convert(
        keras.Sequential([keras.Input([1]), dense]),
        'mse',
        (tf.TensorSpec([None, 1]), tf.TensorSpec([None, 1])),
        class_weight={0: 1.0, 1: 3.0},
    )
    local = model_adapter.build_model_adapter(model).build_local_model()
    trainable = tuple(map(tf.constant, model.initial_weights[0]))
    batch = (np.ones([2, 1], 'f'), np.array([[0], [1]], 'f'))
    self.assertAllClose(local.evaluate(trainable, batch).mean_loss, 1 / 2)
    self.assertAllClose(local.evaluate_again(trainable, batch).mean_loss, 3 / 2)

  def test_threads_build_graphs_of_one_function(self):
    mean = tf.constant(2.0)
    traced = tracing.TracedFunction(lambda x: x + mean, tf.TensorSpec([]))
    concrete = traced._concrete  # pylint: disable=protected-access
    set_captures = concrete.set_external_captures

    def set_and_wait(captures):
      set_captures(captures)
      time.sleep(0.1)

    def build(_):
      with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(traced(tf.constant(1.0)))

    with (
        mock.patch.object(concrete, 'set_external_captures', set_and_wait),
        futures.ThreadPoolExecutor(2) as pool,
    ):
      self.assertEqual(list(pool.map(build, range(2))), [3.0, 3.0])

  @parameterized.named_parameters(*_VERSIONS)
  def test_assigned_values_have_no_gradient(self, version):
    class Center(version.layers.Layer):

      def build(self, shape):
        self.mean = self.add_weight(
            name='mean', shape=(), initializer='zeros', trainable=False
        )

      def call(self, x, training=False):
        if training:
          self.mean.assign(tf.reduce_mean(x))
        return x * tf.convert_to_tensor(self.mean)

    keras_model = _sequential(version, version.layers.Dense(4), Center())
    model = _convert(keras_model, batch_statistics='aggregate')
    trainable, others = model.initial_weights
    weights = list(map(tf.constant, trainable))
    x, _ = _examples()
    with tf.GradientTape(persistent=True) as tape:
      tape.watch(weights)
      output, moved = model.predict_and_move((weights, others), x)
      found, wanted = output[:, 0], keras_model(x, training=True)[:, 0]
    self.assertAllClose(
        tape.gradient(found, weights),
        tape.gradient(wanted, keras_model.trainable_weights),
    )
    # Hypergradients go through what a round moves.
    self.assertAllClose(tape.gradient(moved, weights)[1], np.full([4], 0.25))

  def test_parts_of_weights_are_assigned(self):
    class Queue(tf.keras.layers.Layer):

      def build(self, shape):
        self.rows = self.add_weight(
            name='rows',
            shape=(4, shape[-1]),
            initializer='ones',
            trainable=False,
        )

      def call(self, x, training=False):
        if training:
          self.rows[1:3].assign(x[:2])
          self.rows.scatter_nd_add([[0]], x[:1])
          self.rows.scatter_update(tf.IndexedSlices(x[:1], [3]))
        return x * tf.reduce_mean(self.rows)

    keras_model = _sequential(tf.keras, Queue())
    model = _convert(keras_model, batch_statistics='aggregate')
    x, _ = _examples()
    output, moved = model.predict_and_move(model.initial_weights, x)
    self.assertAllClose(output, keras_model(x, training=True))
    self.assertAllClose(moved, keras_model.non_trainable_weights)

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

  @parameterized.parameters((keras, 2.0), (tf.keras, 2.5))
  def test_losses_that_a_model_adds_are_counted_as_in_evaluate(
      self, version, wanted
  ):
    class Mean(version.layers.Layer):

      def call(self, x):
        self.add_loss(tf.reduce_mean(x))
        return x

    keras_model = _sequential(version, Mean())
    model = _convert(keras_model, None)
    state = model.initialize_metrics_state()
    x, y = np.repeat([1.0, 4.0], [20, 10]).reshape(6, 5), np.zeros([6], 'i')
    dataset = tf.data.Dataset.from_tensor_slices((x.astype('f'), y)).batch(4)
    for features, labels in dataset:
      output = model.predict_on_batch(model.initial_weights, features, False)
      loss = model.loss(output, labels)
      state = model.update_metrics_state(
          state, labels, tff.learning.models.BatchOutput(loss, output, 4)
      )
    keras_model.compile('sgd', None)
    self.assertNear(keras_model.evaluate(dataset, verbose=0), wanted, 1e-6)
    self.assertNear(model.finalize_metrics(state)['loss'], wanted, 1e-6)

  @parameterized.named_parameters(*_VERSIONS)
  def test_metric_with_another_in_it(self, version):
    class Total(version.metrics.Metric):

      def __init__(self):
        super().__init__(name='total')
        self.count = self.add_weight(
            name='count', shape=(), initializer='zeros'
        )
        self.mean = version.metrics.Mean()

      def update_state(self, y_true, y_pred, sample_weight=None):
        self.count.assign(tf.convert_to_tensor(self.count) + 1.0)
        self.mean.update_state(y_true)

      def result(self):
        return tf.convert_to_tensor(self.count) * self.mean.result()

    model = _convert(_sequential(version), metrics=[Total()])
    x, y = _examples()
    state = model.initialize_metrics_state()
    output = model.predict_on_batch(model.initial_weights, x)
    batch = tff.learning.models.BatchOutput(0.0, output, 8)
    for _ in range(2):
      state = model.update_metrics_state(state, y, batch)
    self.assertNear(model.finalize_metrics(state)['total'], 2 * y.mean(), 1e-6)

  def test_results_that_are_mappings_have_their_own_names(self):
    class Sums(keras.metrics.Mean):

      def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(y_true)

      def result(self):
        return {'sum': self.total, 'count': self.count}

    model = _convert(_sequential(keras), metrics=[Sums()])
    x, y = _examples()
    output = model.predict_on_batch(model.initial_weights, x)
    state = model.update_metrics_state(
        model.initialize_metrics_state(),
        y,
        tff.learning.models.BatchOutput(7.0, output, 8),
    )
    model.keras_model.compile('sgd', _LOSS, metrics=[Sums()])
    found = model.finalize_metrics(state)
    self.assertCountEqual(found, ['loss', 'sum', 'count'])
    self.assertAllClose(
        dict(found) | {'loss': model.loss(output, y)},
        model.keras_model.evaluate(x, y, verbose=0, return_dict=True),
    )

  @parameterized.named_parameters(*_VERSIONS)
  def test_labels_of_unknown_length(self, version):
    keras_model = _sequential(version)
    spec = _SPEC[0], tf.TensorSpec([None, None])
    model = _convert(keras_model, 'mse', spec, metrics=['accuracy'])
    output = model.predict_on_batch(model.initial_weights, *_examples()[:1])
    labels = output + [1.0, 2.0, 3.0]
    self.assertAllClose(model.loss(output, labels), (1 + 4 + 9) / 3)

  @parameterized.named_parameters(*_VERSIONS)
  def test_texts_in_batches_of_a_fixed_size(self, version):
    layers = version.layers
    words = layers.TextVectorization(vocabulary=['a', 'b'])
    keras_model = version.Sequential(
        [
            version.Input([1], dtype='string'),
            words,
            layers.Embedding(4, 3, embeddings_initializer='ones'),
            layers.GlobalAveragePooling1D(),
        ]
    )
    spec = tf.TensorSpec([2, 1], tf.string), tf.TensorSpec([2, 3])
    model = _convert(keras_model, 'mse', spec)
    output = model.predict_on_batch(
        model.initial_weights, tf.constant([['a b'], ['c']])
    )
    self.assertAllClose(model.loss(output, np.zeros([2, 3], 'f')), 1.0)

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

  @parameterized.parameters(tuple, _Batch._make)
  def test_clients_give_the_parts_of_a_batch_by_name(self, container):
    dense = keras.layers.Dense(1, kernel_initializer='ones')
    model = _convert(
        keras.Sequential([keras.Input([1]), dense]),
        'mse',
        container([tf.TensorSpec([None, 1])] * 3),
    )
    clients = data.read_clients(
        {'a': {'x': [[1]], 'y': [[3]], 'sample_weight': [[10]]}},
        dict.fromkeys(['x', 'y', 'sample_weight'], tf.TensorSpec([1])),
    )
    weights = tff.learning.models.ModelWeights(*model.initial_weights)
    evaluate = evaluation.build_client_evaluation(model, clients)
    self.assertAllClose(evaluate(weights).values['loss'], [10 * (3 - 1) ** 2])
    fine_tuned = evaluation.build_personalized_evaluation(
        model, clients, clients, optimizers.build_sgd(0.0)
    )
    self.assertAllClose(fine_tuned(weights).after.values['loss'], [40])
    process = _build(model)
    cohort = data.Cohort(clients, ['a'], 0, 0, data.BatchPlan(1))
    with runtime.CompiledContext():
      state = process.initialize()
      output = process.next(state, cohort)
      self.assertAllClose(output.metrics['client_work']['clients']['loss'], 40)
      with self.assertRaisesRegex(TypeError, "the names .*'sample_weight'"):
        process.next(state, list(cohort))
    tuner = tuning.build_rate_tuner(process, model, lambda round_num: cohort)
    rates = rate_tuning.read_rates(process, tuner(state, 0))
    # The step is too long, and both rates have the same part in it.
    shorter = math.exp(-0.1 / math.sqrt(2.0))
    self.assertAllClose(list(rates.values()), [0.1 * shorter, shorter])

  @pytest.mark.usefixtures('native_runtime')
  @parameterized.named_parameters(*_VERSIONS)
  def test_metrics_take_the_loss_that_is_known(self, version):
    model = _convert(_sequential(version))
    x, y = _examples()
    predictions = model.predict_on_batch(model.initial_weights, x)

    def report(loss):
      state = model.update_metrics_state(
          model.initialize_metrics_state(),
          labels=y,
          batch_output=tff.learning.models.BatchOutput(
              loss=loss, predictions=predictions
          ),
      )
      return model.finalize_metrics(state)['loss']

    self.assertAllEqual(report(7.0), 7.0)
    self.assertAllClose(report(None), model.loss(predictions, y))

  def test_functions_of_other_threads_stay_as_they_are(self):
    add_one = tf.function(lambda x: x + 1)

    def call():
      with tf.Graph().as_default() as graph:
        add_one(tf.constant(1.0))
      return [op.type for op in graph.get_operations()]

    with tracing._inlined_functions(), futures.ThreadPoolExecutor() as pool:
      self.assertIn('AddV2', call())
      self.assertIn('PartitionedCall', pool.submit(call).result())
    self.assertIn('PartitionedCall', call())

  def test_functions_that_xla_compiles_stay_so(self):
    of_graph = {}
    add = tf.function(lambda x: x + of_graph['y'], jit_compile=True)
    for _ in range(2):
      with tf.Graph().as_default() as graph, tracing._inlined_functions():
        of_graph['y'] = tf.constant(2.0)
        add(tf.constant(1.0))
      (function,) = graph.as_graph_def().library.function
      self.assertTrue(function.attr['_XlaMustCompile'].b)

  def test_processes_of_tff_take_it(self):
    model = _convert(_sequential(keras), metrics=['accuracy'])
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
  @pytest.mark.sample(1)
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

  @parameterized.named_parameters(*_VERSIONS)
  def test_weights_of_words_fit(self, version):
    lookup = version.layers.StringLookup(output_mode='tf_idf')
    lookup.adapt([['a', 'b'], ['c', 'a']])
    keras_model = _sequential(version, lookup, shape=(2,), dtype='string')
    x = tf.constant([['a', 'c'], ['b', 'd']])
    before = keras_model(x)
    model = _convert(
        keras_model, spec=(tf.TensorSpec(x.shape, x.dtype), _SPEC[1])
    )
    state = _build(model).initialize()
    models.to_keras(model, _build(model).get_model_weights(state))
    self.assertAllClose(keras_model(x), before)


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


def _with_words(version):
  lookup = version.layers.TextVectorization(output_sequence_length=2, name='l')
  return _sequential(version, lookup, shape=(1,), dtype='string')


def _counting(version):
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

  return _sequential(version, Counts())


def _constrained(version):
  dense = version.layers.Dense(3, kernel_constraint='unit_norm', name='dense')
  return _sequential(version, dense)


def _spectral(version):
  dense = version.layers.Dense(3)
  return _sequential(version, version.layers.SpectralNormalization(dense))


def _with_own(version, name):
  mine = type('Mine', (version.Model,), {name: lambda self, data: {}})
  x = version.Input([5])
  return mine(x, version.layers.Dense(3)(x))


def _with_metric_of_the_other(version):
  other = tf.keras if version is keras else keras
  metric = other.metrics.SparseCategoricalAccuracy(name='foreign')
  return _convert(_sequential(version), weighted_metrics=[metric])


def _with_own_metric(version):
  class Mine(version.Model):

    def __init__(self):
      super().__init__()
      self.dense = version.layers.Dense(3)
      self.mine = version.metrics.Mean(name='mine')

    def call(self, x):
      self.mine.update_state(tf.reduce_sum(x))
      return self.dense(x)

  model = Mine()
  model(_examples()[0])
  return model


class _Looks(keras.layers.Layer):
  """Looks words up in a table that changes."""

  def build(self, shape):
    self.table = tf.lookup.experimental.MutableHashTable(
        tf.int32, tf.float32, 0.0
    )

  def call(self, x):
    return tf.ensure_shape(self.table.lookup(x), x.shape)

  def compute_output_spec(self, x):
    return keras.KerasTensor(x.shape, 'float32')


class _Draws(keras.layers.Layer):

  def call(self, x):
    return x + keras.random.normal((5,))


class _Counts(keras.layers.Layer):

  def build(self, shape):
    self.count = tf.Variable(1.0, name='count')

  def call(self, x):
    return x * self.count


def _with_branch(version):
  class Branch(version.layers.Layer):

    def build(self, shape):
      self.normalization = version.layers.BatchNormalization()
      self.normalization.build(shape)

    def call(self, x, training=False):
      normalize = lambda: self.normalization(x, training=training)
      return tf.cond(tf.reduce_sum(x) > 0, normalize, lambda: x)

    def compute_output_shape(self, shape):
      return shape

  return _sequential(version, Branch())


def _in_a_graph(version):
  model = _sequential(version)
  with tf.Graph().as_default():
    return _convert(model)


_WORDS_SPEC = (tf.TensorSpec([None, 1], tf.string), _SPEC[1])
_NUMBERS_SPEC = (tf.TensorSpec([None, 5], tf.int32), _SPEC[1])
_RAGGED = (tf.RaggedTensorSpec([None, None], tf.int32), _SPEC[1])
_value, _type = error_testing.value_error, error_testing.type_error
# What is refused, of either version of Keras.
_REFUSED = (
    _value(
        "metric 'largest' is not a sum",
        lambda v: _convert(_sequential(v), metrics=[_Largest(v)]),
    ),
    _value(
        "layer 'l' .* `adapt`",
        lambda v: _convert(_with_words(v), spec=_WORDS_SPEC),
    ),
    _value(
        "count'.* int32 .*'local'",
        lambda v: _convert(_counting(v), batch_statistics='aggregate'),
    ),
    _value("dense/kernel' has a const", lambda v: _convert(_constrained(v))),
    _value("assigns its .* '.*/kernel'", lambda v: _convert(_spectral(v))),
    _value('no weights', lambda v: _convert(v.Sequential([v.layers.Dense(3)]))),
    _value('`train_step`', lambda v: _convert(_with_own(v, 'train_step'))),
    _value('`test_step`', lambda v: _convert(_with_own(v, 'test_step'))),
    _value(
        'inside of a `tf.cond`',
        lambda v: _convert(_with_branch(v), batch_statistics='aggregate'),
    ),
    _value("keeps '.*total", lambda v: _convert(_with_own_metric(v))),
    _type("'foreign' is one of `.*keras.metrics`", _with_metric_of_the_other),
    _value('give `loss`', lambda v: _convert(_sequential(v), None)),
    _type('convert it by `tff_adapt', lambda v: _build(_sequential(v))),
)


# Of Keras 3.
def _convert_with(**kwargs):
  return _convert(_sequential(keras), **kwargs)


_REFUSED_OF_3 = (
    _value(
        "keeps 'a resource'",
        lambda: _convert(
            _sequential(keras, _Looks(), dtype='int32'), spec=_NUMBERS_SPEC
        ),
    ),
    _value('SeedGenerator', lambda: _convert(_sequential(keras, _Draws()))),
    _value('none of its', lambda: _convert(_sequential(keras, _Counts()))),
    _value("'batch', 'aggr", _convert_with, batch_statistics='mean'),
    _value(
        r'0 to their .* found \{1: 2.0\}', _convert_with, class_weight={1: 2.0}
    ),
    _value(
        'models with one output',
        _convert_with,
        spec=(_SPEC[0], [_SPEC[1], _SPEC[1]]),
        class_weight={0: 1.0, 1: 2.0},
    ),
    _value(
        r'last axis is known.*\(None, None\)',
        _convert_with,
        spec=(_SPEC[0], tf.TensorSpec([None, None])),
        class_weight=dict.fromkeys(range(6), 1.0),
    ),
    _value(r'\(x, y\) or', _convert_with, spec=_SPEC[0]),
    _value(r'\(x, y\) or', _convert_with, spec=_SPEC * 2),
    _value(r'\(x, y\) or', _convert_with, spec=dict(a=_SPEC[0], y=_SPEC[1])),
    _type('pad ragged tensors', _convert_with, spec=_RAGGED),
    _value(
        'how many axes .*unknown.* `tf.ensure_shape`',
        _convert_with,
        spec=(_SPEC[0], tf.TensorSpec(None, tf.int32)),
    ),
    _type('`model` must be a model', _convert, 3),
    _type('`model` must be a model', _convert, keras.layers.Dense(3)),
    _value('outside of graphs', _in_a_graph, keras),
    _value(
        r'shapes \[\(5, 3\), \(3,\)\], fou',
        lambda: models.to_keras(_convert_with(), [np.zeros([5, 3])]),
    ),
)
test_models_are_refused = error_testing.refused(
    *_REFUSED_OF_3,
    *(
        error_testing.row(error, named, call, version)
        for error, named, call in _REFUSED
        for _, version in _VERSIONS
    ),
)


@pytest.mark.parametrize('version', [keras, tf.keras])
def test_weights_that_move_in_evaluation_are_named(version):
  class Counts(version.layers.Layer):

    def build(self, shape):
      self.count = self.add_weight(
          name='count', shape=(), initializer='zeros', trainable=False
      )

    def call(self, x):
      self.count.assign(tf.convert_to_tensor(self.count) + 1.0)
      return x

  model = _sequential(version, Counts())
  with pytest.warns(UserWarning, match="count' in evaluation, too"):
    _convert(model, batch_statistics='aggregate')


def test_integers_are_kept_by_each_client():
  model = _convert(_counting(keras), batch_statistics='local')
  assert [w.dtype for w in model.initial_weights[1]] == [np.int32]

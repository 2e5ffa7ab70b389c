# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pipelines as in TFF's tutorials on learning."""

import collections
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.pipelines import client_data
from tests.pipelines import pipeline
from tests.pipelines import training
from tff_adaptive.runtime import plans

_fed_avg = tff.learning.algorithms.build_weighted_fed_avg


def _shuffled_digits() -> list[tf.data.Dataset]:
  """Returns clients of five epochs in an order by seed."""
  return client_data.datasets(
      lambda dataset: dataset.repeat(5)
      .shuffle(100, seed=1)
      .batch(20)
      .map(client_data.flat_digits)
      .prefetch(10)
  )


@pipeline.pipeline(plans.CACHED)
def image_classification() -> pipeline.Run:
  clients = _shuffled_digits()
  next(iter(clients[0]))  # A look at a batch, before training.

  def model_fn():
    return training.variable(
        training.softmax_model(),
        clients[0].element_spec,
        False,
        tf.keras.metrics.SparseCategoricalAccuracy(),
    )

  process = _fed_avg(model_fn, training.sgd(0.02), training.sgd(1.0))
  return training.of_process(process, clients)


class _SoftmaxRegression(tff.learning.models.VariableModel):
  """A model without Keras; sums of its metrics are variables."""

  def __init__(self):
    self._kernel = tf.Variable(tf.zeros([784, 10]), name='kernel')
    self._bias = tf.Variable(tf.zeros([10]), name='bias')
    self._sums = tf.Variable(tf.zeros([2]), name='sums', trainable=False)
    self._count = tf.Variable(0.0, name='count', trainable=False)

  @property
  def trainable_variables(self):
    return [self._kernel, self._bias]

  @property
  def non_trainable_variables(self):
    return []

  @property
  def local_variables(self):
    return [self._sums, self._count]

  @property
  def input_spec(self):
    return client_data.FLAT_DIGITS

  @tf.function
  def predict_on_batch(self, x, training=True):
    del training
    return tf.nn.softmax(x @ self._kernel + self._bias)

  @tf.function
  def forward_pass(self, batch_input, training=True):
    scores = self.predict_on_batch(batch_input['x'], training)
    labels = tf.reshape(batch_input['y'], [-1])
    losses = -tf.math.log(tf.gather(scores, labels, batch_dims=1))
    guesses = tf.argmax(scores, axis=1, output_type=tf.int32)
    hits = tf.cast(guesses == labels, tf.float32)
    self._sums.assign_add([tf.reduce_sum(losses), tf.reduce_sum(hits)])
    num_examples = tf.shape(labels)[0]
    self._count.assign_add(tf.cast(num_examples, tf.float32))
    return tff.learning.models.BatchOutput(
        loss=tf.reduce_mean(losses),
        predictions=guesses,
        num_examples=num_examples,
    )

  @tf.function
  def report_local_unfinalized_metrics(self):
    return collections.OrderedDict(
        loss=[self._sums[0], self._count.read_value()],
        accuracy=[self._sums[1], self._count.read_value()],
    )

  def metric_finalizers(self):
    def mean(pair):
      return pair[0] / pair[1]

    return collections.OrderedDict(
        loss=tf.function(mean), accuracy=tf.function(mean)
    )

  @tf.function
  def reset_metrics(self):
    for variable in self.local_variables:
      variable.assign(tf.zeros_like(variable))


@pipeline.pipeline(plans.CACHED)
def image_classification_by_an_own_model() -> pipeline.Run:
  process = _fed_avg(_SoftmaxRegression, training.sgd(0.02))
  return training.of_process(process, _shuffled_digits())


@pipeline.pipeline(plans.CACHED)
def evaluation() -> pipeline.Run:
  clients = client_data.datasets(
      lambda dataset: dataset.batch(128).map(client_data.flat_digits)
  )
  process = tff.learning.algorithms.build_fed_eval(_SoftmaxRegression)

  def rounds():
    state = process.initialize()
    weights = process.get_model_weights(state)
    trained = [np.full_like(leaf, 0.1) for leaf in weights.trainable]
    state = process.set_model_weights(
        state, tff.learning.models.ModelWeights(trained, [])
    )
    yield weights
    while True:
      output = process.next(state, clients)
      state = output.state
      yield output.metrics['client_work']['eval']

  return pipeline.Run(rounds, process.next)


@pipeline.pipeline(plans.CACHED, pipeline.near(0.06))
def simulations() -> pipeline.Run:
  clients = client_data.datasets(
      lambda dataset: dataset.repeat(10)
      .shuffle(500)
      .batch(20)
      .map(client_data.flat_digits)
  )
  model = training.functional(
      training.softmax_model(), clients[0].element_spec, from_logits=False
  )
  process = _fed_avg(model, training.sgd(0.02))
  return training.only_weights(process, clients)


def _recurrent_model() -> tf.keras.Model:
  return tf.keras.Sequential(
      [
          tf.keras.layers.Embedding(
              len(client_data.CHARACTERS),
              64,
              batch_input_shape=[8, None],
              embeddings_initializer=training.glorot(1),
          ),
          tf.keras.layers.GRU(
              128,
              return_sequences=True,
              kernel_initializer=training.glorot(2),
              recurrent_initializer=training.glorot(3),
          ),
          tf.keras.layers.Dense(
              len(client_data.CHARACTERS), kernel_initializer=training.glorot(4)
          ),
      ]
  )


class _FlatAccuracy(tf.keras.metrics.SparseCategoricalAccuracy):
  """The accuracy over all characters of all sequences."""

  def __init__(self, name='accuracy', dtype=tf.float32):
    super().__init__(name, dtype=dtype)

  def update_state(self, y_true, y_pred, sample_weight=None):
    num_classes = len(client_data.CHARACTERS)
    return super().update_state(
        tf.reshape(y_true, [-1, 1]),
        tf.reshape(y_pred, [-1, num_classes, 1]),
        sample_weight,
    )


@pipeline.pipeline(
    plans.CACHED, pipeline.near(0.2), known_ratio=0.8, cause=training.ARITHMETIC
)
def text_generation() -> pipeline.Run:
  numbers = tf.range(len(client_data.CHARACTERS), dtype=tf.int64)
  table = tf.lookup.StaticHashTable(
      tf.lookup.KeyValueTensorInitializer(
          list(client_data.CHARACTERS), numbers
      ),
      default_value=0,
  )

  def to_ids(line):
    letters = tf.strings.bytes_split(tf.reshape(line['snippets'], [1]))
    return table.lookup(letters.values)

  def split(chunk):
    return (
        tf.map_fn(lambda text: text[:-1], chunk),
        tf.map_fn(lambda text: text[1:], chunk),
    )

  clients = client_data.datasets(
      lambda dataset: dataset.map(to_ids)
      .unbatch()
      .batch(101, drop_remainder=True)
      .shuffle(100)
      .batch(8, drop_remainder=True)
      .map(split)
      .take(5),
      client_data.plays(),
  )

  def model_fn():
    return training.variable(
        _recurrent_model(), clients[0].element_spec, True, _FlatAccuracy()
    )

  process = _fed_avg(model_fn, training.sgd(0.5))
  return training.only_weights(process, clients)


@functools.cache
def _any_digits_model() -> Any:
  return training.functional(
      training.softmax_model(), client_data.FLAT_DIGITS, from_logits=False
  )


def _three_batches(dataset: tf.data.Dataset) -> tf.data.Dataset:
  dataset = dataset.batch(5)
  return dataset.map(
      client_data.flat_digits, num_parallel_calls=tf.data.AUTOTUNE
  ).take(5)


@pipeline.pipeline(plans.CACHED, pipeline.near(0.3))
def working_with_client_data() -> pipeline.Run:
  source = client_data.digits().preprocess(
      lambda dataset: _three_batches(dataset).shuffle(buffer_size=5)
  )
  clients = client_data.datasets(lambda dataset: dataset, source)
  process = _fed_avg(_any_digits_model(), training.sgd(0.01))
  return training.only_weights(process, clients)


@pipeline.pipeline(plans.CACHED)
def working_with_client_ids() -> pipeline.Run:
  source = client_data.digits().preprocess(_three_batches)
  compose = tff.simulation.compose_dataset_computation_with_learning_process
  process = compose(
      source.dataset_computation,
      _fed_avg(_any_digits_model(), training.sgd(0.01)),
  )
  return training.of_process(process, source.client_ids)


def _private_model() -> tf.keras.Model:
  units = [200, 200, 10]
  layers = [
      tf.keras.layers.Dense(
          size, activation=activation, kernel_initializer=training.glorot(seed)
      )
      for seed, (size, activation) in enumerate(
          zip(units, ['relu', 'relu', None])
      )
  ]
  shape = tf.keras.layers.Reshape(input_shape=(28, 28, 1), target_shape=(784,))
  return tf.keras.Sequential([shape, *layers])


@pipeline.pipeline(plans.CACHED, pipeline.near(0.5), known_ratio=0.4)
def differential_privacy() -> pipeline.Run:
  source = client_data.digits(20).preprocess(
      lambda dataset: dataset.map(client_data.images)
      .shuffle(418)
      .repeat(1)
      .batch(32)
  )

  def model_fn():
    return training.variable(
        _private_model(),
        client_data.IMAGES,
        True,
        tf.keras.metrics.SparseCategoricalAccuracy(),
    )

  process = tff.learning.algorithms.build_unweighted_fed_avg(
      model_fn,
      client_optimizer_fn=training.sgd(0.05),
      server_optimizer_fn=training.sgd(1.0, momentum=0.9),
      model_aggregator=tff.learning.dp_aggregator(0.001, 10),
  )

  def sample():
    # Both runtimes sample the same clients.
    generator = np.random.default_rng(0)
    while True:
      yield [
          source.create_tf_dataset_for_client(client_id)
          for client_id in source.client_ids
          if generator.uniform() < 0.5
      ]

  return training.only_weights(process, sample)


def _reconstruction_model() -> Any:
  """Returns a matrix factorization whose user part stays with the client."""
  item = tf.keras.layers.Input(shape=[1])
  items = tf.keras.layers.Embedding(
      300, 50, embeddings_initializer=training.glorot(1)
  )
  user = tf.keras.Sequential(
      [
          tf.keras.layers.InputLayer((1,)),
          tf.keras.layers.Lambda(tf.zeros_like),
          tf.keras.layers.Embedding(
              1, 50, embeddings_initializer=training.glorot(2)
          ),
          tf.keras.layers.Flatten(),
      ]
  )
  flat = tf.keras.layers.Flatten()(items(item))
  score = tf.keras.layers.Dot(1)([user(item), flat])
  model = tf.keras.Model(inputs=item, outputs=score)
  build = tff.learning.models.ReconstructionModel
  return build.from_keras_model_and_layers(
      keras_model=model,
      global_layers=[items],
      local_layers=user.layers,
      input_spec=collections.OrderedDict(
          x=tf.TensorSpec([None, 1], tf.int64),
          y=tf.TensorSpec([None, 1], tf.float32),
      ),
  )


@pipeline.pipeline(plans.CACHED)
def federated_reconstruction() -> pipeline.Run:
  clients = [
      tf.data.Dataset.from_tensor_slices(arrays).batch(5)
      for arrays in client_data.ratings()
  ]
  build_split = tff.learning.models.ReconstructionModel.build_dataset_split_fn
  process = tff.learning.algorithms.build_fed_recon(
      _reconstruction_model,
      loss_fn=tf.keras.losses.MeanSquaredError,
      metrics_fn=lambda: [tf.keras.metrics.MeanAbsoluteError()],
      server_optimizer_fn=training.sgd(1.0),
      client_optimizer_fn=training.sgd(0.5),
      reconstruction_optimizer_fn=training.sgd(0.1),
      dataset_split_fn=build_split(recon_epochs=2),
  )
  return training.of_process(process, clients)


def _with_aggregator(aggregator: Any) -> tuple[Any, Any]:
  """Returns federated averaging with the aggregator, and clients."""
  process = _fed_avg(
      _any_digits_model(),
      training.sgd(0.02),
      training.sgd(1.0),
      model_aggregator=aggregator,
  )
  return process, _shuffled_digits()


@pipeline.pipeline(plans.CACHED)
def robust_aggregator() -> pipeline.Run:
  aggregator = tff.learning.robust_aggregator()
  return training.of_process(*_with_aggregator(aggregator))


@pipeline.pipeline(plans.CACHED)
def secure_aggregator() -> pipeline.Run:
  aggregator = tff.learning.secure_aggregator()
  return training.of_process(*_with_aggregator(aggregator))


@pipeline.pipeline(plans.CACHED, pipeline.near(0.015))
def compression_aggregator() -> pipeline.Run:
  mean = tff.aggregators.MeanFactory(
      tff.aggregators.EncodedSumFactory.quantize_above_threshold(
          quantization_bits=8, threshold=1000
      )
  )
  return training.only_weights(*_with_aggregator(mean))

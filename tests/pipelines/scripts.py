# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pipelines as in scripts of users, and analytics."""

import collections
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.pipelines import client_data
from tests.pipelines import pipeline
from tests.pipelines import training
from tests.tff_adaptive import testing
from tff_adaptive import runtime
from tff_adaptive.runtime import plans

_at_clients, _at_server = testing.at_clients, testing.at_server
_NUM_FEATURES = 50
_VECTOR = tff.TensorType(np.float32, [_NUM_FEATURES])
_BATCHES = tff.SequenceType(tff.TensorType(np.float32, [None, _NUM_FEATURES]))


def _points(batch_size: int = 10) -> list[tf.data.Dataset]:
  return [
      tf.data.Dataset.from_tensor_slices(rows).batch(batch_size)
      for rows in client_data.points(num_features=_NUM_FEATURES)
  ]


def _descend(weights: Any, batch: Any) -> Any:
  """Returns weights after a step towards the first principal component."""
  scores = tf.tanh(tf.linalg.matvec(batch, weights))
  return weights - 0.01 * tf.reduce_mean(batch * scores[:, None], axis=0)


def _averaging(train: Any) -> Any:
  """Returns a computation that averages `train(dataset, weights)`."""
  work = tff.tensorflow.computation(
      lambda dataset, weights: train(dataset, weights), _BATCHES, _VECTOR
  )

  @tff.federated_computation(_at_server(_VECTOR), _at_clients(_BATCHES))
  def next_fn(weights, clients):
    at_clients = tff.federated_broadcast(weights)
    return tff.federated_mean(tff.federated_map(work, (clients, at_clients)))

  return next_fn


def _ones() -> np.ndarray:
  return np.ones(_NUM_FEATURES, np.float32)


def _reduce(dataset: tf.data.Dataset, weights: Any) -> Any:
  return dataset.reduce(weights, _descend)


@pipeline.pipeline(plans.CACHED)
def for_batch_in_dataset() -> pipeline.Run:
  @tf.function
  def train(dataset, weights):
    for batch in dataset:
      weights = _descend(weights, batch)
    return weights

  return training.of_state(_ones, _averaging(train), _points())


@pipeline.pipeline(plans.CACHED)
def for_batch_with_an_early_stop() -> pipeline.Run:
  @tf.function
  def train(dataset, weights):
    for number, batch in dataset.enumerate():
      if number >= 4 or tf.norm(weights) < 0.1:
        break
      weights = _descend(weights, batch)
    return weights

  return training.of_state(_ones, _averaging(train), _points())


@pipeline.pipeline(plans.CACHED)
def epochs_by_range_and_take() -> pipeline.Run:
  @tf.function
  def train(dataset, weights):
    for epoch in tf.data.Dataset.range(3):
      rate = 1.0 / (1.0 + tf.cast(epoch, tf.float32))
      for batch in dataset.take(5):
        weights += rate * (_descend(weights, batch) - weights)
    return weights

  return training.of_state(_ones, _averaging(train), _points())


@pipeline.pipeline(plans.CACHED)
def reduce_in_place_of_a_loop() -> pipeline.Run:
  return training.of_state(_ones, _averaging(tf.function(_reduce)), _points())


@pipeline.pipeline(plans.CACHED)
def keras_variables_and_a_seeded_shuffle() -> pipeline.Run:
  @tf.function
  def steps(dataset, variable):
    for batch in dataset:
      variable.assign(_descend(variable.read_value(), batch))
    return variable.read_value()

  def train(dataset, weights):
    return steps(dataset, tf.Variable(weights))

  clients = [
      dataset.unbatch().shuffle(30, seed=7).repeat(2).batch(10).prefetch(2)
      for dataset in _points()
  ]
  return training.of_state(_ones, _averaging(train), clients)


@pipeline.pipeline(plans.COMPILED)
def lists_of_batches() -> pipeline.Run:
  clients = [list(d.as_numpy_iterator()) for d in _points()]
  return training.of_state(_ones, _averaging(tf.function(_reduce)), clients)


@pipeline.pipeline(
    plans.THREADS,
    max_ratio=0.5,
    known_ratio=15,
    cause="TFF's worker cannot call Python and got tensors",
)
def clients_from_generators() -> pipeline.Run:
  next_fn = _averaging(tf.function(_reduce))
  spec = tf.TensorSpec([_NUM_FEATURES], tf.float32)

  def generated(rows):
    return tf.data.Dataset.from_generator(
        lambda: iter(rows), output_signature=spec
    ).batch(10)

  def rounds():
    context = tff.framework.get_context_stack().current
    clients = _points()
    # TFF's worker cannot call Python: it gets the same rows as tensors.
    if isinstance(context, runtime.CompiledContext):
      clients = list(
          map(generated, client_data.points(num_features=_NUM_FEATURES))
      )
    weights = _ones()
    while True:
      yield weights
      weights = next_fn(weights, clients)

  return pipeline.Run(rounds, next_fn)


@pipeline.pipeline(plans.CACHED)
def windows_of_a_series() -> pipeline.Run:
  def windows(rows):
    dataset = tf.data.Dataset.from_tensor_slices(rows[:, :20].ravel())
    return (
        dataset.window(13, shift=5, drop_remainder=True)
        .flat_map(lambda window: window.batch(13))
        .map(lambda values: (values[:-1], values[-1:]))
        .batch(16)
    )

  clients = list(map(windows, client_data.points()))
  model = tf.keras.Sequential(
      [
          tf.keras.layers.InputLayer((12,)),
          tf.keras.layers.Dense(
              16, activation='relu', kernel_initializer=training.glorot(1)
          ),
          tf.keras.layers.Dense(1, kernel_initializer=training.glorot(2)),
      ]
  )
  process = tff.learning.algorithms.build_weighted_fed_avg(
      tff.learning.models.functional_model_from_keras(
          model,
          loss_fn=tf.keras.losses.MeanSquaredError(),
          input_spec=clients[0].element_spec,
      ),
      training.sgd(0.01),
  )
  return training.of_process(process, clients)


@pipeline.pipeline(
    plans.THREADS,
    pipeline.near(0.06),
    max_ratio=0.5,
    known_ratio=2,
    cause='a nested dataset runs for each group',
)
def random_numbers_in_groups() -> pipeline.Run:
  def with_noise(row):
    return row + tf.random.normal([_NUM_FEATURES], stddev=0.1)

  clients = [
      tf.data.Dataset.from_tensor_slices(rows).group_by_window(
          key_func=lambda row: tf.cast(row[0] > 0, tf.int64),
          reduce_func=lambda _, group: group.map(with_noise).batch(10),
          window_size=10,
      )
      for rows in client_data.points(num_features=_NUM_FEATURES)
  ]
  return training.of_state(_ones, _averaging(tf.function(_reduce)), clients)


@pipeline.pipeline(plans.CACHED)
def k_means() -> pipeline.Run:
  process = tff.learning.algorithms.build_fed_kmeans(
      num_clusters=3, data_shape=(_NUM_FEATURES,), random_seed=(1, 2)
  )
  clients = [
      tf.data.Dataset.from_tensor_slices(rows)
      for rows in client_data.points(num_features=_NUM_FEATURES)
  ]
  return training.of_process(process, clients)


@pipeline.pipeline(plans.COMPILED)
def geometric_median() -> pipeline.Run:
  num_iterations = 3
  distance = tff.tensorflow.computation(
      lambda value, median: 1.0 / tf.maximum(tf.norm(value - median), 1e-6),
      _VECTOR,
      _VECTOR,
  )

  @tff.federated_computation(_at_clients(_VECTOR))
  def median_of(values):
    median = tff.federated_mean(values)
    for _ in range(num_iterations):
      at_clients = tff.federated_broadcast(median)
      weights = tff.federated_map(distance, (values, at_clients))
      median = tff.federated_mean(values, weight=weights)
    return median

  values = [rows.mean(0) for rows in client_data.points()]
  values[0] = 100 * values[0]  # An outlier.
  return training.of_calls(median_of, values)


@pipeline.pipeline(plans.STEPS)
def mean_and_variance() -> pipeline.Run:
  @tff.tensorflow.computation(_BATCHES)
  def local_mean(dataset):
    zero = (tf.zeros([_NUM_FEATURES]), 0.0)
    total, count = dataset.reduce(
        zero,
        lambda sums, batch: (
            sums[0] + tf.reduce_sum(batch, axis=0),
            sums[1] + tf.cast(tf.shape(batch)[0], tf.float32),
        ),
    )
    return total / count, count

  @tff.tensorflow.computation(_BATCHES, _VECTOR)
  def squares(dataset, mean):
    return dataset.reduce(
        tf.zeros([_NUM_FEATURES]),
        lambda total, batch: total + tf.reduce_sum((batch - mean) ** 2, axis=0),
    )

  divide = tff.tensorflow.computation(lambda total, count: total / count)

  @tff.federated_computation(_at_clients(_BATCHES))
  def moments(clients):
    means, counts = tff.federated_map(local_mean, clients)
    mean = tff.federated_mean(means, weight=counts)
    at_clients = tff.federated_broadcast(mean)
    total = tff.federated_sum(tff.federated_map(squares, (clients, at_clients)))
    return mean, tff.federated_map(divide, (total, tff.federated_sum(counts)))

  return training.of_calls(moments, _points())


@pipeline.pipeline(plans.CACHED)
def evaluation_at_the_server() -> pipeline.Run:
  evaluate = tff.tensorflow.computation(_reduce, _BATCHES, _VECTOR)

  @tff.federated_computation(_at_server(_BATCHES), _at_server(_VECTOR))
  def at_server(dataset, weights):
    return tff.federated_map(evaluate, (dataset, weights))

  return training.of_calls(at_server, _points()[0], _ones())


# The server decodes with a queue, so that TFF's runtime takes over.
@pipeline.pipeline(plans.NATIVE, max_ratio=1.1)
def heavy_hitters() -> pipeline.Run:
  def words(dataset):
    return (
        dataset.map(lambda example: tf.expand_dims(example['tokens'], 0))
        .flat_map(
            lambda line: tf.data.Dataset.from_tensor_slices(
                tf.strings.split(line)[0]
            )
        )
        .map(tf.strings.lower)
        .filter(lambda word: tf.strings.length(word) > 2)
        .batch(5)
    )

  clients = client_data.datasets(words, client_data.posts())
  iblt = tff.analytics.heavy_hitters.iblt
  find = iblt.build_iblt_computation(
      capacity=100,
      string_max_bytes=10,
      max_words_per_user=8,
      max_heavy_hitters=10,
      multi_contribution=False,
      batch_size=5,
  )
  call = training.of_calls(find, clients)

  def rounds():
    for number, output in enumerate(call.rounds()):
      if number == 0:
        yield output
        continue
      # Of words that occur as often, each runtime keeps some.
      counts = collections.Counter(
          dict(zip(output.heavy_hitters, output.heavy_hitters_counts.tolist()))
      )
      yield int(output.clients), sorted(counts.values())

  return pipeline.Run(rounds, find)


@pipeline.pipeline(plans.CACHED)
def hierarchical_histogram() -> pipeline.Run:
  process = tff.analytics.build_hierarchical_histogram_process(
      lower_bound=-4.0,
      upper_bound=4.0,
      num_bins=16,
      clip_mechanism='distinct',
      max_records_per_user=1000,
      enable_secure_sum=False,
  )
  clients = [
      tf.data.Dataset.from_tensor_slices(rows[:, 0])
      for rows in client_data.points()
  ]
  # The other field of the state is the time.
  return training.of_outputs(
      process,
      clients,
      lambda output: output[0].aggregated_hierarchical_histogram,
  )

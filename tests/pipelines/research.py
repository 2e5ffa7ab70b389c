# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pipelines as in research code on TFF: shuffle, repeat, batch, map."""

import collections
import functools
import os
import tempfile
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.pipelines import client_data
from tests.pipelines import pipeline
from tests.pipelines import training
from tff_adaptive.runtime import plans


def _digit_datasets() -> list[tf.data.Dataset]:
  """Returns clients of shuffle, repeat, take, batch, map and prefetch."""
  source = client_data.digits().preprocess(
      lambda dataset: dataset.shuffle(64, seed=5)
      .repeat(2)
      .take(150)
      .batch(16)
      .map(client_data.images, num_parallel_calls=tf.data.AUTOTUNE)
      .prefetch(tf.data.AUTOTUNE)
  )
  return client_data.datasets(lambda dataset: dataset, source)


def _convolutional_model() -> Any:
  layers = [
      tf.keras.layers.InputLayer((28, 28, 1)),
      tf.keras.layers.Conv2D(
          16, 3, activation='relu', kernel_initializer=training.glorot(1)
      ),
      tf.keras.layers.MaxPool2D(),
      tf.keras.layers.Flatten(),
      tf.keras.layers.Dense(
          64, activation='relu', kernel_initializer=training.glorot(2)
      ),
      tf.keras.layers.Dense(10, kernel_initializer=training.glorot(3)),
  ]
  return training.functional(
      tf.keras.Sequential(layers), client_data.IMAGES, from_logits=True
  )


@pipeline.pipeline(plans.CACHED, known_ratio=0.5, cause=training.ARITHMETIC)
def adaptive_server_optimizer() -> pipeline.Run:
  process = tff.learning.algorithms.build_weighted_fed_avg(
      _convolutional_model(),
      client_optimizer_fn=training.sgd(0.05),
      server_optimizer_fn=tff.learning.optimizers.build_adam(
          0.01, epsilon=1e-2
      ),
      client_weighting=tff.learning.ClientWeighting.UNIFORM,
  )
  return training.of_process(process, _digit_datasets())


# The server's momentum adds up what is rounded.
@pipeline.pipeline(
    plans.CACHED,
    pipeline.near(1e-4),
    known_ratio=0.6,
    cause=training.ARITHMETIC,
)
def rate_by_round() -> pipeline.Run:
  build = tff.learning.algorithms.build_weighted_fed_avg_with_optimizer_schedule
  process = build(
      _convolutional_model(),
      client_learning_rate_fn=lambda number: tf.where(number < 2, 0.1, 0.01),
      client_optimizer_fn=training.sgd,
      server_optimizer_fn=training.sgd(1.0, momentum=0.9),
  )
  return training.only_weights(process, _digit_datasets())


@pipeline.pipeline(plans.CACHED, known_ratio=0.8, cause=training.ARITHMETIC)
def proximal_term() -> pipeline.Run:
  process = tff.learning.algorithms.build_weighted_fed_prox(
      _convolutional_model(),
      proximal_strength=0.1,
      client_optimizer_fn=training.sgd(0.05),
  )
  return training.of_process(process, _digit_datasets())


@pipeline.pipeline(plans.CACHED, known_ratio=0.5)
def mime_lite() -> pipeline.Run:
  process = tff.learning.algorithms.build_weighted_mime_lite(
      _convolutional_model(), training.sgd(0.05, momentum=0.9)
  )
  return training.of_process(process, _digit_datasets())


@pipeline.pipeline(plans.CACHED, known_ratio=0.5)
def one_gradient_per_client() -> pipeline.Run:
  process = tff.learning.algorithms.build_fed_sgd(
      _convolutional_model(), server_optimizer_fn=training.sgd(0.1)
  )
  return training.of_process(process, _digit_datasets())


def _word_model() -> Any:
  """Returns a small LSTM that predicts the next of 104 words."""
  layers = [
      tf.keras.layers.Embedding(
          104,
          32,
          input_length=20,
          mask_zero=True,
          embeddings_initializer=training.glorot(1),
      ),
      tf.keras.layers.LSTM(
          64,
          return_sequences=True,
          kernel_initializer=training.glorot(2),
          recurrent_initializer=training.glorot(3),
      ),
      tf.keras.layers.Dense(104, kernel_initializer=training.glorot(4)),
  ]
  spec = (tf.TensorSpec([None, 20], tf.int64),) * 2
  return training.variable(tf.keras.Sequential(layers), spec, True)


@pipeline.pipeline(plans.CACHED)
def next_words() -> pipeline.Run:
  words = [f'w{number}' for number in range(100)]
  numbers = tf.range(4, 104, dtype=tf.int64)
  table = tf.lookup.StaticVocabularyTable(
      tf.lookup.KeyValueTensorInitializer(words, numbers - 4), 1
  )

  def to_ids(example):
    found = table.lookup(tf.strings.split(example['tokens'])[:20]) + 3
    return tf.concat([[tf.constant(1, tf.int64)], found], axis=0)

  def preprocess(dataset):
    return (
        dataset.take(100)
        .shuffle(100, seed=9)
        .repeat(1)
        .map(to_ids, num_parallel_calls=tf.data.AUTOTUNE)
        .padded_batch(16, padded_shapes=[21])
        .map(lambda batch: (batch[:, :-1], batch[:, 1:]))
    )

  clients = client_data.datasets(preprocess, client_data.posts())
  process = tff.learning.algorithms.build_weighted_fed_avg(
      _word_model,
      client_optimizer_fn=training.sgd(0.3),
      server_optimizer_fn=training.sgd(1.0),
  )
  return training.of_process(process, clients)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory:
  """Returns a folder for files of clients, until the end of the process."""
  return tempfile.TemporaryDirectory()


# 0.22 on an idle machine; the share of convolutions depends on the processor.
@pipeline.pipeline(plans.CACHED, known_ratio=0.5, cause=training.ARITHMETIC)
def clients_in_a_database() -> pipeline.Run:
  source = client_data.digits()
  path = os.path.join(_folder().name, 'digits.sqlite')
  spec = collections.OrderedDict(
      label=tf.TensorSpec([], tf.int32),
      pixels=tf.TensorSpec([28, 28], tf.float32),
  )

  tff.simulation.datasets.save_to_sql_client_data(
      source.client_ids,
      source.create_tf_dataset_for_client,
      path,
      allow_overwrite=True,
  )
  stored = tff.simulation.datasets.load_and_parse_sql_client_data(path, spec)
  return _by_client_id(stored)


def _by_client_id(stored: Any) -> pipeline.Run:
  """Returns federated averaging from client ids; the work reads the data."""
  source = stored.preprocess(
      lambda dataset: dataset.shuffle(100, seed=4)
      .repeat(2)
      .batch(20)
      .map(client_data.images)
  )
  compose = tff.simulation.compose_dataset_computation_with_iterative_process
  process = tff.learning.algorithms.build_weighted_fed_avg(
      _convolutional_model(), training.sgd(0.05)
  )
  by_id = compose(source.dataset_computation, process)
  return training.of_process(by_id, sorted(source.client_ids))


def _write_records() -> list[str]:
  """Writes the records of each client; returns the paths."""
  source = client_data.digits()
  paths = []
  for client_id in source.client_ids:
    path = os.path.join(_folder().name, f'{client_id}.tfrecord')
    with tf.io.TFRecordWriter(path) as writer:
      dataset = source.create_tf_dataset_for_client(client_id)
      for example in dataset.as_numpy_iterator():
        row = [example['label'], *example['pixels'].ravel()]
        writer.write(np.asarray(row, np.float32).tobytes())
    paths.append(path)
  return paths


def _parse(record: tf.Tensor) -> Any:
  row = tf.ensure_shape(tf.io.decode_raw(record, tf.float32), [785])
  return collections.OrderedDict(
      label=tf.cast(row[0], tf.int32), pixels=tf.reshape(row[1:], [28, 28])
  )


# Of nearly equal numbers, rounding decides which one a pool keeps.
@pipeline.pipeline(plans.CACHED, pipeline.near(5e-3))
def clients_in_records() -> pipeline.Run:
  clients = [
      tf.data.TFRecordDataset(path)
      .map(_parse)
      .shuffle(100, seed=4)
      .batch(20)
      .map(client_data.images)
      for path in _write_records()
  ]
  process = tff.learning.algorithms.build_weighted_fed_avg(
      _convolutional_model(), training.sgd(0.05)
  )
  return training.only_weights(process, clients)


@pipeline.pipeline(plans.CACHED, pipeline.near(0.5))
def augmented_images() -> pipeline.Run:
  def augment(example):
    pixels = tf.expand_dims(example['pixels'], -1)
    pixels = tf.image.random_flip_left_right(pixels)
    pixels = tf.image.random_brightness(pixels, 0.02)
    return collections.OrderedDict(
        x=tf.reshape(pixels, [784]), y=example['label']
    )

  clients = client_data.datasets(
      lambda dataset: dataset.shuffle(100).repeat(3).map(augment).batch(20)
  )
  model = training.functional(
      training.softmax_model(), clients[0].element_spec, from_logits=False
  )
  process = tff.learning.algorithms.build_weighted_fed_avg(
      model, training.sgd(0.02)
  )
  return training.only_weights(process, clients)

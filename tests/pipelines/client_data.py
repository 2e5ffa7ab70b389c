# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Synthetic clients in the shapes of published federated datasets."""

import collections
from collections.abc import Callable
import functools
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

CHARACTERS = tuple(
    'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
    ' .,;:!?\'"-()[]&*/_$#%@+\n\r'
)


@functools.cache
def digits(num_clients: int = 10) -> tff.simulation.datasets.TestClientData:
  """Returns images of ten classes, 40 to 103 for each client, as EMNIST has."""
  generator = np.random.default_rng(0)
  prototypes = generator.uniform(size=[10, 28, 28])
  clients = {}
  for number in range(num_clients):
    labels = generator.integers(10, size=40 + 7 * (number % 10))
    noise = generator.uniform(size=[len(labels), 28, 28])
    # Not clipped: of equal numbers, rounding decides which is the largest.
    pixels = (0.6 * prototypes[labels] + 0.4 * noise).astype(np.float32)
    clients[f'f{number:04d}'] = collections.OrderedDict(
        label=labels.astype(np.int32), pixels=pixels
    )
  return tff.simulation.datasets.TestClientData(clients)


# Batches of `digits` as images, and as rows.
IMAGES = collections.OrderedDict(
    x=tf.TensorSpec([None, 28, 28, 1], tf.float32),
    y=tf.TensorSpec([None], tf.int32),
)
FLAT_DIGITS = collections.OrderedDict(
    x=tf.TensorSpec([None, 784], tf.float32),
    y=tf.TensorSpec([None, 1], tf.int32),
)


def images(batch: Any) -> Any:
  """Adds an axis of colors to `digits`."""
  return collections.OrderedDict(
      x=tf.expand_dims(batch['pixels'], -1), y=batch['label']
  )


def flat_digits(batch: Any) -> Any:
  """Flattens a batch of `digits`; its labels are a column."""
  return collections.OrderedDict(
      x=tf.reshape(batch['pixels'], [-1, 784]),
      y=tf.reshape(batch['label'], [-1, 1]),
  )


def datasets(
    preprocess: Callable[[tf.data.Dataset], tf.data.Dataset],
    source: Optional[tff.simulation.datasets.ClientData] = None,
) -> list[tf.data.Dataset]:
  """Returns a dataset for each client of a source, `digits` by default."""
  source = source or digits()
  return [
      preprocess(source.create_tf_dataset_for_client(client_id))
      for client_id in source.client_ids
  ]


@functools.cache
def plays(num_clients: int = 2) -> tff.simulation.datasets.TestClientData:
  """Returns lines of text for each client, as Shakespeare has."""
  generator = np.random.default_rng(0)
  words = [
      ''.join(generator.choice(CHARACTERS[:26], size=length))
      for length in generator.integers(2, 9, size=200)
  ]
  clients = {}
  for number in range(num_clients):
    lines = [
        ' '.join(generator.choice(words, size=25)) for _ in range(40 + number)
    ]
    clients[f'PLAY_{number}'] = collections.OrderedDict(snippets=lines)
  return tff.simulation.datasets.TestClientData(clients)


@functools.cache
def posts(num_clients: int = 6) -> tff.simulation.datasets.TestClientData:
  """Returns short sentences for each client, as Stack Overflow has."""
  generator = np.random.default_rng(0)
  words = [f'w{number}' for number in range(300)]
  clients = {}
  for number in range(num_clients):
    sentences = [
        ' '.join(generator.choice(words, size=length))
        for length in generator.integers(3, 26, size=30 + 5 * number)
    ]
    clients[f'user{number}'] = collections.OrderedDict(tokens=sentences)
  return tff.simulation.datasets.TestClientData(clients)


@functools.cache
def ratings(num_clients: int = 20) -> list[Any]:
  """Returns items and ratings for each client, as MovieLens has."""
  generator = np.random.default_rng(0)
  return [
      collections.OrderedDict(
          x=generator.integers(300, size=[size, 1]),
          y=generator.integers(1, 6, size=[size, 1]).astype(np.float32),
      )
      for size in generator.integers(20, 80, size=num_clients)
  ]


@functools.cache
def points(num_clients: int = 10, num_features: int = 50) -> list[Any]:
  """Returns points of three clusters for each client."""
  generator = np.random.default_rng(0)
  centers = 3 * generator.normal(size=[3, num_features])
  clients = []
  for number in range(num_clients):
    rows = generator.integers(3, size=60 + 11 * number)
    noise = generator.normal(size=[len(rows), num_features])
    clients.append((centers[rows] + noise).astype(np.float32))
  return clients

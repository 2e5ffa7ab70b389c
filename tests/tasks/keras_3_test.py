# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that models of tasks train on Keras 3 with the numbers of Keras 2."""

import collections
import contextlib
from typing import Any
from unittest import mock

from absl.testing import parameterized
import keras
import numpy as np
import pytest
import tensorflow as tf

from docs.examples import wine
from tasks import catalogue
from tasks import definitions
from tasks import seeded_layers
from tasks.texts import text_models
from tff_adaptive import algorithms
from tff_adaptive import models
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.layers import keras_3

_NUM_ROUNDS = 3
# Those without dropout, whose masks differ: task, model, arguments, classes.
_MODELS: tuple[Any, ...] = (
    ('digits', 'logistic', {}, 10),
    ('digits', 'cnn', {}, 10),
    ('mnist', 'mlp', {}, 10),
    ('emnist_cr', 'cnn', {}, 10),
    ('emnist_ae', None, {}, 10),
    ('cifar10', 'simple_cnn', {'augmentation': 'none'}, 10),
    ('shakespeare', 'small_lstm', {}, 90),
    ('ag_news', 'bag_of_words', {}, 4),
)


@contextlib.contextmanager
def _on_keras_3():
  """Lets the tasks build their models with Keras 3."""
  with (
      mock.patch.object(tf, 'keras', keras),
      mock.patch.object(seeded_layers, 'fast_layers', keras_3),
      mock.patch.object(text_models, 'fast_layers', keras_3),
  ):
    yield


def _convert(task, model_id, arguments, input_spec):
  """Returns the model of a task, made by Keras 3."""
  with _on_keras_3():
    model = task.build_keras_model(model_id, seed=1, **arguments)
    loss = definitions.resolve(task.loss)()
  assert isinstance(model, keras.Model)
  return models.from_keras(model, loss, input_spec=input_spec)


def _client(input_spec, num_classes, size, seed):
  """Returns batches of random examples; a zero is padding."""
  generator = np.random.default_rng(seed)

  def draw(spec, num_examples):
    shape = [num_examples, *spec.shape[1:]]
    if not spec.dtype.is_floating:
      return generator.integers(num_classes, size=shape).astype('i')
    return generator.uniform(size=shape).astype('f')

  return [
      collections.OrderedDict(
          (name, draw(spec, num_examples)) for name, spec in input_spec.items()
      )
      for num_examples in (size, 3)
  ]


def _train(model, clients):
  process = algorithms.build_fed_opt(model, optimizers.build_sgd(0.01))
  state = process.initialize()
  losses = []
  with runtime.CompiledContext():
    for _ in range(_NUM_ROUNDS):
      output = process.next(state, clients)
      state = output.state
      losses.append(output.metrics['client_work']['clients']['loss'])
  return process.get_model_weights(state).trainable, losses


class Keras3Test(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(*_MODELS)
  @pytest.mark.sample(1)
  def test_numbers_are_those_of_keras_2(self, name, model_id, arguments, high):
    task = catalogue.TASKS[name]
    of_keras_2 = task.build_functional_model(model_id, seed=1, **arguments)
    spec = of_keras_2.input_spec
    of_keras_3 = _convert(task, model_id, arguments, spec)
    for found, wanted in zip(
        of_keras_3.initial_weights[0], of_keras_2.initial_weights[0]
    ):
      self.assertAllEqual(found, wanted)
    clients = [_client(spec, high, 4 + i, i) for i in range(3)]
    weights, losses = _train(of_keras_3, clients)
    expected_weights, expected_losses = _train(of_keras_2, clients)
    self.assertAllClose(losses, expected_losses, rtol=1e-5, atol=1e-5)
    for found, wanted in zip(weights, expected_weights, strict=True):
      self.assertAllClose(found, wanted, rtol=1e-5, atol=1e-5)

  @pytest.mark.slow
  def test_task_with_a_model_of_keras_3_has_both_forms(self):
    functional = wine.WINE.build_functional_model('mlp', seed=1)
    self.assertIsInstance(functional.keras_model, keras.Model)
    clients = [_client(functional.input_spec, 3, 4 + i, i) for i in range(3)]
    weights, losses = _train(functional, clients)
    of_variables, variable_losses = _train(
        wine.WINE.build_variable_model_fn('mlp', seed=1), clients
    )
    self.assertAllClose(losses, variable_losses, rtol=1e-6, atol=1e-6)
    for found, wanted in zip(of_variables, weights, strict=True):
      self.assertAllClose(found, wanted, rtol=1e-6, atol=1e-6)


if __name__ == '__main__':
  tf.test.main()

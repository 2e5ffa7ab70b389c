# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the tasks' models train with the numbers of Keras 2."""

import collections
import contextlib
import sys
from typing import Any
from unittest import mock

from absl.testing import parameterized
import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from docs.examples import wine
from tasks import catalogue
from tasks import definitions
from tasks import keras_forms
from tff_adaptive import algorithms
from tff_adaptive import layers
from tff_adaptive import models
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.layers import keras_3

_NUM_ROUNDS = 3
_RATE = 0.01
_FEW_WORDS = {'vocab_size': 40, 'tag_vocab_size': 7}
# Task, model, arguments, classes.
_MODELS: tuple[Any, ...] = (
    ('digits', 'logistic', {}, 10),
    ('digits', 'cnn', {}, 10),
    ('digits', 'cnn', {'loss': 'multiclass_hinge'}, 10),
    ('mnist', 'logistic', {}, 10),
    ('mnist', 'mlp', {}, 10),
    ('mnist', 'cnn', {}, 10),
    ('emnist_cr', 'cnn', {}, 10),
    ('emnist_cr', 'cnn_dropout', {}, 10),
    ('emnist_ae', None, {}, 10),
    ('emnist_cr', '2nn', {}, 10),
    ('cifar10', 'simple_cnn', {'augmentation': 'none'}, 10),
    ('cifar10', 'cnn_dropout', {'augmentation': 'none'}, 10),
    ('shakespeare', 'small_lstm', {}, 90),
    ('shakespeare', 'small_lstm', {'loss': 'multiclass_hinge'}, 90),
    ('stackoverflow_nwp', None, {'vocab_size': 40}, 40),
    ('stackoverflow_lr', 'words', _FEW_WORDS, 2),
    ('stackoverflow_lr', 'logistic', _FEW_WORDS, 2),
    ('ag_news', 'bag_of_words', {}, 4),
    ('ag_news', 'cnn', {}, 4),
)
_MODELS_WITH_MANY_LAYERS: tuple[Any, ...] = (
    ('cifar10', 'resnet18', {'augmentation': 'none'}, 10),
    ('cifar100', 'resnet18_v2', {'augmentation': 'none'}, 10),
)


@contextlib.contextmanager
def _on_keras_2():
  """Lets the tasks build their models with Keras 2."""
  replaced = {keras: tf.keras, keras_3: layers}
  with contextlib.ExitStack() as stack:
    for name, module in list(sys.modules.items()):
      for attribute, value in list(vars(module).items()):
        if name.startswith('tasks.') and type(value) is type(keras):
          if value in replaced:
            other = replaced[value]
            stack.enter_context(mock.patch.object(module, attribute, other))
    yield


def _without_dropout(model):
  """Switches dropout off, whose masks differ."""
  for layer in model.layers:
    if 'Dropout' in type(layer).__name__:
      layer.rate = 0.0
  return model


def _build(task, model_id, arguments):
  """Returns the model of a task, without dropout."""
  from_keras = models.from_keras

  def convert(model, *args, **kwargs):
    return from_keras(_without_dropout(model), *args, **kwargs)

  with mock.patch.object(models, 'from_keras', convert):
    return task.build_functional_model(model_id, seed=1, **arguments)


def _build_on_keras_2(task, model_id, arguments, input_spec):
  """Returns the same model as TFF makes it from Keras 2."""
  chosen = task.other_losses.get(arguments.get('loss'), task.loss)

  def build(convert):
    with _on_keras_2():
      model = task.build_keras_model(model_id, seed=1, **arguments)
      if task.name == 'stackoverflow_lr':
        loss = tf.keras.losses.BinaryCrossentropy(reduction='sum')
      else:
        loss = keras_forms.call_for(tf.keras, definitions.resolve(chosen))
    assert isinstance(model, tf.keras.Model)
    return convert(_without_dropout(model), loss, input_spec)

  # TFF's functional form drops penalties.
  if task.name == 'cifar100':
    return lambda: build(tff.learning.models.from_keras_model)
  return build(tff.learning.models.functional_model_from_keras)


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


def _train(model, clients, rate):
  """Returns initial and trained weights, and the loss of each round."""
  process = algorithms.build_fed_opt(model, optimizers.build_sgd(rate))
  state = process.initialize()
  initial = process.get_model_weights(state).trainable
  losses = []
  with runtime.CompiledContext():
    for _ in range(_NUM_ROUNDS):
      output = process.next(state, clients)
      state = output.state
      losses.append(output.metrics['client_work']['clients']['loss'])
  return initial, process.get_model_weights(state).trainable, losses


class Keras3Test(tf.test.TestCase, parameterized.TestCase):

  def _assert_numbers_are_those_of_keras_2(
      self, name, model_id, arguments, high, rate=_RATE
  ):
    task = catalogue.TASKS[name]
    model = _build(task, model_id, arguments)
    self.assertIsInstance(model.keras_model, keras.Model)
    spec = model.input_spec
    of_keras_2 = _build_on_keras_2(task, model_id, arguments, spec)
    clients = [_client(spec, high, 4 + i, i) for i in range(3)]
    initial, weights, losses = _train(model, clients, rate)
    expected = _train(of_keras_2, clients, rate)
    for found, wanted in zip(initial, expected[0], strict=True):
      self.assertAllEqual(found, wanted)
    self.assertAllClose(losses, expected[2], rtol=1e-5, atol=1e-5)
    for found, wanted in zip(weights, expected[1], strict=True):
      self.assertAllClose(found, wanted, rtol=1e-5, atol=1e-5)

  @parameterized.parameters(*_MODELS)
  @pytest.mark.sample(1)
  def test_numbers_are_those_of_keras_2(self, *model):
    self._assert_numbers_are_those_of_keras_2(*model)

  @parameterized.parameters(*_MODELS_WITH_MANY_LAYERS)
  @pytest.mark.slow
  def test_numbers_of_large_models_are_those_of_keras_2(self, *model):
    # Rounding grows with each step, the faster the larger the steps are.
    self._assert_numbers_are_those_of_keras_2(*model, rate=1e-3 * _RATE)

  @pytest.mark.slow
  def test_task_with_a_model_of_keras_3_has_both_forms(self):
    functional = wine.WINE.build_functional_model('mlp', seed=1)
    self.assertIsInstance(functional.keras_model, keras.Model)
    clients = [_client(functional.input_spec, 3, 4 + i, i) for i in range(3)]
    _, weights, losses = _train(functional, clients, _RATE)
    _, of_variables, variable_losses = _train(
        wine.WINE.build_variable_model_fn('mlp', seed=1), clients, _RATE
    )
    self.assertAllClose(losses, variable_losses, rtol=1e-6, atol=1e-6)
    for found, wanted in zip(of_variables, weights, strict=True):
      self.assertAllClose(found, wanted, rtol=1e-6, atol=1e-6)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a federation of one client is `Model.fit`, for many models."""

import itertools
import warnings

from absl.testing import parameterized
import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import page_testing
from tests.tff_adaptive.models import zoo_testing
from tff_adaptive import algorithms
from tff_adaptive import evaluation
from tff_adaptive import models
from tff_adaptive import optimizers
from tff_adaptive import runtime

_VERSIONS = {'keras_3': keras, 'keras_2': tf.keras}
_BATCH_SIZE = 4
_NUM_EPOCHS = 2
_RATE = 0.02
_MOMENTUM = 0.9
_NUM_EXAMPLES = 11
_CELLS = [
    (name, version)
    for name, version in itertools.product(zoo_testing.ZOO, _VERSIONS)
    if version == 'keras_3' or name not in zoo_testing.ONLY_KERAS_3
]


def _dataset(examples):
  batches = tf.data.Dataset.from_tensor_slices(examples).batch(_BATCH_SIZE)
  return batches.repeat(_NUM_EPOCHS)


def _convert(animal, dataset):
  with warnings.catch_warnings():
    # Averages of batch normalization stay as they are.
    warnings.filterwarnings('ignore', 'The model moves')
    return models.from_keras(
        animal.model,
        animal.loss,
        input_spec=dataset.element_spec,
        **animal.options,
    )


def _build(model):
  """Returns FedAvg with momentum in the clients."""
  return algorithms.build_fed_opt(
      model, optimizers.build_sgd(_RATE, momentum=_MOMENTUM)
  )


def _fit(version, animal, dataset):
  """Trains the Keras model; returns its metrics."""
  animal.model.compile(
      version.optimizers.SGD(_RATE, momentum=_MOMENTUM),
      animal.loss,
      **animal.options,
  )
  # One epoch of all, as metrics are those of a whole round.
  history = animal.model.fit(dataset, verbose=0, shuffle=False).history
  return {name: values[0] for name, values in history.items()}


class ZooTest(tf.test.TestCase, parameterized.TestCase):

  def _assert_is_fit(self, name, version):
    """Trains one client in the current context, and compares with `fit`."""
    version = _VERSIONS[version]
    version.utils.set_random_seed(1)
    animal = zoo_testing.ZOO[name](version)
    examples = animal.sample(_NUM_EXAMPLES, seed=0)
    dataset = _dataset(examples)
    functional_model = _convert(animal, dataset)
    process = _build(functional_model)
    output = process.next(process.initialize(), [dataset])
    weights = process.get_model_weights(output.state)
    measured = output.metrics['client_work']

    fitted = _fit(version, animal, dataset)

    self._assert_close(weights.trainable, animal.model.trainable_weights)
    self._assert_close(measured['train'], fitted)
    self.assertNear(measured['clients']['loss'], fitted['loss'], 1e-5)
    keras_model = models.to_keras(functional_model, weights)
    evaluated = keras_model.evaluate(
        dataset.take(len(dataset) // _NUM_EPOCHS), verbose=0, return_dict=True
    )
    evaluate = evaluation.build_central_evaluation(
        functional_model, examples, _BATCH_SIZE
    )
    self._assert_close(evaluate(weights), _scalars(evaluated))

  def _assert_close(self, found, wanted):
    self.assertAllClose(found, wanted, rtol=1e-5, atol=1e-5)

  def test_page_lists_all_models(self):
    rows = page_testing.table_rows(page_testing.read('docs/models.md'), 'kind')
    listed = page_testing.names_in(models for _, models in rows)
    self.assertCountEqual(listed, zoo_testing.ZOO)

  @parameterized.parameters(*_CELLS)
  @pytest.mark.sample(3)
  def test_one_client_is_fit(self, name, version):
    with runtime.CompiledContext():
      self._assert_is_fit(name, version)

  @parameterized.parameters(
      ('masked_and_weighted', 'keras_3'),
      ('named_outputs', 'keras_2'),
      ('lstm', 'keras_3'),
      ('f1_score', 'keras_2'),
      ('subclassed', 'keras_3'),
  )
  @pytest.mark.sample(1)
  @pytest.mark.usefixtures('native_runtime')
  def test_one_client_of_the_native_runtime_is_fit(self, name, version):
    self._assert_is_fit(name, version)

  @parameterized.parameters(
      ('dense', 'keras_3'),
      ('masked_words', 'keras_3'),
      ('two_outputs', 'keras_2'),
      ('sample_weights', 'keras_2'),
  )
  @pytest.mark.sample(1)
  def test_clients_are_the_weighted_mean_of_fits(self, name, version):
    version = _VERSIONS[version]
    animal = zoo_testing.ZOO[name](version)
    sizes = (3, 11, 4, 6, 9)
    clients = [
        _dataset(animal.sample(size, seed)) for seed, size in enumerate(sizes)
    ]
    process = _build(_convert(animal, clients[0]))
    with runtime.CompiledContext():
      output = process.next(process.initialize(), clients)
    found = process.get_model_weights(output.state).trainable

    initial = animal.model.get_weights()
    fits, losses = [], []
    for dataset in clients:
      animal.model.set_weights(initial)
      losses.append(_fit(version, animal, dataset)['loss'])
      fits.append(animal.model.get_weights())
    mean = [np.average(leaves, axis=0, weights=sizes) for leaves in zip(*fits)]
    self._assert_close(found, mean)
    self.assertNear(
        output.metrics['client_work']['train']['loss'],
        np.average(losses, weights=sizes),
        1e-5,
    )


def _scalars(metrics):
  """Returns metrics with an entry for each entry of a vector."""
  scalars = {}
  for name, value in metrics.items():
    if np.ndim(value):
      scalars |= {f'{name}_{i}': entry for i, entry in enumerate(value)}
    else:
      scalars[name] = value
  return scalars


if __name__ == '__main__':
  tf.test.main()

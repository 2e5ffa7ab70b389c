# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a federation of one client is `Model.fit`, for many models."""

import collections
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
    # Depends on its moved weight in training.
    if name != 'moving_scale'
]
_MOVING_CELLS = list(itertools.product(zoo_testing.MOVING, _VERSIONS))


def _dataset(examples):
  batches = tf.data.Dataset.from_tensor_slices(examples).batch(_BATCH_SIZE)
  return batches.repeat(_NUM_EPOCHS)


def _convert(animal, dataset, batch_statistics='batch'):
  with warnings.catch_warnings():
    # Averages of batch normalization stay as they are.
    warnings.filterwarnings('ignore', 'The model moves')
    return models.from_keras(
        animal.model,
        animal.loss,
        input_spec=dataset.element_spec,
        batch_statistics=batch_statistics,
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

  def _assert_is_fit(self, name, version, batch_statistics='batch'):
    """Trains one client in the current context, and compares with `fit`."""
    version = _VERSIONS[version]
    version.utils.set_random_seed(1)
    animal = zoo_testing.ZOO[name](version)
    examples = animal.sample(_NUM_EXAMPLES, seed=0)
    dataset = _dataset(examples)
    functional_model = _convert(animal, dataset, batch_statistics)
    process = _build(functional_model)
    output = process.next(process.initialize(), [dataset])
    weights = process.get_model_weights(output.state)
    measured = output.metrics['client_work']

    fitted = _fit(version, animal, dataset)

    self._assert_close(weights.trainable, animal.model.trainable_weights)
    if batch_statistics == 'aggregate':
      self._assert_close(
          weights.non_trainable, animal.model.non_trainable_weights
      )
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
    with runtime.CompiledContext():
      self._assert_is_mean_of_fits(name, version)

  def _assert_is_mean_of_fits(self, name, version, batch_statistics='batch'):
    version = _VERSIONS[version]
    animal = zoo_testing.ZOO[name](version)
    sizes = (3, 11, 4, 6, 9)
    clients = [
        _dataset(animal.sample(size, seed)) for seed, size in enumerate(sizes)
    ]
    process = _build(_convert(animal, clients[0], batch_statistics))
    output = process.next(process.initialize(), clients)
    found = process.get_model_weights(output.state)

    initial = animal.model.get_weights()
    fits, losses = [], []
    for dataset in clients:
      animal.model.set_weights(initial)
      losses.append(_fit(version, animal, dataset)['loss'])
      fits.append(_split_weights(animal.model))
    trainable, non_trainable = (
        [np.average(leaves, axis=0, weights=sizes) for leaves in zip(*parts)]
        for parts in zip(*fits)
    )
    self._assert_close(found.trainable, trainable)
    if batch_statistics == 'aggregate':
      self._assert_close(found.non_trainable, non_trainable)
    self.assertNear(
        output.metrics['client_work']['train']['loss'],
        np.average(losses, weights=sizes),
        1e-5,
    )

  @parameterized.parameters(*_MOVING_CELLS)
  @pytest.mark.sample(2)
  def test_aggregated_statistics_are_those_of_fit(self, name, version):
    with runtime.CompiledContext():
      self._assert_is_fit(name, version, 'aggregate')
      self._assert_is_mean_of_fits(name, version, 'aggregate')

  @parameterized.parameters(
      ('batch_normalization', 'keras_3'), ('moving_scale', 'keras_2')
  )
  @pytest.mark.sample(1)
  @pytest.mark.usefixtures('native_runtime')
  def test_aggregated_statistics_of_the_native_runtime(self, name, version):
    self._assert_is_mean_of_fits(name, version, 'aggregate')

  @parameterized.parameters(*_MOVING_CELLS)
  @pytest.mark.sample(2)
  def test_local_statistics_are_those_of_fit(self, name, version):
    version = _VERSIONS[version]
    animal = zoo_testing.ZOO[name](version)
    model = animal.model
    clients = [_dataset(animal.sample(9, seed)) for seed in range(2)]
    functional_model = _convert(animal, clients[0], 'local')
    process = _build(functional_model)
    state = process.initialize()
    received = process.get_model_weights(state)
    kept, fitted = [[], []], [received.non_trainable] * 2
    with runtime.CompiledContext():
      for _ in range(2):
        output = process.next(
            state,
            [
                collections.OrderedDict(
                    data=data, client_id=[str(i)], client_state=kept[i]
                )
                for i, data in enumerate(clients)
            ],
        )
        fits = []
        for i, data in enumerate(clients):
          model.set_weights(_joined(model, received.trainable, fitted[i]))
          _fit(version, animal, data)
          trainable, fitted[i] = _split_weights(model)
          fits.append(trainable)
        state = output.state
        received = process.get_model_weights(state)
        rows = output.metrics['client_work']['client_states']['client_state']
        kept = [
            [tf.nest.map_structure(lambda leaf, i=i: leaf[i], rows)]
            for i in range(2)
        ]
        for i in range(2):
          weights = models.with_batch_statistics(
              functional_model, received, kept[i][0]['batch_statistics']
          )
          self._assert_close(weights.non_trainable, fitted[i])
        self._assert_close(
            received.trainable, [np.mean(w, 0) for w in zip(*fits)]
        )
    initial = functional_model.initial_weights[1]
    self.assertAllClose(received.non_trainable, initial, rtol=0, atol=0)


def _split_weights(model):
  """Returns the trainable weights of a Keras model, and the others."""
  parts = model.trainable_weights, model.non_trainable_weights
  return [[weight.numpy() for weight in part] for part in parts]


def _joined(model, trainable, non_trainable):
  """Returns the weights in the order of `set_weights`."""
  values = dict(
      zip(
          map(id, [*model.trainable_weights, *model.non_trainable_weights]),
          [*trainable, *non_trainable],
      )
  )
  return [values[id(weight)] for weight in model.weights]


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

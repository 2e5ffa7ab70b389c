# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a federation of one client is `Model.fit`, for many models."""

import collections
import itertools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from tests import page_testing
from tests.tff_adaptive.models import zoo_fits
from tests.tff_adaptive.models import zoo_page
from tests.tff_adaptive.models import zoo_testing
from tff_adaptive import evaluation
from tff_adaptive import models
from tff_adaptive import runtime

_CLASS_WEIGHT = {0: 0.5, 1: 2.0, 2: 1.5}
_MOVING_CELLS = list(itertools.product(zoo_testing.MOVING, zoo_fits.VERSIONS))


def _array(weights):
  """Returns an array of arrays, to choose among."""
  array = np.empty(len(weights), object)
  array[:] = [np.asarray(weight) for weight in weights]
  return array


class ZooTest(tf.test.TestCase, parameterized.TestCase):

  def _assert_is_fit(
      self, name, version, batch_statistics='batch', class_weight=None
  ):
    """Trains one client in the current context, and compares with `fit`."""
    version = zoo_fits.VERSIONS[version]
    version.utils.set_random_seed(1)
    animal = zoo_testing.ZOO[name](version)
    examples = animal.sample(zoo_fits.NUM_EXAMPLES, seed=0)
    dataset = zoo_fits.dataset(examples)
    functional_model = zoo_fits.convert(
        animal, dataset, batch_statistics, class_weight
    )
    process = zoo_fits.build(functional_model)
    output = process.next(process.initialize(), [dataset])
    weights = process.get_model_weights(output.state)
    measured = output.metrics['client_work']

    fitted = zoo_fits.fit(version, animal, dataset, class_weight=class_weight)

    self._assert_close(weights.trainable, animal.model.trainable_weights)
    if batch_statistics == 'aggregate':
      self._assert_close(
          weights.non_trainable, animal.model.non_trainable_weights
      )
    self._assert_close(measured['train'], fitted)
    self.assertNear(measured['clients']['loss'], fitted['loss'], 1e-5)
    keras_model = models.to_keras(functional_model, weights)
    evaluated = keras_model.evaluate(
        dataset.take(len(dataset) // zoo_fits.NUM_EPOCHS),
        verbose=0,
        return_dict=True,
    )
    evaluate = evaluation.build_central_evaluation(
        functional_model, examples, zoo_fits.BATCH_SIZE
    )
    self._assert_close(evaluate(weights), zoo_fits.scalars(evaluated))

  def _assert_close(self, found, wanted):
    self.assertAllClose(found, wanted, rtol=1e-5, atol=1e-5)

  def test_page_lists_all_models(self):
    rows = page_testing.table_rows(page_testing.read('docs/models.md'), 'kind')
    listed = page_testing.names_in(models for _, models in rows)
    self.assertCountEqual(listed, zoo_testing.ZOO)

  def test_results_have_all_models(self):
    page = page_testing.read('docs/results/keras_models.md')
    rows = page_testing.table_rows(page, 'model')
    cells = [(name, f'keras_{version}') for name, version, *_ in rows]
    self.assertCountEqual(cells, zoo_fits.CELLS)
    for name, _, *numbers in rows:
      self.assertTrue(zoo_page.is_close(name, max(map(float, numbers))), name)

  # Training of a moving scale depends on its moved weight.
  @parameterized.parameters(
      *(cell for cell in zoo_fits.CELLS if cell[0] != 'moving_scale')
  )
  @pytest.mark.sample(1)
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
  @pytest.mark.usefixtures('native_runtime')
  @pytest.mark.slow
  def test_one_client_of_the_native_runtime_is_fit(self, name, version):
    self._assert_is_fit(name, version)

  @parameterized.parameters(
      ('dense', 'keras_3'),
      ('masked_words', 'keras_3'),
      ('two_outputs', 'keras_2'),
      ('sample_weights', 'keras_2'),
  )
  @pytest.mark.slow
  def test_clients_are_the_weighted_mean_of_fits(self, name, version):
    with runtime.CompiledContext():
      self._assert_is_mean_of_fits(name, version)

  def _assert_is_mean_of_fits(self, name, version, batch_statistics='batch'):
    version = zoo_fits.VERSIONS[version]
    animal = zoo_testing.ZOO[name](version)
    sizes = (3, 11, 4, 6, 9)
    clients = [
        zoo_fits.dataset(animal.sample(size, seed))
        for seed, size in enumerate(sizes)
    ]
    process = zoo_fits.build(
        zoo_fits.convert(animal, clients[0], batch_statistics)
    )
    output = process.next(process.initialize(), clients)
    found = process.get_model_weights(output.state)

    initial = animal.model.get_weights()
    fits, losses = [], []
    for dataset in clients:
      animal.model.set_weights(initial)
      losses.append(zoo_fits.fit(version, animal, dataset)['loss'])
      fits.append(zoo_fits.split_weights(animal.model))
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

  @parameterized.parameters(
      *itertools.product(('dense', 'f1_score'), zoo_fits.VERSIONS)
  )
  @pytest.mark.slow
  def test_class_weights_are_those_of_fit(self, name, version):
    with runtime.CompiledContext():
      self._assert_is_fit(name, version, class_weight=_CLASS_WEIGHT)

  @pytest.mark.slow
  def test_class_weights_multiply_sample_weights(self):
    # `fit` takes one of both.
    version = zoo_fits.VERSIONS['keras_3']
    animal = zoo_testing.ZOO['sample_weights'](version)
    x, y, weights = animal.sample(zoo_fits.NUM_EXAMPLES, seed=0)
    dataset = zoo_fits.dataset((x, y, weights))
    process = zoo_fits.build(
        zoo_fits.convert(animal, dataset, class_weight=_CLASS_WEIGHT)
    )
    with runtime.CompiledContext():
      output = process.next(process.initialize(), [dataset])
    weights *= np.vectorize(_CLASS_WEIGHT.get)(y)
    fitted = zoo_fits.fit(version, animal, zoo_fits.dataset((x, y, weights)))
    self._assert_close(
        process.get_model_weights(output.state).trainable,
        animal.model.trainable_weights,
    )
    self._assert_close(output.metrics['client_work']['train'], fitted)

  @parameterized.parameters(*_MOVING_CELLS)
  @pytest.mark.slow
  def test_aggregated_statistics_of_one_client_are_those_of_fit(
      self, name, version
  ):
    with runtime.CompiledContext():
      self._assert_is_fit(name, version, 'aggregate')

  @parameterized.parameters(*_MOVING_CELLS)
  @pytest.mark.slow
  def test_aggregated_statistics_are_the_mean_of_fits(self, name, version):
    with runtime.CompiledContext():
      self._assert_is_mean_of_fits(name, version, 'aggregate')

  @parameterized.parameters(
      ('batch_normalization', 'keras_3'), ('moving_scale', 'keras_2')
  )
  @pytest.mark.slow
  @pytest.mark.usefixtures('native_runtime')
  def test_aggregated_statistics_of_the_native_runtime(self, name, version):
    self._assert_is_mean_of_fits(name, version, 'aggregate')

  @parameterized.parameters(
      *itertools.product(
          zoo_testing.MOVING, zoo_fits.VERSIONS, ('local', 'fedbn')
      )
  )
  @pytest.mark.sample(1)
  def test_kept_weights_are_those_of_fit(self, name, version, kind):
    version = zoo_fits.VERSIONS[version]
    animal = zoo_testing.ZOO[name](version)
    model = animal.model
    clients = [zoo_fits.dataset(animal.sample(9, seed)) for seed in range(2)]
    functional_model = zoo_fits.convert(animal, clients[0], kind)
    process = zoo_fits.build(functional_model)
    state = process.initialize()
    received = process.get_model_weights(state)
    names = [weight.name for weight in model.trainable_weights]
    is_own = [
        kind == 'fedbn' and ('gamma' in name or 'beta' in name)
        for name in names
    ]
    kept, fitted = [[], []], [received.non_trainable] * 2
    own = [received.trainable] * 2
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
          start = np.where(is_own, _array(own[i]), _array(received.trainable))
          model.set_weights(zoo_fits.joined(model, start, fitted[i]))
          zoo_fits.fit(version, animal, data)
          own[i], fitted[i] = zoo_fits.split_weights(model)
          fits.append(own[i])
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
          for value, wanted, stays in zip(weights.trainable, own[i], is_own):
            if stays:
              self._assert_close(value, wanted)
        mean = [np.mean(w, 0) for w in zip(*fits)]
        initial, unmoved = functional_model.initial_weights
        self._assert_close(
            received.trainable,
            list(np.where(is_own, _array(initial), _array(mean))),
        )
    self.assertAllClose(received.non_trainable, unmoved, rtol=0, atol=0)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of untrained."""

import warnings

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.runtime import computations
from tff_adaptive.runtime.graphs import graph_functions
from tff_adaptive.runtime.graphs import variables

_LAYERS = tf.keras.layers
_STOCK = tff.learning.algorithms
_LOOPS = tff.learning.LoopImplementation


class _Unread(tf.keras.layers.Layer):
  """A layer that does not use its weight."""

  def build(self, input_shape):
    del input_shape
    self.add_weight('unused', [3], initializer='ones')

  def call(self, inputs):
    return tf.identity(inputs)


def _model_fn(*layers):
  """Returns a function that builds a model with these layers."""

  def build():
    model = tf.keras.Sequential(
        [
            _LAYERS.InputLayer((testing.NUM_FEATURES,)),
            *(layer() for layer in layers),
            _LAYERS.Dense(testing.NUM_CLASSES),
        ]
    )
    return tff.learning.models.from_keras_model(
        model, testing.loss(), testing.INPUT_SPEC
    )

  return build


def _copied_gru(copy):
  """Returns a function that copies a recurrent model, and a client's data."""
  start = tf.keras.Sequential(
      [
          _LAYERS.Embedding(6, 4, batch_input_shape=[2, None]),
          _LAYERS.GRU(3, return_sequences=True),
          _LAYERS.Dense(6),
      ]
  )
  config = start.get_config()
  spec = (tf.TensorSpec([2, 5], tf.int64), tf.TensorSpec([2, 5], tf.int64))
  build = lambda: tff.learning.models.from_keras_model(
      copy(start, config), testing.loss(), input_spec=spec
  )
  return build, [(np.ones([2, 5], np.int64),) * 2]


def _untrained(process):
  form = computations.get_round_form(process.next)
  work = graph_functions.build_graph_function(form.parts['work'])
  return variables.find_untrained(work.serialized)


class UntrainedTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      ('sgd', tff.learning.optimizers.build_sgdm(0.1)),
      ('adam', tff.learning.optimizers.build_adam(0.1)),
      ('ours', optimizers.build_adam(0.1)),
      ('iterator', tff.learning.optimizers.build_sgdm(0.1), 'ITERATOR'),
  )
  @pytest.mark.sample(2)
  def test_weight_that_no_loss_depends_on_is_found(
      self, optimizer, loop='REDUCE'
  ):
    process = _STOCK.build_weighted_fed_avg(
        _model_fn(_Unread, _LAYERS.BatchNormalization, _LAYERS.Normalization),
        optimizer,
        loop_implementation=_LOOPS[f'DATASET_{loop}'],
    )
    (found,) = _untrained(process)
    self.assertEqual(found.split('/')[-1], 'unused')

  @parameterized.parameters(
      _STOCK.build_weighted_fed_prox, _STOCK.build_weighted_mime_lite
  )
  @pytest.mark.sample(1)
  def test_other_processes_are_searched(self, build):
    optimizer = tff.learning.optimizers.build_sgdm(0.1)
    arguments = {'base_optimizer': optimizer}
    if build is _STOCK.build_weighted_fed_prox:
      arguments = dict(proximal_strength=0.1, client_optimizer_fn=optimizer)
    found = _untrained(build(_model_fn(_LAYERS.Flatten), **arguments))
    self.assertEqual(found, [])

  def test_evaluation_trains_nothing(self):
    process = _STOCK.build_fed_eval(_model_fn(_Unread))
    self.assertEqual(_untrained(process), [])

  @pytest.mark.slow
  def test_a_copied_recurrent_layer_is_warned_of_once(self):
    model_fn, client = _copied_gru(
        lambda model, _: tf.keras.models.clone_model(model)
    )
    process = _STOCK.build_weighted_fed_avg(
        model_fn, tff.learning.optimizers.build_sgdm(0.1)
    )
    with runtime.CompiledContext():
      state = process.initialize()
      with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter('always')
        for _ in range(2):
          state = process.next(state, [client]).state
    (text,) = [str(w.message) for w in found if 'not trained' in str(w.message)]
    self.assertStartsWith(
        text,
        'The loss does not depend on the trainable weight '
        '`gru/gru_cell/kernel` and 2 more, which are',
    )

  @pytest.mark.slow
  def test_the_proposed_copy_is_trained(self):
    model_fn, client = _copied_gru(
        lambda model, config: model.from_config(config)
    )
    process = _STOCK.build_weighted_fed_avg(
        model_fn, tff.learning.optimizers.build_sgdm(0.1)
    )
    with runtime.CompiledContext(), warnings.catch_warnings():
      warnings.simplefilter('error', RuntimeWarning)
      before = process.initialize()
      after = process.next(before, [client]).state
    for old, new in zip(
        before.global_model_weights.trainable,
        after.global_model_weights.trainable,
    ):
      self.assertNotAllEqual(old, new)

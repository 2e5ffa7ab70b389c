# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds on named rows have the bits of rounds on whole tables."""

import collections
import functools
from typing import Any
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import algorithms
from tff_adaptive import client_works
from tff_adaptive import data
from tff_adaptive import finalizers
from tff_adaptive import layers
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.runtime import row_work

_NUM_WORDS = 2_000
_NUM_TAGS = 40
_LENGTH = 5
_UNKNOWN = -1
# Rows that no client names.
_FIRST_UNNAMED = 1_500

_stock = functools.partial(
    tff.learning.algorithms.build_weighted_fed_avg,
    server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0),
)
_sgdm = tff.learning.optimizers.build_sgdm


def _ours(**options: Any) -> Any:
  def build(model, optimizer):
    return algorithms.build_fed_opt(
        model, optimizer, optimizers.build_fedadagrad(0.1), **options
    )

  return build


def _normalized(model: Any, optimizer: Any) -> Any:
  return algorithms.build_fed_opt(model, optimizer, finalizers.build_fednova())


def _source(num_clients: int) -> data.PackedClientArrays:
  """Clients of 0 to 6 examples; words are repeated, and some are unknown."""
  rng = np.random.default_rng(0)
  sizes = [number % 7 for number in range(num_clients)]
  count = sum(sizes)
  words = rng.integers(_UNKNOWN, 30, size=[count, _LENGTH])
  # Some words of a client are named by no other client.
  words[:, 0] = rng.integers(30, _FIRST_UNNAMED, size=count)
  values = collections.OrderedDict(
      x=words.astype(np.int32),
      y=rng.integers(2, size=[count, _NUM_TAGS]).astype(np.float32),
  )
  ends = np.cumsum([0, *sizes])
  return data.PackedClientArrays(values, ends, map(str, range(num_clients)))


def _cohort(num_clients: int, num_epochs: int = 1) -> data.Cohort:
  return data.Cohort(
      _source(num_clients),
      list(map(str, range(num_clients))),
      0,
      seed=1,
      plan=data.BatchPlan(2, num_epochs=num_epochs),
  )


def _input_spec() -> Any:
  return collections.OrderedDict(
      x=tf.TensorSpec([None, _LENGTH], tf.int32),
      y=tf.TensorSpec([None, _NUM_TAGS], tf.float32),
  )


def _bag_of_words() -> tf.keras.Model:
  """A kernel of which examples average rows, and a layer on top."""
  words = tf.keras.Input([_LENGTH], dtype=tf.int32)
  hidden = layers.BagOfWordsDense(_NUM_TAGS, _NUM_WORDS)(words)
  return tf.keras.Model(words, tf.keras.layers.Dense(_NUM_TAGS)(hidden))


def _embeddings(first: int = 0) -> tf.keras.Model:
  """Two embeddings of one shape; words below `first` are taken for it."""
  words = tf.keras.Input([_LENGTH], dtype=tf.int32)
  known = tf.keras.layers.Lambda(lambda x: tf.maximum(x, first))(words)
  left, right = (
      tf.keras.layers.Embedding(_NUM_WORDS, _NUM_TAGS)(known) for _ in range(2)
  )
  products = tf.keras.layers.Multiply()([left, right])
  outputs = tf.keras.layers.Lambda(lambda x: tf.reduce_sum(x, 1))(products)
  return tf.keras.Model(words, outputs)


def _model(build: Any = _bag_of_words) -> Any:
  return tff.learning.models.functional_model_from_keras(
      build,
      tf.keras.losses.BinaryCrossentropy(from_logits=True),
      _input_spec(),
  )


def _variable_model() -> Any:
  return tff.learning.models.from_keras_model(
      _bag_of_words(),
      loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
      input_spec=_input_spec(),
  )


def _run(process: Any, cohort: Any, on_rows: bool, state: Any = None) -> Any:
  """Returns a first state and two rounds, and how the clients worked."""
  works = []

  def build(*arguments):
    works.append(original(*arguments) if on_rows else None)
    return works[-1]

  original = row_work.build
  with mock.patch.object(row_work, 'build', build):
    with runtime.compiled_context(strict=True, seed=1):
      state = process.initialize() if state is None else state
      outputs = [state]
      for _ in range(2):
        outputs.append(process.next(state, cohort))
        state = outputs[-1].state
  return outputs, works


@functools.cache
def _our_process() -> Any:
  return _ours()(_model(), optimizers.build_sgd(0.1))


class RowWorkTest(parameterized.TestCase, tf.test.TestCase):

  def assert_same_bits(
      self,
      process: Any,
      cohort: Any,
      state: Any = None,
      is_on_rows: bool = True,
  ) -> Any:
    """Returns the outputs, which do not depend on how clients work."""
    expected, _ = _run(process, cohort, False, state)
    found, works = _run(process, cohort, True, state)
    self.assertLen(works, 1)
    self.assertEqual(works[0] is not None, is_on_rows)
    for a, b in zip(tf.nest.flatten(expected), tf.nest.flatten(found)):
      np.testing.assert_array_equal(a, b)
    return found

  @parameterized.named_parameters(
      ('stock_sgd', _stock, _sgdm(0.1)),
      ('stock_momentum', _stock, _sgdm(0.1, 0.9)),
      ('slices', _stock, optimizers.build_sgd(0.1)),
      ('ours', _ours(), optimizers.build_sgd(0.1)),
      ('momentum', _ours(), optimizers.build_sgd(0.1, 0.9)),
      ('normalized', _normalized, optimizers.build_sgd(0.1)),
  )
  @pytest.mark.sample(1)
  def test_rules_of_which_rows_rest(self, build, optimizer):
    process = build(_model(), optimizer)
    found = self.assert_same_bits(process, _cohort(5, num_epochs=2))
    weights = [
        state.global_model_weights.trainable[0]
        for state in (found[0], found[2].state)
    ]
    named = np.unique(_source(5).values['x'])
    moved = np.flatnonzero(np.any(weights[0] != weights[1], axis=1))
    self.assertAllEqual(moved, named[named >= 0])

  @parameterized.named_parameters(
      ('adam', _ours(), optimizers.build_adam(0.1)),
      ('delta_sgd', _ours(), optimizers.build_delta_sgd()),
      (
          'proximal',
          _ours(loss_term=client_works.build_fedprox(0.1)),
          optimizers.build_sgd(0.1),
      ),
      ('limited', _ours(max_update_norm=1e-3), optimizers.build_sgd(0.1)),
      ('clipped', _ours(clip_norm=1e-3), optimizers.build_sgd(0.1)),
      ('decay', _ours(weight_decay=0.1), optimizers.build_sgd(0.1)),
      (
          'secure',
          _ours(model_aggregator=tff.learning.secure_aggregator(weighted=True)),
          optimizers.build_sgd(0.1),
      ),
      (
          'robust',
          _ours(model_aggregator=tff.learning.robust_aggregator(weighted=True)),
          optimizers.build_sgd(0.1),
      ),
  )
  @pytest.mark.sample(1)
  def test_rules_of_all_rows_take_whole_tables(self, build, optimizer):
    process = build(_model(), optimizer)
    self.assert_same_bits(process, _cohort(3), is_on_rows=False)

  @pytest.mark.slow
  def test_variables_hold_whole_tables(self):
    process = _ours()(_variable_model, optimizers.build_sgd(0.1))
    self.assert_same_bits(process, _cohort(3), is_on_rows=False)

  @parameterized.parameters(1, 16, 17, 50)
  @pytest.mark.slow
  def test_cohorts_of_one_and_of_several_chunks(self, num_clients):
    self.assert_same_bits(_our_process(), _cohort(num_clients))

  def test_two_tables_that_name_the_same_rows(self):
    process = _stock(_model(_embeddings), optimizers.build_sgd(0.1))
    self.assert_same_bits(process, _cohort(5))

  @pytest.mark.slow
  def test_lists_of_datasets(self):
    process = _stock(_model(), optimizers.build_sgd(0.1))
    self.assert_same_bits(process, [list(c) for c in _cohort(4)])

  def test_shuffled_datasets_that_are_read_twice(self):
    process = tff.learning.algorithms.build_weighted_mime_lite(
        _model(), _sgdm(0.1)
    )
    source = _source(4)
    clients = [
        tf.data.Dataset.from_tensor_slices(source.examples(client_id))
        .shuffle(6, seed=3)
        .batch(2)
        for client_id in source.client_ids
    ]
    self.assert_same_bits(process, clients)

  def _start(self) -> Any:
    process = _our_process()
    with runtime.compiled_context(strict=True, seed=1):
      return process, process.initialize()

  def assert_rejects_all(self, process: Any, state: Any) -> None:
    found = self.assert_same_bits(process, _cohort(5), state)
    clients = found[1].metrics['client_work']['clients']
    self.assertEqual(clients['num_rejected'], 5)

  @parameterized.parameters(np.nan, np.inf)
  @pytest.mark.slow
  def test_unnamed_weight_that_is_not_finite_rejects_clients(self, value):
    process, state = self._start()
    weights = process.get_model_weights(state)
    kernel = np.array(weights.trainable[0])
    kernel[_FIRST_UNNAMED] = value
    weights = tff.learning.models.ModelWeights(
        (kernel, *weights.trainable[1:]), weights.non_trainable
    )
    state = process.set_model_weights(state, weights)
    self.assert_rejects_all(process, state)

  @parameterized.parameters(np.inf, np.nan)
  @pytest.mark.slow
  def test_rate_that_is_not_finite_rejects_clients(self, rate):
    process, state = self._start()
    hparams = process.get_hparams(state)
    hparams['client_work']['learning_rate'] = np.float32(rate)
    state = process.set_hparams(state, hparams)
    self.assert_rejects_all(process, state)

  def test_words_out_of_range_are_rejected(self):
    model = _model(functools.partial(_embeddings, _UNKNOWN))
    process = _stock(model, optimizers.build_sgd(0.1))
    with self.assertRaisesRegex(ValueError, 'rejected the clients'):
      _run(process, _cohort(3), True)

  @pytest.mark.usefixtures('native_runtime')
  def test_equals_native_runtime(self):
    process = _our_process()
    outputs, _ = _run(process, _cohort(5), True)
    expected = process.next(outputs[0], list(_cohort(5)))
    self.assertAllClose(
        expected.state.global_model_weights.trainable,
        outputs[1].state.global_model_weights.trainable,
        atol=1e-6,
    )

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the evaluations of clients."""

import collections
import functools
import math
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.evaluation import evaluation_testing
from tff_adaptive import _metric_modes
from tff_adaptive import evaluation
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.client_works import local_training
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort
from tff_adaptive.data import random_streams
from tff_adaptive.evaluation import computations
from tff_adaptive.evaluation import evaluations


def _metrics(values, num_examples=None, metric='accuracy'):
  return evaluation.ClientMetrics(
      [f'c{i}' for i in range(len(values))],
      num_examples or [1] * len(values),
      {metric: values},
  )


class ClientMetricsTest(parameterized.TestCase):

  def test_summary_equals_hand_calculation(self):
    found = _metrics([0.5, 1.0, 0.0, 0.9], [1, 2, 3, 4]).summarize('clients/')
    self.assertEqual(
        found,
        {
            'clients/accuracy_mean': 0.6,
            'clients/accuracy_weighted_mean': 0.61,
            'clients/accuracy_median': 0.7,
            'clients/accuracy_worst_decile': 0.0,
        },
    )

  def test_every_statistic_of_a_loss_is_better_when_lower(self):
    for name in _metrics([1.0], metric='loss').summarize('clients/'):
      self.assertFalse(_metric_modes.is_higher_better(name), name)

  @parameterized.parameters((1, 1), (9, 1), (10, 1), (19, 1), (20, 2), (35, 3))
  def test_worst_decile_is_a_tenth_rounded_down_and_one_at_least(
      self, num_clients, num_worst
  ):
    values = np.random.default_rng(1).permutation(num_clients).astype(float)
    accuracy = _metrics(values).summarize()['accuracy_worst_decile']
    self.assertEqual(accuracy, np.arange(num_worst).mean())
    loss = _metrics(values, metric='loss').summarize()['loss_worst_decile']
    self.assertEqual(loss, num_clients - 1 - np.arange(num_worst).mean())

  @parameterized.parameters(
      ('false_positives', None, 3.0),
      ('ece', None, 3.0),
      ('recall', None, 1.0),
      ('turnover', 'max', 1.0),
      ('turnover', 'min', 3.0),
      ('recall', 'min', 3.0),
  )
  def test_the_worst_clients_are_those_of_the_mode(self, name, mode, worst):
    metrics = evaluation.ClientMetrics(
        ['a', 'b', 'c'],
        [1, 1, 1],
        {name: [1.0, 3.0, 2.0]},
        modes={} if mode is None else {name: mode},
    )
    self.assertEqual(metrics.summarize()[f'{name}_worst_decile'], worst)

  @parameterized.parameters('num_batches', 'turnover')
  def test_a_metric_without_mode_has_no_worst_clients(self, name):
    self.assertEqual(
        list(_metrics([1.0, 3.0], metric=name).summarize()),
        [f'{name}_mean', f'{name}_weighted_mean', f'{name}_median'],
    )

  def test_clients_without_examples_have_no_statistics(self):
    summary = _metrics([1.0], [0]).summarize()
    self.assertTrue(all(map(math.isnan, summary.values())))

  @parameterized.parameters(([],), ([1.0, math.nan],))
  def test_unknown_values_are_nan(self, values):
    summary = _metrics(values).summarize()
    self.assertLen(summary, 4)
    for name, value in summary.items():
      self.assertTrue(math.isnan(value), name)


_expected = evaluation_testing.expected
_weights = evaluation_testing.weights
_SIZES = [5, 0, 3, 30, 1, 12]
_WITH_EXAMPLES = ('c0', 'c2', 'c3', 'c4', 'c5')
_variable_model = testing.variable_model_fn()


@functools.lru_cache
def _functional_model(dropout=0.0):
  return testing.functional_model(dropout=dropout)


def _clients(seed, sizes=_SIZES):
  generator = np.random.default_rng(seed)
  return client_data.PackedClientArrays.from_clients(
      {
          f'c{i}': collections.OrderedDict(
              x=generator.normal(size=(size, 5)).astype(np.float32),
              y=generator.integers(0, 3, size).astype(np.int32),
          )
          for i, size in enumerate(sizes)
      }
  )


def _lazy(source, read=None):
  def load(client_id):
    if read is not None:
      read.append(client_id)
    return source.examples(client_id)

  return client_data.LazyClientArrays(
      source.client_ids, load, source.element_spec
  )


def _train(optimizer, trainable, batches, clip_norm=None):
  """Returns the weights after a plain loop of the optimizer."""
  weights = tuple(map(tf.constant, trainable))
  state = optimizer.initialize(
      tuple(tf.TensorSpec(w.shape, w.dtype) for w in weights)
  )

  def value_and_grad(batch, point):
    with tf.GradientTape() as tape:
      tape.watch(point)
      loss = testing.loss()(batch['y'], batch['x'] @ point[0] + point[1])
    found = tape.gradient(loss, point)
    if clip_norm is not None:
      found, _ = tf.clip_by_global_norm(found, clip_norm)
    return loss, tuple(found)

  for batch in batches:
    loss, found = value_and_grad(batch, weights)
    extra = {}
    if getattr(optimizer, 'takes_extra_args', False):
      again = functools.partial(value_and_grad, batch)
      extra = {'value': loss, 'value_and_grad_fn': again}
    state, weights = optimizer.next(state, weights, found, **extra)
  return weights


def _batches(source, client_id, seed, plan):
  # The order that the evaluation draws.
  seed = random_streams.derived_seed(seed, 'client_evaluation')
  return cohort.Cohort(
      source, [client_id], round_num=0, seed=seed, plan=plan
  ).batches(0)


class ClientEvaluationTest(tf.test.TestCase, parameterized.TestCase):

  def _check(self, found, source, weights):
    for place, client_id in enumerate(found.client_ids):
      examples = source.examples(client_id)
      loss, accuracy = _expected(weights.trainable, examples)
      self.assertEqual(found.num_examples[place], len(examples['y']))
      self.assertAllClose(found.values['loss'][place], loss, rtol=1e-6)
      self.assertAllClose(found.values['accuracy'][place], accuracy, rtol=1e-6)

  def test_equals_each_client_alone(self):
    source = _clients(1)
    evaluate = evaluation.build_client_evaluation(
        _functional_model(0.5), source, batch_size=4
    )
    for seed in (1, 2):
      found = evaluate(_weights(seed))
      self.assertEqual(found.client_ids, _WITH_EXAMPLES)
      self.assertEqual(list(found.values), ['loss', 'accuracy'])
      self._check(found, source, _weights(seed))

  def test_a_metric_whose_name_does_not_tell_needs_a_mode(self):
    model = tff.learning.models.functional_model_from_keras(
        testing.keras_model(),
        loss_fn=testing.loss(),
        input_spec=(
            tf.TensorSpec([None, 5], tf.float32),
            tf.TensorSpec([None], tf.int32),
        ),
        metrics_constructor=lambda: collections.OrderedDict(
            turnover=tf.keras.metrics.SparseCategoricalAccuracy(),
            num_batches=tf.keras.metrics.SparseCategoricalCrossentropy(),
        ),
    )
    with self.assertRaisesRegex(ValueError, "'turnover'.*`modes`"):
      evaluation.build_client_evaluation(model, _clients(1))
    with self.assertRaisesRegex(ValueError, "'turnover'.*`modes`"):
      evaluation.build_personalized_evaluation(
          model, _clients(1), _clients(2), optimizers.build_sgd()
      )
    evaluation.build_client_evaluation(
        model, _clients(1), modes={'turnover': 'min'}
    )

  def test_entries_of_vectors_and_metrics_of_their_names_are_apart(self):
    adapter = mock.Mock()
    adapter.finalize_metrics.return_value = {
        'f1': tf.constant([1.0, 2.0]),
        'f1_1': tf.constant(3.0),
    }
    counts = computations._Counts(
        tf.constant(8.0, tf.float64), tf.constant(2, tf.int64), {}
    )
    row = computations._to_row(adapter, counts, with_integers=False)
    self.assertAllEqual(
        row['metrics'], {'loss': [4], 'f1_0': [1], 'f1_1': [2], 'f1_1_0': [3]}
    )

  def test_nested_metrics_count_and_texts_do_not(self):
    adapter = mock.Mock()
    adapter.finalize_metrics.return_value = {
        'classes': {'recall': tf.constant([1.0, 2.0]), 'pair': (3, True)},
        'text': tf.constant('good'),
    }
    counts = computations._Counts(
        tf.constant(8.0, tf.float64), tf.constant(2, tf.int64), {}
    )
    with self.assertWarnsRegex(UserWarning, "'text' has the type string"):
      row = computations._to_row(adapter, counts, with_integers=True)
    expected = {'recall_0': [1], 'recall_1': [2], 'pair/0': [3], 'pair/1': [1]}
    self.assertAllEqual(
        row['metrics'],
        {'loss': [4], **{f'classes/{name}': v for name, v in expected.items()}},
    )

  @pytest.mark.slow
  def test_clients_go_through_in_several_calls(self):
    source = _clients(2, sizes=[3, 1, 4, 1, 5, 9, 2, 6] * 3)
    build = functools.partial(
        evaluation.build_client_evaluation, _functional_model()
    )
    whole = build(source)(_weights())
    read = []
    with mock.patch.multiple(evaluations, _MAX_ROWS=10, _MAX_CLIENTS=3):
      parts = build(_lazy(source, read))(_weights())
    self.assertEqual(parts.client_ids, whole.client_ids)
    self.assertAllEqual(parts.num_examples, whole.num_examples)
    self.assertAllClose(parts.values['loss'], whole.values['loss'], rtol=1e-6)
    self.assertEqual(read, list(source.client_ids))

  def test_calls_are_bounded_by_the_rows_of_batches(self):
    rows = {'c0': 6, 'c1': 6, 'c2': 20, 'c3': 5}
    with mock.patch.object(evaluations, '_MAX_ROWS', 12):
      found = evaluations._chunks(list(rows), rows.__getitem__)
      self.assertEqual(list(found), [['c0', 'c1'], ['c2'], ['c3']])

  def test_ids_keep_zero_bytes_at_their_end(self):
    rows = {'num_examples': np.array([2, 0]), 'metrics': {'loss': np.ones([2])}}
    evaluator = mock.Mock(_modes={})
    found = evaluations._Evaluator._to_metrics(evaluator, ['a\0', 'b'], rows)
    self.assertEqual(found.client_ids, ('a\0',))

  def test_sample_of_clients_is_seeded(self):
    ids = [f'c{i}' for i in range(30)]
    found = [evaluations._sample(ids, 5, seed) for seed in (1, 1, 2)]
    self.assertLen(set(found[0]), 5)
    self.assertEqual(found[0], found[1])
    self.assertNotEqual(found[0], found[2])
    self.assertEqual(evaluations._sample(ids, None, 1), ids)

  @pytest.mark.slow
  def test_only_the_sample_is_read_and_evaluated(self):
    read = []
    evaluate = evaluation.build_client_evaluation(
        _functional_model(), _lazy(_clients(1, [1] * 30), read), num_clients=5
    )
    found = evaluate(_weights())
    self.assertLen(found.client_ids, 5)
    self.assertEqual(read, list(found.client_ids))

  def test_holds_no_second_copy_of_rows_that_a_round_has_read(self):
    source = _clients(1)
    computation = computations.build_evaluation_computation(_functional_model())
    plan = batching.BatchPlan(4)
    with runtime.CompiledContext() as context:
      computation(_weights(), cohort.Cohort(source, ['c0'], 0, 0, plan))
    evaluation.build_client_evaluation(_functional_model(), source)(_weights())
    kind = computation.type_signature.parameter[1].member
    caches = context._cache, evaluations._shared_context('auto', None)._cache
    of_round, of_evaluation = (c.resident_rows(source, kind) for c in caches)
    for one, other in zip(of_round, of_evaluation):
      self.assertIs(one, other)


class PersonalizedEvaluationTest(tf.test.TestCase, parameterized.TestCase):

  def _check(self, found, test, trained):
    for place, client_id in enumerate(found.client_ids):
      loss, accuracy = _expected(trained[client_id], test.examples(client_id))
      self.assertAllClose(found.values['loss'][place], loss, rtol=1e-5)
      self.assertAllClose(found.values['accuracy'][place], accuracy, rtol=1e-6)

  @parameterized.parameters(
      ({}, 6),
      ({'num_epochs': 2}, 12),
      ({'max_examples': 3}, 3),
      ({'num_steps': 1}, 4),
      ({'num_steps': 4, 'num_epochs': 3}, 12),
  )
  def test_calls_are_bounded_by_both_kinds_of_examples(self, changes, trained):
    with mock.patch.object(evaluations, '_Evaluator') as evaluator:
      evaluate = evaluation.build_personalized_evaluation(
          _functional_model(),
          _clients(1, sizes=[6, 6]),
          _clients(2, sizes=[3, 5]),
          optimizers.build_sgd(),
          batch_size=4,
          **changes,
      )
      evaluator.return_value.return_value = (None, None)
      evaluate(None)
    *_, num_rows = evaluator.return_value.call_args.args
    self.assertEqual(
        [num_rows(name) for name in ('c0', 'c1')], [trained + 3, trained + 5]
    )

  @parameterized.parameters(
      optimizers.build_sgd,
      optimizers.build_delta_sgd,
      optimizers.build_sps,
      optimizers.build_adam,
  )
  @pytest.mark.sample(1)
  def test_equals_a_plain_loop(self, build_optimizer):
    """Compares fine-tuning with a loop of eager steps."""
    train, test = _clients(1), _clients(2, sizes=[4, 4, 0, 9, 2, 1, 7])
    plan = batching.BatchPlan(batch_size=4, num_epochs=2)
    evaluate = evaluation.build_personalized_evaluation(
        _functional_model(),
        train,
        test,
        build_optimizer(),
        num_epochs=2,
        batch_size=4,
        seed=3,
    )
    received = _weights().trainable
    found = evaluate(_weights())
    # Of c1 there is nothing to train on, of c2 nothing to test on, and c6
    # is in one of both alone.
    self.assertEqual(found.after.client_ids, ('c0', 'c1', 'c3', 'c4', 'c5'))
    self.assertEqual(found.before.client_ids, found.after.client_ids)
    self.assertEqual(found.after.num_examples.tolist(), [4, 4, 9, 2, 1])
    self._check(found.before, test, dict.fromkeys(test.client_ids, received))
    trained = {
        client_id: _train(
            build_optimizer(), received, _batches(train, client_id, 3, plan)
        )
        for client_id in train.client_ids
    }
    self._check(found.after, test, trained)
    self.assertEqual(
        found.after.values['loss'][1], found.before.values['loss'][1]
    )

  @pytest.mark.slow
  def test_variable_model_with_a_number_of_steps_and_clipping(self):
    train, test = _clients(1), _clients(2)
    evaluate = evaluation.build_personalized_evaluation(
        _variable_model,
        _lazy(train),
        test,
        optimizers.build_sgd(0.5),
        num_steps=3,
        batch_size=10,
        max_examples=11,
        gradient_options=local_training.GradientOptions(clip_norm=0.1),
    )
    found = evaluate(_weights())
    self.assertEqual(found.after.client_ids, _WITH_EXAMPLES)
    trained = {}
    for client_id in found.after.client_ids:
      plan = batching.BatchPlan(10, num_epochs=3, max_examples=11)
      batches = _batches(train, client_id, 0, plan)[:3]
      self.assertLen(batches, 3)
      trained[client_id] = _train(
          optimizers.build_sgd(0.5), _weights().trainable, batches, 0.1
      )
    self._check(found.after, test, trained)

  @pytest.mark.slow
  def test_dropout_follows_the_seed_and_is_off_in_the_evaluation(self):
    train, test = _clients(1), _clients(2)

    def build(seed):
      return evaluation.build_personalized_evaluation(
          _functional_model(0.5), train, test, optimizers.build_sgd(), seed=seed
      )

    evaluate = build(1)
    found, again, other = (
        evaluate(_weights()),
        evaluate(_weights()),
        build(2)(_weights()),
    )
    self.assertAllEqual(found.after.values['loss'], again.after.values['loss'])
    self.assertNotAllClose(
        found.after.values['loss'], other.after.values['loss']
    )
    received = dict.fromkeys(test.client_ids, _weights().trainable)
    self._check(found.before, test, received)

  @pytest.mark.slow
  def test_a_client_that_diverges_keeps_the_weights_that_it_received(self):
    evaluate = evaluation.build_personalized_evaluation(
        _functional_model(),
        _clients(1),
        _clients(2),
        optimizers.build_sgd(1e38),
        num_epochs=5,
    )
    found = evaluate(_weights())
    self.assertAllEqual(found.after.values['loss'], found.before.values['loss'])

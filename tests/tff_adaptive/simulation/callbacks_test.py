# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of callbacks."""

import doctest
import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.simulation import loop_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import privacy
from tff_adaptive.simulation import callbacks


class _LossProcess(loop_testing.Process):
  """The clients' losses are 1, 1/2, 1/3 and so on."""

  def next(self, state, cohort):
    output = super().next(state, cohort)
    clients = output.metrics['client_work']['clients']
    clients['loss'] = 1 / int(output.state['rounds'])
    return output


class _Constant(callbacks.Callback):
  """Measures one number in every round, and stops in one."""

  def __init__(self, name='constant', stop_in=None):
    self.calls = []
    self._name = name
    self._stop_in = stop_in

  def on_training_start(self, start):
    self.start = start

  def on_round_end(self, round_end):
    self.calls.append('end')
    self.seen = dict(round_end.metrics)
    return round_end.round_num == self._stop_in

  def measure(self, round_end):
    self.calls.append('measure')
    return {self._name: 7}


class CallbackTest(loop_testing.LoopTestCase):

  def test_the_example_runs(self):
    example = doctest.DocTestParser().get_doctest(
        callbacks.__doc__,
        {'process': _LossProcess(), 'cohort_fn': lambda _: [1]},
        'callback',
        None,
        None,
    )
    self.assertNotEmpty(example.examples)
    messages = []
    runner = doctest.DocTestRunner()
    self.assertEqual(runner.run(example, out=messages.append).failed, 0)
    self.assertEmpty(messages)

  def test_measurements_are_columns(self):
    self.run_loop(callbacks=[_Constant()])
    rows = self.rows()
    self.assertEqual(
        rows[0],
        'round_num,clients/loss,clients/num,constant,evaluation/accuracy',
    )
    self.assertTrue(all(row.split(',')[3] == '7' for row in rows[1:]))

  def test_later_callbacks_see_what_earlier_ones_measured(self):
    first, second = _Constant('first'), _Constant('second')
    self.run_loop(total_rounds=1, callbacks=[first, second])
    self.assertNotIn('first', first.seen)
    self.assertEqual(second.seen['first'], 7)
    self.assertNotIn('second', second.seen)

  def test_a_stop_where_no_evaluation_was_due_is_measured_again(self):
    callback = _Constant(stop_in=2)
    self.run_loop(callbacks=[callback])
    self.assertEqual(callback.calls, ['end', 'measure'] * 2 + ['measure'])
    self.assertRegex(self.rows()[-1], r'^2,.*,7,0\.00')

  def test_a_name_can_be_measured_once(self):
    with self.assertRaisesRegex(ValueError, "_Constant measures 'constant'"):
      self.run_loop(callbacks=[_Constant(), _Constant()])

  @parameterized.parameters('round_num', 'seconds', 'clients/loss')
  def test_names_of_other_columns_cannot_be_measured(self, name):
    with self.assertRaisesRegex(ValueError, f"_Constant measures '{name}'"):
      self.run_loop(callbacks=[_Constant(name)])

  def test_the_start_has_state_weights_and_evaluation(self):
    callback = _Constant()
    evaluated = []

    def evaluate(weights):
      evaluated.append(float(weights))
      return {'accuracy': float(weights)}

    self.run_loop(total_rounds=1, evaluate_fn=evaluate, callbacks=[callback])
    # Only what is asked for is evaluated, and once.
    self.assertLen(evaluated, 1)
    self.assertEqual(callback.start.state['rounds'], 0)
    self.assertEqual(callback.start.get_weights(), 0)
    self.assertEqual(callback.start.get_evaluation(), {'accuracy': 0.0})
    callback.start.get_evaluation()
    self.assertLen(evaluated, 2)


def _round_end(evaluation=None, evaluate=lambda weights: {}, **metrics):
  return loop_testing.round_end(
      metrics=metrics, evaluation=evaluation, evaluate=evaluate
  )


def _start(evaluation):
  return callbacks.TrainingStart(
      state=None, get_weights=lambda: None, get_evaluation=lambda: evaluation
  )


class MonitorTest(parameterized.TestCase):

  @parameterized.parameters(
      ('max', 0.0, 0.2, 0.1, True),
      ('max', 0.0, 0.1, 0.1, False),
      ('max', 0.1, 0.625, 0.5, True),
      ('max', 0.125, 0.625, 0.5, False),
      ('min', 0.0, 0.1, 0.2, True),
      ('min', 0.0, 0.2, 0.1, False),
      ('min', 0.125, 0.5, 0.625, False),
      ('max', 0.0, math.nan, 0.1, False),
      ('min', 0.0, math.nan, 0.1, False),
      ('max', 0.0, -1e9, -math.inf, True),
      ('min', 0.0, 1e9, math.inf, True),
      ('min', 0.0, math.nan, math.inf, False),
      ('min', 0.0, math.inf, math.inf, False),
  )
  def test_keeps_what_is_better(self, mode, min_delta, value, best, expected):
    monitor = callbacks.Monitor('loss', mode, min_delta)
    monitor.best = best
    self.assertEqual(monitor.improve(value), expected)
    self.assertEqual(monitor.best, value if expected else best)

  def test_reads_rows_that_have_the_metric(self):
    monitor = callbacks.Monitor('loss', 'min')
    self.assertEqual(monitor.read(_round_end(loss=2)), 2.0)
    self.assertIsNone(monitor.read(_round_end(other=2)))

  @parameterized.parameters(
      ({'clients/num_examples': 0}, False),
      ({'clients/num_examples': 3}, True),
      # Of a process of TFF.
      ({'train/num_examples': np.int64(0)}, False),
      ({'train/num_examples': np.int64(3)}, True),
      ({}, True),
  )
  def test_metrics_of_no_training_example_are_no_numbers(self, sizes, counts):
    monitor = callbacks.Monitor('train/loss', 'min')
    found = monitor.read(_round_end(**{'train/loss': 0.0}, **sizes))
    self.assertEqual(monitor.improve(found), counts)

  @parameterized.named_parameters(
      ('evaluated', {'evaluation': {'accuracy': 0.1}}),
      ('never_evaluated', {'evaluate': None}),
  )
  def test_a_row_that_lacks_the_metric_names_those_there_are(self, kwargs):
    monitor = callbacks.Monitor('los', 'min')
    with self.assertRaises(callbacks.UnknownMetricError) as caught:
      monitor.read(_round_end(loss=1, num=2, **kwargs))
    self.assertEqual(
        str(caught.exception),
        "there is no metric 'los' to monitor; there are loss, num",
    )

  def test_a_metric_that_is_no_number_is_one_sentence(self):
    monitor = callbacks.Monitor('device', 'max')
    with self.assertRaisesRegex(
        callbacks.UnknownMetricError,
        "^the metric 'device' cannot be monitored: .* found 'CPU:0'$",
    ):
      monitor.read(_round_end(device='CPU:0'))

  def test_metrics_of_the_evaluation_are_checked_before_the_first_round(self):
    evaluation = {'loss': 1.0, 'accuracy': 0.1}
    callbacks.Monitor('evaluation/accuracy', 'max').start(_start(evaluation))
    wrong = callbacks.Monitor('evaluation/acc', 'max')
    with self.assertRaisesRegex(
        callbacks.UnknownMetricError,
        "no metric 'evaluation/acc' to monitor; there are evaluation/loss, "
        'evaluation/accuracy$',
    ):
      wrong.start(_start(evaluation))
    with self.assertRaisesRegex(
        callbacks.UnknownMetricError, 'there are none$'
    ):
      wrong.start(_start(None))

  def test_other_metrics_need_no_evaluation_of_the_initial_weights(self):
    def fail():
      raise AssertionError

    callbacks.Monitor('clients/loss', 'min').start(
        callbacks.TrainingStart(
            state=None, get_weights=fail, get_evaluation=fail
        )
    )


def _peaked(weights):
  """Best after round 4: the weights are 0.1, 0.3, 0.6, 1.0, 1.5 and so on."""
  return {'accuracy': 1 - abs(float(weights) - 1)}


class EarlyStoppingTest(loop_testing.LoopTestCase):

  @parameterized.named_parameters(
      ('one', {'patience': 1}, 5),
      ('three', {'patience': 3}, 7),
      ('never', {'patience': 7}, 10),
      # Differences are 0.2, 0.3, 0.4: the first value stays the best one.
      ('min_delta', {'patience': 3, 'min_delta': 2.0}, 4),
      ('min', {'patience': 2, 'mode': 'min'}, 3),
  )
  def test_stops_after_evaluations_without_improvement(self, kwargs, expected):
    stopping = callbacks.EarlyStopping(**kwargs)
    result = self.run_loop(
        callbacks=[stopping], evaluate_fn=_peaked, rounds_per_evaluation=1
    )
    self.assertEqual(result.round_num, expected)
    self.assertEqual(result.stopped, stopping.num_bad == kwargs['patience'])

  def test_rounds_without_evaluation_do_not_count(self):
    stopping = callbacks.EarlyStopping(patience=2)
    result = self.run_loop(
        callbacks=[stopping], evaluate_fn=_peaked, rounds_per_evaluation=2
    )
    self.assertEqual(result.round_num, 8)

  def test_a_loss_is_better_when_lower(self):
    for metric, expected in (
        ('evaluation/loss', True),
        ('evaluation/f1', False),
    ):
      monitor = callbacks.Monitor(metric)
      monitor.improve(0.5)
      self.assertEqual(monitor.improve(0.4), expected)
    # The loss falls in every round.
    stopping = callbacks.EarlyStopping('clients/loss', 3)
    self.assertEqual(self.run_loop(callbacks=[stopping]).round_num, 10)

  @parameterized.parameters(1, 3, 4, 6, 7)
  def test_a_resumed_run_stops_in_the_same_round(self, killed_in):
    def make(unused_folder):
      return [callbacks.EarlyStopping(patience=3)]

    kwargs = dict(evaluate_fn=_peaked, rounds_per_evaluation=1)
    whole = self.run_loop('whole', callbacks=make(None), **kwargs)
    result, _ = self.run_in_two_parts('parts', killed_in, make, **kwargs)
    self.assertEqual((result.round_num, result.stopped), (7, True))
    self.assertEqual(result.state, whole.state)
    self.assert_same_run('whole', 'parts')
    again = self.run_loop('parts', callbacks=make(None), **kwargs)
    self.assertEqual((again.num_new_rounds, again.stopped), (0, True))

  def test_a_second_run_starts_anew(self):
    kwargs = dict(
        callbacks=[callbacks.EarlyStopping(patience=3)],
        evaluate_fn=_peaked,
        rounds_per_evaluation=1,
    )
    results = [self.run_loop(name, **kwargs) for name in ('one', 'two')]
    self.assertEqual([result.round_num for result in results], [7, 7])

  def test_an_unknown_metric_ends_the_run_before_the_first_round(self):
    with self.assertRaisesRegex(
        callbacks.UnknownMetricError, "'evaluation/acc'.*evaluation/accuracy"
    ):
      self.run_loop(callbacks=[callbacks.EarlyStopping('evaluation/acc')])
    self.assertFalse((self.folder / 'run' / 'metrics.csv').exists())


def _build_accountant():
  return privacy.RoundAccountant(
      noise_multiplier=1.0,
      num_clients=100,
      clients_per_round=40,
      sampling=privacy.CohortSampling.POISSON,
  )


def _initial_state(**kwargs):
  """Returns the initial state of a private process with a payload."""
  process = algorithms.build_fed_opt(
      testing.functional_model(),
      optimizers.build_scaffold_sgd(100),
      client_weighting=tff.learning.ClientWeighting.UNIFORM,
      privacy=privacy.DifferentialPrivacy(
          noise_multiplier=1.0,
          clients_per_round=40,
          clip_norm=0.5,
          payload_clip_norms={'control': 0.25},
          **kwargs,
      ),
  )
  with compiled_testing.installed():
    return process.initialize()


class PrivacySpentTest(absltest.TestCase):

  def _measure(self, state, round_num):
    accountant = _build_accountant()
    round_end = loop_testing.round_end(round_num=round_num, state=state)
    spent = callbacks.PrivacySpent(accountant, delta=1e-3)
    row = dict(spent.measure(round_end))
    self.assertEqual(
        row.pop('privacy/epsilon'), accountant.get_epsilon(round_num, 1e-3)
    )
    return row

  def test_fixed_bounds_are_no_metrics(self):
    state = _initial_state()
    for round_num in (1, 7):
      self.assertEmpty(self._measure(state, round_num))

  @pytest.mark.slow
  def test_adaptive_bounds_have_the_names_of_what_they_bound(self):
    state = _initial_state(adaptive_clipping=privacy.AdaptiveClipping())
    self.assertEqual(
        self._measure(state, 1),
        {'privacy/clip_norm': 0.5, 'privacy/clip_norm_of_control': 0.25},
    )

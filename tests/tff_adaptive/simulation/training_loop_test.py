# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the training loop."""

import contextlib
import itertools
import os
import signal
import threading
from unittest import mock

from absl.testing import parameterized
import attrs
import numpy as np
import tensorflow as tf

from tests.tff_adaptive import file_testing
from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.simulation import loop_testing
from tff_adaptive import runtime
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import kept_weights
from tff_adaptive.simulation import metrics_writers
from tff_adaptive.simulation import progress
from tff_adaptive.simulation import training_loop
from tff_adaptive.simulation import weights_files


class _Average(callbacks.Callback):
  """The mean of the weights over rounds; it stops at a limit."""

  def __init__(self, stop_at=np.inf):
    self.total = np.float64(0)
    self.seen = []
    self._stop_at = stop_at

  def on_training_start(self, start):
    self.initial = start.state

  def on_round_end(self, round_end):
    self.total = self.total + np.float64(round_end.get_weights())
    self.seen.append((round_end.round_num, round_end.evaluation is not None))
    return self.total > self._stop_at

  def get_state(self):
    return {'total': self.total}

  def set_state(self, state):
    self.total = state['total']


class _Naive(callbacks.Callback):
  """Has a state that changes with the loss of a round."""

  def __init__(self, initial, change):
    self.value = initial
    self._change = change

  def on_round_end(self, round_end):
    self.value = self._change(self.value, round_end.metrics['clients/loss'])

  def get_state(self):
    return {'value': self.value}

  def set_state(self, state):
    self.value = state['value']


@attrs.frozen
class _Closed:
  """Cannot be built from all its leaves."""

  value: int
  derived: int = attrs.field(init=False, default=2)


class TrainingLoopTest(loop_testing.LoopTestCase):

  def test_trains_evaluates_and_records(self):
    result = self.run_loop()
    self.assertEqual(result.round_num, 10)
    self.assertEqual(result.num_new_rounds, 10)
    self.assertAlmostEqual(result.state['weights'], 5.5, places=5)
    self.assertEqual(
        result.evaluation, {'accuracy': float(result.state['weights']) / 100}
    )
    rows = self.rows()
    self.assertEqual(
        rows[0], 'round_num,clients/loss,clients/num,evaluation/accuracy'
    )
    evaluated = [
        int(row.split(',')[0]) for row in rows[1:] if row.split(',')[3]
    ]
    self.assertLen(rows, 11)
    self.assertEqual(evaluated, [4, 8, 10])
    self.assertEqual(
        checkpoints.CheckpointManager(
            self.folder / 'run' / 'checkpoints'
        ).round_nums(),
        [6, 9, 10],
    )

  def test_reading_ahead_changes_nothing(self):
    made_in = set()

    def cohort_fn(round_index):
      made_in.add(threading.current_thread())
      return [round_index, 1]

    self.run_loop('one')
    self.run_loop('other', cohort_fn=cohort_fn, read_ahead=True)
    self.assert_same_run('one', 'other')
    self.assertNotIn(threading.current_thread(), made_in)

  def test_begins_with_another_state(self):
    def initial_state_fn():
      return {'weights': np.float32(100), 'rounds': np.int32(0)}

    average = _Average()
    result = self.run_loop(
        'other', initial_state_fn=initial_state_fn, callbacks=[average]
    )
    self.assertEqual(average.initial, initial_state_fn())
    self.assertAlmostEqual(result.state['weights'], 105.5, places=4)
    self.run_in_two_parts(
        'killed',
        8,
        lambda folder: [_Average()],
        initial_state_fn=initial_state_fn,
    )
    self.assert_same_run('killed', 'other')

  def test_a_checkpoint_has_the_weights_that_are_evaluated(self):
    folder = self.folder / 'run'
    # The run begins before checkpoints had them.
    self.run_loop(total_rounds=6)
    self.run_loop(
        get_weights=lambda state: {'mean': state['weights'] / 2},
        evaluate_fn=lambda weights: {'accuracy': weights['mean']},
    )
    found = weights_files.read_weights(folder).arrays
    self.assertEqual(list(found), ['mean'])
    self.assertAlmostEqual(found['mean'].item(), 5.5 / 2, places=5)
    manager = checkpoints.CheckpointManager(folder / 'checkpoints')
    first = checkpoints.read_leaves(manager.path(6))
    self.assertFalse([name for name in first if name.startswith('weights')])

  def test_seconds_are_those_of_the_parts(self):
    clock = itertools.count()
    with mock.patch.object(
        progress.time, 'perf_counter', lambda: float(next(clock))
    ):
      seconds = self.run_loop().seconds
    # A part of its own has two readings of the clock, at its beginning and end.
    self.assertEqual(seconds['input'], 10)
    self.assertEqual(seconds['evaluation'], 3)
    self.assertEqual(seconds['checkpoints'], 4)
    self.assertCountEqual(
        seconds, ['rounds', 'input', 'evaluation', 'metrics', 'checkpoints']
    )

  @parameterized.parameters((10, 2), (2, 1), (1, 0))
  def test_a_round_after_the_first_ones_is_profiled(self, total, finished):
    profiled = []

    @contextlib.contextmanager
    def profile(path):
      profiled.append(path)
      yield
      profiled.append(process.last)

    class Process(loop_testing.Process):

      def next(self, state, cohort):
        self.last = state['rounds']
        return super().next(state, cohort)

    process = Process()
    with mock.patch.object(progress, 'profile', profile):
      self.run_loop(process=process, total_rounds=total, profile_path='file')
    self.assertEqual(profiled, ['file', finished])

  def test_needs_neither_evaluation_nor_checkpoints(self):
    result = training_loop.run_training(
        loop_testing.Process(), cohort_fn=lambda _: [1], total_rounds=2
    )
    self.assertEqual(result.round_num, 2)
    self.assertIsNone(result.evaluation)

  @parameterized.product(
      killed_in=[1, 2, 3, 4, 5, 7, 9, 10],
      error=[KeyboardInterrupt, RuntimeError],
  )
  def test_a_resumed_run_equals_an_uninterrupted_one(self, killed_in, error):
    whole = self.run_loop('whole', callbacks=[_Average()])

    def fail(state):
      if state['rounds'] == killed_in - 1:
        raise error

    with self.assertRaises(error):
      self.run_loop(process=loop_testing.Process(fail), callbacks=[_Average()])
    average = _Average()
    result = self.run_loop(callbacks=[average])
    self.assertEqual(result.state, whole.state)
    self.assertEqual(result.evaluation, whole.evaluation)
    self.assertEqual(self.rows(), self.rows('whole'))
    # Ctrl-C saves the last finished round, a crash does not.
    interrupted = error is KeyboardInterrupt
    saved = killed_in - 1 if interrupted else (killed_in - 1) // 3 * 3
    self.assertEqual(result.num_new_rounds, 10 - saved)
    self.assertEqual(average.seen[0][0], saved + 1)
    self.assertEqual(average.initial['rounds'], 0)

  @parameterized.parameters(
      (0, lambda value, loss: value + loss),
      (np.inf, min),
      (np.float64(0), lambda value, loss: np.float32(value) + loss),
      (np.zeros(0), np.append),
      ('', lambda value, loss: f'{value}{loss:.1f}'),
      (False, lambda value, loss: bool(loss < 0.5)),
  )
  def test_states_of_callbacks_may_change_dtype_and_shape(self, initial, new):
    make = lambda folder: [_Naive(initial, new)]
    whole = make(None)
    self.run_loop('whole', callbacks=whole)
    _, resumed = self.run_in_two_parts('parts', 8, make)
    np.testing.assert_array_equal(resumed[0].value, whole[0].value)
    self.assert_same_run('whole', 'parts')

  def test_states_of_callbacks_that_no_checkpoint_restores_are_refused(self):
    for initial in (None, []):
      callback = _Naive(initial, lambda value, loss: [loss])
      with self.assertRaisesRegex(ValueError, 'of _Naive .*round 1, .*`value'):
        self.run_loop(callbacks=[callback])
      callback = _Naive(initial, lambda value, loss: [loss])
      self.run_loop('other', callbacks=[callback], checkpoints=None)
    with self.assertRaisesRegex(TypeError, '`callbacks/0/value` of type set'):
      self.run_loop(callbacks=[_Naive({1}, max)], cohort_fn=None)
    for initial, error, message in (
        (_Closed(1), TypeError, '`callbacks/0/value`, a _Closed, cannot be'),
        ({1: 2, '1': 3}, ValueError, 'Two leaves .*`callbacks/0/value/1`'),
    ):
      with self.assertRaisesRegex(error, message):
        self.run_loop(callbacks=[_Naive(initial, max)], cohort_fn=None)

  def test_an_initial_state_may_have_other_dtypes(self):
    process = compiled_testing.process()

    def initial_state_fn():
      state = process.initialize()
      weights = tf.nest.map_structure(
          lambda leaf: np.full(leaf.shape, 0.5), state.global_model_weights
      )
      return state._replace(
          global_model_weights=weights,
          finalizer={'learning_rate': 0.5},
      )

    average = kept_weights.WeightsMovingAverage(0.5)
    with runtime.CompiledContext(strict=True):
      for total_rounds in (2, 4):
        result = self.run_loop(
            process=process,
            cohort_fn=lambda round_num: [testing.dataset(9)],
            initial_state_fn=initial_state_fn,
            total_rounds=total_rounds,
            evaluate_fn=None,
            callbacks=[average],
        )
    self.assertEqual(result.num_new_rounds, 2)
    self.assertEqual(result.state.finalizer['learning_rate'], 0.5)
    self.assertEqual(average.get_weights().trainable[0].dtype, np.float32)

  def test_an_evaluation_knows_its_round(self):
    asked = []

    def evaluate(weights, round_num):
      asked.append(round_num)
      return {'accuracy': float(weights) + round_num}

    average = kept_weights.WeightsMovingAverage(0.5)
    result = self.run_loop(
        evaluate_fn=evaluate, callbacks=[average], rounds_per_checkpoint=5
    )
    # Once for the average of the weights.
    self.assertEqual(asked, [4, 4, 8, 8, 10, 10])
    self.assertAlmostEqual(result.evaluation['accuracy'], 15.5, places=5)
    # A run that is finished evaluates the same.
    again = self.run_loop(
        evaluate_fn=evaluate, callbacks=[kept_weights.WeightsMovingAverage(0.5)]
    )
    self.assertEqual(asked[-1], 10)
    self.assertEqual(again.evaluation, result.evaluation)

  def test_evaluations_and_measurements_have_vectors_and_texts(self):
    average = kept_weights.WeightsMovingAverage(0.5)
    result = self.run_loop(
        total_rounds=1,
        evaluate_fn=lambda weights: {
            'f1': np.array([weights, 0.5], np.float32),
            'accuracy': 'unknown',
            'loss': tf.constant(0.5, tf.bfloat16),
        },
        callbacks=[
            callbacks.EarlyStopping('evaluation/f1_0', mode='max'),
            average,
        ],
    )
    expected = {'f1_0': np.float32(0.1), 'f1_1': 0.5, 'accuracy': 'unknown'}
    self.assertEqual(result.evaluation, {**expected, 'loss': 0.5})
    self.assertEndsWith(
        self.rows()[1], ',0.1,0.5,unknown,0.5,0.1,0.5,unknown,0.5'
    )

  @parameterized.parameters(
      (0.5, 'mapping.*found float'),
      ([('a', 0.5)], 'mapping.*found list'),
      ({'a': None}, "numbers, found None for 'a'"),
      ({'a': {'b': 0.5}}, "found {'b': 0.5} for 'a'"),
      ({'a': np.ones([1, 1])}, "array.*for 'a'"),
      ({'a': [[0.5], [0.5, 1.0]]}, r"\[\[0.5\], .*for 'a'"),
  )
  def test_other_evaluations_and_measurements_are_named(self, found, message):
    with self.assertRaisesRegex(TypeError, f'`evaluate_fn` must.*{message}'):
      self.run_loop(evaluate_fn=lambda weights: found)
    callback = callbacks.Callback()
    with (
        mock.patch.object(callback, 'measure', lambda round_end: found),
        self.assertRaisesRegex(TypeError, f'`measure` of Callback.*{message}'),
    ):
      self.run_loop(callbacks=[callback])

  def test_a_run_continues_after_a_callback_has_interrupted_it(self):
    class Interrupter(callbacks.Callback):

      def on_round_end(self, round_end):
        if round_end.round_num == 5:
          raise KeyboardInterrupt

    with self.assertRaises(training_loop.TrainingInterrupted):
      self.run_loop(callbacks=[Interrupter()])
    self.run_loop(callbacks=[callbacks.Callback()])
    self.run_loop('whole', callbacks=[callbacks.Callback()])
    self.assert_same_run('run', 'whole')

  def test_an_interruption_says_how_to_continue(self):
    def interrupt(state):
      if state['rounds'] == 4:
        os.kill(os.getpid(), signal.SIGTERM)

    with self.assertRaises(training_loop.TrainingInterrupted) as caught:
      self.run_loop(process=loop_testing.Process(interrupt))
    self.assertEqual(
        str(caught.exception),
        'Interrupted after round 4 of 10; run the same command again to '
        'continue.',
    )
    with self.assertRaisesRegex(KeyboardInterrupt, '4 of 10; no checkpoints'):
      self.run_loop(
          'other', process=loop_testing.Process(interrupt), checkpoints=None
      )

  def test_a_finished_run_is_only_evaluated(self):
    first = self.run_loop()
    lines = (self.folder / 'run' / 'metrics.csv').read_text()
    self.stderr.truncate(0)
    again = self.run_loop(cohort_fn=None)
    self.assertEqual(again.num_new_rounds, 0)
    self.assertEqual(again.evaluation, first.evaluation)
    self.assertEqual((self.folder / 'run' / 'metrics.csv').read_text(), lines)
    self.assertEqual(self.stderr.getvalue(), '')

  def test_more_rounds_continue_the_run(self):
    self.run_loop(total_rounds=8)
    result = self.run_loop()
    self.assertEqual(result.num_new_rounds, 2)
    self.run_loop('whole')
    self.assertEqual(self.rows(), self.rows('whole'))

  def test_a_callback_ends_the_run_for_good(self):
    result = self.run_loop(callbacks=[_Average(stop_at=2.5), _Average()])
    self.assertEqual(result.round_num, 5)
    # Round 5 is no round of evaluation, but the last one.
    self.assertIn('accuracy', result.evaluation)
    self.assertLen(self.rows(), 6)
    self.assertRegex(self.rows()[-1], r'^5,.*,0\.01')
    again = self.run_loop(callbacks=[_Average(stop_at=2.5), _Average()])
    self.assertEqual(again.num_new_rounds, 0)
    self.assertEqual(again.evaluation, result.evaluation)

  def test_metrics_that_were_lost_are_an_error(self):
    self.run_loop(total_rounds=5)
    (self.folder / 'run' / 'metrics.csv').unlink()
    with self.assertRaises(metrics_writers.MetricsFileError):
      self.run_loop()

  def test_a_finished_run_drops_old_checkpoints(self):
    folder = self.folder / 'run' / 'checkpoints'
    self.run_loop()
    for keep_total, kept in ((2, [9, 10]), (1, [10]), (3, [10])):
      manager = checkpoints.CheckpointManager(folder, keep_total)
      self.run_loop(checkpoints=manager)
      self.assertEqual(manager.round_nums(), kept)

  def test_a_full_disk_keeps_the_last_state(self):
    self.run_loop('whole')
    whole = file_testing.read_files(self.folder / 'whole')
    size = len(whole['checkpoints/checkpoint_00000009.npz'])
    with file_testing.max_file_size(size - 1):
      with self.assertRaisesRegex(OSError, '00000003.npz: File too large'):
        self.run_loop()
    for round_num in range(3, 10):
      # Rows are smaller than the checkpoint: what the file holds does not fit.
      lines = whole['metrics.csv'].splitlines(keepends=True)
      limit = len(b''.join(lines[: round_num + 1])) + 5
      with file_testing.max_file_size(limit):
        with self.assertRaisesRegex(OSError, 'metrics.csv: File too large$'):
          self.run_loop(checkpoints=None)
    self.run_loop()
    self.assert_same_run('run', 'whole')

  def test_rows_are_on_the_disk_before_their_checkpoint(self):
    events = []
    writer = mock.create_autospec(metrics_writers.MetricsWriter, instance=True)
    writer.flush.side_effect = lambda: events.append('flush')
    manager = mock.create_autospec(checkpoints.CheckpointManager, instance=True)
    manager.load_latest.return_value = None
    manager.save.side_effect = lambda *_: events.append('save')
    self.run_loop(total_rounds=4, checkpoints=manager, writers=[writer])
    self.assertEqual(events, ['flush', 'save'] * 2)
    writer.resume.assert_called_once_with(0)
    writer.close.assert_called()

  def test_numbers_of_rounds_may_be_of_numpy(self):
    self.assertEqual(self.run_loop(total_rounds=np.int64(2)).state['rounds'], 2)

  def test_resumes_with_shuffled_datasets_to_the_bit(self):
    clients = [
        testing.dataset(size).unbatch().shuffle(size).batch(4)
        for size in (9, 6)
    ]

    def train(name, total_rounds):
      with runtime.CompiledContext(strict=True) as context:

        def cohort_fn(round_num):
          context.begin_round(5, round_num)
          return clients

        result = self.run_loop(
            name,
            compiled_testing.process(),
            cohort_fn=cohort_fn,
            total_rounds=total_rounds,
            evaluate_fn=None,
        )
      return tf.nest.flatten(result.state.global_model_weights.trainable)

    whole = train('whole', 4)
    halfway = train('parts', 2)
    found = train('parts', 4)
    self.assertTrue(any(map(np.any, map(np.subtract, halfway, found))))
    for expected, leaf in zip(whole, found):
      np.testing.assert_array_equal(expected, leaf)

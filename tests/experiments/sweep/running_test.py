# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of how the trials of a sweep are run, and of their progress."""

import io
import os
import pathlib
import signal
import sys
import threading
import time
from unittest import mock

from absl.testing import parameterized
import pytest

from experiments.sweep import processes
from experiments.sweep import running
from experiments.sweep import scores
from tests import folder_testing
from tests import program_testing
from tests.experiments.sweep import sweep_testing

_POLL = 0.01


class _Observer:
  """Notes what it is told; calls a function at every tick."""

  def __init__(self, tick_fn=lambda: None):
    self.starts = []
    self.codes = {}
    self.max_at_once = 0
    self.tick = tick_fn

  def started(self, name):
    self.starts.append(name)
    at_once = len(self.starts) - len(self.codes)
    self.max_at_once = max(self.max_at_once, at_once)

  def ended(self, name, code):
    self.codes[name] = code


class SchedulingTest(folder_testing.FolderTestCase):

  def _job(self, name, script):
    return processes.Job(
        ('/bin/sh', '-c', script), self.folder / 'logs' / f'{name}.log'
    )

  def _run(self, scripts, *, num_at_once=2, tick_fn=lambda: None, **kwargs):
    observer = _Observer(tick_fn)
    jobs = {name: self._job(name, script) for name, script in scripts.items()}
    processes.run_jobs(
        jobs, num_at_once=num_at_once, observer=observer, **kwargs
    )
    return observer

  def _log(self, name):
    return (self.folder / 'logs' / f'{name}.log').read_text()

  def _wait_for(self, *names):
    deadline = time.monotonic() + 30
    while not all((self.folder / name).exists() for name in names):
      self.assertLess(time.monotonic(), deadline, names)
      time.sleep(_POLL)

  def test_no_other_job_begins_once_none_may(self):
    answers = iter([True])
    observer = self._run(
        {name: 'sleep 0.1' for name in 'abcd'},
        may_start=lambda: next(answers, False),
    )
    self.assertEqual(observer.codes, {'a': 0, 'b': 0})

  @parameterized.parameters(1, 2, 3)
  def test_starts_in_order_and_so_many_at_once(self, num_at_once):
    scripts = {name: 'sleep 0.1' for name in 'abcde'}
    observer = self._run(scripts, num_at_once=num_at_once)
    self.assertEqual(observer.starts, list('abcde'))
    self.assertEqual(observer.max_at_once, num_at_once)
    self.assertEqual(observer.codes, dict.fromkeys('abcde', 0))

  def test_a_failure_does_not_stop_the_others(self):
    observer = self._run(
        {'a': 'echo bad >&2; exit 3', 'b': 'echo good'}, num_at_once=1
    )
    self.assertEqual(observer.codes, {'a': 3, 'b': 0})
    self.assertEqual(self._log('a'), 'bad\n')
    self.assertEqual(self._log('b'), 'good\n')

  def test_a_log_continues(self):
    for _ in range(2):
      self._run({'a': 'echo line'})
    self.assertEqual(self._log('a'), 'line\nline\n')

  def test_a_process_has_no_input(self):
    self.assertEqual(self._run({'a': 'cat'}).codes, {'a': 0})

  def test_each_is_pinned_to_its_share_of_the_cores(self):
    cores = processes.available_cores()
    code = 'import os; print(sorted(os.sched_getaffinity(0)))'
    # The share is set right after the start, hence the pause.
    script = f'sleep 0.2; {sys.executable} -S -c "{code}"'
    self._run({'a': script, 'b': script})
    shares = processes.split_cores(cores, 2)
    self.assertEqual(
        [self._log('a'), self._log('b')], [f'{s}\n' for s in shares]
    )

  def test_processes_left_by_a_process_are_ended(self):
    self._run({'a': 'sleep 60 & echo $!'})
    self.assertTrue(program_testing.ends(int(self._log('a'))))

  @parameterized.parameters(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
  @pytest.mark.sample(1)
  def test_a_signal_lets_the_processes_save_and_end(self, number):
    script = (
        'trap "echo saved; exit 130" INT; sleep 60 & echo $!; '
        f'touch {self.folder}/NAME; wait'
    )

    def interrupt():
      self._wait_for('a', 'b')
      os.kill(os.getpid(), number)

    scripts = {name: script.replace('NAME', name) for name in 'abc'}
    # The tests themselves may have been started by nohup.
    handler = signal.default_int_handler
    self.addCleanup(signal.signal, number, signal.signal(number, handler))
    with self.assertRaises(processes.Interrupted):
      self._run(scripts, tick_fn=interrupt)
    for name in 'ab':
      pid, saved = self._log(name).split()
      self.assertEqual(saved, 'saved')
      self.assertTrue(program_testing.ends(int(pid)))
    self.assertFalse((self.folder / 'logs' / 'c.log').exists())
    self.assertEqual(signal.getsignal(number), handler)

  def test_under_nohup_a_hangup_is_ignored(self):
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    self.addCleanup(signal.signal, signal.SIGHUP, handler)
    observer = self._run(
        {'a': 'sleep 0.1'}, tick_fn=lambda: os.kill(os.getpid(), signal.SIGHUP)
    )
    self.assertEqual(observer.codes, {'a': 0})

  def test_a_second_signal_kills(self):
    script = (
        f'echo $$; trap "touch {self.folder}/asked" INT; '
        f'touch {self.folder}/a; while true; do sleep 0.05; done'
    )

    def interrupt_again():
      self._wait_for('asked')
      os.kill(os.getpid(), signal.SIGINT)

    def interrupt():
      self._wait_for('a')
      os.kill(os.getpid(), signal.SIGINT)
      thread.start()

    thread = threading.Thread(target=interrupt_again)
    with self.assertRaises(processes.Interrupted):
      self._run({'a': script}, tick_fn=interrupt)
    thread.join()
    self.assertTrue(program_testing.ends(int(self._log('a'))))

  def test_an_error_of_the_observer_leaves_no_process(self):
    def fail():
      self._wait_for('a')
      raise OSError('full')

    script = f'echo $$; touch {self.folder}/a; sleep 60'
    with self.assertRaisesRegex(OSError, 'full'):
      self._run({'a': script}, tick_fn=fail)
    self.assertTrue(program_testing.ends(int(self._log('a'))))

  @parameterized.named_parameters(
      ('one_for_all', 4, 1, [[0, 1, 2, 3]]),
      ('one_each', 2, 2, [[0], [1]]),
      ('not_even', 8, 3, [[0, 1], [2, 3, 4], [5, 6, 7]]),
      ('more_than_cores', 2, 3, [[0], [1], [0]]),
  )
  def test_splits_cores(self, num_cores, num_slots, expected):
    self.assertEqual(
        processes.split_cores(range(num_cores), num_slots), expected
    )


class DefaultJobsTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('one_a_core', '/nowhere', {}, 5, 4),
      ('few_trials', '/nowhere', {}, 3, 3),
      ('gpu', '/', {}, 5, 1),
      ('gpu_left_alone', '/', {'devices': 'CPU'}, 5, 4),
      ('gpu_unused', '/', {'runtime': 'native'}, 5, 4),
      ('gpu_left_to_ray', '/', {'runtime': 'ray'}, 5, 4),
      ('gpu_asked_for', '/', {'devices': 'GPU:1'}, 5, 1),
  )
  def test_jobs(self, gpus, given, num_trials, expected):
    rates = tuple(str(n) for n in range(1, num_trials + 1))
    trials = sweep_testing.build_trials('out', rates, **given)
    with (
        mock.patch.object(running, '_GPUS', pathlib.Path(gpus)),
        mock.patch.object(
            processes, 'available_cores', return_value=[0, 1, 2, 3]
        ),
    ):
      self.assertEqual(running.default_jobs(trials), expected)


def _measure(trial):
  return scores.RunResult(trial, scores.FINISHED)


class _Terminal(io.StringIO):

  def isatty(self):
    return True


class ProgressTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.trials = sweep_testing.build_trials(self.folder, ('1', '2', '3', '4'))
    self.seconds = 0.0
    self.enter_context(mock.patch('tqdm.std.time', lambda: self.seconds))

  def _show(self, stream):
    return running.Keeper(self.trials, _measure, lambda results: None, stream)

  def _train(self, trial, num_rounds, total_rounds=10):
    trial.folder.mkdir(parents=True, exist_ok=True)
    (trial.folder / 'hparams.json').write_text(
        f'{{"total_rounds": {total_rounds}}}'
    )
    rows = [f'{n},0.5,\n' for n in range(1, num_rounds + 1)]
    (trial.folder / 'metrics.csv').write_text(
        'round_num,train/accuracy,evaluation/accuracy\n' + ''.join(rows)
    )

  def test_lines_where_there_is_no_terminal(self):
    stream = io.StringIO()
    shown = self._show(stream)
    a, b, c, _ = self.trials
    shown.started(a)
    shown.started(b)
    self.seconds = 30
    b.log.parent.mkdir(parents=True)
    b.log.write_text('begin\nerror: it is two.\n\n')
    shown.ended(b, 2)
    shown.started(c)
    shown.tick()
    self._train(a, 5)
    self.seconds = 60
    shown.tick()
    shown.tick()
    self.seconds = 90
    shown.ended(a, 0)
    shown.close()
    rate = 'rates/client_learning_rate'
    self.assertEqual(
        stream.getvalue().splitlines(),
        [
            f'start {rate}=1/seed_0',
            f'start {rate}=2/seed_0',
            f'failed {rate}=2/seed_0 after 30 s with 2: error: it is two. '
            f'({b.log})',
            f'start {rate}=3/seed_0',
            # One and a half of four trials took a minute.
            '0 finished, 2 running, 1 failed, 1 waiting:  38%|'
            '#######5            | 01:00<01:40',
            f'end   {rate}=1/seed_0 after 1 min 30 s',
        ],
    )

  def test_a_terminal_is_redrawn_in_place(self):
    stream = _Terminal()
    shown = self._show(stream)
    shown.started(self.trials[0])
    self._train(self.trials[0], 3)
    self.seconds = 2
    shown.tick()
    self.assertIn(
        '0 finished, 1 running, 0 failed, 3 waiting:   8%|', stream.getvalue()
    )
    self.assertIn('00:02<00:24', stream.getvalue())
    self.assertRegex(
        stream.getvalue(),
        r'=1/seed_0:  30%\|.*\| 00:02, round 3 of 10, train/accuracy 0.5000',
    )
    # Only failures leave a line.
    shown.ended(self.trials[0], 2)
    self.assertIn('failed rates/', stream.getvalue())
    shown.close()
    self.assertNotIn('end  ', stream.getvalue())

  def test_rounds_of_an_earlier_call_are_not_of_this_one(self):
    stream = io.StringIO()
    a, b, c, _ = self.trials
    self._train(a, 4, total_rounds=8)
    self._train(b, 4, total_rounds=8)
    shown = self._show(stream)
    for trial in (a, b, c):
      shown.started(trial)
    self.seconds = 30
    shown.ended(a, 0)
    self._train(b, 6, total_rounds=8)
    self._train(c, 2, total_rounds=8)
    self.seconds = 60
    shown.tick()
    # Of 1/2 + 1/2 + 1 + 1 trials there are 1/2 + 1/4 + 1/4 done.
    self.assertIn('01:00<02:00', stream.getvalue())

  def test_more_rounds_than_before_are_still_to_go(self):
    stream = io.StringIO()
    folder = self.trials[0].home.parent
    self.trials = sweep_testing.build_trials(folder, ('1',), total_rounds='20')
    self._train(self.trials[0], 10, total_rounds=10)
    shown = self._show(stream)
    shown.started(self.trials[0])
    self._train(self.trials[0], 15, total_rounds=20)
    self.seconds = 60
    shown.tick()
    self.assertIn('01:00<01:00', stream.getvalue())

  @parameterized.named_parameters(
      ('nothing', None, (0.0, 'starting')),
      ('no_round', 0, (0.0, 'starting')),
      ('rounds', 4, (0.4, 'round 4 of 10, train/accuracy 0.5000')),
  )
  def test_glance(self, num_rounds, expected):
    if num_rounds is not None:
      self._train(self.trials[0], num_rounds)
    self.assertEqual(running.glance(self.trials[0]), expected)

  def test_glance_prefers_the_evaluation(self):
    trial = self.trials[0]
    self._train(trial, 1)
    with open(trial.folder / 'metrics.csv', 'a') as file:
      file.write('2,0.6,0.75\n3,0.7,\n')
    self.assertEqual(
        running.glance(trial),
        (0.3, 'round 3 of 10, evaluation/accuracy 0.7500'),
    )

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the forks that run the trials of a sweep."""

import contextlib
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from absl.testing import parameterized
import psutil
import pytest

from experiments import command_line
from experiments.sweep import processes
from experiments.sweep import running
from tests import folder_testing
from tests import program_testing

_REPORTS = 'tests.experiments.sweep.fork_reports'
_DEADLINE = 180.0


def _read_metrics(run: pathlib.Path) -> list[dict[str, str]]:
  """Returns the rows of a run's metrics without its seconds."""
  rows = folder_testing.read_rows(run / 'metrics.csv')
  return [{k: v for k, v in row.items() if k != 'seconds'} for row in rows]


def _is_free(lock: pathlib.Path) -> bool:
  """Returns whether no process holds a lock."""
  with open(lock) as file, contextlib.suppress(BlockingIOError):
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return True
  return False


class ForkTest(folder_testing.FolderTestCase):

  def _start(self, *arguments, inherited=(), module=_REPORTS):
    self.log = self.folder / 'logs' / 'fork.log'
    command = (sys.executable, '-m', module, *arguments)
    cores = processes.available_cores()[:1]
    process = processes.start(
        processes.Job(command, self.log, inherited), cores
    )
    self.addCleanup(command_line.kill_group, process)
    return process

  def _wait_for_report(self):
    deadline = time.monotonic() + _DEADLINE
    while not self.log.read_text().endswith('}\n'):
      self.assertLess(time.monotonic(), deadline)
      time.sleep(0.01)
    return json.loads(self.log.read_text())

  def test_a_module_is_run_by_a_warm_process(self):
    process = self._start('--rate=0.1', '--name=a b')
    self.assertEqual(process.wait(), 0)
    report = json.loads(self.log.read_text())
    self.assertFalse(os.path.exists(report.pop('temporary')))
    self.assertEqual(
        report,
        {
            'arguments': ['--rate=0.1', '--name=a b'],
            'cores': processes.available_cores()[:1],
            'input': '',
            'leads_session': True,
            'has_tensorflow': True,
            'pid': process.pid,
        },
    )

  def test_an_exit_code_is_returned_and_a_log_continues(self):
    for _ in range(2):
      process = self._start('--fail')
      self.assertEqual(process.wait(), 3)
      self.assertEqual(process.returncode, 3)
    self.assertLen(self.log.read_text().splitlines(), 2)

  def test_a_signal_reaches_it(self):
    process = self._start('--wait')
    self._wait_for_report()
    self.assertIsNone(process.returncode)
    with self.assertRaises(subprocess.TimeoutExpired):
      process.wait(0.01)
    process.send_signal(signal.SIGINT)
    self.assertEqual(process.wait(), 1)
    self.assertIn('KeyboardInterrupt', self.log.read_text())
    process.send_signal(signal.SIGINT)  # It has ended: nothing happens.

  def test_it_holds_the_lock_of_its_sweep(self):
    path = self.folder / 'lock'
    lock = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    process = self._start('--wait', inherited=[lock])
    self._wait_for_report()
    os.close(lock)  # As where the sweep is killed.
    other = os.open(path, os.O_RDWR)
    self.addCleanup(os.close, other)
    with self.assertRaises(BlockingIOError):
      fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    command_line.kill_group(process)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

  @pytest.mark.slow
  def test_it_ends_with_the_process_that_started_it(self):
    log = self.folder / 'fork.log'
    script = (
        'import pathlib, sys, time\n'
        'from experiments.sweep import processes\n'
        f'command = (sys.executable, "-m", {_REPORTS!r}, "--wait")\n'
        f'job = processes.Job(command, pathlib.Path({str(log)!r}))\n'
        'processes.start(job, [])\n'
        'time.sleep(60)\n'
    )
    parent = subprocess.Popen([sys.executable, '-c', script])
    self.addCleanup(parent.kill)
    self.log = log
    deadline = time.monotonic() + _DEADLINE
    while not log.exists():
      self.assertLess(time.monotonic(), deadline)
      time.sleep(0.01)
    pid = self._wait_for_report()['pid']
    parent.kill()
    parent.wait()
    with contextlib.suppress(psutil.NoSuchProcess):
      psutil.Process(pid).wait(_DEADLINE)
    self.assertFalse(psutil.pid_exists(pid))

  @parameterized.parameters(signal.SIGINT, signal.SIGKILL)
  @pytest.mark.slow
  def test_the_import_ends_with_the_process_that_started_it(self, number):
    lock, self.log = self.folder / 'lock', self.folder / 'fork.log'
    script = (
        'import fcntl, pathlib, os, sys\n'
        'from experiments.sweep import processes\n'
        f'lock = os.open({str(lock)!r}, os.O_RDWR | os.O_CREAT)\n'
        'fcntl.flock(lock, fcntl.LOCK_EX)\n'
        f'command = (sys.executable, "-m", {_REPORTS!r})\n'
        f'log = pathlib.Path({str(self.log)!r})\n'
        'job = processes.Job(command, log, [lock])\n'
        'with processes._signals_noted():\n'
        '  processes.start(job, []).wait()\n'
    )
    parent = subprocess.Popen(
        [sys.executable, '-c', script],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    self.addCleanup(command_line.kill_group, parent)
    deadline = time.monotonic() + _DEADLINE
    server = None
    while server is None:
      self.assertLess(time.monotonic(), deadline)
      for child in psutil.Process(parent.pid).children():
        if 'forkserver' in ' '.join(child.cmdline()):
          server = child
      time.sleep(0.01)
    time.sleep(1.0)  # It imports for many more seconds.
    if number == signal.SIGINT:  # As a terminal sends it.
      os.killpg(parent.pid, number)
      self.assertEqual(parent.communicate(), (None, ''))
      self.assertEqual(parent.returncode, 0)
      self.assertTrue(self._wait_for_report()['has_tensorflow'])
      return
    parent.kill()
    parent.wait()
    self.assertTrue(program_testing.ends(server.pid, 5.0))
    # The kernel frees a lock that was on its way to a process a little later.
    deadline = time.monotonic() + 5.0
    while not _is_free(lock):
      self.assertLess(time.monotonic(), deadline)
      time.sleep(0.01)
    self.assertEmpty(self.log.read_text())

  @pytest.mark.slow
  def test_a_run_has_the_bits_and_files_of_a_python_of_its_own(self):
    arguments = (
        '--task=digits',
        '--client_optimizer=delta_sgd',
        '--total_rounds=3',
        f'--output_dir={self.folder}',
    )
    process = self._start(
        *arguments, '--experiment_name=fork', module='experiments.train'
    )
    self.assertEqual(process.wait(), 0, self.log.read_text())
    own = subprocess.run(
        [*running.TRAIN, *arguments, '--experiment_name=own'],
        capture_output=True,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(
            0, processes.available_cores()[:1]
        ),
    )
    self.assertEqual(own.returncode, 0, own.stderr)
    fork, other = (self.folder / name for name in ('fork', 'own'))
    self.assertEqual(_read_metrics(fork), _read_metrics(other))
    self.assertEqual(
        (fork / 'hparams.json').read_text(),
        (other / 'hparams.json').read_text(),
    )
    self.assertEqual(_list_files(fork), _list_files(other))


def _list_files(folder: pathlib.Path) -> list[str]:
  """Returns the names of all files below a folder, events by their folder."""
  return sorted(
      str(path.relative_to(folder)).partition('.tfevents')[0]
      for path in folder.rglob('*')
      if path.is_file()
  )

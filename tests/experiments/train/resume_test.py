# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a training that was killed ends with the bytes of another one.

The model drops units, the rate follows a schedule, weights are averaged or the
best ones kept.
"""

from collections.abc import Sequence
import json
import pathlib
import random
import resource
import signal
import subprocess
import sys
import time
from typing import Any, Optional
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
from sklearn import datasets

from experiments import command_line
from experiments.train import __main__ as train
from tests import folder_testing
from tests import program_testing
from tests.tff_adaptive import file_testing
from tests.tff_adaptive import kill_testing
from tff_adaptive.simulation import run_directory

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_KILLED = -signal.SIGKILL
_TIMEOUT_SECONDS = 300

_ROUNDS = (
    '--clients_per_round=4 --client_batch_size=16 --client_epochs=1 '
    '--total_rounds=8 --rounds_per_evaluation=3 --rounds_per_checkpoint=3 '
    '--checkpoints_to_keep=2'
)
_DROPOUT = (
    f'{_ROUNDS} --task=mnist --mnist_num_clients=12 '
    '--mnist_examples_per_client=20-40'
)
_FEDAVG = (
    f'{_DROPOUT} --client_optimizer=sgd --client_learning_rate=0.05 '
    '--client_schedule=step_decay --keep_best'
)
_DELTA_SGD = (
    f'{_DROPOUT} --client_optimizer=delta_sgd --client_schedule=inverse_sqrt '
    '--weights_average_decay=0.9'
)
_NATIVE = (
    f'{_ROUNDS} --task=digits --digits_num_clients=20 --runtime=native '
    '--client_schedule=inverse_sqrt --keep_best'
)
_FEDCADA = f'{_DROPOUT} --algorithm=fedcada --keep_best'
_SCAFFOLD = (
    f'{_DROPOUT} --algorithm=scaffold --client_learning_rate=0.05 '
    '--loss_term=moon --client_states_memory_mb=0'
)
_FEDDYN = (
    f'{_DROPOUT} --algorithm=feddyn --client_learning_rate=0.05 '
    '--drop_clients=0.2'
)
_PRODIGY = (
    f'{_DROPOUT} --client_optimizer=prodigy --prodigy_carry_state '
    '--prodigy_initial_distance=0.001'
)
_RAY = f'{_FEDCADA} --runtime=ray --ray_workers=2'


def _write_mnist(path):
  """Writes scikit-learn's digits, three times as large, as MNIST."""
  digits = datasets.load_digits()
  images = (digits.images * (255 / 16)).astype(np.uint8)
  images = np.kron(images, np.ones([1, 3, 3], np.uint8))
  images = np.pad(images, [(0, 0), (2, 2), (2, 2)])
  labels = digits.target.astype(np.uint8)
  np.savez(
      path,
      x_train=images[:600],
      y_train=labels[:600],
      x_test=images[600:700],
      y_test=labels[600:700],
  )


def _without_seconds(metrics_csv: bytes) -> list[bytes]:
  header, *rows = metrics_csv.splitlines()
  assert header.endswith(b',seconds'), header
  return [row.rpartition(b',')[0] for row in (header, *rows)]


def train_and_report(
    arguments: Sequence[str],
    folder: pathlib.Path,
    report: pathlib.Path,
    kill_at: int,
    max_file_size: Optional[int],
):
  """Runs the binary in this process, a fork, to its end or its death.

  The report begins with the training, and ends with the names of all instants.
  """
  if max_file_size is not None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_size, hard))
  original = run_directory.RunDirectory.open

  def report_and_open(*args, **kwargs):
    report.touch()
    return original(*args, **kwargs)

  sys.argv = ['train', *arguments]
  instants = kill_testing.Instants(folder, kill_at)
  with mock.patch.object(run_directory.RunDirectory, 'open', report_and_open):
    with instants.watched():
      command_line.run(train.main)
  report.write_text(json.dumps(instants.names))


class ResumeTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = folder_testing.new(cls)
    _write_mnist(cls.folder / 'mnist.npz')
    cls._whole: dict[str, Any] = {}

  def _arguments(self, name, case):
    return [
        *case.split(),
        f'--data_dir={self.folder}',
        f'--output_dir={self.folder}',
        f'--experiment_name={name}',
    ]

  def _train(
      self, name, case, *, kill_at=0, kill_after=None, max_file_size=None
  ):
    """Trains in a fork, with the flags of `case`.

    It is killed at an instant of `kill_testing.Instants`, or seconds after the
    training begins with its folder. Returns the exit code, the seconds since
    then, and the names of all instants if the training ended.
    """
    report = self.folder / 'report.json'
    report.unlink(missing_ok=True)
    program = program_testing.Program(
        train_and_report,
        self._arguments(name, case),
        self.folder / name,
        report,
        kill_at,
        max_file_size,
    )
    while not report.exists() and program.poll() is None:
      time.sleep(0.005)
    start = time.monotonic()
    if kill_after is not None:
      time.sleep(kill_after)
      program.kill()
    ended = program.wait()
    self._stderr = ended.stderr
    answer = {'code': ended.returncode, 'seconds': time.monotonic() - start}
    if answer['code'] == 0:
      answer['instants'] = json.loads(report.read_text())
    return answer

  def _finish(self, name, case):
    answer = self._train(name, case)
    self.assertEqual(answer['code'], 0, self._stderr)
    return answer

  def _contents(self, name):
    """Returns what must be equal: rows without seconds, and other files."""
    files = file_testing.read_files(self.folder / name)
    rows = _without_seconds(files.pop('metrics.csv'))
    return rows, {
        path: data
        for path, data in files.items()
        if not path.startswith('tensorboard/')
    }

  def _uninterrupted(self, case):
    """Trains once; returns the contents of the folder and the answer."""
    if case not in self._whole:
      name = f'whole_{len(self._whole)}'
      answer = self._finish(name, case)
      self._whole[case] = (self._contents(name), answer)
    return self._whole[case]

  def _assert_same(self, name, case):
    rows, files = self._contents(name)
    expected_rows, expected_files = self._uninterrupted(case)[0]
    self.assertEqual(rows, expected_rows)
    self.assertEqual(list(files), list(expected_files))
    for path, data in files.items():
      self.assertEqual(data, expected_files[path], path)

  def _kill_at_random(self, name, case, num_kills, seed):
    """Kills runs until enough were killed, restarting them until they end."""
    _, whole = self._uninterrupted(case)
    generator = random.Random(seed)
    num_killed = num_runs = 0
    while num_killed < num_kills:
      run = f'{name}_{num_runs}'
      num_runs += 1
      code = _KILLED
      while code == _KILLED and num_killed < num_kills:
        if generator.random() < 0.5:
          kill = {'kill_at': generator.randint(1, len(whole['instants']))}
        else:
          kill = {'kill_after': generator.uniform(0, whole['seconds'])}
        code = self._train(run, case, **kill)['code']
        self.assertIn(code, (0, _KILLED), self._stderr)
        num_killed += code == _KILLED
      if code == _KILLED:
        self._finish(run, case)
      self._assert_same(run, case)

  @pytest.mark.slow
  def test_fedavg_killed_with_a_damaged_checkpoint_and_a_full_disk(self):
    _, whole = self._uninterrupted(_FEDAVG)
    saved = {
        round_num: self.folder / f'fedavg/checkpoints/checkpoint_{round_num:08}'
        for round_num in (3, 6, 8)
    }
    # Killed while the last checkpoint is written.
    instant = 'before replace checkpoint_00000008.npz.tmp'
    kill_at = whole['instants'].index(instant) + 1
    answer = self._train('fedavg', _FEDAVG, kill_at=kill_at)
    self.assertEqual(answer['code'], _KILLED, self._stderr)
    self.assertLen(list(saved[8].parent.glob(f'{saved[8].name}.*.tmp')), 1)
    self.assertFalse(saved[8].with_suffix('.npz').exists())
    # The one before is damaged by others, and the disk is full.
    cut, good = (saved[i].with_suffix('.npz') for i in (6, 3))
    cut.write_bytes(cut.read_bytes()[:-1000])
    before = good.read_bytes()
    answer = self._train('fedavg', _FEDAVG, max_file_size=len(before) - 1)
    self.assertEqual(answer['code'], 1)
    stderr = self._stderr
    self.assertIn(f'Skipping the damaged checkpoint {cut}', stderr)
    self.assertEndsWith(
        stderr,
        f'\nerror: could not write {cut}: File too large; earlier '
        'checkpoints are kept.\n',
    )
    self.assertNotIn('Traceback', stderr)
    self.assertNotIn('ignored', stderr)
    self.assertEqual(good.read_bytes(), before)
    # Killed at some time.
    seconds = random.Random(1).uniform(0, 0.5 * whole['seconds'])
    case = f'{_FEDAVG} --checkpoints_to_keep=3'
    answer = self._train('fedavg', case, kill_after=seconds)
    self.assertEqual(answer['code'], _KILLED, self._stderr)
    self._finish('fedavg', _FEDAVG)
    self._assert_same('fedavg', _FEDAVG)
    self.assertLen(list(good.parent.glob('checkpoint_*')), 2)

  @pytest.mark.slow
  def test_delta_sgd_killed_as_a_process_of_its_own(self):
    metrics = self.folder / 'delta_sgd' / 'metrics.csv'
    with open(self.folder / 'process.txt', 'w+', encoding='utf-8') as output:
      process = subprocess.Popen(
          [
              sys.executable,
              '-m',
              'experiments.train',
              *self._arguments('delta_sgd', _DELTA_SGD),
          ],
          cwd=_ROOT,
          stdin=subprocess.DEVNULL,
          stdout=output,
          stderr=output,
      )
      deadline = time.monotonic() + _TIMEOUT_SECONDS
      # Beyond the first checkpoint.
      while not metrics.exists() or metrics.read_text().count('\n') < 6:
        if process.poll() is not None or time.monotonic() > deadline:
          output.seek(0)
          self.fail(output.read())
        time.sleep(0.005)
      process.kill()
      self.assertEqual(process.wait(), _KILLED)
    self._finish('delta_sgd', _DELTA_SGD)
    self._assert_same('delta_sgd', _DELTA_SGD)

  @parameterized.named_parameters(
      ('fedavg', _FEDAVG), ('delta_sgd', _DELTA_SGD)
  )
  @pytest.mark.slow
  def test_killed_at_random_instants(self, case):
    self._kill_at_random(self.id().rpartition('.')[2], case, 4, seed=7)

  @parameterized.named_parameters(
      ('fedcada', _FEDCADA),
      ('scaffold', _SCAFFOLD),
      ('feddyn', _FEDDYN),
      ('prodigy_kept', _PRODIGY),
  )
  @pytest.mark.slow
  def test_states_of_algorithms_survive_random_kills(self, case):
    self._kill_at_random(self.id().rpartition('.')[2], case, 3, seed=9)

  @pytest.mark.slow
  def test_driver_of_workers_killed_at_random_instants(self):
    self._kill_at_random('ray', _RAY, 2, seed=10)

  @pytest.mark.slow
  def test_native_runtime_killed_at_random_instants(self):
    self._kill_at_random('native', _NATIVE, 2, seed=8)

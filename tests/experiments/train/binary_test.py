# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the training binary: bad input, interruption, resume, repetition."""

import functools
import json
import os
import pathlib
import signal
import tempfile
import time
from unittest import mock

from absl.testing import parameterized
import numpy as np
import psutil
import pytest

from experiments.train import __main__ as train
from experiments.train import run_parts
from tests import folder_testing
from tests import program_testing
from tests.experiments import binary_testing
from tests.experiments import hparams_testing
from tests.experiments.train import trainer_testing
from tff_adaptive.simulation import training_loop

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_SMALL = (*hparams_testing.SMALL, '--rounds_per_evaluation=2')


def _call(*arguments):
  """Runs the binary in this process; returns its code, stdout and stderr."""
  return binary_testing.run_here(train.main, *arguments)


@functools.cache
def _process():
  run = hparams_testing.read(*_SMALL)
  return run_parts.build_process(*run, run_parts.build_task(*run))


class BadInputTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.output_dir = self.enter_context(tempfile.TemporaryDirectory())
    # Nothing here is to train, and determinism would stay for other tests.
    self.run_training = self.enter_context(
        mock.patch.object(training_loop, 'run_training')
    )
    self.enter_context(
        mock.patch('tensorflow.config.experimental.enable_op_determinism')
    )

  def _take_the_process(self):
    """Spares a test that needs no other process to build its own."""
    self.enter_context(
        mock.patch.object(run_parts, 'build_process', return_value=_process())
    )

  def _call(self, *arguments):
    return _call(f'--output_dir={self.output_dir}', *_SMALL, *arguments)

  def _assert_refused(self, result, sentence):
    code, _, err = result
    self.assertRegex(err, f'^error: .*{sentence}.*[.?]\n$')
    self.assertEqual(err.count('\n'), 1)
    self.assertEqual(code, 2)
    self.run_training.assert_not_called()

  @parameterized.named_parameters(
      ('too_many_clients', '--clients_per_round=21', '`clients_per_round`'),
      ('too_many_held_out', '--heldout_clients=20', 'heldout_clients must be'),
      ('alpha', '--digits_alpha=0', 'alpha'),
      (
          'scale',
          '--algorithm=fedli_ls --line_search_step_scale=mean',
          "'max', 'unit' or a number, found 'mean'",
      ),
      (
          'no_step_size',
          '--algorithm=fedli_ls --client_optimizer=adam',
          'has none that is common to all weights',
      ),
      ('no_representations', '--loss_term=moon', '--task=digits has none'),
  )
  def test_flags(self, arguments, sentence):
    self._assert_refused(self._call(*arguments.split()), sentence)

  @parameterized.parameters(
      (0, 'y', 3, 10, 'error', 'label 10 .*integers from 0 to 9'),
      (0, 'y', 3, 10, 'reject', 'label 10 .*integers from 0 to 9'),
      (
          0,
          'x',
          (3, 0, 0, 0),
          np.nan,
          'error',
          'nan in .*h --bad_clients=reject',
      ),
      (1, 'x', (0, 0, 0, 0), np.nan, 'reject', 'test set has nan'),
  )
  def test_bad_data(self, part, feature, place, value, policy, sentence):
    from tasks.images import digits_data

    parts = digits_data.load_digits()
    parts[part][feature][place] = value
    with mock.patch.object(digits_data, 'load_digits', return_value=parts):
      self._assert_refused(self._call(f'--bad_clients={policy}'), sentence)

  def test_empty_client(self):
    from tff_adaptive.data import partition

    self._take_the_process()
    original = partition.dirichlet_per_client

    def with_an_empty_client(*args):
      parts = original(*args)
      parts[next(iter(parts))] = np.zeros([0], np.int64)
      return parts

    with mock.patch.object(
        partition, 'dirichlet_per_client', with_an_empty_client
    ):
      self._assert_refused(self._call(), 'has no example.*--bad_clients=reje')
      self._call('--bad_clients=reject')
    self.run_training.assert_called_once()

  def test_folder_of_another_configuration(self):
    self._take_the_process()
    folder = pathlib.Path(self.output_dir) / 'run'
    self.run_training.side_effect = training_loop.TrainingInterrupted('Stop.')
    code, _, err = self._call('--experiment_name=run')
    self.assertEqual((code, err), (130, 'Stop.\n'))
    # Nothing was trained, so the folder takes any other run.
    self.assertFalse(folder.exists())
    with trainer_testing.interrupting(folder):
      self._call('--experiment_name=run')
    hparams = json.loads((folder / 'hparams.json').read_text())
    self.assertEqual(hparams['clients_per_round'], 3)
    self.assertEqual(hparams['delta_sgd_gamma'], 2.0)
    self.run_training.reset_mock()
    for flag, sentence in (
        ('--seed=1', 'seed=0, but seed=1'),
        ('--client_optimizer=sgd', 'client_optimizer="delta_sgd", but'),
        ('--drop_clients=0.1', 'drop_clients=nothing, but drop_clients=0.1'),
    ):
      self._assert_refused(self._call('--experiment_name=run', flag), sentence)

  def test_a_full_disk_is_one_sentence(self):
    self._take_the_process()
    self.run_training.side_effect = OSError('could not write x: disk full')
    code, _, err = self._call()
    self.assertEqual((code, err), (1, 'error: could not write x: disk full.\n'))

  def test_a_bug_of_a_library_is_no_error_of_the_user(self):
    with mock.patch(
        'tff_adaptive.optimizers.build_delta_sgd',
        side_effect=lambda: np.zeros(3).reshape(2),
    ):
      with self.assertRaisesRegex(ValueError, 'cannot reshape'):
        self._call()


class TrainTest(folder_testing.FolderTestCase):

  def _arguments(self, name):
    return (
        f'--output_dir={self.folder}',
        f'--experiment_name={name}',
        *_SMALL,
        '--total_rounds=12',
        '--rounds_per_checkpoint=5',
    )

  def _start(self, name):
    return program_testing.start('experiments.train', *self._arguments(name))

  def _rows(self, name):
    text = (self.folder / name / 'metrics.csv').read_text()
    return [line.rpartition(',')[0] for line in text.splitlines()]

  @pytest.mark.slow
  def test_trains_repeats_and_resumes_to_the_same_bytes(self):
    whole = self._start('whole').wait()
    self.assertEqual(whole.returncode, 0, whole.stderr)
    last = whole.stdout.splitlines()[-1]
    self.assertRegex(last, r'^test accuracy: [01]\.\d\d$')
    self.assertIn('round 12/12', whole.stderr)
    run = self.folder / 'whole'
    for name in ('hparams.json', 'plots/training.png', 'tensorboard'):
      self.assertTrue((run / name).exists(), name)
    rows = self._rows('whole')
    self.assertLen(rows, 13)
    self.assertStartsWith(rows[0], 'round_num,')

    csv = self.folder / 'cut' / 'metrics.csv'
    program = self._start('cut')
    while not csv.exists() or csv.read_text().count('\n') <= 3:
      if program.poll() is not None:
        self.fail(program.wait().stderr)
      time.sleep(0.02)
    children = psutil.Process(program.pid).children(recursive=True)
    os.kill(program.pid, signal.SIGINT)
    cut = program.wait()
    self.assertEqual(cut.returncode, 130, cut.stderr)
    self.assertRegex(
        cut.stderr,
        r'Interrupted after round \d+ of 12; run the same command again to '
        r'continue\.\n$',
    )
    self.assertNotIn('Traceback', cut.stderr)
    self.assertFalse([child for child in children if child.is_running()])

    again = self._start('cut').wait()
    self.assertEqual(again.returncode, 0, again.stderr)
    self.assertEqual(again.stdout.splitlines()[-1], last)
    self.assertEqual(self._rows('cut'), rows)

    with mock.patch('tensorflow.config.experimental.enable_op_determinism'):
      code, out, err = _call(*self._arguments('cut'))
    self.assertEqual((code, err), (0, ''))
    self.assertIn('already finished, with 12 rounds', out)
    self.assertEqual(out.splitlines()[-1], last)
    self.assertEqual(self._rows('cut'), rows)

  def test_presets_are_valid(self):
    presets = list((_ROOT / 'experiments' / 'presets').glob('*.flags'))
    self.assertNotEmpty(presets)
    for preset in presets:
      with self.subTest(preset.name):
        settings = hparams_testing.read_settings(
            f'--flagfile={preset}', '--data_dir=data'
        )
        self.assertEqual(settings.experiment_name, preset.stem)

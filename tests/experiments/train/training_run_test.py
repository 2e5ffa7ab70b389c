# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what watches a run, from the flags to the files."""

import contextlib
import gzip
import io
import json
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest

from experiments import command_line
from experiments.train import run_parts
from experiments.train import training_run
from tests import folder_testing
from tests.experiments import hparams_testing
from tests.experiments.train import trainer_testing
from tff_adaptive import _stack
from tff_adaptive.analysis import training_curve
from tff_adaptive.runtime import plans
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import run_directory
from tff_adaptive.simulation import trackers
from tff_adaptive.simulation import training_loop

_SMALL = (
    *hparams_testing.SMALL,
    '--total_rounds=4',
    '--rounds_per_evaluation=2',
    '--experiment_name=run',
)


def _read(*arguments):
  return hparams_testing.read(*_SMALL, *arguments)


class TrainerTest(folder_testing.FolderTestCase):

  def train(self, *arguments):
    """Trains; returns what was printed."""
    return trainer_testing.train_as_told(self.folder, *_SMALL, *arguments)[1]

  @pytest.mark.slow
  def test_a_watched_run_keeps_its_best_weights_and_their_average(self):
    arguments = (
        '--early_stopping_patience=1',
        '--keep_best',
        # Better is worse here, so that the second evaluation ends the run.
        '--monitored_metric=evaluation_average/accuracy',
        '--monitored_mode=min',
        '--weights_average_decay=0.5',
        '--total_rounds=20',
    )
    out = self.train(*arguments)
    run = self.folder / 'run'
    rows = folder_testing.read_rows(run / 'metrics.csv')
    self.assertLess(len(rows), 20)
    self.assertIn(
        f'Training stopped after round {len(rows)}: the monitored', out
    )
    values = [row['evaluation_average/accuracy'] for row in rows]
    self.assertEqual([bool(v) for v in values[:4]], [False, True] * 2)
    recorded = json.loads((run / 'hparams.json').read_text())
    self.assertEqual(recorded['early_stopping_patience'], 1)
    self.assertEqual(recorded['weights_average_decay'], 0.5)
    self.assertTrue(recorded['keep_best'])

    best = checkpoints.read_leaves(run / 'checkpoints/best.npz')
    value = float(best['value'])
    self.assertEqual(value, min(float(v) for v in values if v))
    self.assertEqual(values[int(best['round_num']) - 1], repr(value))
    self.assertTrue(np.all(np.isfinite(best['weights/trainable/0'])))
    self.assertRegex(
        out,
        rf'best round: {best["round_num"]}, with evaluation_average/accuracy '
        rf'{value:.4f}; test accuracy 0\.\d\d: {run}/checkpoints/best.npz\n',
    )

    # The same command again trains no more, and says the same.
    again = self.train(*arguments)
    self.assertIn(
        f'Training stopped after round {len(rows)}: the monitored', again
    )

  @pytest.mark.slow
  def test_seconds_are_told_and_a_round_is_profiled(self):
    out = self.train('--profile')
    self.assertRegex(
        out,
        r'(?m)^time of 4 rounds: \d+\.\d s; not clients and server: \d+\.\d % '
        r'\((\w+ \d+\.\d %(, |\)$)){4}',
    )
    path = self.folder / 'run' / 'profile.json.gz'
    self.assertIn(f'profile: {path}', out)
    with gzip.open(path, 'rt', encoding='utf-8') as file:
      names = [event['name'] for event in json.load(file)['traceEvents']]
    for part in ('input', 'rounds', 'metrics'):
      self.assertEqual(names.count(part), 1, part)
    self.assertGreater(len(names), 100)
    # Another run of the command trains and profiles nothing.
    self.assertNotIn('time of', self.train())

  @pytest.mark.slow
  def test_a_run_without_a_finite_loss_ends_with_its_test_accuracy(self):
    out = self.train(
        '--max_client_update_norm=1e-9',
        '--heldout_fraction=0.5',
        '--evaluations=per_client',
    )
    self.assertIn('curve: none, as no accuracy, loss or step size', out)
    self.assertRegex(out, r'(?m)^test accuracy: 0\.\d\d$')
    self.assertFalse((self.folder / 'run' / 'plots' / 'training.png').exists())

  def test_the_last_line_has_the_digits_of_a_small_loss(self):
    for test, line in (
        ({'loss': 3.14e-4}, 'test loss: 0.000314'),
        ({'loss': 3.14, 'accuracy': 0.05}, 'test accuracy: 0.05'),
    ):
      self.assertEqual(training_run._describe_test(test), line)

  def test_the_command_of_tensorboard_can_be_copied(self):
    directory = run_directory.RunDirectory(self.folder, 'a b')
    out = self.enter_context(contextlib.redirect_stdout(io.StringIO()))
    run = mock.Mock(
        directory=directory,
        choices=_read()[0],
        hparams={'evaluation_data': None},
    )
    result = training_loop.TrainingResult(None, 1, 0, {})
    with mock.patch.object(training_curve, 'plot_training_curve'):
      training_run._report(run, result)
    self.assertIn(f"--logdir '{directory.tensorboard}'\n", out.getvalue())

  def test_the_cores_of_this_process_are_not_those_of_workers(self):
    choices, _ = _read('--runtime=ray', '--ray_workers=1')
    with contextlib.redirect_stdout(io.StringIO()) as out:
      training_run._print_plan(choices)
    self.assertEqual(out.getvalue(), "clients' work: CPU:0 of Ray's workers\n")

  @pytest.mark.slow
  def test_the_device_is_recorded_and_the_number_of_cores_is_not(self):
    run = self.folder / 'run'
    out = self.train()
    self.assertIn(f"clients' work: CPU:0, {plans.num_cores()} at once\n", out)
    recorded = json.loads((run / 'hparams.json').read_text())
    self.assertIsNone(recorded['num_parallel_clients'])
    self.assertEqual(recorded['devices'], 'CPU:0')
    # Another machine has more cores.
    with mock.patch.object(plans, 'num_cores', return_value=7):
      out = self.train('--total_rounds=6', '--devices=cpu')
    self.assertIn("clients' work: CPU:0, 7 at once\n", out)
    resumed = json.loads((run / 'hparams.json').read_text())
    self.assertEqual(resumed, {**recorded, 'total_rounds': 6})
    devices = [
        row['device'] for row in folder_testing.read_rows(run / 'metrics.csv')
    ]
    self.assertEqual(devices, ['CPU:0'] * 6)

  def test_a_value_of_another_version_is_named(self):
    folder = self.folder / 'run'
    folder.mkdir()
    recorded = {'runtime': 'gone'}
    (folder / 'hparams.json').write_text(json.dumps(recorded))
    with self.assertRaisesRegex(
        command_line.UserError,
        'begun with another version .*--runtime=gone names no runtime',
    ):
      self.train()

  @pytest.mark.slow
  def test_another_number_of_clients_at_once_is_refused(self):
    self.train('--num_parallel_clients=1', '--total_rounds=1')
    self.train('--total_rounds=2')
    with self.assertRaisesRegex(
        command_line.UserError, 'num_parallel_clients=1'
    ):
      self.train('--num_parallel_clients=2', '--total_rounds=3')

  def test_an_unknown_metric_is_one_sentence_before_the_first_round(self):
    with self.assertRaisesRegex(
        command_line.UserError,
        "^there is no metric 'evaluation/acc' to monitor; there are "
        'evaluation/loss, evaluation/accuracy$',
    ):
      self.train('--keep_best', '--monitored_metric=evaluation/acc')
    self.assertFalse((self.folder / 'run').exists())

  def test_trackers_are_told_the_rounds_and_some_checkpoints_are_kept(self):
    with (
        mock.patch.object(_stack, 'check_installed'),
        mock.patch.object(trackers, 'MLflowWriter', autospec=True) as mlflow,
        mock.patch.object(trackers, 'WandbWriter', autospec=True) as wandb,
    ):
      self.train(
          *('--mlflow', '--wandb'),
          *('--rounds_per_checkpoint=1', '--checkpoints_to_keep=2'),
      )
    run = self.folder / 'run'
    self.assertLen(list(run.glob('checkpoints/checkpoint_*.npz')), 2)
    rows = folder_testing.read_rows(run / 'metrics.csv')
    for build in (mlflow, wandb):
      (path, values, name), _ = build.call_args
      self.assertEqual((path, name), (run, 'run'))
      self.assertEqual(values['task'], 'digits')
      writer = build.return_value
      writer.resume.assert_called_once_with(0)
      told = [call.args[0] for call in writer.write.call_args_list]
      self.assertEqual(told, [int(row['round_num']) for row in rows])
      writer.close.assert_called_once_with()

  @pytest.mark.slow
  def test_more_rounds_are_refused_where_a_schedule_uses_their_number(self):
    for schedule in ('step_decay', 'constant'):
      # Nothing is to train: the loop is not what is tested.
      with trainer_testing.interrupting(self.folder / schedule):
        arguments = (
            f'--client_schedule={schedule}',
            f'--experiment_name={schedule}',
        )
        with self.assertRaises(training_loop.TrainingInterrupted):
          self.train(*arguments)
        expected = (
            training_loop.TrainingInterrupted
            if schedule == 'constant'
            else command_line.UserError
        )
        with self.assertRaisesRegex(
            expected, 'Stop|client_schedule="step_decay" the finished rounds'
        ):
          self.train(*arguments, '--total_rounds=8')

  @parameterized.parameters(
      ('--algorithm=fedli_ls', ['server_step_size', 'clients/backtracks_mean']),
      ('--algorithm=fedli_lu', ['gamma', 'objective']),
      ('--server_optimizer=fedexp', ['server_step_size']),
  )
  @pytest.mark.slow
  def test_what_the_server_step_was_is_in_the_metrics(self, choice, columns):
    self.train('--total_rounds=1', choice)
    path = self.folder / 'run' / 'metrics.csv'
    (row,) = folder_testing.read_rows(path)
    for column in columns:
      self.assertGreaterEqual(float(row[column]), 0.0, column)

  @pytest.mark.slow
  def test_fedli_lu_trains_with_the_hinge_loss(self):
    flags = (
        '--total_rounds=1',
        '--algorithm=fedli_lu',
        '--client_optimizer=sgd',
        '--client_learning_rate=1e-9',
        '--digits_loss=multiclass_hinge',
    )
    self.train(*flags)
    path = self.folder / 'run' / 'metrics.csv'
    (row,) = folder_testing.read_rows(path)
    # With this rate the model is still the one that it began with.
    choices, settings = _read(*flags)
    test = run_parts.build_task(choices, settings).central_test
    model = choices['task'].build_keras_model(settings.seed)
    scores = model.predict(test['x'], verbose=0)
    label = np.arange(len(scores)), test['y']
    rivals = scores + 1.0
    rivals[label] -= 1.0
    expected = np.mean(rivals.max(axis=1) - scores[label])
    self.assertAlmostEqual(float(row['evaluation/loss']), expected, places=4)
    self.assertGreater(float(row['objective']), 0.0)

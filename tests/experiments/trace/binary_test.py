# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of tracing a round of a run, from its files."""

import collections
import contextlib
import io
import json
import pathlib
import shutil
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest

from experiments import command_line
from experiments.trace import __main__ as trace
from experiments.trace import retraining
from experiments.trace import views
from tests import folder_testing
from tests.experiments import binary_testing
from tests.experiments.train import trainer_testing
from tests.tff_adaptive import file_testing
from tff_adaptive.simulation import checkpoints


def _call(*arguments):
  # It would stay for other tests.
  with mock.patch('tensorflow.config.experimental.enable_op_determinism'):
    return binary_testing.call(trace, *arguments)


class TraceTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.run_dir = self.folder / 'run'
    shutil.copytree(trainer_testing.shared_run()[0], self.run_dir)

  def _train_another(self, *arguments):
    """Trains a run beside that of the class, which tests then look at."""
    trainer_testing.train(self.folder, '--experiment_name=other', *arguments)
    self.run_dir = self.folder / 'other'

  def _drop_checkpoints(self, *round_nums):
    for round_num in round_nums:
      self._checkpoint(round_num).unlink()

  def _checkpoint(self, round_num):
    return self.run_dir / 'checkpoints' / f'checkpoint_{round_num:08d}.npz'

  def _assert_refused(self, sentence, *arguments, round_num=3):
    with self.assertRaisesRegex(command_line.UserError, sentence) as caught:
      _call(f'--run={self.run_dir}', f'--round={round_num}', *arguments)
    self.assertNotIn('\n', str(caught.exception))

  def test_a_checkpoint_that_cannot_be_opened_is_not_compared(self):
    with (
        mock.patch.object(
            checkpoints, 'read_leaves', side_effect=PermissionError
        ),
        contextlib.redirect_stdout(io.StringIO()) as out,
    ):
      views._compare(mock.Mock(), 1, pathlib.Path('checkpoint'))
    self.assertEqual(out.getvalue(), '')

  @parameterized.parameters(
      (0.0, 'equal'), (0.5, 'differ by at most 0.5 from'), (np.nan, 'most nan')
  )
  def test_the_largest_difference_is_told(self, difference, verdict):
    weights = collections.OrderedDict(a=np.zeros(2), b=np.zeros(1))
    leaves = {
        'process/global_model_weights/a': np.zeros(2),
        'process/global_model_weights/b': np.full(1, difference),
    }
    found = mock.Mock()
    found.state.global_model_weights = weights
    with (
        mock.patch.object(checkpoints, 'read_leaves', return_value=leaves),
        contextlib.redirect_stdout(io.StringIO()) as out,
    ):
      views._compare(found, 1, pathlib.Path('checkpoint'))
    self.assertIn(f' {verdict} ', out.getvalue())

  def test_the_last_round_is_that_of_the_run(self):
    before = file_testing.read_files(self.run_dir)
    out = _call(f'--run={self.run_dir}', '--round=3')
    self.assertStartsWith(out, 'round 3\n')
    self.assertIn(
        'The weights after round 3 equal those of ' f'{self._checkpoint(3)}.\n',
        out,
    )
    row = folder_testing.read_rows(self.run_dir / 'metrics.csv')[2]
    steps = folder_testing.read_rows(self.run_dir / 'plots' / 'trace_0003.csv')
    self.assertLen(steps, int(row['clients/num_steps']))
    self.assertLen({step['client_id'] for step in steps}, 3)
    for name in ('step_size', 'theta', 'growth_limit', 'smoothness_limit'):
      values = [float(step[name]) for step in steps]
      np.testing.assert_allclose(
          float(row[f'clients/{name}_mean']), np.mean(values), 1e-5
      )
      np.testing.assert_allclose(
          float(row[f'clients/{name}_max']), np.max(values), 1e-6
      )
    # A line a client, below their header.
    header = next(line for line in out.splitlines() if 'mean loss' in line)
    self.assertStartsWith(header, 'client')
    for step in steps:
      self.assertRegex(out, rf'(?m)^{step["client_id"]} +\d')
    after = file_testing.read_files(self.run_dir)
    self.assertCountEqual(
        set(after) - set(before),
        [f'plots/{name}' for name in ('trace_0003.csv', 'trace_0003.png')],
    )
    self.assertEqual({name: after[name] for name in before}, before)

  @pytest.mark.slow
  def test_the_first_round_and_the_start_need_no_checkpoint(self):
    out = _call(f'--run={self.run_dir}', '--round=1')
    self.assertStartsWith(out, 'round 1\n')
    self.assertIn('equal those of', out)
    self._drop_checkpoints(1, 2)
    self._assert_refused(
        'run has no valid checkpoint before round 3, only those of rounds 3; '
        '--from_start trains from the first round$'
    )
    out = _call(f'--run={self.run_dir}', '--round=3', '--from_start')
    self.assertStartsWith(out, 'round 3, retrained from round 1\n')
    self.assertIn('equal those of', out)

  def test_initial_weights_that_were_moved_are_named(self):
    path = self.run_dir / 'hparams.json'
    recorded = json.loads(path.read_text())
    recorded['initial_weights'] = '/gone.npz'
    path.write_text(json.dumps(recorded))
    self._assert_refused(
        '^the first round starts from /gone.npz, which must be there as it was',
        round_num=1,
    )

  @pytest.mark.slow
  def test_rates_that_are_tuned_while_training_are_tuned_again(self):
    self._train_another(
        '--client_optimizer=sgd',
        '--server_optimizer=fedadam',
        '--tune_rates=hypergradient',
        '--total_rounds=3',
    )
    out = _call(f'--run={self.run_dir}', '--round=3')
    self.assertIn('equal those of', out)
    self._drop_checkpoints(2)
    out = _call(f'--run={self.run_dir}', '--round=3')
    self.assertStartsWith(out, 'round 3, retrained from round 2\n')
    self.assertIn('equal those of', out)

  @pytest.mark.slow
  def test_a_damaged_checkpoint_is_passed_over(self):
    self._checkpoint(2).write_bytes(b'damaged')
    out = _call(f'--run={self.run_dir}', '--round=3')
    self.assertStartsWith(out, 'round 3, retrained from round 2\n')
    self.assertIn('equal those of', out)

  @parameterized.parameters('--algorithm=scaffold', '--delta_sgd_carry_state')
  @pytest.mark.slow
  def test_states_of_clients_are_brought_back_and_stay(self, choice):
    self._train_another(choice, '--digits_num_clients=4', '--total_rounds=4')
    # Trained again, round 3 replaces states that round 4 of the run needs.
    self._drop_checkpoints(3)
    states = file_testing.read_files(self.run_dir / 'client_states')
    self.assertNotEmpty(states)
    out = _call(f'--run={self.run_dir}', '--round=4')
    self.assertIn('retrained from round 3', out)
    self.assertIn('equal those of', out)
    self.assertEqual(
        file_testing.read_files(self.run_dir / 'client_states'), states
    )

  def test_clients_that_keep_nothing_cannot_be_compared(self):
    self._assert_refused(
        '/run keep no state for --cka to compare, and send only the model '
        'update; train with',
        '--cka',
    )
    self.assertFalse((self.run_dir / 'plots' / 'cka.png').exists())

  @pytest.mark.slow
  def test_moments_that_clients_keep_are_plotted(self):
    self._train_another(
        '--algorithm=fedcada',
        '--client_optimizer=fedcada_adam',
        '--fedcada_adam_carry_state',
        '--digits_num_clients=4',
        '--total_rounds=3',
    )
    before = file_testing.read_files(self.run_dir)
    out = _call(f'--run={self.run_dir}', '--round=3', '--cka')
    self.assertRegex(
        out,
        r'^round 3: linear CKA of 4 clients, mean over pairs 0\.\d{4}, from '
        rf'0\.\d{{4}} to 0\.\d{{4}}\npicture: {self.run_dir}/plots/cka.png\n$',
    )
    after = file_testing.read_files(self.run_dir)
    self.assertCountEqual(set(after) - set(before), ['plots/cka.png'])
    self.assertEqual({name: after[name] for name in before}, before)
    chosen = ('--cka', '--cka_part=first_moment', '--cka_clients=2')
    found = _call(f'--run={self.run_dir}', '--round=3', *chosen)
    self.assertIn('linear CKA of 2 clients', found)
    self._assert_refused(
        '^--cka_part must be one of first_moment, .*found .third.$',
        '--cka',
        '--cka_part=third',
        round_num=3,
    )
    # Trained again, clients keep the same.
    self._drop_checkpoints(3)
    again = _call(f'--run={self.run_dir}', '--round=3', '--cka')
    self.assertEqual(again, out)

  @pytest.mark.slow
  def test_moments_that_clients_send_are_plotted(self):
    self._train_another(
        '--algorithm=fedcada', '--digits_num_clients=5', '--total_rounds=3'
    )
    before = file_testing.read_files(self.run_dir)
    chosen = ('--cka', '--cka_part=first_moment')
    out = _call(f'--run={self.run_dir}', '--round=3', *chosen)
    # Three of the five clients of this round.
    self.assertStartsWith(out, 'round 3: linear CKA of 3 clients, mean over ')
    after = file_testing.read_files(self.run_dir)
    self.assertCountEqual(set(after) - set(before), ['plots/cka.png'])
    # The round is trained again, from whatever checkpoint there is.
    self._drop_checkpoints(2, 3)
    self.assertEqual(_call(f'--run={self.run_dir}', '--round=3', *chosen), out)

  @pytest.mark.slow
  def test_the_server_averages_what_is_sent(self):
    self._train_another('--algorithm=fedcada')
    # It would stay for other tests.
    self.enter_context(
        mock.patch('tensorflow.config.experimental.enable_op_determinism')
    )
    opened = retraining.open_run(self.run_dir, 2, None, keep_sent=True)
    with opened as (_, replay):
      self.assertTrue(replay.keeps_sent)
      replay.train_until(2, from_start=False)
      states = dict(replay.kept_states())
      shared = replay.state.client_work['shared']
    self.assertLen(states, 3)
    for name, averaged in shared.items():
      sent = [state['optimizer'][name] for state in states.values()]
      for leaves in zip(averaged, *sent):
        np.testing.assert_allclose(
            leaves[0], np.mean(leaves[1:], axis=0), rtol=1e-5, atol=1e-8
        )

  @parameterized.parameters('--cka_part=first_moment', '--cka_clients=3')
  def test_flags_of_the_similarity_need_it(self, argument):
    self._assert_refused('^--cka_(part|clients) needs --cka$', argument)

  def test_rounds_that_are_not_there(self):
    self._assert_refused(
        r'^--round=4 is beyond the 3 finished rounds of .*/run$', round_num=4
    )
    (self.run_dir / 'metrics.csv').unlink()
    self._assert_refused(
        r'^--round=1 is beyond the 0 finished rounds of .*/run$', round_num=1
    )

  def test_runs_that_are_not_known(self):
    recorded = json.loads((self.run_dir / 'hparams.json').read_text())
    for changes, sentence in (
        (
            {'task': 'digit'},
            r'describes a run unknown to this version .*\(--task=',
        ),
        ({'task': 'mnist'}, 'the task of the run, mnist, needs --data_dir'),
    ):
      (self.run_dir / 'hparams.json').write_text(
          json.dumps({**recorded, **changes})
      )
      self._assert_refused(sentence)
    (self.run_dir / 'hparams.json').write_text('{')
    self._assert_refused(r'hparams.json is damaged \(.*\); restore it')
    (self.run_dir / 'hparams.json').unlink()
    self._assert_refused('is not the folder of a run: it has no hparams.json')

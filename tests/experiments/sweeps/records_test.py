# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Tests of what counts as finished."""

import json
import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized

from experiments import command_line
from experiments.run_results import agreement
from experiments.sweeps import records
from tests.experiments.sweeps import sweep_testing


class RecordsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.output_dir = pathlib.Path(
        self.enter_context(tempfile.TemporaryDirectory())
    )

  def _trial(self, **given):
    given = {'total_rounds': '3', **given}
    (trial,) = sweep_testing.build_trials(self.output_dir, ('0.1',), **given)
    return trial

  def _write(self, trial, num_rounds=3, **hparams):
    """Writes what a run has left."""
    trial.folder.mkdir(parents=True, exist_ok=True)
    found = {
        **agreement.of_arguments(trial.arguments).values,
        'total_rounds': 3,
        **hparams,
    }
    (trial.folder / 'hparams.json').write_text(json.dumps(found))
    rows = [f'{n},0.5\n' for n in range(1, num_rounds + 1)]
    for name in ('checkpoints', 'plots'):
      (trial.folder / name).mkdir(exist_ok=True)
    (trial.folder / 'plots' / 'training.png').touch()
    (trial.folder / 'metrics.csv').write_text(
        'round_num,train/accuracy\n' + ''.join(rows)
    )

  def _is_finished(self, trial):
    return records.Record(trial.home).is_finished(trial)

  def test_nothing_is_not_finished(self):
    self.assertFalse(self._is_finished(self._trial()))

  @parameterized.parameters((3, True), (2, False), (0, False))
  def test_files_tell_without_a_record(self, num_rounds, expected):
    trial = self._trial()
    self._write(trial, num_rounds)
    self.assertEqual(self._is_finished(trial), expected)

  @parameterized.parameters(True, False)
  def test_a_run_that_was_killed_as_it_drew_is_not_finished(self, was_drawing):
    trial = self._trial()
    self._write(trial)
    picture = trial.folder / 'plots' / 'training.png'
    if was_drawing:
      picture.with_name('training.png.tmp').touch()
    else:
      picture.unlink()
    self.assertFalse(self._is_finished(trial))

  @parameterized.named_parameters(
      ('other_rate', {}, {'client_learning_rate': 0.2}),
      ('more_rounds', {'total_rounds': '5'}, {}),
      (
          'no_early_stopping',
          {'early_stopping_patience': '1'},
          {'early_stopping_patience': None},
      ),
      # What the flags leave open is the default, and not what the run had.
      ('fewer_clients', {}, {'num_clients': 5}),
      ('smaller_cohort', {}, {'clients_per_round': 2}),
      ('other_argument', {}, {'sgd_momentum': 0.9}),
      ('final_evaluation', {'final_evaluations': 'central'}, {}),
  )
  def test_files_of_other_flags_are_not_finished(self, given, hparams):
    trial = self._trial(**given)
    self._write(trial, **hparams)
    self.assertFalse(self._is_finished(trial))

  def test_a_record_tells_of_early_stopping(self):
    trial = self._trial(early_stopping_patience='1')
    self._write(trial, num_rounds=2)
    self.assertFalse(self._is_finished(trial))
    records.Record(trial.home).add(trial)
    self.assertTrue(self._is_finished(trial))

  def test_a_record_of_other_flags_does_not_count(self):
    trial = self._trial()
    self._write(trial)
    records.Record(trial.home).add(trial)
    self.assertTrue(self._is_finished(self._trial(data_dir='elsewhere')))
    # The default before, which the files cannot tell from a value.
    self.assertFalse(self._is_finished(self._trial(clients_per_round='10')))

  @parameterized.parameters({}, {'total_rounds': '3'})
  def test_a_run_that_goes_on_to_more_rounds_is_not_finished(self, **given):
    (trial,) = sweep_testing.build_trials(self.output_dir, ('0.1',), **given)
    records.Record(trial.home).add(trial)
    rounds = agreement.of_arguments(trial.arguments).values['total_rounds']
    self._write(trial, total_rounds=rounds)
    self.assertTrue(self._is_finished(trial))
    self._write(trial, num_rounds=4, total_rounds=2 * rounds)
    self.assertFalse(self._is_finished(trial))

  def test_a_record_without_a_folder_does_not_count(self):
    trial = self._trial()
    records.Record(trial.home).add(trial)
    self.assertFalse(self._is_finished(trial))

  def test_a_damaged_record_is_one_sentence(self):
    trial = self._trial()
    records.Record(trial.home).add(trial)
    (trial.home / 'sweep.json').write_text('{')
    with self.assertRaisesRegex(
        command_line.UserError, 'sweep.json is damaged'
    ):
      records.Record(trial.home)


if __name__ == '__main__':
  absltest.main()

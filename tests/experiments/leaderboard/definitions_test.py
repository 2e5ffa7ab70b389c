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
"""Tests of what is compared, and of its data file."""

import pathlib
import tempfile

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized
import yaml

from experiments import registry
from experiments.leaderboard import definitions
from experiments.leaderboard import plans

_BOARD = definitions.load()
_TASK = {'num_seeds': 2, 'target': 90, 'margin': 1}
_RAW = {
    'total_rounds': 4,
    'rounds_per_evaluation': 2,
    'selection_rounds': 2,
    'num_trials': 2,
    'search_seed': 0,
    'tuning_seed': 100,
    'seconds_per_start': 1,
    'tasks': {'digits': _TASK},
    'excluded': {'emnist_ae': 'it has errors'},
    'default_methods': ['FedAvg'],
    'ranges': {'rate': {'flag': 'a', 'values': 'uniform(0,1)', 'reason': 'b'}},
    'methods': {'FedAvg': {'flags': [], 'search': ['rate']}},
}


class DefinitionsTest(parameterized.TestCase):

  def _load(self, **changes):
    folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
    path = folder / 'board.yaml'
    path.write_text(yaml.safe_dump({**_RAW, **changes}), encoding='utf-8')
    return definitions.load(path)

  def test_reads_a_file(self):
    board = self._load()
    self.assertEqual(board.protocol.tuning_seed, 100)
    self.assertEqual(board.tasks['digits'].seeds, range(2))
    self.assertEqual(board.methods['FedAvg'].search[0].text, 'a=uniform(0,1)')

  @parameterized.named_parameters(
      ('key', {'rounds': 1}, "board.yaml takes .* found 'rounds'"),
      (
          'task',
          {'tasks': {'digit': _TASK}},
          "a task is one of .* found 'digit'",
      ),
      (
          'task_without_margin',
          {'tasks': {'digits': {'num_seeds': 2, 'target': 90}}},
          "task digits needs 'margin'",
      ),
      (
          'tuning_seed',
          {'tuning_seed': 1},
          'none of the final seeds, but task digits has 1 among them',
      ),
      (
          'range',
          {'methods': {'FedAvg': {'flags': [], 'search': ['rates']}}},
          "method FedAvg: search is one of .*, rate, found 'rates'",
      ),
      (
          'excluded',
          {'excluded': {'digits': 'it is small'}},
          "an excluded task is one of .* found 'digits'",
      ),
      (
          'default',
          {'default_methods': ['FedAvgM']},
          "default_methods is one of FedAvg, .*, found 'FedAvgM'",
      ),
  )
  def test_bad_files_are_refused(self, changes, sentence):
    with self.assertRaisesRegex(definitions.Error, sentence):
      self._load(**changes)

  def test_rule_without_an_entry_is_tuned_around_its_defaults(self):
    methods = self._load().methods
    self.assertEqual(
        [item.text for item in methods['fedyogi'].search],
        [
            'client_learning_rate=log_uniform(0.01,1)',
            'server_learning_rate=log_uniform(0.01,1)',
        ],
    )
    self.assertEqual(
        methods['fedprox'].flags,
        ('--client_optimizer=sgd', '--loss_term=fedprox'),
    )
    self.assertEqual(
        [item.flag for item in methods['fedprox'].search],
        ['client_learning_rate', 'fedprox_mu'],
    )
    (searched,) = methods['sps'].search
    self.assertEqual(searched.text, 'sps_c=log_uniform(0.05,5)')
    self.assertEqual(
        searched.reason, 'a decade to each side of the default 0.5'
    )

  def test_restricts(self):
    board = _BOARD.restrict(tasks=['mnist'], num_seeds=7, total_rounds=None)
    self.assertEqual(list(board.tasks), ['mnist'])
    self.assertEqual(board.tasks['mnist'].num_seeds, 7)
    self.assertEqual(tuple(board.methods), _BOARD.default_methods)
    self.assertEqual(board.protocol, _BOARD.protocol)
    everything = _BOARD.restrict(methods=['all'])
    self.assertLen(everything.methods, len(_BOARD.methods))

  @parameterized.named_parameters(
      ('task', {'tasks': ['mnis']}, '--tasks=mnis .* did you mean mnist'),
      ('method', {'methods': ['FedAvgg']}, '--methods=FedAvgg .* mean FedAvg'),
  )
  def test_unknown_names_are_refused(self, names, sentence):
    with self.assertRaisesRegex(flags.Error, sentence):
      _BOARD.restrict(**names)

  def test_an_excluded_task_is_refused_with_the_reason(self):
    with self.assertRaisesRegex(
        flags.Error, '--tasks=emnist_ae is not on .*: it has errors'
    ):
      self._load().restrict(tasks=['digits', 'emnist_ae'])

  def test_every_task_is_compared_or_excluded(self):
    self.assertCountEqual(
        [*_BOARD.tasks, *_BOARD.excluded], registry.ROWS[registry.TASK]
    )

  def test_protocol_is_the_announced_one(self):
    self.assertEqual(_BOARD.protocol.total_rounds, 100)
    self.assertEqual(_BOARD.protocol.num_trials, 6)
    self.assertLen(_BOARD.default_methods, 10)
    self.assertEqual(_BOARD.tasks['digits'].num_seeds, 5)
    self.assertEqual(_BOARD.tasks['mnist'].num_seeds, 3)

  def test_every_trial_of_every_method_on_every_task_fits(self):
    plan = plans.Plan(_BOARD, 'runs', 'data')
    for task, method in plan.pairs:
      trials = plan.tuning(task, method)
      self.assertLessEqual(len(trials), 6)
      self.assertGreaterEqual(len(trials), 6 if task == 'digits' else 2)
      self.assertEqual({trial.hparams['task'] for trial in trials}, {task})

  def test_every_row_of_the_registry_is_compared(self):
    plan = plans.Plan(_BOARD, 'runs', 'data')
    used = {
        (kind, plan.tuning('digits', method)[0].hparams[kind])
        for method in _BOARD.methods
        for kind in (
            registry.ALGORITHM,
            registry.CLIENT_OPTIMIZER,
            registry.SERVER_OPTIMIZER,
            registry.LOSS_TERM,
        )
    }
    rows = {
        (kind, name)
        for kind in dict(used)
        for name in registry.ROWS[kind]
        if name != 'centralized'  # It has no clients, and so is no rival.
    }
    self.assertEqual(used, rows)


if __name__ == '__main__':
  absltest.main()

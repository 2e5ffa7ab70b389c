# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `experiments.train --compare`."""

import contextlib
import io
import json
from unittest import mock

from absl.testing import parameterized
import pytest

from experiments import command_line
from experiments import hparams
from experiments import published
from experiments import registry
from experiments.sweep import running
from experiments.train import __main__ as train
from experiments.train import compare
from tests import folder_testing
from tests import program_testing
from tests.experiments import binary_testing
from tests.experiments import hparams_testing
from tests.experiments.sweep import sweep_testing

_SMALL = (
    *hparams_testing.SMALL,
    '--total_rounds=3',
    '--rounds_per_evaluation=1',
)


class MethodsTest(parameterized.TestCase):

  @parameterized.parameters(
      (
          'fedadam',
          'FedAdam',
          '--client_optimizer=sgd --server_optimizer=fedadam',
      ),
      ('delta_sgd', 'Delta-SGD', '--client_optimizer=delta_sgd'),
      ('Delta-SGD', 'Delta-SGD', '--client_optimizer=delta_sgd'),
      ('scaffold', 'SCAFFOLD', '--algorithm=scaffold'),
      ('prodigy', 'Prodigy', '--client_optimizer=prodigy'),
      ('sgd', 'sgd', '--client_optimizer=sgd'),
      ('centralized', 'centralized', '--algorithm=centralized'),
  )
  def test_names_stand_for_flags(self, name, shown, of_method):
    (method,) = compare.find_methods([name])
    self.assertEqual(method.name, shown)
    self.assertEqual(' '.join(method.flags), of_method)

  def test_a_method_is_compared_once(self):
    methods = compare.find_methods(['delta_sgd', 'FedAvg', 'Delta-SGD'])
    self.assertEqual([m.name for m in methods], ['Delta-SGD', 'FedAvg'])

  def test_every_algorithm_and_optimizer_has_a_name(self):
    names = [
        name
        for kind in (registry.ALGORITHM, *registry.RULES)
        for name, row in registry.ROWS[kind].items()
        # Rules of one algorithm go by its name.
        if row.builder and name not in registry.FIXED
    ]
    methods = compare.find_methods(names)
    self.assertLen(methods, len(names))
    for method in methods:
      published.parse_flags(method.flags)  # Raises for an unknown flag.


class EntriesTest(folder_testing.FolderTestCase):
  """Tests of methods with labels and with files of flags."""

  def _write(self, *lines, name='rates/best.flags'):
    path = self.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('# A comment.\n' + '\n'.join(lines) + '\n')
    return path

  def test_a_file_gives_a_method_its_flags(self):
    path = self._write('--client_learning_rate=0.5', '--client_epochs=2')
    tuned, plain = compare.find_methods([f'fedavg:{path}', 'fedavg'])
    self.assertEqual((tuned.name, plain.name), ('FedAvg (rates)', 'FedAvg'))
    self.assertEqual(
        tuned.flags,
        (*plain.flags, '--client_learning_rate=0.5', '--client_epochs=2'),
    )

  @parameterized.parameters('--fedavgm_nesterov', '--fedavgm_nesterov=true')
  def test_a_file_may_repeat_a_flag_of_its_method(self, line):
    path = self._write(line, '--client_learning_rate=0.5')
    tuned, plain = compare.find_methods(
        [f'fedavgm_nesterov:{path}', 'fedavgm_nesterov']
    )
    self.assertEqual(tuned.flags, (*plain.flags, '--client_learning_rate=0.5'))

  def test_a_file_alone_is_a_whole_method(self):
    path = self._write(
        '--client_optimizer=adam', '--client_learning_rate=0.5', name='a.flags'
    )
    (method,) = compare.find_methods([str(path)])
    self.assertEqual(method.name, 'a')
    self.assertEqual(
        method.flags, ('--client_optimizer=adam', '--client_learning_rate=0.5')
    )

  @parameterized.parameters(
      ('Ours=delta_sgd', 'Ours'), ('FedAvg, 5 % = fedavg', 'FedAvg, 5 %')
  )
  def test_a_label_is_the_name(self, entry, name):
    (method,) = compare.find_methods([entry])
    self.assertEqual(method.name, name)

  @parameterized.parameters(
      *(
          ('fedavg:FILE', line, f'sets {line}, which is the same for all')
          for line in ('--total_rounds=5', '--digits_alpha=1.0', '--seed=2')
      ),
      ('fedavg:FILE', '--client_optimizer=adam', '=sgd, but the file .*=adam$'),
      (
          'fedavgm_nesterov:FILE',
          '--nofedavgm_nesterov',
          'is --fedavgm_nesterov, but the file sets --nofedavgm_nesterov$',
      ),
      ('fedavg:FILE', '--nofedavgm_nesterov=1', 'does not take an argument$'),
      ('fedavg:no.flags', '', '=no.flags: there is no such file; give one '),
      ('FedAvg=fedavg:FILE fedavg', '', 'named FedAvg; .* LABEL=fedavg$'),
      ('方=sgd 法=adam', '', 'named 方 and 法, both in the folder _; .*=adam$'),
      ('fedavg fedadm', '', 'mean fedadam.* methods are fedavg, .*prodigy'),
  )
  def test_methods_that_cannot_be_compared(self, entries, line, named):
    path = self._write('--client_learning_rate=0.5', line)
    with self.assertRaisesRegex(hparams.HparamError, named):
      compare.find_methods(entries.replace('FILE', str(path)).split())


class CompareTest(folder_testing.FolderTestCase):

  def _parse(self, *arguments):
    values = binary_testing.parse(
        train, f'--output_dir={self.folder}', *arguments
    )
    self.assertTrue(compare.is_chosen(values))
    return values

  def _build(self, *arguments):
    return compare.build_trials(self._parse(*arguments))

  def _run(self, *arguments):
    """Compares runs that are made up; returns what is printed."""
    with (
        mock.patch.object(running, 'TRAIN', sweep_testing.FAKE_TRAIN),
        contextlib.redirect_stdout(io.StringIO()) as out,
    ):
      compare.run(self._parse(*arguments))
    return out.getvalue()

  def _read(self, name='digits.compare/comparison.csv'):
    return folder_testing.read_rows(self.folder / name)

  def test_methods_share_seeds_and_flags(self):
    trials = self._build(
        '--compare=fedadam,delta_sgd', '--seeds=3,4', '--client_batch_size=7'
    )
    self.assertEqual(
        [trial.name for trial in trials],
        [f'{m}/seed_{s}' for m in ('FedAdam', 'Delta-SGD') for s in (3, 4)],
    )
    for trial in trials:
      self.assertEqual(trial.home, self.folder / 'digits.compare')
      self.assertEqual(trial.hparams['client_batch_size'], 7)
      self.assertEqual(trial.hparams['seed'], trial.seed)

  def test_a_seed_alone_is_that_of_all(self):
    trials = self._build('--compare=sgd,adam', '--seed=5')
    self.assertEqual([trial.seed for trial in trials], [5, 5])

  @parameterized.parameters(
      ((), None),
      (('--validation_fraction=0.1',), 'validation'),
      (('--validation_fraction=0.1', '--evaluation_data=test'), None),
      (('--task=stackoverflow_lr', '--data_dir=data'), 'validation'),
  )
  def test_methods_are_compared_on_validation_data_if_any(self, flags, data):
    trials = self._build('--compare=sgd,fedadam', *flags)
    self.assertLen(trials, 2)
    for trial in trials:
      self.assertEqual(trial.hparams['evaluation_data'], data)

  def test_a_flag_goes_to_the_methods_that_have_it(self):
    fedavg, delta_sgd, sps = self._build(
        '--compare=fedavg,delta_sgd,sps',
        '--client_learning_rate=0.3',
        '--delta_sgd_gamma=3',
        '--digits_alpha=1',
    )
    rate, gamma = 'client_learning_rate', 'delta_sgd_gamma'
    self.assertEqual(fedavg.hparams[rate], 0.3)
    self.assertNotIn(gamma, fedavg.hparams)
    self.assertEqual(delta_sgd.hparams[rate], 0.3)
    self.assertEqual(delta_sgd.hparams[gamma], 3.0)
    self.assertNotIn(rate, sps.hparams)
    for trial in (fedavg, delta_sgd, sps):
      self.assertEqual(trial.hparams['digits_alpha'], 1.0)

  def test_flags_that_methods_leave_open_can_be_given(self):
    trials = self._build(
        '--compare=sgd,delta_sgd', '--server_optimizer=fedadam'
    )
    self.assertLen(trials, 2)
    for trial in trials:
      self.assertEqual(trial.hparams['server_optimizer'], 'fedadam')

  @parameterized.parameters(
      ('--compare=', 'fedavg'),
      (
          '--compare=fedadam --client_optimizer=adam',
          'FedAdam .* drop --client_optimizer=adam',
      ),
      ('--compare=fedadam,sgd --delta_sgd_gamma=2', '=delta_sgd, which no'),
      ('--compare=fedli_ls --server_learning_rate=1', '=fedadagrad or .*=fed'),
      (
          '--compare=moon --task=stackoverflow_lr --data_dir=data',
          'MOON does not go with --task=stackoverflow_lr',
      ),
      ('--compare=sgd --seeds=x', "--seeds .* 'x'"),
      ('--compare=sgd --seeds=1 --seed=1', '--seed.* not both'),
      ('--compare=sgd --evaluations=per_client', 'add central to --evaluatio'),
      ('--compare=sgd --dp_clip_norm=1', 'sgd/seed_0 .* --dp_clip_norm needs'),
      ('--compare=sgd --metric=drift', '^--metric=drift: .* --metric_mode: '),
      ('--compare=sgd --metric_mode=min', '^--metric_mode needs --metric$'),
  )
  def test_flags_that_do_not_fit_are_refused(self, arguments, named):
    with self.assertRaisesRegex(hparams.HparamError, named):
      self._build(*arguments.split())

  def test_a_flag_that_a_file_negates_is_refused(self):
    path = self.folder / 'plain.flags'
    path.write_text('--nofedavgm_nesterov\n')
    compared = f'--compare=fedavgm:{path}'
    self.assertLen(self._build(compared, '--fedavgm_nesterov=false'), 1)
    with self.assertRaisesRegex(hparams.HparamError, 'op --fedavgm_nesterov$'):
      self._build(compared, '--fedavgm_nesterov')

  @parameterized.parameters('--seeds=0,1', '--jobs=2', '--metric=auc')
  def test_flags_of_a_comparison_need_one(self, flag):
    values = binary_testing.parse(train, flag)
    with self.assertRaisesRegex(hparams.HparamError, 'needs --compare$'):
      compare.is_chosen(values)

  def test_another_run_in_the_folder_is_named_before_anything_runs(self):
    folder = self.folder / 'mine' / 'Delta-SGD' / 'seed_0'
    folder.mkdir(parents=True)
    recorded = {'total_rounds': 3, 'client_batch_size': 5}
    (folder / 'hparams.json').write_text(json.dumps(recorded))
    with self.assertRaisesRegex(
        command_line.UserError,
        'seed_0 holds a run with client_batch_size=5, but '
        'client_batch_size=7 was given; choose another',
    ):
      self._run(
          '--compare=sgd,delta_sgd',
          '--client_batch_size=7',
          '--total_rounds=3',
          '--experiment_name=mine',
      )
    self.assertFalse((self.folder / 'mine' / 'sgd').exists())

  def test_weights_in_another_file_are_left_to_the_run(self):
    folder = self.folder / 'mine' / 'sgd' / 'seed_0'
    folder.mkdir(parents=True)
    arguments = ('--compare=sgd', '--total_rounds=3', '--experiment_name=mine')
    recorded = {'total_rounds': 3, 'client_optimizer': 'sgd'}
    for old in ('old.npz', None):
      recorded['initial_weights'] = old
      (folder / 'hparams.json').write_text(json.dumps(recorded))
      refused = self.assertRaisesRegex(
          command_line.UserError, ' initial_weights=None, but'
      )
      with contextlib.nullcontext() if old else refused:
        self._build(*arguments, '--initial_weights=new.npz')

  def test_a_file_in_the_place_of_the_folder_is_one_sentence(self):
    (self.folder / 'mine').touch()
    with self.assertRaisesRegex(
        command_line.EnvironmentalError, 'could not read .*/mine/sweep.json: '
    ):
      self._run('--compare=sgd', '--experiment_name=mine')

  def test_a_page_compares_them_and_the_next_call_trains_nothing(self):
    arguments = ['--compare=fedavg,fedadam', '--client_learning_rate=0.2']
    for _ in range(2):
      out = self._run(*arguments, '--seeds=0,1', '--total_rounds=3')
    # The loss of the stand-in is 0.1, its accuracy 0.8.
    self.assertRegex(out, r'FedAvg +80\.00 ± 0\.00 .* 2\n')
    rows = self._read()
    self.assertEqual([row['method'] for row in rows], ['FedAvg', 'FedAdam'])
    self.assertEqual({row['final_mean'] for row in rows}, {'80'})
    self.assertEqual({row['seeds'] for row in rows}, {'2'})
    home = self.folder / 'digits.compare'
    page = (home / 'comparison.md').read_text(encoding='utf-8')
    self.assertIn('# digits: test accuracy (%) of 2 methods\n', page)
    self.assertIn('experiments.train --compare=fedavg,fedadam --', page)
    for text in (page, out):
      self.assertIn('the test does not have: `--validation_fraction', text)
    for ending in ('.md', '.png', '.pdf', '.tex', '_wide.pdf'):
      self.assertTrue((home / f'comparison{ending}').exists())
    for method in ('FedAvg', 'FedAdam'):
      starts = home / method / 'seed_0.starts'
      self.assertEqual(starts.read_text(), 'started\n')

  def test_the_page_is_on_the_chosen_metric(self):
    command = ['--compare=sgd', '--total_rounds=3']
    self._run(*command)
    self._run(*command, '--metric=clients/loss')
    (row,) = self._read()
    self.assertEqual([row['metric'], row['best_mean']], ['clients/loss', '0.1'])
    page = (self.folder / 'digits.compare/comparison.md').read_text()
    self.assertIn(' --metric=clients/loss\n', page)
    self.assertIn('chosen on the training data.\n', page)

  def test_labels_and_files_are_shown_and_recorded(self):
    path = self.folder / 'best.flags'
    path.write_text('--client_learning_rate=0.2\n')
    self._run(f'--compare=tuned SGD=fedavg:{path},fedavg', '--total_rounds=3')
    self.assertEqual(
        [row['method'] for row in self._read()], ['tuned SGD', 'FedAvg']
    )
    table = (self.folder / 'digits.compare/comparison.tex').read_text()
    self.assertIn('\ntuned SGD & 80.00 & 80.00 & 1 \\\\\n', table)
    self.assertTrue((self.folder / 'digits.compare/tuned_SGD').exists())

  def test_a_flag_that_a_file_sets_alike_may_be_given(self):
    path = self.folder / 'best.flags'
    path.write_text('--client_epochs=2\n')
    entry = f'--compare=fedavg:{path},delta_sgd'
    trials = self._build(entry, '--client_epochs=2')
    self.assertEqual([t.hparams['client_epochs'] for t in trials], [2, 2])
    with self.assertRaisesRegex(hparams.HparamError, 'drop --client_epochs=3'):
      self._build(entry, '--client_epochs=3')

  def test_seeds_of_another_call_do_not_count(self):
    self._run('--compare=sgd', '--seeds=0,1', '--total_rounds=3')
    self._run('--compare=sgd,adam', '--seeds=1', '--total_rounds=3')
    self.assertEqual([row['seeds'] for row in self._read()], ['1', '1'])

  def test_a_run_that_fails_leaves_the_others(self):
    with self.assertRaisesRegex(
        command_line.EnvironmentalError, '1 of 2 trials failed, .*FedAvg.seed_0'
    ):
      self._run(
          '--compare=fedavg,sps',
          '--client_learning_rate=13',
          '--total_rounds=3',
      )
    self.assertEqual([row['method'] for row in self._read()], ['SPS'])
    missing = 'Left out, as runs failed: FedAvg.'
    for ending in ('md', 'tex'):
      page = self.folder / f'digits.compare/comparison.{ending}'
      self.assertIn(missing, page.read_text())

  @pytest.mark.slow
  def test_real_runs_begin_alike_and_are_run_once(self):
    arguments = [
        'experiments.train',
        '--compare=fedadam,delta_sgd',
        *_SMALL,
        f'--output_dir={self.folder}',
    ]
    outputs = []
    for _ in range(2):
      result = program_testing.run(*arguments)
      self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
      outputs.append(result.stdout.splitlines())
    self.assertLen([x for x in outputs[0] if x.startswith('end')], 2)
    self.assertEqual(outputs[1][1:], outputs[0][-len(outputs[1][1:]) :])
    home = self.folder / 'digits.compare'
    pictures = [p.read_bytes() for p in home.glob('*/*/plots/partition.png')]
    self.assertLen(pictures, 2)
    self.assertEqual(*pictures)
    cohorts = []
    for path in home.glob('*/*/metrics.csv'):
      rows = folder_testing.read_rows(path)
      cohorts.append([row['clients/num_examples'] for row in rows])
    self.assertLen(cohorts[0], 3)
    self.assertEqual(*cohorts)

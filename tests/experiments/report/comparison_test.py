# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the comparison of any runs."""

import contextlib
import io
import math
import re

from experiments.report import comparison
from experiments.run_results import run_folder
from tests.experiments.report import made_up_runs
from tests.experiments.report import page_testing


class ComparisonTest(page_testing.PageTestCase):

  def _compare(self, *runs, **options):
    """Compares runs; returns the page and what is printed."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
      comparison.write_comparison(
          [f'{self.runs_dir}/{run}' for run in runs],
          self.output_dir,
          'report --runs',
          **options,
      )
    return (self.output_dir / 'comparison.md').read_text(), out.getvalue()

  def test_any_runs_are_compared(self):
    made_up_runs.write_run(self.runs_dir / 'a', [0.2, 0.9, 0.4, 0.5])
    for seed in range(2):
      made_up_runs.write_run(
          self.runs_dir / 'b' / f'seed_{seed}', [0.6, 0.8], seed=seed
      )
    text, _ = self._compare('a/', 'b')
    self.assertIn(' `rounds` is the smallest number and `time` the sum.', text)
    self.assertIn('| a | 50.00 | 90.00 | 50.00 | 4 | 2 s | 1 |', text)
    self.assertIn(
        '| b | 80.00 ± 0.00 | 80.00 ± 0.00 | 70.00 ± 0.00 | '
        '2 of 4, unfinished | 2 s | 2 |',
        text,
    )
    self.assert_plotted('comparison')
    self.assertIn(
        'seeds. Not finished: b (2 of 4 rounds).\n'
        '\\begin{tabular}{lrrr}\n\\toprule\n'
        'run & final & last ten & seeds \\\\\n\\midrule\n'
        'a & 50.00 & 50.00 & 1 \\\\\n'
        'b & 80.00 $\\pm$ 0.00 & 70.00 $\\pm$ 0.00 & 2 \\\\\n\\bottomrule\n',
        (self.output_dir / 'comparison.tex').read_text(),
    )

  def test_figures_have_the_widths_of_a_page_and_its_columns(self):
    made_up_runs.write_run(self.runs_dir / 'a', [0.2, 0.9])
    self._compare('a', names=['A & B_1'])
    for name, inches in (('comparison', 3.3), ('comparison_wide', 6.8)):
      data = (self.output_dir / f'{name}.pdf').read_bytes()
      (width,) = re.findall(rb'/MediaBox \[ ?0 0 ([\d.]+)', data)
      self.assertAlmostEqual(float(width) / 72, inches, places=3)
      # Fonts of type 42 are embedded.
      self.assertIn(b'/FontFile2', data)
      self.assertNotIn(b'/Type3', data)
    table = (self.output_dir / 'comparison.tex').read_text()
    self.assertIn('\nA \\& B\\_1 & 90.00 ', table)

  def test_a_run_that_stopped_early_is_finished(self):
    made_up_runs.write_run(
        self.runs_dir / 'a', [0.6, 0.8], early_stopping_patience=1
    )
    text, _ = self._compare('a')
    self.assertIn('| 2 of 4 |', text)
    table = (self.output_dir / 'comparison.tex').read_text()
    self.assertNotIn('Not finished', table)
    self.assertIn('last ten, or of all if there are fewer; ', table)

  def test_the_data_of_the_evaluations_are_named(self):
    made_up_runs.write_run(
        self.runs_dir / 'a', [0.2], evaluation_data='validation'
    )
    text, out = self._compare('a')
    self.assertStartsWith(out, 'validation accuracy (%):\n')
    self.assertIn('chosen on the validation data.', text)
    self.assertNotIn('To choose a method', text)
    made_up_runs.write_run(
        self.runs_dir / 'b', [0.2], evaluation_data='test_clients'
    )
    text, out = self._compare('b')
    self.assertIn('test clients data. To choose a method, compare ', text)
    self.assertIn('To choose a method, compare ', out)

  def test_a_run_that_diverged_at_once_does_not_hide_the_others(self):
    made_up_runs.write_run(self.runs_dir / 'a', [0.2] * 4)
    made_up_runs.write_run(self.runs_dir / 'b', [math.nan] * 4)
    text, _ = self._compare('a', 'b')
    self.assertRegex(text, r'\| a .* 20\.00 ')
    self.assertRegex(text, r'\| b .* diverged ')

  def test_a_run_before_its_first_evaluation_did_not_diverge(self):
    for seed, values in enumerate(([0.2, 0.4, 0.6, 0.8], [''])):
      made_up_runs.write_run(
          self.runs_dir / 'a' / f'seed_{seed}',
          values,
          seed=seed,
          rounds_per_evaluation=2,
      )
    text, _ = self._compare('a')
    self.assertIn('| a | - | - | - | 1 of 4, unfinished | 3 s | 2 |', text)
    self.assert_plotted('comparison')
    # Another seed did.
    made_up_runs.write_run(
        self.runs_dir / 'a' / 'seed_0', [0.2, 0.4, 0.6, math.nan]
    )
    text, _ = self._compare('a')
    self.assertIn('| a | diverged | diverged | diverged | 1 of 4, un', text)

  def test_seeds_without_a_common_round_have_no_curve(self):
    for seed, values in enumerate(([0.2, ''], ['', 0.4])):
      made_up_runs.write_run(
          self.runs_dir / 'a' / f'seed_{seed}', values, seed=seed
      )
    with self.assertRaisesRegex(run_folder.RunError, '^there is no curve of '):
      self._compare('a')

  def test_small_losses_differ(self):
    for name, loss in (('a', 3.14e-5), ('b', 0.25), ('c', 0.0)):
      made_up_runs.write_run(self.runs_dir / name, [loss] * 4, metric='loss')
    text, _ = self._compare('b', 'c')
    self.assertIn('| b | 0.2500 | 0.2500 | 0.2500 |', text)
    text, _ = self._compare('a', 'b', 'c')
    self.assertIn('| a | 0.0000314 | ', text)
    self.assertIn('| b | 0.2500000 | ', text)

  def test_another_metric_is_compared(self):
    for name, value in (('a', 0.25), ('b', 0.5)):
      made_up_runs.write_run(
          self.runs_dir / name,
          [0.2, value],
          columns={'evaluation/drift': value, 'evaluation/auc': 0.5 * value},
      )
    text, out = self._compare('a', 'b', metric='auc')
    self.assertStartsWith(out, 'test auc:\n')
    self.assertIn('| b | 0.2500 | 0.2500 | 0.2500 |', text)
    made_up_runs.write_run(self.runs_dir / 'a', [3, 1, 2, 2], metric='drift')
    self.assertIn('| a | 2.0000 | 1.0000 | ', self._compare_drift('min'))
    self.assertIn('| a | 2.0000 | 3.0000 | ', self._compare_drift('max'))
    with self.assertRaisesRegex(
        run_folder.RunError,
        '^--metric=evaluation/drift: .* give --metric_mode: ',
    ):
      self._compare_drift(None)
    made_up_runs.write_run(
        self.runs_dir / 'a',
        [0.2],
        metric='drift',
        columns={'evaluation/clients/auc_mean': 0.5},
    )
    with self.assertRaisesRegex(
        run_folder.RunError, ' they have drift, evaluation/clients/auc_mean$'
    ):
      self._compare('a', metric='clients/auc_mean')

  def _compare_drift(self, mode):
    """Returns the page on a column whose name does not tell what is best."""
    return self._compare('a', metric='evaluation/drift', metric_mode=mode)[0]

  def test_what_cannot_be_compared(self):
    made_up_runs.write_run(self.runs_dir / 'a', [0.2])
    made_up_runs.write_run(self.runs_dir / 'b', [0.2], metric='perplexity')
    made_up_runs.write_run(
        self.runs_dir / 'd', [0.2], evaluation_data='validation'
    )
    made_up_runs.write_run(self.runs_dir / 'e', [0.2], heldout_fraction=0.3)
    made_up_runs.write_run(
        self.runs_dir / 'f',
        [0.2],
        evaluation_data='validation',
        validation_fraction=0.1,
    )
    for paths, sentence in (
        (
            ['a', 'e'],
            'different test data, with --heldout_fraction 0.3, unset; compare ',
        ),
        (
            ['d', 'f'],
            'validation data, with --validation_fraction 0.1, unset; ',
        ),
        (['a', 'd'], '^the runs .* different data, test, validation; compare '),
        (['a', 'b'], '^the runs have none of the metrics '),
        (['a', 'd', 'a/'], '^a folder is there twice: a, d, a; give each once'),
        (['c'], 'c is not the folder of a run: it has no hparams.json$'),
    ):
      with self.assertRaisesRegex(run_folder.RunError, sentence):
        self._compare(*paths)

  def test_a_loss_that_explodes_fits_into_the_table(self):
    for seed, loss in enumerate((5e34, 7e34)):
      made_up_runs.write_run(
          self.runs_dir / 'a' / f'seed_{seed}', [loss], metric='loss', seed=seed
      )
    text, _ = self._compare('a')
    self.assertIn('| a | 6.00e+34 ± 1.41e+34 | ', text)

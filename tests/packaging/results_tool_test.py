# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that docs/results can be made again from the runs kept with it."""

import contextlib
import csv
import io
import json
import os
import re
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import pytest

from experiments import published
from experiments.report import figures
from experiments.run_results import environments
from experiments.run_results import run_folder
from tests import folder_testing
from tests import page_testing
from tests import program_testing
from tools import kept_runs
from tools import results


def _write_run(folder, num_rounds, total_rounds=2, **hparams):
  folder.mkdir(parents=True)
  hparams = {'total_rounds': total_rounds, 'seed': 0, **hparams}
  (folder / 'hparams.json').write_text(json.dumps(hparams))
  rows = ['round_num,clients/loss,evaluation/accuracy,seconds']
  rows.extend(f'{i + 1},0.5,{1 / (i + 3)},0.250' for i in range(num_rounds))
  (folder / 'metrics.csv').write_text('\n'.join([*rows, '']))
  os.utime(folder / 'metrics.csv', (1e9, 1e9))
  (folder / 'environment.json').write_text('[{"python": "3.12"}]')
  (folder / 'checkpoint').write_text('large')


def _names(folder):
  return [path.name for path in folder.iterdir()]


class KeptRunsTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.kept_dir = self.folder / 'kept'

  def _pack(self, name):
    results.pack(self.kept_dir, self.folder / name)

  def _unpack(self, name):
    results.unpack(self.kept_dir, self.folder / name)
    return self.folder / name

  def test_finished_runs_come_back_without_checkpoints(self):
    cell = self.folder / 'runs' / 'paper' / 'table' / 'cell'
    _write_run(cell / 'seed_0', 2, client_learning_rate=0.1)
    _write_run(cell / 'seed_1', 1)
    self._pack('runs')
    run = self._unpack('again') / 'paper/table/cell/seed_0'
    self.assertEqual(_names(run.parent), ['seed_0'])
    self.assertCountEqual(
        _names(run), ['hparams.json', 'metrics.csv', 'environment.json']
    )
    before, after = map(run_folder.read_run, (cell / 'seed_0', run))
    self.assertEqual(after.hparams, before.hparams)
    self.assertEqual(after.ended, before.ended)
    self.assertEqual(after.started, before.started.replace(microsecond=0))
    self.assertEqual(environments.read(run), [{'python': '3.12'}])
    # No page shows the training loss.
    self.assertEqual(
        after.columns,
        {k: v for k, v in before.columns.items() if 'ss' not in k},
    )

  def test_a_file_is_a_table_with_a_row_a_run(self):
    for seed in range(2):
      run = self.folder / 'runs' / 'rates' / f'seed_{seed}'
      _write_run(run, 2, seed=seed, task='digits')
    self._pack('runs')
    (path,) = self.kept_dir.iterdir()
    header, first, second = csv.reader(path.read_text().splitlines())
    self.assertEqual(path.name, 'rates.csv')
    row = dict(zip(header, first))
    self.assertEqual(row['--task'], '"digits"')
    self.assertEqual(row['seconds'], '1-2:1 .25*2')
    # Of what is as above nothing is written.
    changed = [name for name, text in zip(header, second) if text]
    self.assertContainsSubset(['run', '--seed'], changed)
    self.assertNoCommonElements(['--task', 'seconds', 'environments'], changed)

  def test_the_metric_of_the_task_is_kept(self):
    name = 'leaderboard/stackoverflow_lr/FedAvg/defaults/seed_0'
    run = self.folder / 'runs' / name
    _write_run(run, 2, task='stackoverflow_lr')
    text = (run / 'metrics.csv').read_text()
    (run / 'metrics.csv').write_text(text.replace('accuracy', 'recall_at_5'))
    self._pack('runs')
    found = run_folder.read_run(self._unpack('again') / name)
    self.assertEqual(
        found.columns['evaluation/recall_at_5'], ([1, 2], [1 / 3, 1 / 4])
    )

  def test_existing_files_stay(self):
    _write_run(self.folder / 'runs' / 'seed_0', 2)
    self._pack('runs')
    _write_run(self.folder / 'other' / 'seed_0', 2, total_rounds=1)
    runs_dir = self._unpack('other')
    hparams = json.loads((runs_dir / 'seed_0' / 'hparams.json').read_text())
    self.assertEqual(hparams['total_rounds'], 1)

  def test_an_interruption_leaves_whole_runs_or_none(self):
    for name in ('seed_0', 'seed_1'):
      _write_run(self.folder / 'runs' / 'rates' / name, 2)
    self._pack('runs')
    with mock.patch.object(os, 'utime', side_effect=[0, 0, KeyboardInterrupt]):
      with self.assertRaises(KeyboardInterrupt):
        self._unpack('again')
    self.assertEmpty(_names(self.folder / 'again'))
    runs_dir = self._unpack('again')
    self.assertLen(list(runs_dir.rglob('metrics.csv')), 2)

  def test_plots_that_a_page_shows_come_back(self):
    run = self.folder / 'runs' / 'seed_0'
    _write_run(run, 2)
    shown = next(page_testing.ROOT.glob('docs/results/*/*.png'))
    (run / 'plots').mkdir()
    (run / 'plots' / 'cka.png').write_bytes(shown.read_bytes())
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
      self._pack('runs')
      again = self._unpack('again')
    self.assertStartsWith(out.getvalue(), '1 runs, ')
    self.assertIn('wrote 1 of 1 runs to ', out.getvalue())
    self.assertEqual(
        (again / 'seed_0/plots/cka.png').read_bytes(), shown.read_bytes()
    )

  def test_packing_elsewhere_loses_no_run(self):
    for name in ('first', 'second'):
      _write_run(self.folder / name / 'rates' / name / 'seed_0', 2)
      self._pack(name)
    runs_dir = self._unpack('again')
    self.assertCountEqual(_names(runs_dir / 'rates'), ['first', 'second'])

  def test_a_run_that_is_begun_anew_does_not_take_the_place_of_a_finished_one(
      self,
  ):
    _write_run(self.folder / 'first' / 'seed_0', 2)
    self._pack('first')
    _write_run(self.folder / 'second' / 'seed_0', 1)
    self._pack('second')
    runs_dir = self._unpack('again')
    metrics = (runs_dir / 'seed_0' / 'metrics.csv').read_text()
    self.assertLen(metrics.splitlines(), 3)


class SeriesTest(parameterized.TestCase):

  @parameterized.parameters(
      ([3], [0.1], '3 .1'),
      ([1, 2, 3], [5.0, 5.0, 1e20], '1-3:1 5*2 100000000000000000000'),
      ([2, 4, 6, 7], [-0.5, 0.1, 1e-7, 0.0], '2-6:2,7 -0.5 .1 1e-07 0'),
      ([1], [0.03703703731298447], '1 float32 .037037037'),
      # In float32 it would be another number.
      ([1, 2], [0.03703703731298447, 0.3], '1-2:1 .03703703731298447 .3'),
  )
  def test_every_number_comes_back(self, rounds, values, text):
    self.assertEqual(kept_runs.format_series(rounds, values), text)
    found = kept_runs.parse_series(text)
    self.assertEqual(found, dict(zip(rounds, values)))


class PagesTest(absltest.TestCase):

  @pytest.mark.slow
  def test_numbers_are_those_of_the_kept_runs(self):
    folder = folder_testing.new(self)
    runs_dir, output_dir = folder / 'runs', folder / 'results'
    results.unpack(results.KEPT_DIR, runs_dir)
    *commands, audit = results.build_commands(runs_dir, output_dir)
    self.assertEqual(audit[0], 'tools.audit')
    for module, *arguments in commands:
      result = program_testing.run(module, *arguments)
      self.assertEqual(result.returncode, 0, result.stderr)
    written = list(output_dir.rglob('*.csv'))
    tables = [
        published.find_table(flag.removeprefix('--table='))
        for flags in commands
        for flag in flags
        if flag.startswith('--table=')
    ]
    self.assertNotEmpty(tables)
    boards = [module for module, *_ in commands if 'leaderboard' in module]
    num_of_runs = sum(map(figures.needs_runs, tables))
    # A leaderboard has its numbers, those of its headline, and differences.
    self.assertLen(written, num_of_runs + 3 * len(boards))
    for path in written:
      kept = page_testing.ROOT / 'docs/results' / path.relative_to(output_dir)
      with self.subTest(kept.name):
        self.assertEqual(
            _read_table(path, runs_dir), _read_table(kept, runs_dir)
        )


def _read_table(path, runs_dir):
  """Returns the rows of a page's numbers; commands name the folder of runs."""
  text = path.read_text(encoding='utf-8')
  text = text.replace(f'--output_dir={runs_dir} ', '--output_dir=runs ')
  # The last of the ten digits that are written depend on the release of SciPy.
  text = re.sub(r'\d+\.\d{6,}', lambda x: f'{float(x[0]):.7g}', text)
  return list(csv.reader(io.StringIO(text)))

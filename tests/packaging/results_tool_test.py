# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that docs/results can be made again from the runs kept with it."""

import contextlib
import csv
import io
import json
import os
import re
import tarfile
from unittest import mock

from absl.testing import absltest
import pytest

from experiments import published
from experiments.report import figures
from tests import folder_testing
from tests import page_testing
from tests import program_testing
from tools import results


def _write_run(folder, num_rounds, total_rounds=2):
  folder.mkdir(parents=True)
  (folder / 'hparams.json').write_text(
      json.dumps({'total_rounds': total_rounds})
  )
  rows = ['round_num,clients/loss']
  rows.extend(f'{i + 1},0.5' for i in range(num_rounds))
  (folder / 'metrics.csv').write_text('\n'.join([*rows, '']))
  os.utime(folder / 'metrics.csv', (1e9, 1e9))
  (folder / 'environment.json').write_text('[]')
  (folder / 'checkpoint').write_text('large')


class ArchiveTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.archive = self.folder / 'docs' / 'runs.tar.xz'

  def _unpack(self, name):
    results.unpack(self.archive, self.folder / name)
    return self.folder / name

  def test_finished_runs_come_back_without_checkpoints(self):
    _write_run(self.folder / 'runs' / 'table' / 'cell' / 'seed_0', 2)
    _write_run(self.folder / 'runs' / 'table' / 'cell' / 'seed_1', 1)
    results.pack(self.archive, self.folder / 'runs')
    runs_dir = self._unpack('again')
    files = [path for path in runs_dir.rglob('*') if path.is_file()]
    cell = runs_dir / 'table' / 'cell' / 'seed_0'
    self.assertCountEqual(
        files,
        [
            cell / name
            for name in ('hparams.json', 'metrics.csv', 'environment.json')
        ],
    )
    # When a run ended is what the file system says.
    self.assertEqual((cell / 'metrics.csv').stat().st_mtime, 1e9)

  def test_links_in_an_archive_are_not_unpacked(self):
    _write_run(self.folder / 'runs' / 'seed_0', 2)
    self.archive.parent.mkdir()
    with tarfile.open(self.archive, 'w:xz') as file:
      file.add(self.folder / 'runs' / 'seed_0', 'seed_0')
      for name, kind in (('a', tarfile.SYMTYPE), ('b', tarfile.LNKTYPE)):
        member = tarfile.TarInfo(f'seed_0/{name}')
        member.type, member.linkname = kind, 'seed_0/hparams.json'
        file.addfile(member)
    found = self._unpack('again') / 'seed_0'
    self.assertTrue((found / 'hparams.json').is_file())
    self.assertFalse(any((found / name).is_symlink() for name in 'ab'))
    self.assertFalse((found / 'b').exists())

  def test_existing_files_stay(self):
    _write_run(self.folder / 'runs' / 'seed_0', 2)
    results.pack(self.archive, self.folder / 'runs')
    _write_run(self.folder / 'other' / 'seed_0', 2, total_rounds=1)
    runs_dir = self._unpack('other')
    hparams = json.loads((runs_dir / 'seed_0' / 'hparams.json').read_text())
    self.assertEqual(hparams, {'total_rounds': 1})

  def test_files_of_an_earlier_run_do_not_stay_beside_new_ones(self):
    run = self.folder / 'runs' / 'seed_0'
    _write_run(run, 2)
    results.pack(self.archive, self.folder / 'runs')
    (run / 'environment.json').unlink()
    results.pack(self.archive, self.folder / 'runs')
    found = self._unpack('again') / 'seed_0'
    self.assertCountEqual(
        [path.name for path in found.iterdir()], ['hparams.json', 'metrics.csv']
    )

  def test_an_interruption_leaves_whole_runs_or_none(self):
    for name in ('seed_0', 'seed_1'):
      _write_run(self.folder / 'runs' / name, 2)
    results.pack(self.archive, self.folder / 'runs')
    extract = tarfile.TarFile.extractall

    def extract_some(file, path, members, **kwargs):
      extract(file, path, members[:2], **kwargs)
      raise KeyboardInterrupt

    with mock.patch.object(tarfile.TarFile, 'extractall', extract_some):
      with self.assertRaises(KeyboardInterrupt):
        self._unpack('again')
    self.assertEmpty(list((self.folder / 'again').iterdir()))
    runs_dir = self._unpack('again')
    self.assertLen(list(runs_dir.rglob('metrics.csv')), 2)

  def test_plots_belong_to_their_run(self):
    run = self.folder / 'runs' / 'seed_0'
    _write_run(run, 2)
    (run / 'plots').mkdir()
    (run / 'plots' / 'cka.png').write_text('a picture')
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
      results.pack(self.archive, self.folder / 'runs')
      self._unpack('again')
    self.assertStartsWith(out.getvalue(), '1 runs, ')
    self.assertIn('extracted 1 of 1 runs to ', out.getvalue())
    self.assertTrue((self.folder / 'again/seed_0/plots/cka.png').is_file())

  def test_packing_elsewhere_loses_no_run(self):
    for name in ('first', 'second'):
      _write_run(self.folder / name / f'{name}_cell' / 'seed_0', 2)
      results.pack(self.archive, self.folder / name)
    runs_dir = self._unpack('again')
    self.assertCountEqual(
        [path.name for path in runs_dir.iterdir()],
        ['first_cell', 'second_cell'],
    )

  def test_a_run_that_is_begun_anew_does_not_take_the_place_of_a_finished_one(
      self,
  ):
    _write_run(self.folder / 'first' / 'seed_0', 2)
    results.pack(self.archive, self.folder / 'first')
    _write_run(self.folder / 'second' / 'seed_0', 1)
    results.pack(self.archive, self.folder / 'second')
    runs_dir = self._unpack('again')
    metrics = (runs_dir / 'seed_0' / 'metrics.csv').read_text()
    self.assertLen(metrics.splitlines(), 3)


class PagesTest(absltest.TestCase):

  @pytest.mark.slow
  def test_numbers_are_those_of_the_kept_runs(self):
    folder = folder_testing.new(self)
    runs_dir, output_dir = folder / 'runs', folder / 'results'
    results.unpack(page_testing.ROOT / results.ARCHIVE, runs_dir)
    *commands, audit = results.build_commands(runs_dir, output_dir)
    self.assertEqual(audit[0], 'experiments.audit')
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
    # A leaderboard has its numbers, and those of its headline.
    self.assertLen(written, num_of_runs + 2 * len(boards))
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

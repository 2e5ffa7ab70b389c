# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the records of a run: its versions, its machine and its files."""

import contextlib
import importlib
from importlib import metadata
import json
import os
import re
import sqlite3
import subprocess
import sys
from unittest import mock

from absl.testing import parameterized
import keras
import numpy as np

from experiments.run_results import environments
from experiments.run_results import inputs
from tests import folder_testing
import tff_adaptive
from tff_adaptive import _files


class InputsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = folder_testing.new(self)
    self.run_folder = self.folder / 'runs' / 'a'
    self.run_folder.mkdir(parents=True)
    self.data_dir = self.folder / 'data'
    self.data_dir.mkdir()
    self.enter_context(mock.patch.dict(sys.modules))
    folder_testing.import_from(self, self.folder)
    for name in ('import_of_own', 'own_of_inputs'):
      (self.folder / f'{name}.py').write_text('X = 1\n', encoding='utf-8')
    source = 'import import_of_own\nY = import_of_own.X\n'
    (self.folder / 'own_of_inputs.py').write_text(source, encoding='utf-8')
    importlib.invalidate_caches()

  def _record(self, *opened, own=()):
    inputs.record(
        self.run_folder,
        inputs.Reads(set(map(str, opened))),
        str(self.data_dir),
        own=own,
    )

  def _change(self, data_dir=None):
    return inputs.describe_change(
        self.run_folder, str(data_dir or self.data_dir)
    )

  def test_what_python_reads_is_heard(self):
    text, array, base, raw, told = (
        self.data_dir / name for name in ('t.csv', 'a.npz', 'b.db', 'r', 'x.h5')
    )
    text.write_text('1,2\n')
    np.savez(array, x=np.zeros(3))
    sqlite3.connect(base).close()
    raw.write_bytes(b'1')
    written = self.data_dir / 'written'
    with inputs.watched() as found:
      text.read_text()
      np.load(array)['x']  # pylint: disable=expression-not-assigned
      sqlite3.connect(base).close()
      os.close(os.open(raw, os.O_RDONLY))
      _files.tell_of_reading(told)
      written.write_text('x')
      os.close(os.open(written, os.O_RDWR))
      with inputs.unwatched():
        written.read_text()
      with inputs.watched() as inner:
        raw.read_bytes()
    raw.with_name('later').write_text('')
    self.assertEqual(
        {path for path in found.paths if path.startswith(str(self.data_dir))},
        {str(path) for path in (text, array, base, raw, told)},
    )
    self.assertEqual(inner.paths, {str(raw)})

  def test_an_imported_module_counts(self):
    importlib.import_module('own_of_inputs')
    self._record(own=['own_of_inputs'])
    self.assertIsNone(self._change())
    path = self.folder / 'import_of_own.py'
    path.write_text('X = 2\n', encoding='utf-8')
    self.assertEqual(
        self._change(),
        f'the module {path} has changed since the run in {self.run_folder} '
        'began; choose another --experiment_name, or delete that run',
    )
    path.unlink()
    self.assertStartsWith(self._change(), f'the module {path} has gone since')

  def test_a_module_is_found_from_another_folder(self):
    with contextlib.chdir(self.folder):
      importlib.import_module('own_of_inputs')
      self._record(own=['own_of_inputs'])
    with contextlib.chdir(self.data_dir):  # The module is on `sys.path`.
      self.assertIsNone(self._change())
      path = self.folder / 'import_of_own.py'
      path.write_text('X = 2\n', encoding='utf-8')
      self.assertStartsWith(self._change(), f'the module {path} has changed')
      path.unlink()
      self.assertStartsWith(self._change(), f'the module {path.name} has gone')

  def test_modules_of_python_and_of_this_project_do_not_count(self):
    found = inputs._modules(())
    self.assertNotIn('numpy', found)
    self.assertNotIn('os', found)
    self.assertNotIn('experiments.run_results.inputs', found)
    importlib.import_module('import_of_own')
    self.assertIn('import_of_own', inputs._modules(()))

  def test_without_own_parts_modules_are_not_recorded(self):
    importlib.import_module('own_of_inputs')
    self._record()
    self.assertEmpty(os.listdir(self.run_folder))

  @parameterized.parameters(inputs._MAX_DIGEST_BYTES, 0)
  def test_a_data_file_that_changes_is_named(self, max_bytes):
    path = self.data_dir / 'a.csv'
    path.write_text('1\n')
    with mock.patch.object(inputs, '_MAX_DIGEST_BYTES', max_bytes):
      self._record(path)
    self.assertIsNone(self._change())
    path.write_text('2\n')
    os.utime(path, (1e9, 1e9))
    self.assertStartsWith(
        self._change(), f'the data file {path} has changed since the run in'
    )

  @parameterized.parameters(
      (['a.csv'], ['a.csv'], False),
      (['a.csv'], ['b.npz'], True),
      (['a.csv', 'b.npz'], ['b.npz'], False),
      (['a.csv'], [], False),
      ([], ['b.npz'], False),
  )
  def test_other_data_files_in_place_of_all_are_named(self, before, now, tells):
    for name in ('a.csv', 'b.npz'):
      (self.data_dir / name).write_text('1')
    self._record(*(self.data_dir / name for name in before))
    with inputs.watched() as reads:
      self.assertIsNone(self._change())  # Reads what is recorded.
      for name in now:
        (self.data_dir / name).read_text()
    found = inputs.describe_replacement(
        self.run_folder, reads, str(self.data_dir)
    )
    expected = (
        f'the run in {self.run_folder} began with a.csv of --data_dir, but '
        'b.npz is read now; move it away, or choose another --experiment_name'
    )
    self.assertEqual(found, expected if tells else None)

  def test_only_the_content_of_small_data_files_counts(self):
    path = self.data_dir / 'a.csv'
    path.write_text('1\n')
    self._record(path)
    os.utime(path, (1e9, 1e9))
    self.assertIsNone(self._change())
    path.write_text('2\n')
    os.utime(path, (1e9, 1e9))
    self.assertIsNotNone(self._change())

  def test_the_folder_of_the_data_may_be_moved(self):
    path = self.data_dir / 'sets' / 'a.csv'
    path.parent.mkdir()
    path.write_text('1\n')
    self._record(path)
    moved = self.data_dir.rename(self.folder / 'moved')
    self.assertIsNone(self._change())  # There is nothing to compare.
    self.assertIsNone(self._change(moved))
    (moved / 'sets' / 'a.csv').write_text('2\n')
    self.assertIn(str(moved / 'sets' / 'a.csv'), self._change(moved))

  def test_outputs_and_what_is_not_there_do_not_count(self):
    metrics = self.run_folder / 'metrics.csv'
    metrics.write_text('round_num\n')
    self._record(metrics, '/proc/cpuinfo', np.__file__, self.folder / 'none')
    # Often a link to another folder of the system.
    self._record('/etc/os-release', '/usr/lib/os-release')
    self.assertEqual(os.listdir(self.run_folder), ['metrics.csv'])

  def test_files_of_trackers_and_settings_do_not_count(self):
    home = self.folder / 'home'
    self.enter_context(mock.patch.dict(os.environ, HOME=str(home)))
    names = ('.netrc', '.config/x', '.cache/y', '.keras/datasets/a.npz', 'b')
    paths = [home / name for name in names]
    paths += [self.folder / 'mlruns' / 'meta.yaml', self.folder / 'wandb' / 's']
    for path in paths:
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_text('1')
    self._record(*paths)
    for path in paths:
      path.write_text('2')
    self.assertIn('.keras/datasets/a.npz has changed', self._change())
    (home / '.keras' / 'datasets' / 'a.npz').write_text('1')
    self.assertIn('home/b has changed', self._change())
    (home / 'b').write_text('1')
    self.assertIsNone(self._change())

  def test_files_that_are_written_meanwhile_do_not_count(self):
    path = self.data_dir / 'a'
    reads = inputs.Reads({str(path)})
    path.write_text('1')
    os.utime(path, (2e9, 2e9))
    inputs.record(self.run_folder, reads, None, own=())
    self.assertEmpty(os.listdir(self.run_folder))

  def test_files_are_added_and_the_first_record_stays(self):
    first, second = self.data_dir / 'a', self.data_dir / 'b'
    first.write_text('1')
    second.write_text('1')
    self._record(first)
    before = (self.run_folder / 'inputs.json').stat().st_ino
    self._record(first)
    self.assertEqual((self.run_folder / 'inputs.json').stat().st_ino, before)
    first.write_text('2')
    self._record(first, second)
    self.assertIn('data/a has changed', self._change())
    first.write_text('1')
    second.write_text('2')
    self.assertIn('data/b has changed', self._change())

  @parameterized.parameters('', '{', '[]', '{"data": {"a": 1}}', '{"data": 1}')
  def test_a_damaged_record_is_none(self, text):
    (self.run_folder / 'inputs.json').write_text(text)
    self.assertIsNone(self._change())


class EnvironmentsTest(folder_testing.FolderTestCase):

  def test_versions_and_machine_are_those_of_the_process(self):
    found = environments.collect()
    self.assertEqual(found['tensorflow'], metadata.version('tensorflow'))
    self.assertEqual(found['tensorflow-federated'], '0.87.0')
    # Tasks are of Keras 3, but for two; TFF needs Keras 2.
    self.assertEqual(found['keras'], keras.__version__)
    self.assertStartsWith(found['tf_keras'], '2.')
    self.assertGreater(found['cores'], 0)
    for name, value in found.items():
      self.assertTrue(value, name)

  def test_own_version_has_the_commit_of_a_checkout(self):
    # Neither the variables of a hook nor the settings of a user.
    env = {k: v for k, v in os.environ.items() if not k.startswith('GIT_')}
    env |= {'GIT_CONFIG_GLOBAL': os.devnull, 'GIT_CONFIG_NOSYSTEM': '1'}
    self.enter_context(mock.patch.dict(os.environ, env, clear=True))
    package = self.folder / 'tff_adaptive' / '__init__.py'
    package.parent.mkdir()
    package.write_text('')
    path = mock.patch.object(tff_adaptive, '__file__', str(package))
    with path:
      version = tff_adaptive.__version__
      self.assertEqual(environments.collect()['tff_adaptive'], version)
      identity = ('-c', 'user.name=a', '-c', 'user.email=a@b')
      for arguments in (
          ('init', '--quiet'),
          ('add', '.'),
          (*identity, 'commit', '--quiet', '--message=a'),
      ):
        subprocess.run(('git', *arguments), cwd=self.folder, check=True)
      self.assertRegex(
          environments.collect()['tff_adaptive'],
          rf'^{re.escape(version)} \([0-9a-f]{{7,}}\)$',
      )
      package.write_text('changed')
      self.assertEndsWith(environments.collect()['tff_adaptive'], '-dirty)')
      with mock.patch.dict(os.environ, PATH=''):
        self.assertEqual(environments.collect()['tff_adaptive'], version)

  def test_a_run_that_is_resumed_elsewhere_has_both(self):
    environments.record(self.folder)
    environments.record(self.folder)
    first = environments.read(self.folder)
    self.assertEqual(first, [environments.collect()])
    with mock.patch.object(environments.os, 'cpu_count', return_value=1234):
      environments.record(self.folder)
    self.assertEqual(
        environments.read(self.folder), [*first, {**first[0], 'cores': 1234}]
    )

  def test_a_run_without_a_record_has_none(self):
    self.assertEqual(environments.read(self.folder), [])
    (self.folder / 'environment.json').write_text('[{')
    self.assertEqual(environments.read(self.folder), [])
    environments.record(self.folder)
    self.assertLen(
        json.loads((self.folder / 'environment.json').read_text()), 1
    )

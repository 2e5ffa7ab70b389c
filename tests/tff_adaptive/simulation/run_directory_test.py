# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the folder of a run."""

import json
import os
import shutil
from unittest import mock

from absl.testing import parameterized

from tests import folder_testing
from tests.tff_adaptive import file_testing
from tff_adaptive.simulation import run_directory

_HPARAMS = {'total_rounds': 10, 'seed': 1, 'client_learning_rate': 0.1}


class RunDirectoryTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.output_dir = folder_testing.new(self) / 'runs'
    self.directory = run_directory.RunDirectory(self.output_dir, 'demo')

  def test_open_makes_folders_and_sorted_hparams(self):
    self.directory.open(_HPARAMS)
    self.assertTrue((self.output_dir / 'demo' / 'checkpoints').is_dir())
    self.assertTrue(self.directory.plots.is_dir())
    self.assertTrue(self.directory.tensorboard.is_dir())
    text = self.directory.hparams_json.read_text()
    self.assertEqual(json.loads(text), _HPARAMS)
    self.assertEqual(list(json.loads(text)), sorted(_HPARAMS))

  def test_the_same_hparams_and_more_rounds_are_fine(self):
    self.directory.open(_HPARAMS)
    self.directory.open(_HPARAMS)
    self.directory.open({**_HPARAMS, 'total_rounds': 20})
    found = json.loads(self.directory.hparams_json.read_text())
    self.assertEqual(found['total_rounds'], 20)

  def test_a_resume_leaves_the_time_of_the_begin(self):
    self.directory.open(_HPARAMS)
    path = self.directory.hparams_json
    os.utime(path, (1e9, 1e9))
    self.directory.open(_HPARAMS)
    self.assertEqual(path.stat().st_mtime, 1e9)

  @parameterized.named_parameters(
      ('value', {'seed': 2}, 'seed=1, but seed=2'),
      ('fewer_rounds', {'total_rounds': 9}, 'total_rounds=10, but'),
      ('new', {'sgd_momentum': 0.5}, 'sgd_momentum=nothing, but'),
      ('gone', {'seed': None}, 'seed=1, but seed=nothing'),
  )
  def test_other_hparams_are_refused_by_name(self, change, message):
    self.directory.open(_HPARAMS)
    with self.assertRaisesRegex(run_directory.RunDirectoryError, message):
      self.directory.open({**_HPARAMS, **change})
    found = json.loads(self.directory.hparams_json.read_text())
    self.assertEqual(found, _HPARAMS)

  def test_more_rounds_are_refused_where_a_schedule_uses_their_number(self):
    hparams = {**_HPARAMS, 'client_schedule': 'step_decay'}
    self.directory.open(hparams, ['client_schedule'])
    self.directory.open(hparams, ['client_schedule'])
    for method in (self.directory.check, self.directory.open):
      with self.assertRaisesRegex(
          run_directory.RunDirectoryError,
          'total_rounds=10, but total_rounds=20 was given, and with '
          'client_schedule="step_decay" the finished rounds would have '
          'been different; choose another experiment_name',
      ):
        method({**hparams, 'total_rounds': 20}, ['client_schedule'])
    # Fewer rounds, and a run that has no such number, are refused as ever.
    with self.assertRaisesRegex(
        run_directory.RunDirectoryError, 'total_rounds=9 was given; choose'
    ):
      self.directory.check({**hparams, 'total_rounds': 9}, ['client_schedule'])
    self.directory.open({**hparams, 'total_rounds': 20})

  def test_foreign_folders_are_refused(self):
    self.directory.path.mkdir(parents=True)
    self.directory.open(_HPARAMS)
    self.directory.hparams_json.write_text('{')
    with self.assertRaisesRegex(run_directory.RunDirectoryError, 'damaged'):
      self.directory.check(_HPARAMS)
    (self.output_dir / 'file').write_text('')
    with self.assertRaisesRegex(run_directory.RunDirectoryError, 'is a file'):
      run_directory.RunDirectory(self.output_dir, 'file').check(_HPARAMS)

  @parameterized.parameters(
      'metrics.csv',
      'metrics.csv.tmp',
      'checkpoints/checkpoint_00000001.npz',
      'checkpoints/hparams.json.tmp',
      'other/file',
  )
  def test_files_without_hparams_are_no_run(self, name):
    path = self.directory.path / name
    path.parent.mkdir(parents=True)
    path.write_text('')
    with self.assertRaisesRegex(run_directory.RunDirectoryError, 'not empty'):
      self.directory.open(_HPARAMS)
    self.assertEqual(list(file_testing.read_files(self.directory.path)), [name])

  def test_a_start_that_was_killed_is_no_run_yet(self):
    for made in ('', 'plots', 'checkpoints', 'tensorboard', 'hparams.json.tmp'):
      path = self.directory.path / made
      if made.endswith('.tmp'):
        path.write_text('{"see')
      else:
        path.mkdir(parents=True)
      self.assertIsNone(self.directory.read_hparams())
      self.directory.check(_HPARAMS)
    self.directory.open(_HPARAMS)
    self.assertEqual(
        list(file_testing.read_files(self.directory.path)), ['hparams.json']
    )

  def test_hparams_are_the_first_file(self):
    def killed(path, *unused_args, **unused_kwargs):
      raise KeyboardInterrupt(path)

    with mock.patch.object(os, 'replace', killed):
      with self.assertRaises(KeyboardInterrupt):
        self.directory.open(_HPARAMS)
    self.assertEmpty(list(self.directory.path.iterdir()))
    self.directory.open(_HPARAMS)

  def test_open_removes_what_a_killed_run_left(self):
    self.directory.open(_HPARAMS)
    for name in (
        'hparams.json.tmp',
        'metrics.csv.tmp',
        'checkpoints/best.npz.tmp',
        'plots/training.png.tmp',
        'tensorboard/x.tmp',
        # The file of another run.
        'nested/checkpoints/best.npz.tmp',
    ):
      path = self.directory.path / name
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_text('half')
    # Nothing is touched before it is known whose the folder is.
    with self.assertRaises(run_directory.RunDirectoryError):
      self.directory.open({**_HPARAMS, 'seed': 2})
    self.assertLen(file_testing.read_files(self.directory.path), 7)
    self.directory.open(_HPARAMS)
    self.assertEqual(
        list(file_testing.read_files(self.directory.path)),
        ['hparams.json', 'nested/checkpoints/best.npz.tmp'],
    )

  def _end_early(self, made='', hparams=_HPARAMS):
    """Lets a run of a process end by an error after it has written a file."""
    with self.directory.locked():
      with self.assertRaises(KeyboardInterrupt):
        with self.directory.opened(hparams):
          for name in filter(None, ('environment.json', 'plots/a.png', made)):
            path = self.directory.path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text('')
          raise KeyboardInterrupt

  def test_a_run_without_a_round_leaves_its_folder_to_others(self):
    self._end_early()
    self.assertFalse(self.directory.path.exists())
    self._end_early('metrics.csv', {**_HPARAMS, 'seed': 2})
    self.assertTrue(self.directory.metrics_csv.exists())

  @parameterized.parameters(
      'metrics.csv',
      'checkpoints/checkpoint_00000001.npz',
      'b/hparams.json',
      'notes.txt',
  )
  def test_a_run_with_a_round_or_files_of_others_is_kept(self, made):
    self._end_early(made)
    self.assertLen(file_testing.read_files(self.directory.path), 4)

  def test_a_folder_that_has_gone_does_not_hide_the_error(self):
    with self.assertRaises(KeyboardInterrupt):
      with self.directory.opened(_HPARAMS):
        shutil.rmtree(self.directory.path)
        raise KeyboardInterrupt

  def test_a_resumed_run_is_kept(self):
    self.directory.open(_HPARAMS)
    self._end_early()
    self.assertEqual(self.directory.read_hparams(), _HPARAMS)

  def test_a_full_disk_keeps_the_hparams(self):
    self.directory.open(_HPARAMS)
    before = self.directory.hparams_json.read_bytes()
    with file_testing.max_file_size(10):
      with self.assertRaisesRegex(
          OSError, f'^could not write {self.directory.hparams_json}: File too'
      ):
        self.directory.open({**_HPARAMS, 'total_rounds': 20})
    self.assertEqual(
        file_testing.read_files(self.directory.path), {'hparams.json': before}
    )

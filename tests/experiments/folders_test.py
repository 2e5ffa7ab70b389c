# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the folders of runs: their names, and whether they can be used."""

import os
import pathlib
from unittest import mock

from absl.testing import parameterized

from experiments import command_line
from experiments import folders
from experiments.leaderboard import __main__ as leaderboard
from experiments.report import __main__ as report
from tests import folder_testing
from tests.experiments import binary_testing
from tools.audit import __main__ as audit


class FolderNamesTest(parameterized.TestCase):

  @parameterized.parameters(
      ('alpha = 0.1', '', 'alpha_0.1'),
      ('rate=1e-3,a_b+c', '=,', 'rate=1e-3,a_b+c'),
      ('a/../b', '', 'a_.._b'),
      ('α β', '', '_'),
  )
  def test_slugs(self, text, kept, slug):
    self.assertEqual(folders.to_slug(text, kept), slug)


# Programs that write pages, with arguments that leave little to write.
_WRITERS = (
    (audit, ['--claims=delta_sgd.published_places'], '--output_dir'),
    (leaderboard, ['--tasks=digits', '--report_only'], '--results_dir'),
    (report, ['--table=delta_sgd/table_1', '--runs_dir=.'], '--output_dir'),
)


class FolderChecksTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.file = self.folder / 'file'
    self.file.write_text('text')

  def test_an_output_folder_is_left_as_it_is(self):
    for path in (self.folder, self.folder / 'new' / 'one'):
      folders.check_output_dir(str(path))
    self.assertEqual(os.listdir(self.folder), ['file'])

  def test_a_relative_output_folder(self):
    folders.check_output_dir('some_folder/that_is_not_there')
    self.assertFalse(os.path.exists('some_folder'))

  def test_an_output_folder_that_cannot_be_looked_up(self):
    folders.check_output_dir(str(self.folder / ('a' * 256)))
    looked_up = os.stat

    def stat(path, **options):
      if self.folder in pathlib.Path(path).parents:
        raise PermissionError(13, 'Permission denied')
      return looked_up(path, **options)

    with (
        mock.patch('os.stat', stat),
        mock.patch('os.mkdir', side_effect=PermissionError(13, 'Denied')),
        self.assertRaisesRegex(
            command_line.EnvironmentalError,
            r'cannot be written to \(.*: Denied',
        ),
    ):
      folders.check_output_dir(str(self.folder / 'below' / 'it'))

  @parameterized.parameters('file', 'file/runs')
  def test_an_output_folder_that_is_a_file_or_below_one(self, name):
    with self.assertRaisesRegex(
        command_line.UserError, f'^--output_dir={self.folder}/{name} is .*file'
    ):
      folders.check_output_dir(str(self.folder / name))

  @parameterized.parameters('link', 'link/runs')
  def test_an_output_folder_that_is_a_link_to_nothing(self, name):
    (self.folder / 'link').symlink_to('nothing')
    with self.assertRaisesRegex(
        command_line.UserError,
        f'^--output_dir={self.folder}/{name} needs .*, a link to nothing, ',
    ):
      folders.check_output_dir(str(self.folder / name))

  def test_an_output_folder_that_cannot_be_written_to(self):
    with mock.patch('os.mkdir', side_effect=OSError(13, 'Permission denied')):
      with self.assertRaisesRegex(
          command_line.EnvironmentalError,
          f'^--output_dir={self.folder}/new cannot be written to '
          rf'\({self.folder}: Permission denied\); give a writable folder$',
      ):
        folders.check_output_dir(str(self.folder / 'new'))

  def test_a_data_folder(self):
    folders.check_data_dir(None)
    folders.check_data_dir(str(self.folder))
    for path, found in (
        (self.file, 'is a file'),
        (self.folder / 'nowhere', 'does not exist'),
    ):
      with self.assertRaisesRegex(
          command_line.UserError,
          f'^--data_dir={path} {found}; .*.venv/bin/python -m tasks.fetch',
      ):
        folders.check_data_dir(str(path))

  def test_a_checkpoint_to_begin_with(self):
    folders.check_checkpoint(self.folder, 0)
    with self.assertRaisesRegex(command_line.UserError, 'no valid checkpoint'):
      folders.check_checkpoint(self.folder, 2)
    checkpoints = self.folder / 'checkpoints'
    checkpoints.mkdir()
    for name in ('checkpoint_00000010', 'checkpoint_00000004', 'checkpoint_x'):
      (checkpoints / f'{name}.npz').touch()
    self.assertEqual(folders.checkpoint_rounds(self.folder), [4, 10])
    folders.check_checkpoint(self.folder, 4)
    with self.assertRaisesRegex(command_line.UserError, '--from_start trains'):
      folders.check_checkpoint(self.folder, 3)

  def test_a_second_program_is_kept_out(self):
    with folders.locked(self.folder):
      with self.assertRaisesRegex(
          command_line.EnvironmentalError, 'is in use by process'
      ):
        with folders.locked(self.folder):
          self.fail('Both were let in.')
    with folders.locked(self.folder) as descriptor:
      self.assertGreater(descriptor, 2)

  @parameterized.parameters(*_WRITERS)
  def test_one_program_at_a_time_writes_a_page(self, binary, arguments, flag):
    values = binary_testing.parse(binary, *arguments, f'{flag}={self.folder}')
    with folders.locked(self.folder):
      with self.assertRaisesRegex(
          command_line.EnvironmentalError, 'is in use by process'
      ):
        binary.main(values)
    self.assertEqual(os.listdir(self.folder), ['file'])

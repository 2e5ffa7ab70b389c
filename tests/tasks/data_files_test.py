# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of where the files of data sets lie."""

from tasks import data_files
from tests import folder_testing


class FindDataFileTest(folder_testing.FolderTestCase):

  def test_returns_the_path_of_a_file(self):
    (self.folder / 'tff').mkdir()
    path = self.folder / 'tff' / 'emnist.sqlite'
    path.touch()
    for data_dir in (self.folder, str(self.folder)):
      self.assertEqual(
          data_files.find_data_file(data_dir, 'tff/emnist.sqlite', 'emnist'),
          path,
      )

  def test_missing_file_raises_and_says_what_to_do(self):
    with self.assertRaises(FileNotFoundError) as caught:
      data_files.find_data_file(self.folder, 'tff/emnist.sqlite', 'emnist')
    self.assertEqual(
        str(caught.exception),
        f'emnist.sqlite was not found: put it at {self.folder}/tff/'
        'emnist.sqlite, or download it with `python -m tasks.fetch emnist '
        f'--data_dir={self.folder}`.',
    )

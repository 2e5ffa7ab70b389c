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
"""Tests of where the files of data sets lie."""

import pathlib
import tempfile

from absl.testing import absltest

from tasks import data_files


class FindDataFileTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(
        self.enter_context(tempfile.TemporaryDirectory())
    )

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
        'emnist.sqlite, or download it by `python -m tasks.fetch emnist '
        f'--data_dir={self.folder}`.',
    )

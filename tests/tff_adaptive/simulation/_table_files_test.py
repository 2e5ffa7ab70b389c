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
"""Tests of `_table_files`, through `data_sources`."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from tests.tff_adaptive.simulation import data_source_testing
from tff_adaptive.simulation import data_sources

_FEATURES = data_source_testing.FEATURES


class NpzTest(data_source_testing.DataSourceTestCase):

  def _npz(self, **arrays):
    path = self.path('data.npz')
    np.savez(path, **arrays)
    return path

  @parameterized.named_parameters(
      ('missing', {'x': np.zeros([1, 2])}, "lacks the arrays 'y', found 'x'; "),
      (
          'lengths',
          {'x': np.zeros([2, 2]), 'y': np.zeros([3], int)},
          "equally many rows in every array, found {'x': 2, 'y': 3}.",
      ),
      (
          'scalar',
          {'x': np.zeros([1, 2]), 'y': np.int32(3)},
          "array 'y' must have a row for each example, found the single value ",
      ),
      (
          'type',
          {'x': np.zeros([1, 2]), 'y': np.zeros([1])},
          "data.npz: feature 'y' must be of type int32, found float64 such as ",
      ),
      (
          'shape',
          {'x': np.zeros([1, 2, 1]), 'y': np.zeros([1], int)},
          "data.npz: feature 'x' must have examples of shape (2,), found [2, ",
      ),
      (
          'value',
          {'x': np.zeros([2, 2]), 'y': np.array([0, 2**32])},
          "data.npz, row 1: feature 'y' has the value 4294967296, which int32 ",
      ),
      (
          'no_rows',
          {'x': np.zeros([0, 2]), 'y': np.zeros([0], int)},
          'has no rows; it must have a row for each example.',
      ),
      (
          'objects',
          {'x': np.zeros([1, 2]), 'y': np.array(['a'], object)},
          "array 'y' could not be read (Object arrays cannot be loaded when ",
      ),
  )
  def test_errors(self, arrays, sentence):
    self.assert_error(
        ValueError,
        sentence,
        data_sources.read_examples,
        self._npz(**arrays),
        _FEATURES,
    )

  def test_rows_are_counted_in_the_file_not_in_the_split(self):
    path = self._npz(
        x=np.zeros([3, 2]),
        y=np.array([0, 1, 2**40]),
        split=np.array(['test', 'train', 'train']),
    )
    self.assert_error(
        ValueError,
        'row 2: ',
        data_sources.read_examples,
        path,
        _FEATURES,
        split_name='train',
    )

  def test_clients_must_be_names(self):
    arrays = dict(x=np.zeros([1, 2]), y=np.zeros([1], int))
    self.assert_error(
        ValueError,
        "array 'client_id' must hold a string for each row, found type float64",
        data_sources.read_clients,
        self._npz(**arrays, client_id=np.zeros([1])),
        _FEATURES,
    )
    for names in (np.array([7]), np.array([b'7']), np.array(['7'])):
      path = self._npz(**arrays, client_id=names)
      clients = data_sources.read_clients(path, _FEATURES)
      self.assertEqual(clients.client_ids, ('7',))

  def test_one_array_is_no_archive(self):
    path = self.path('data.npz')
    with open(path, 'wb') as file:
      np.save(file, np.zeros([3]))
    self.assert_error(
        ValueError,
        f'{path} could not be read (File is not a zip file); replace it by ',
        data_sources.read_examples,
        path,
        _FEATURES,
    )


if __name__ == '__main__':
  absltest.main()

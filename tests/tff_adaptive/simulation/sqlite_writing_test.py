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

import pathlib
import tempfile

from absl.testing import absltest
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.simulation import client_data
from tff_adaptive.simulation import sqlite_data
from tff_adaptive.simulation import sqlite_writing


def _clients(**features):
  return client_data.PackedClientArrays.from_clients({'a': features})


class WriteSqliteClientsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    self.path = self.folder / 'clients.sqlite'

  def test_what_is_written_is_read(self):
    features = dict(
        x=np.arange(12, dtype=np.float32).reshape(3, 2, 2),
        y=np.int32([1, -2, 3]),
        b=np.bool_([True, False, True]),
        s=np.array([b'one', b'', 'zw\u00f6lf'], np.object_),
    )
    clients = _clients(**features)
    sqlite_writing.write_sqlite_clients(self.path, {'train': clients})
    read = sqlite_data.load_sqlite_clients(
        self.path, 'train', clients.element_spec
    ).examples('a')
    for name in ('x', 'y', 'b'):
      np.testing.assert_array_equal(read[name], features[name])
    self.assertEqual(read['s'].tolist(), [b'one', b'', 'zw\u00f6lf'.encode()])
    self.assertEqual([p.name for p in self.folder.iterdir()], [self.path.name])

  def test_tff_reads_it(self):
    clients = _clients(x=np.float32([[1, 2], [3, 4]]))
    sqlite_writing.write_sqlite_clients(self.path, {'test': clients})
    theirs = tff.simulation.datasets.SqlClientData(str(self.path), 'test')
    self.assertEqual(theirs.client_ids, ['a'])
    parsed = [
        tf.io.parse_single_example(
            one, {'x': tf.io.FixedLenFeature([2], tf.float32)}
        )['x']
        .numpy()
        .tolist()
        for one in theirs.create_tf_dataset_for_client('a')
    ]
    self.assertEqual(parsed, [[1, 2], [3, 4]])

  def test_an_existing_file_stays(self):
    self.path.write_text('precious')
    with self.assertRaisesRegex(FileExistsError, 'delete it first'):
      sqlite_writing.write_sqlite_clients(self.path, {})
    self.assertEqual(self.path.read_text(), 'precious')

  def test_an_unknown_type_raises_and_leaves_no_file(self):
    with self.assertRaisesRegex(TypeError, "'x'.*complex64"):
      sqlite_writing.write_sqlite_clients(
          self.path, {'train': _clients(x=np.complex64([1]))}
      )
    self.assertEmpty(list(self.folder.iterdir()))


if __name__ == '__main__':
  absltest.main()

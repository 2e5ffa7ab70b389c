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
"""Tests of the file that names rejected clients."""

import collections
import os
import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from tests.tff_adaptive.simulation import task_testing
from tff_adaptive.data import batching
from tff_adaptive.data import cohort
from tff_adaptive.simulation import metrics_writers

_ANN = ('ann', 'not_finite')
_BOB = ('bob, the "2nd"', 'no_example')


def _metrics(*codes):
  return collections.OrderedDict(
      client_work=collections.OrderedDict(rejections=np.array(codes, np.int64))
  )


class FindRejectedTest(parameterized.TestCase):

  def test_names_clients_of_a_cohort(self):
    source = task_testing.clients(1, 1, 1, 1)
    clients = cohort.Cohort(
        source, source.client_ids[::-1], 0, 0, batching.BatchPlan(1)
    )
    self.assertEqual(
        metrics_writers.find_rejected(clients, _metrics(1, 0, 2, 3)),
        [
            ('client_3', 'no_example'),
            ('client_1', 'not_finite'),
            ('client_0', 'too_large'),
        ],
    )

  def test_other_clients_go_by_their_places(self):
    self.assertEqual(
        metrics_writers.find_rejected([[], []], _metrics(0, 1)),
        [('1', 'no_example')],
    )

  @parameterized.parameters(
      (_metrics(0, 0),),
      ({'client_work': {}},),
      ({'client_work': ()},),
      ({},),
      ((),),
  )
  def test_nobody(self, metrics):
    self.assertEmpty(metrics_writers.find_rejected([[], []], metrics))


class RejectedClientsWriterTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.path = pathlib.Path(folder) / 'rejected_clients.csv'

  def _writer(self, round_num=0):
    writer = metrics_writers.RejectedClientsWriter(self.path)
    self.addCleanup(writer.close)
    writer.resume(round_num)
    return writer

  def _write(self, writer, round_num, rejected):
    writer.write(round_num, {'loss': 1.0})
    writer.write_rejected(round_num, rejected)

  def test_writes_a_row_a_client(self):
    writer = self._writer()
    self._write(writer, 1, [])
    self.assertFalse(self.path.exists())
    with self.assertLogs(level='WARNING') as logs:
      self._write(writer, 2, [_ANN, _BOB])
      self._write(writer, 5, [_ANN])
    self.assertEqual(
        self.path.read_text(),
        'round_num,client_id,reason\n'
        '2,ann,not_finite\n'
        '2,"bob, the ""2nd""",no_example\n'
        '5,ann,not_finite\n',
    )
    self.assertLen(logs.records, 1)
    self.assertRegex(
        logs.records[0].getMessage(),
        r"^Round 2 has rejected client 'ann' \(the first of 2\): not_finite\. "
        f'.*{self.path}',
    )

  def test_goes_on_behind_the_rows_of_a_round(self):
    writer = self._writer()
    for round_num in (1, 2, 3):
      self._write(writer, round_num, [_BOB])
    writer.flush()
    whole = self.path.read_bytes()
    # Killed in the middle of a row.
    with open(self.path, 'ab') as file:
      file.write(b'4,an')
    writer = self._writer(2)
    self._write(writer, 3, [_BOB])
    self.assertEqual(self.path.read_bytes(), whole)
    self._writer(0)
    self.assertFalse(self.path.exists())

  def test_without_rejected_clients_there_is_no_file_to_go_on_with(self):
    self._write(self._writer(7), 8, [])
    self.assertEmpty(os.listdir(self.path.parent))


if __name__ == '__main__':
  absltest.main()

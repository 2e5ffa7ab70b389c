# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the writers of metrics and of rejected clients."""

import collections
import os
import pathlib
import tempfile
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
from tensorboard.backend.event_processing import event_accumulator
import tensorflow as tf

from tests import folder_testing
from tests.tff_adaptive import file_testing
from tests.tff_adaptive.simulation import task_testing
from tff_adaptive.data import batching
from tff_adaptive.data import cohort
from tff_adaptive.simulation import metrics_writers


def _row(round_num, evaluated=False):
  row = {'loss': np.float32(round_num) / np.float32(3), 'n': np.int64(7)}
  if evaluated:
    row['evaluation/accuracy'] = 1 / round_num
  row['seconds'] = 0.25
  return row


class FlattenMetricsTest(parameterized.TestCase):

  def test_names_have_no_process_parts(self):
    metrics = collections.OrderedDict(
        distributor=(),
        client_work=collections.OrderedDict(
            train=collections.OrderedDict(
                accuracy=np.float32(0.5), recall=np.array([0.2, 0.8])
            ),
            clients=collections.OrderedDict(loss=1.0, confusion=np.eye(2)),
        ),
        aggregator=collections.OrderedDict(),
        finalizer=collections.OrderedDict(update_norm=2.0),
    )
    row = metrics_writers.flatten_metrics(metrics, {'loss': 3.0})
    self.assertEqual(
        list(row.items()),
        [
            ('train/accuracy', 0.5),
            ('train/recall_0', 0.2),
            ('train/recall_1', 0.8),
            ('clients/loss', 1.0),
            ('update_norm', 2.0),
            ('evaluation/loss', 3.0),
        ],
    )

  def test_names_that_clash_are_spelt_out(self):
    row = metrics_writers.flatten_metrics(
        {'aggregator': {'norm': 1, 'b': 2}, 'finalizer': {'norm': 3}}
    )
    self.assertEqual(
        dict(row), {'aggregator/norm': 1, 'b': 2, 'finalizer/norm': 3}
    )

  def test_entries_of_vectors_and_metrics_of_their_names_are_apart(self):
    row = metrics_writers.flatten_metrics(
        {'train': {'f1': np.array([1, 2]), 'f1_1': 3}}
    )
    self.assertEqual(
        dict(row), {'train/f1_0': 1, 'train/f1_1': 2, 'train/f1_1_0': 3}
    )
    self.assertEqual(
        metrics_writers.to_scalars({'f1': [1, 2], 'f1_1': 3, 4: 5}, 'Any'),
        {'f1_0': 1, 'f1_1': 2, 'f1_1_0': 3, '4': 5},
    )

  def test_names_of_the_columns_of_the_loop_are_spelt_out(self):
    row = metrics_writers.flatten_metrics(
        {'finalizer': {'round_num': 3, 'seconds': 0.5, 'norm': 2}}
    )
    self.assertEqual(
        dict(row),
        {'finalizer/round_num': 3, 'finalizer/seconds': 0.5, 'norm': 2},
    )
    row = metrics_writers.flatten_metrics(
        {'round_num': 3, 'seconds': 0.5, 'evaluation': {'loss': 2}}, {'loss': 1}
    )
    self.assertEqual(
        dict(row),
        {
            'metrics/round_num': 3,
            'metrics/seconds': 0.5,
            'metrics/evaluation/loss': 2,
            'evaluation/loss': 1,
        },
    )

  def test_a_lone_scalar_of_a_part_has_the_name_of_the_part(self):
    self.assertEqual(
        dict(metrics_writers.flatten_metrics({'aggregator': 1.0})),
        {'aggregator': 1.0},
    )


class CSVMetricsWriterTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.path = folder_testing.new(self) / 'metrics.csv'
    self.enter_context(mock.patch.object(os, 'fsync', lambda file: None))

  def _write(self, resumed, total, evaluated=(2, 4)):
    writer = metrics_writers.CSVMetricsWriter(self.path)
    writer.resume(resumed)
    for round_num in range(resumed + 1, total + 1):
      writer.write(round_num, _row(round_num, round_num in evaluated))
    writer.flush()
    writer.close()
    return self.path.read_text()

  def test_columns_and_numbers(self):
    self.assertEqual(
        self._write(0, 3),
        'round_num,loss,n,evaluation/accuracy,seconds\n'
        '1,0.33333334,7,,0.25\n'
        '2,0.6666667,7,0.5,0.25\n'
        '3,1.0,7,,0.25\n',
    )

  @parameterized.parameters(0, 1, 2, 3, 4)
  def test_a_resumed_file_equals_an_uninterrupted_one(self, round_num):
    whole = self._write(0, 5)
    # Killed after round 4, in the middle of row 5.
    self._write(0, 4)
    with open(self.path, 'a', encoding='utf-8') as file:
      file.write('5,1.66')
    self.assertEqual(self._write(round_num, 5), whole)

  @parameterized.parameters('ab', 'ba')
  def test_columns_that_appear_later_keep_their_order(self, order):
    """Writes rows in which two columns begin in rounds 3 and 6."""
    first = {order[0]: 3, order[1]: 6}

    def run(path, *parts):
      for begin, end in parts:
        writer = metrics_writers.CSVMetricsWriter(path)
        writer.resume(begin)
        for i in range(begin + 1, end + 1):
          names = ['x', *(n for n in 'ab' if i % first[n] == 0), 'seconds']
          writer.write(i, {name: float(i) for name in names})
        writer.close()
      return path.read_bytes()

    whole = run(self.path.with_name('whole.csv'), (0, 8))
    self.assertStartsWith(
        whole.decode(), f'round_num,x,{",".join(order)},seconds\n'
    )
    for killed_after in range(9):
      for resumed in range(killed_after + 1):
        parts = run(self.path, (0, killed_after), (resumed, 8))
        self.assertEqual(parts, whole)

  @parameterized.parameters(0, 1)
  def test_a_full_disk_is_a_sentence_and_leaves_whole_rows(self, resumed):
    whole = self._write(0, 5)
    # The header is rewritten in round 2, and round 4 does not fit.
    with file_testing.max_file_size(whole.index('\n4,') + 3):
      with self.assertRaisesRegex(
          OSError, f'^could not write {self.path}: File too large$'
      ):
        self._write(resumed, 5)
    self.assertEqual(self.path.read_text(), whole[: whole.index('\n4,') + 1])
    self.assertEqual(self._write(3, 5), whole)

  def test_a_full_disk_keeps_the_header_that_was(self):
    before = self._write(0, 1)
    writer = metrics_writers.CSVMetricsWriter(self.path)
    writer.resume(1)
    with file_testing.max_file_size(len(before) + 3):
      with self.assertRaisesRegex(OSError, 'metrics.csv: File too large$'):
        writer.write(2, _row(2, evaluated=True))
    writer.close()
    self.assertEqual(
        file_testing.read_files(self.path.parent),
        {'metrics.csv': before.encode()},
    )

  def test_rows_are_seen_at_once(self):
    writer = metrics_writers.CSVMetricsWriter(self.path)
    writer.resume(0)
    writer.write(1, _row(1))
    self.assertEqual(self.path.read_text().count('\n'), 2)
    writer.close()

  @parameterized.named_parameters(
      ('absent', None),
      ('empty', ''),
      ('short', 'round_num,loss\n1,0.5\n'),
      ('gap', 'round_num,loss\n1,0.5\n3,0.5\n'),
      ('from_0', 'round_num,loss\n0,0.5\n2,0.5\n'),
  )
  def test_missing_rows_are_an_error(self, text):
    if text is not None:
      self.path.write_text(text)
    writer = metrics_writers.CSVMetricsWriter(self.path)
    with self.assertRaisesRegex(
        metrics_writers.MetricsFileError, 'every round up to 2'
    ):
      writer.resume(2)

  @parameterized.named_parameters(
      ('short', '1,0.5\n2\n', 'line 3 .*1 fields for 2 columns'),
      ('repeated', '1,0.5\n1,0.5\n2,0.5\n', 'line 3 .*1 comes after 1'),
      ('underscore', '1,0.5\n2,1_0\n', 'line 3 .*loss is not a number'),
      ('quote', '1,"0.5\n2,0.5"\n3,0.5\n', 'line 3 '),
  )
  def test_damaged_rows_are_an_error(self, rows, sentence):
    text = f'round_num,loss\n{rows}'
    self.path.write_text(text)
    writer = metrics_writers.CSVMetricsWriter(self.path)
    with self.assertRaisesRegex(
        metrics_writers.MetricsFileError, f'metrics.csv, {sentence}'
    ):
      writer.resume(2)
    self.assertEqual(self.path.read_text(), text)

  def test_a_column_that_is_there_twice_is_an_error(self):
    self.path.write_text('round_num,loss,loss\n1,0.5,0.5\n')
    writer = metrics_writers.CSVMetricsWriter(self.path)
    with self.assertRaisesRegex(
        metrics_writers.MetricsFileError, "line 1 .*'loss' is there twice"
    ):
      writer.resume(1)

  def test_damaged_rows_after_the_checkpoint_are_dropped(self):
    self.path.write_text('round_num,loss\n1,0.5\n2,x,y\n')
    metrics_writers.CSVMetricsWriter(self.path).resume(1)
    self.assertEqual(self.path.read_text(), 'round_num,loss\n1,0.5\n')

  @parameterized.parameters(
      (0.1, '0.1'),
      ('two\nlines', 'two lines'),
      (np.bytes_(b'two\r\nlines'), 'two lines'),
      (np.float32(0.1), '0.1'),
      (np.float64(1) / 3, '0.3333333333333333'),
      (tf.bfloat16.as_numpy_dtype(0.5), '0.5'),
      (float('nan'), 'nan'),
      (np.float32('inf'), 'inf'),
      (np.bool_(True), '1'),
      (np.int32(-3), '-3'),
      (np.float32(1e-12), '1e-12'),
      ('a,b', '"a,b"'),
      (b'x', 'x'),
      ('12', "'12'"),
      ('nan', "'nan'"),
  )
  def test_formats(self, value, text):
    writer = metrics_writers.CSVMetricsWriter(self.path)
    writer.resume(0)
    writer.write(1, {'value': value})
    writer.close()
    self.assertEqual(self.path.read_text(), f'round_num,value\n1,{text}\n')

  def test_texts_that_look_like_numbers_do_not_damage_the_file(self):
    for resumed, values in ((0, ['12', 'ab']), (2, ['7e1', 'cd'])):
      writer = metrics_writers.CSVMetricsWriter(self.path)
      writer.resume(resumed)
      for i, value in enumerate(values, resumed + 1):
        writer.write(i, {'worst': value, f'new_{i}': 1.0})
    found = [row['worst'] for row in folder_testing.read_rows(self.path)]
    self.assertEqual(found, ["'12'", 'ab', "'7e1'", 'cd'])

  @parameterized.parameters((0.5, 'unknown'), ('unknown', np.float32(0.5)))
  def test_a_column_has_no_texts_among_numbers(self, first, other):
    for resumed in (0, 2):
      writer = metrics_writers.CSVMetricsWriter(self.path)
      writer.resume(resumed)
      if not resumed:
        writer.write(1, {'auc': first})
        writer.write(2, {'auc': float('nan')})
      before = self.path.read_bytes()
      with self.assertRaisesRegex(TypeError, "'auc' of round 3 is"):
        writer.write(3, {'auc': other})
      self.assertEqual(self.path.read_bytes(), before)


class TensorBoardMetricsWriterTest(parameterized.TestCase):

  def _read(self, directory):
    accumulator = event_accumulator.EventAccumulator(
        directory, purge_orphaned_data=True
    )
    accumulator.Reload()
    return [(e.step, e.value) for e in accumulator.Scalars('loss')]

  def _write(self, directory, resumed, total):
    writer = metrics_writers.TensorBoardMetricsWriter(directory)
    writer.resume(resumed)
    for round_num in range(resumed + 1, total + 1):
      writer.write(round_num, {'loss': float(round_num)})
    writer.flush()
    writer.close()

  def test_resume_hides_later_rounds(self):
    directory = self.enter_context(tempfile.TemporaryDirectory())
    writer = metrics_writers.TensorBoardMetricsWriter(directory)
    writer.resume(0)
    for round_num in (1, 2, 3):
      writer.write(round_num, {'loss': 1.0, 'name': 'text'})
    writer.close()
    self.assertEqual(self._read(directory), [(1, 1.0), (2, 1.0), (3, 1.0)])
    writer = metrics_writers.TensorBoardMetricsWriter(directory)
    writer.resume(1)
    writer.write(2, {'loss': 2.0})
    writer.flush()
    writer.close()
    self.assertEqual(self._read(directory), [(1, 1.0), (2, 2.0)])

  @parameterized.parameters(31, 7)
  @pytest.mark.sample(1)
  def test_a_run_killed_at_any_byte_continues(self, step):
    whole = self.enter_context(tempfile.TemporaryDirectory())
    self._write(whole, 0, 4)
    (data,) = file_testing.read_files(pathlib.Path(whole)).values()
    expected = self._read(whole)
    for size in range(0, len(data), step):
      for round_num in (0, 1):
        folder = folder_testing.new(self)
        killed = folder / 'events.out.tfevents.0000000001.a.1.0'
        killed.write_bytes(data[:size])
        self._write(folder, round_num, 4)
        seen = self._read(folder)
        # A file cut off before its first round has no events.
        self.assertEqual(seen, expected[-len(seen) :])
        self.assertGreaterEqual(len(seen), 4 - round_num)

  def test_a_full_disk_is_a_sentence(self):
    directory = self.enter_context(tempfile.TemporaryDirectory())
    writer = metrics_writers.TensorBoardMetricsWriter(directory)
    writer.resume(0)
    writer.write(1, {'loss': 1.0})
    with file_testing.max_file_size(100):
      with self.assertRaisesRegex(
          OSError, f'^could not write {directory}/events.*: File too large$'
      ):
        writer.write(2, {'loss': 1.0})
    writer.close()
    self.assertEqual(self._read(directory), [(1, 1.0)])

  def test_a_fresh_start_removes_old_events(self):
    directory = self.enter_context(tempfile.TemporaryDirectory())
    for _ in range(2):
      writer = metrics_writers.TensorBoardMetricsWriter(directory)
      writer.resume(0)
      writer.write(1, {'loss': 1.0})
      writer.close()
    self.assertEqual(self._read(directory), [(1, 1.0)])


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


class RejectedClientsWriterTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = folder_testing.new(self)
    self.path = folder / 'rejected_clients.csv'

  def _writer(self, round_num=0):
    writer = metrics_writers.RejectedClientsWriter(self.path)
    self.addCleanup(writer.close)
    writer.resume(round_num)
    return writer

  def _write(self, writer, round_num, rejected):
    writer.write(round_num, {'loss': 1.0})
    writer.write_rejected(round_num, rejected)

  def test_every_run_is_warned_of_once(self):
    writer = self._writer()
    for _ in range(2):
      writer.resume(0)
      with self.assertLogs(level='WARNING') as logs:
        self._write(writer, 1, [_ANN])
        self._write(writer, 2, [_ANN])
      self.assertLen(logs.output, 1)

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

  def test_continues_behind_the_rows_of_a_round(self):
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

  @parameterized.parameters(
      ('1,ann\n', 'line 2 is damaged .2 fields for 3 columns'),
      ('2,ann,x\n1,ann,x\n', 'line 3 is damaged .round_num 1 comes after 2'),
      ('1_0,ann,x\n', "line 2 is damaged .* found '1_0'"),
  )
  def test_damaged_rows_are_an_error(self, rows, sentence):
    self.path.write_text(f'round_num,client_id,reason\n{rows}')
    with self.assertRaisesRegex(metrics_writers.MetricsFileError, sentence):
      self._writer(7)

  def test_removes_its_temporary_files_and_no_others(self):
    ours, other = (
        self.path.with_name(f'{name}.0123456789abcdef.tmp')
        for name in (self.path.name, 'notes')
    )
    ours.touch()
    other.touch()
    self._writer(7)
    self.assertEqual(list(self.path.parent.iterdir()), [other])

  def test_a_new_run_does_not_read_the_file(self):
    self.path.write_text('not a table of clients\n')
    self._writer()
    self.assertFalse(self.path.exists())

  def test_without_rejected_clients_there_is_no_file_to_continue(self):
    self._write(self._writer(7), 8, [])
    self.assertEmpty(os.listdir(self.path.parent))

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that datasets are read once, where they are always the same."""

import collections
from collections.abc import Iterator
import contextlib
import functools
import gc
import pathlib
from typing import Any
from unittest import mock
import weakref

from absl import logging
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.runtime import equality_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import _dataset_elements
from tff_adaptive import data
from tff_adaptive import runtime
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.datasets import dataset_reads

_BATCH_TYPE = tff.types.tensorflow_to_type(testing.INPUT_SPEC)
_WARNING = mock.call(logging.WARNING, dataset_cache._SLOW_READING, 1)
_NUMBERS = tff.SequenceType(np.float32)


@functools.cache
def _weigh() -> tff.framework.ConcreteComputation:
  """Returns a computation that depends on the order of clients' data."""

  return sequence_testing.over_clients(
      lambda dataset: dataset.reduce(
          0.0, lambda total, b: 0.7 * total + tf.reduce_sum(b['x'])
      ),
      tff.SequenceType(_BATCH_TYPE),
  )


@functools.cache
def _add_up(change: Any = lambda numbers: numbers) -> Any:
  """Returns a sum of the clients' changed numbers."""
  return sequence_testing.over_clients(
      lambda numbers: change(numbers).reduce(0.0, lambda a, b: a + b), _NUMBERS
  )


def _draw(batch: Any) -> Any:
  noise = tf.random.uniform(tf.shape(batch['x']))
  return collections.OrderedDict(x=batch['x'] + noise, y=batch['y'])


def _scale(batch: Any, factor: float = 2.0) -> Any:
  return collections.OrderedDict(x=factor * batch['x'], y=batch['y'])


def _as_v1(dataset: tf.data.Dataset) -> tf.compat.v1.data.Dataset:
  """Returns the dataset with the methods of TensorFlow 1."""
  return tf.compat.v1.data.Dataset.zip(dataset)


def _captured(dataset: tf.data.Dataset) -> tf.data.Dataset:
  """Returns the dataset as what a function of another one returns."""
  return tf.data.Dataset.range(1).flat_map(lambda _: dataset)


def _draw_in_python(batch: Any) -> Any:
  noise = tf.numpy_function(np.random.normal, [batch['x']], np.float64)
  noise = tf.ensure_shape(tf.cast(noise, tf.float32), batch['x'].shape)
  return collections.OrderedDict(x=noise, y=batch['y'])


def _draw_in_a_branch(batch: Any) -> Any:
  branches = [lambda: batch, lambda: _draw(batch)]
  return tf.switch_case(tf.cast(batch['x'][0] > 0.0, tf.int32), branches)


def _keep_some(_: Any) -> tf.Tensor:
  return tf.random.uniform([]) < 0.5


def _in_groups(change: Any) -> Any:
  """Returns a function that changes the datasets of a dataset's groups."""
  return lambda dataset: dataset.unbatch().group_by_window(
      lambda _: tf.constant(0, tf.int64),
      lambda _, group: change(group).batch(4),
      window_size=4,
  )


def _in_windows(change: Any, join: Any = tf.data.Dataset.flat_map) -> Any:
  """Returns a function that changes the datasets of a dataset's windows."""
  return lambda dataset: join(
      dataset.unbatch().window(4),
      lambda window: change(tf.data.Dataset.zip(window)).batch(4),
  )


def _source(x: np.ndarray) -> data.PackedClientArrays:
  y = np.zeros([len(x)], np.int32)
  return data.PackedClientArrays({'x': x, 'y': y}, [0, len(x)], ['a'])


def _cohort(source: data.PackedClientArrays, round_num: int = 0) -> data.Cohort:
  return data.Cohort(source, ['a'], round_num, 0, data.BatchPlan(4))


class SourcesTest(compiled_testing.TestCase):

  def _rows_held(self, context: runtime.CompiledContext) -> list[tf.Tensor]:
    return [
        held.value[0]
        for by_type in context._cache._held.values()
        for held in by_type.values()
        if held.value is not None
    ]

  def test_contexts_and_evaluations_share_the_rows_of_an_array(self):
    x = np.ones([9, *testing.INPUT_SPEC['x'].shape[1:]], np.float32)
    with runtime.CompiledContext(strict=True) as context:
      _weigh()(_cohort(first := _source(x)))
      with runtime.CompiledContext(strict=True) as other:
        # Another source of the same array, as that of an evaluation.
        _weigh()(_cohort(second := _source(x)))
        _weigh()(_cohort(third := _source(x.copy())))
        (rows,), (shared, copied) = map(self._rows_held, (context, other))
      del first, second, third
    self.assertIs(shared, rows)
    self.assertIsNot(copied, rows)

  def test_contexts_share_what_was_read_of_a_dataset(self):
    dataset = testing.dataset(9)
    contexts = [runtime.CompiledContext(strict=True) for _ in range(2)]
    found = []
    for context in contexts:
      with tff.framework.get_context_stack().install(context):
        _weigh()([dataset])
      ((rows,),) = context._cache.read(
          [dataset], tff.SequenceType(_BATCH_TYPE), lambda _: None
      )
      found.append(rows)
    self.assertIs(*found)
    del contexts, context, found
    gc.collect()
    self.assertIsNone(
        dataset_cache.find_held(
            dataset_cache.content_of(dataset), tff.SequenceType(_BATCH_TYPE)
        )
    )

  def test_an_array_that_is_changed_in_place_is_read_again(self):
    x = np.ones([9, *testing.INPUT_SPEC['x'].shape[1:]], np.float32)
    source = _source(x)
    with runtime.CompiledContext(strict=True) as context:
      before = _weigh()(_cohort(source))
      x *= 2
      self.assertEqual(_weigh()(_cohort(source, 1)), 2 * before)
      # A single value of many may escape the sample, but not another source.
      x[0] = 7
      found = context._cache.resident_rows(
          _source(x), tff.SequenceType(_BATCH_TYPE)
      )
    self.assertAllEqual(found[0], x)

  def test_a_text_that_is_changed_in_place_is_read_again(self):
    texts = np.array([b'first text', b'other text'], object)
    source = data.PackedClientArrays.from_partition({'x': texts}, {'a': [0, 1]})
    batch_type = tff.types.tensorflow_to_type(
        collections.OrderedDict(x=tf.TensorSpec([None], tf.string))
    )
    cache, found = dataset_cache.DatasetCache(), []
    for number in range(9):
      # The second one may take the place in memory of the one before.
      texts[0] = b'changed %d' % number
      texts[0] = b'another %d' % number
      (rows,) = cache.resident_rows(source, tff.SequenceType(batch_type))
      found.append(rows.numpy()[0] == texts[0])
    self.assertEqual(found, [True] * 9)

  def test_a_batch_that_is_changed_in_place_is_read_again(self):
    batch = np.zeros([2], np.float32)
    add_up = sequence_testing.over_clients(
        lambda batches: batches.reduce(0.0, lambda a, b: a + tf.reduce_sum(b)),
        tff.SequenceType(tff.TensorType(np.float32, [None])),
    )
    with runtime.CompiledContext(strict=True):
      for number in (1.0, 2.0):
        batch[:] = number
        self.assertEqual(add_up([[batch]]), 2 * number)

  def test_a_sample_has_values_of_all_columns(self):
    positions = dataset_cache._sampled_positions(1000 * 784)
    self.assertLen(set(positions), 256)
    self.assertGreater(len(set(positions % 784)), 100)
    self.assertAllEqual(sorted(dataset_cache._sampled_positions(3)), [0, 1, 2])


class DatasetsTest(tf.test.TestCase, parameterized.TestCase):

  @pytest.fixture(autouse=True)
  def _use_folder(self, tmp_path):
    self.folder = tmp_path

  def setUp(self):
    super().setUp()
    # TensorFlow's test case sets one, which would seed all draws.
    tf.random.set_seed(None)

  @contextlib.contextmanager
  def _count_reads(self) -> Iterator[mock.Mock]:
    with mock.patch.object(
        _dataset_elements,
        'iterate',
        autospec=True,
        side_effect=_dataset_elements.iterate,
    ) as read:
      yield read

  @parameterized.named_parameters(
      ('plain', lambda dataset: dataset),
      ('drawing', lambda dataset: dataset.map(_draw)),
      ('shuffled', lambda dataset: dataset.shuffle(9)),
      (
          'shuffled_by_tensorflow_1',
          lambda dataset: _as_v1(dataset).shuffle(9).map(_scale),
      ),
      ('of_tensorflow_1', lambda dataset: _as_v1(dataset).map(_scale)),
      (
          'of_a_list',
          lambda dataset: tf.data.experimental.from_list(
              list(dataset.unbatch())
          ).batch(4),
      ),
      ('in_groups', _in_groups(lambda group: group.map(_scale))),
      ('in_windows', _in_windows(lambda window: window.map(_scale))),
  )
  @pytest.mark.sample(1)
  def test_are_read_once(self, change):
    def make():
      return [change(testing.dataset(9)), change(testing.dataset(3))]

    datasets = make()
    log = self.enter_context(mock.patch.object(logging, 'log_first_n'))
    with runtime.CompiledContext(strict=True):
      with self._count_reads() as read:
        for clients in (datasets, datasets[:1], datasets[::-1]):
          _weigh()(clients)
        del clients, datasets
        _weigh()(make())  # Others, of the same values.
        self.assertEqual(read.call_count, 2)
      self.assertNotIn(_WARNING, log.mock_calls)

  def test_those_that_differ_in_a_value_are_read(self):
    datasets = [
        testing.dataset(9).map(lambda batch, c=c: _scale(batch, c))
        for c in (2.0, 3.0)
    ]
    with runtime.CompiledContext(strict=True):
      results = [_weigh()([dataset]) for dataset in datasets]
    self.assertNotAllClose(*results)

  def test_those_of_the_same_values_in_another_structure_are_checked(self):
    def make(name):
      rows = {name: np.ones([3, *testing.INPUT_SPEC['x'].shape[1:]])}
      return tf.data.Dataset.from_tensor_slices(rows).batch(2)

    spec = tff.types.tensorflow_to_type(make('x').element_spec)
    count = sequence_testing.over_clients(
        lambda dataset: dataset.reduce(0, lambda total, _: total + 1),
        tff.SequenceType(spec),
    )
    with runtime.CompiledContext(strict=True):
      self.assertEqual(count([make('x')]), 2)
      with self.assertRaisesRegex(TypeError, 'z'):
        count([make('z')])

  def test_variables_are_read_in_each_round(self):
    numbers = tf.data.Dataset.range(3)
    datasets = []
    variables = [tf.Variable(1.0), tf.Variable(1.0)]
    for variable in variables:
      datasets.append(
          numbers.map(lambda n, v=variable: v * tf.cast(n, tf.float32))
      )
    with equality_testing.compiled():
      self.assertEqual(_add_up()(datasets), 6.0)
      variables[1].assign(3.0)
      self.assertEqual(_add_up()(datasets), 3.0 + 9.0)

  @parameterized.named_parameters(
      (
          'from_python',
          lambda dataset: tf.data.Dataset.from_generator(
              dataset.as_numpy_iterator, output_signature=dataset.element_spec
          ),
      ),
      ('shuffled_and_captured', lambda dataset: _captured(dataset.shuffle(9))),
      ('in_groups', _in_groups(lambda group: group.map(_draw))),
      ('in_windows', _in_windows(lambda window: window.map(_draw))),
      (
          'in_interleaved_windows',
          _in_windows(lambda w: w.map(_draw), tf.data.Dataset.interleave),
      ),
      (
          'in_windows_of_windows',
          _in_windows(
              lambda w: _in_windows(lambda v: v.map(_draw))(
                  w.batch(2)
              ).unbatch()
          ),
      ),
      ('filtered_in_windows', _in_windows(lambda w: w.filter(_keep_some))),
      ('python_in_windows', _in_windows(lambda w: w.map(_draw_in_python))),
      ('branch_in_windows', _in_windows(lambda w: w.map(_draw_in_a_branch))),
  )
  def test_are_read_anew_if_they_change(self, change):
    dataset = change(testing.dataset(9))
    log = self.enter_context(mock.patch.object(logging, 'log_first_n'))
    with equality_testing.compiled():
      _weigh()([dataset])  # Reads what is the same in all rounds, too.
      with self._count_reads() as read:
        for _ in range(3):
          _weigh()([dataset])
      self.assertIn(_WARNING, log.mock_calls)
      self.assertEqual(read.call_count, 3)

  @parameterized.named_parameters(
      ('lines', lambda path: tf.data.TextLineDataset(path)),
      (
          'several',
          lambda path: tf.data.TextLineDataset(['/dev/null', path]),
      ),
      (
          'columns',
          lambda path: tf.data.experimental.CsvDataset(path, [tf.string]).map(
              lambda column: column
          ),
      ),
      (
          'captured_lines',
          lambda path: tf.data.Dataset.from_tensors(path).flat_map(
              tf.data.TextLineDataset
          ),
      ),
      (
          'contents',
          lambda path: tf.data.Dataset.from_tensors(path).map(tf.io.read_file),
      ),
  )
  def test_of_files_are_read_anew(self, read):
    path = f'{self.folder}/numbers.txt'
    pathlib.Path(path).write_text('1', encoding='ascii')
    dataset = read(path).map(lambda text: tf.strings.to_number(text))
    with equality_testing.compiled():
      self.assertEqual(_add_up()([dataset]), 1.0)
      pathlib.Path(path).write_text('5', encoding='ascii')
      self.assertEqual(_add_up()([dataset]), 5.0)

  def test_of_saved_datasets_are_read_anew(self):
    path = f'{self.folder}/saved'
    for number in (1.0, 5.0):
      tf.data.Dataset.from_tensors(number).save(path)
      with equality_testing.compiled():
        self.assertEqual(_add_up()([tf.data.Dataset.load(path)]), number)

  @parameterized.named_parameters(
      ('said', lambda: tf.data.Dataset.range(1, 4).repeat()),
      (
          'not_said',
          lambda: tf.data.Dataset.range(1, 4).repeat().filter(lambda n: n > 0),
      ),
  )
  def test_of_endless_datasets_a_part_is_taken(self, build):
    first_five = _add_up(lambda numbers: numbers.take(5))

    def until_five(numbers):
      @tf.function
      def add_up():
        count, total = 0, 0.0
        for number in iter(numbers):
          if count >= 5:
            break
          count, total = count + 1, total + number
        return total

      return add_up()

    dataset = build().map(lambda number: tf.cast(number, tf.float32))
    with mock.patch.object(dataset_reads, '_MAX_CLIENT_BYTES', 10_000):
      with runtime.CompiledContext():
        reason = 'a dataset is infinite|holds more than 10000 bytes'
        for computation in (
            first_five,
            sequence_testing.over_clients(until_five, _NUMBERS),
        ):
          with self.assertWarnsRegex(RuntimeWarning, reason):
            self.assertEqual(computation([dataset]), 1 + 2 + 3 + 1 + 2)

  def test_no_clients_where_datasets_are_needed(self):
    with runtime.CompiledContext() as context:
      add_up = _add_up(lambda numbers: numbers.window(2).flat_map(lambda w: w))
      with self.assertWarnsRegex(RuntimeWarning, 'it calls WindowDataset'):
        self.assertEqual(add_up([[1.0, 2.0]]), 3.0)
      self.assertEqual(add_up([]), 0.0)
      self.assertIn('WindowDataset', context.plan_of(add_up).pipelines)

  @pytest.mark.usefixtures('native_runtime')
  def test_shuffles_by_a_computation_are_new_in_each_round(self):
    shuffle = tff.tensorflow.computation(
        lambda batches: batches.shuffle(90), tff.SequenceType(_BATCH_TYPE)
    )
    dataset = shuffle(testing.dataset(90))
    with runtime.CompiledContext(strict=True):
      found = [float(_weigh()([dataset])) for _ in range(4)]
    self.assertLen(set(found), 4)

  @pytest.mark.usefixtures('native_runtime')
  def test_seeded_orders_are_those_of_native_rounds(self):
    dataset = testing.dataset(90).unbatch().shuffle(20, seed=1)
    dataset = dataset.repeat(2).batch(4)
    next(iter(dataset))  # As a script that looks at its data.
    native = [float(_weigh()([dataset])) for _ in range(2)]
    with runtime.CompiledContext(strict=True):
      compiled = [float(_weigh()([dataset])) for _ in range(2)]
    self.assertAllClose(native, compiled, rtol=1e-6)
    self.assertEqual(*compiled)

  def test_a_part_of_an_endless_dataset_that_is_filtered(self):
    dataset = tf.data.Dataset.range(1, 4).repeat().filter(lambda n: n > 1)
    dataset = dataset.take(4).map(lambda n: tf.cast(n, tf.float32))
    with equality_testing.compiled():
      self.assertEqual(_add_up()([dataset]), 2 + 3 + 2 + 3)

  def test_files_that_do_not_change_are_read_once(self):
    path = pathlib.Path(self.folder) / 'numbers.txt'
    path.write_text('1\n2\n', encoding='ascii')
    dataset = tf.data.TextLineDataset(str(path)).shuffle(2)
    dataset = dataset.map(lambda text: tf.strings.to_number(text))
    with runtime.CompiledContext(strict=True):
      with self._count_reads() as read:
        for _ in range(3):
          self.assertEqual(_add_up()([dataset]), 3.0)
        self.assertEqual(read.call_count, 1)

  def test_those_used_last_are_kept_where_there_is_room(self):
    datasets = [
        testing.dataset(9).map(lambda batch, c=c: _scale(batch, c))
        for c in (1.0, 2.0, 3.0)
    ]
    with runtime.CompiledContext(strict=True) as context:
      expected = [_weigh()([dataset]) for dataset in datasets]
      num_bytes = context.num_cache_bytes
    self.assertGreater(num_bytes, 0)
    del context  # Its cache would share what it holds.
    gc.collect()
    limit = num_bytes * 2 // 3
    with runtime.CompiledContext(strict=True, max_cache_bytes=limit) as some:
      with self._count_reads() as read:
        for number, num_reads in zip((0, 1, 0, 2, 0, 1), (1, 2, 2, 3, 3, 4)):
          self.assertEqual(_weigh()([datasets[number]]), expected[number])
          self.assertEqual(read.call_count, num_reads)
          self.assertLessEqual(some.num_cache_bytes, limit)
    self.assertEqual(some.num_cache_bytes, limit)

  def test_nothing_is_kept_where_there_is_no_room(self):
    dataset, cohort = testing.dataset(9), equality_testing.cohort()
    with runtime.CompiledContext(strict=True, max_cache_bytes=0) as context:
      with self._count_reads() as read:
        for _ in range(2):
          _weigh()([dataset])
        self.assertEqual(read.call_count, 2)
      found = _weigh()(cohort)
      self.assertEqual(context.num_cache_bytes, 0)
    num_bytes = sum(array.nbytes for array in cohort.source.values.values())
    for limit, kept in ((num_bytes - 1, 0), (num_bytes, num_bytes)):
      with runtime.CompiledContext(strict=True, max_cache_bytes=limit) as some:
        self.assertEqual(_weigh()(cohort), found)
        self.assertEqual(some.num_cache_bytes, kept)

  def test_contents_of_strings_count(self):
    texts = tf.data.Dataset.from_tensor_slices(['a' * 1000, 'b' * 3000])
    count = sequence_testing.over_clients(
        lambda words: words.reduce(0, lambda n, w: n + tf.strings.length(w)),
        tff.SequenceType(np.str_),
    )
    with runtime.CompiledContext(strict=True) as context:
      self.assertEqual(count([texts]), 4000)
      self.assertGreaterEqual(context.num_cache_bytes, 4000)

  def test_vanish_with_their_context(self):
    dataset = testing.dataset(9)
    with runtime.CompiledContext(strict=True) as context:
      _weigh()([dataset])
      (rows,) = [
          weakref.ref(held.value)
          for by_type in context._cache._held.values()
          for held in by_type.values()
      ]
    del context
    gc.collect()
    self.assertIsNone(rows())

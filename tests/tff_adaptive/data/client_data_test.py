# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `client_data`."""

import collections

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.data import client_arrays_testing
from tff_adaptive.data import client_data
from tff_adaptive.data import partition

_SPEC = collections.OrderedDict(
    x=tf.TensorSpec([2], tf.float32), y=tf.TensorSpec([], tf.int32)
)


def _client(size, first=0.0):
  x = first + np.arange(2 * size, dtype=np.float32).reshape([size, 2])
  return collections.OrderedDict(x=x, y=np.arange(size, dtype=np.int32))


def _clients():
  return {'ann': _client(3), 'bob': _client(0), 'cid': _client(2, 100.0)}


_SOURCES = client_arrays_testing.SOURCES


class ClientArraysTest(parameterized.TestCase):
  """Checks the properties that all sources share."""

  @parameterized.named_parameters(*_SOURCES)
  def test_examples_are_those_of_the_client(self, build):
    source = build(_clients())
    for client_id, expected in _clients().items():
      examples = source.examples(client_id)
      self.assertIsInstance(examples, collections.OrderedDict)
      self.assertEqual(list(examples), ['x', 'y'])
      for name in expected:
        np.testing.assert_array_equal(examples[name], expected[name])
        self.assertEqual(examples[name].dtype, expected[name].dtype)

  @parameterized.named_parameters(*_SOURCES)
  def test_ids_sizes_and_spec(self, build):
    source = build(_clients())
    self.assertEqual(source.client_ids, ('ann', 'bob', 'cid'))
    self.assertEqual(
        [source.num_examples(i) for i in source.client_ids], [3, 0, 2]
    )
    self.assertEqual(source.total_examples, 5)
    self.assertEqual(source.element_spec, _SPEC)
    self.assertEqual(source.position('cid'), 2)

  @parameterized.named_parameters(*_SOURCES)
  def test_what_is_returned_may_be_changed(self, build):
    source = build(_clients())
    for _ in range(2):
      self.assertEqual(source.element_spec, _SPEC)
      self.assertEqual(list(source.examples('ann')), ['x', 'y'])
      source.element_spec.clear()
      source.examples('ann').clear()

  @parameterized.named_parameters(*_SOURCES)
  def test_take_returns_examples_by_position(self, build):
    taken = build(_clients()).take('cid', np.array([1, 1, 0]))
    np.testing.assert_array_equal(taken['x'][:, 0], [102.0, 102.0, 100.0])
    self.assertEqual(taken['y'].tolist(), [1, 1, 0])
    self.assertEmpty(build(_clients()).take('bob', np.array([], np.int64))['x'])

  @parameterized.named_parameters(*_SOURCES)
  def test_take_does_not_reach_into_the_next_client(self, build):
    with self.assertRaises(IndexError):
      build(_clients()).take('ann', np.array([3]))

  @parameterized.named_parameters(*_SOURCES)
  def test_unknown_client_raises_naming_it_and_near_ids(self, build):
    source = build(_clients())
    for method in (source.examples, source.num_examples, source.position):
      with self.assertRaisesRegex(KeyError, r"no client 'anne'.*\['ann'\]"):
        method('anne')
    with self.assertRaisesRegex(KeyError, 'no id is similar'):
      source.examples('7')


class PackedClientArraysTest(parameterized.TestCase):

  def test_partition_with_replacement_shares_the_values(self):
    values = {'x': np.arange(4.0)}
    source = client_data.PackedClientArrays.from_partition(
        values, {'a': np.array([3, 3, 0]), 'b': np.array([3])}
    )
    self.assertEqual(source.examples('a')['x'].tolist(), [3.0, 3.0, 0.0])
    self.assertEqual(source.total_examples, 4)
    self.assertTrue(np.shares_memory(source.values['x'], values['x']))
    self.assertEqual(source.offsets.tolist(), [0, 3, 4])
    self.assertEqual(source.indices.tolist(), [3, 3, 0, 3])
    self.assertEqual(source.rows('b').tolist(), [3])

  def test_takes_what_partition_returns(self):
    labels = np.repeat(np.arange(3), 10)
    parts = partition.dirichlet_per_client(labels, 4, 0.1, seed=1)
    source = client_data.PackedClientArrays.from_partition({'y': labels}, parts)
    self.assertEqual(source.client_ids, tuple(parts))
    for client_id, rows in parts.items():
      np.testing.assert_array_equal(
          source.examples(client_id)['y'], labels[rows]
      )

  def test_examples_of_contiguous_clients_are_read_only_views(self):
    source = client_arrays_testing.packed(_clients())
    examples = source.examples('cid')
    self.assertTrue(np.shares_memory(examples['x'], source.values['x']))
    with self.assertRaisesRegex(ValueError, 'read-only'):
      examples['x'][0] = 0.0
    self.assertEqual(source.rows('cid').tolist(), [3, 4])
    self.assertIsNone(source.indices)

  def test_features_of_any_name_and_rank(self):
    source = client_data.PackedClientArrays.from_clients(
        {'a': {'tokens': np.ones([2, 7], np.int64), 'text': [b'u', b'v']}}
    )
    self.assertEqual(source.element_spec['tokens'].shape.as_list(), [7])
    self.assertEqual(source.element_spec['text'].dtype, tf.string)

  def test_order_of_features_is_that_of_the_first_client(self):
    source = client_data.PackedClientArrays.from_clients(
        {
            'a': collections.OrderedDict(y=np.zeros([1]), x=np.ones([1])),
            'b': collections.OrderedDict(
                x=np.full([1], 2.0), y=np.full([1], 3.0)
            ),
        }
    )
    self.assertEqual(list(source.element_spec), ['y', 'x'])
    self.assertEqual(source.examples('b')['x'].tolist(), [2.0])


class LazyClientArraysTest(parameterized.TestCase):

  def _source(self, cache_bytes, num_clients=4, **kwargs):
    """Returns clients of 80 bytes each, and a list that records reads."""
    loaded = []
    clients = {
        str(i): {'x': np.full([10], 1.0 * i)} for i in range(num_clients)
    }
    source = client_arrays_testing.lazy(
        clients, loaded, cache_bytes=cache_bytes, **kwargs
    )
    return source, loaded

  def test_nothing_is_read_before_it_is_asked_for(self):
    _, loaded = self._source(cache_bytes=1000)
    self.assertEmpty(loaded)

  def test_client_is_read_once_while_there_is_room(self):
    source, loaded = self._source(cache_bytes=320)
    for _ in range(3):
      for client_id in source.client_ids:
        self.assertEqual(source.examples(client_id)['x'][0], int(client_id))
    self.assertEqual(loaded, ['0', '1', '2', '3'])
    self.assertEqual(source._cache.num_bytes, 320)

  def test_client_not_used_for_longest_is_dropped(self):
    source, loaded = self._source(cache_bytes=160)
    for client_id in ['0', '1', '0', '2', '0', '1']:
      source.examples(client_id)
    # '1' made room for '2', and was read again.
    self.assertEqual(loaded, ['0', '1', '2', '1'])

  def test_memory_is_bounded_over_many_rounds(self):
    source, _ = self._source(cache_bytes=200, num_clients=50)
    for i in range(500):
      source.examples(str(i % 50))
      self.assertLessEqual(source._cache.num_bytes, 200)

  @parameterized.parameters(0, 79)
  def test_client_larger_than_the_room_is_read_each_time(self, cache_bytes):
    source, loaded = self._source(cache_bytes)
    source.examples('0')
    source.examples('0')
    self.assertEqual(loaded, ['0', '0'])
    self.assertEqual(source._cache.num_bytes, 0)

  def test_sizes_are_known_after_the_first_reading(self):
    source, loaded = self._source(cache_bytes=0)
    self.assertEqual(source.total_examples, 40)
    self.assertEqual(source.total_examples, 40)
    self.assertLen(loaded, 4)

  def test_given_sizes_save_reading(self):
    source, loaded = self._source(
        cache_bytes=0, client_sizes={str(i): 10 for i in range(4)}
    )
    self.assertEqual(source.total_examples, 40)
    self.assertEmpty(loaded)

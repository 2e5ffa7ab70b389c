# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of transforms."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.data import client_arrays_testing
from tff_adaptive.data import client_data
from tff_adaptive.data import transforms

_CLIENTS = {
    'ann': {'x': np.float32([1, 2, 3, 4])},
    'bob': {'x': np.float32([])},
    'cid': {'x': np.float32([10, 20, 30, 40, 50, 60, 70, 80])},
}
_SPEC = {'x': tf.TensorSpec([], tf.float32)}


def _packed():
  return client_arrays_testing.packed(_CLIENTS)


def _lazy(read=None):
  sizes = {name: len(one['x']) for name, one in _CLIENTS.items()}
  return client_arrays_testing.lazy(_CLIENTS, read, client_sizes=sizes)


def _values(source):
  return {
      name: source.examples(name)['x'].tolist() for name in source.client_ids
  }


def _repeating():
  """Returns clients that sample 1,000 rows of 700 values with replacement."""
  generator = np.random.default_rng(0)
  values = {
      'x': np.float32(np.append(np.arange(700), np.arange(300))),
      'y': np.zeros([1000], np.int32),
  }
  rows = {f'{i}': generator.integers(0, 1000, 100 + i) for i in range(30)}
  return client_data.PackedClientArrays.from_partition(values, rows)


def _lazily_repeating():
  packed = _repeating()
  return client_data.LazyClientArrays(
      packed.client_ids, packed.examples, packed.element_spec
  )


def _all_rows(source):
  return set(transforms.concatenate(source)['x'].tolist())


class MapClientsTest(parameterized.TestCase):

  @parameterized.parameters(_packed, _lazy)
  def test_maps_every_client(self, source_fn):
    mapped = transforms.map_clients(
        source_fn(),
        lambda raw: {'y': (raw['x'] * 2).astype(np.int32)},
        {'y': tf.TensorSpec([], tf.int32)},
        keeps_sizes=True,
    )
    self.assertEqual(mapped.client_ids, ('ann', 'bob', 'cid'))
    self.assertEqual(mapped.examples('ann')['y'].tolist(), [2, 4, 6, 8])
    self.assertEqual(mapped.num_examples('cid'), 8)
    self.assertEqual(mapped.element_spec['y'].dtype, tf.int32)

  def test_shared_rows_are_mapped_once_and_stay_shared(self):
    source = client_data.PackedClientArrays.from_partition(
        {'x': np.float32([1, 2])}, {'a': [0, 1, 0], 'b': [1]}
    )
    mapped = transforms.map_clients(
        source, lambda raw: {'x': raw['x'] + 1}, _SPEC, keeps_sizes=True
    )
    self.assertIsInstance(mapped, client_data.PackedClientArrays)
    self.assertEqual(mapped.values['x'].tolist(), [2, 3])
    self.assertEqual(_values(mapped), {'a': [2, 3, 2], 'b': [3]})

  @parameterized.parameters(_packed, _lazy)
  def test_a_function_that_changes_its_mapping_leaves_the_source(
      self, source_fn
  ):
    def halve(features):
      features['x'] = features['x'] / 2
      return features

    source = source_fn()
    for _ in range(2):
      mapped = transforms.map_clients(
          source, halve, _SPEC, keeps_sizes=True, cache_bytes=0
      )
      self.assertEqual(_values(mapped)['ann'], [0.5, 1.0, 1.5, 2.0])
    transforms.concatenate(source).clear()
    self.assertEqual(_values(source)['ann'], [1.0, 2.0, 3.0, 4.0])

  def test_sizes_of_lazy_clients_are_known_without_reading(self):
    read = []
    mapped = transforms.map_clients(
        _lazy(read), lambda raw: raw, _SPEC, keeps_sizes=True
    )
    self.assertEqual(mapped.total_examples, 12)
    self.assertEmpty(read)

  @parameterized.parameters(_packed, _lazy)
  def test_sizes_may_change(self, source_fn):
    mapped = transforms.map_clients(
        source_fn(),
        lambda raw: {'x': raw['x'].repeat(2)},
        _SPEC,
        keeps_sizes=False,
    )
    self.assertEqual(mapped.num_examples('ann'), 8)
    self.assertEqual(mapped.total_examples, 24)

  @parameterized.parameters(
      (_packed, '^The result of `fn` has'), (_lazy, "^Client 'ann' has")
  )
  def test_features_other_than_declared_raise(self, source_fn, owner):
    with self.assertRaisesRegex(ValueError, f'{owner} float64.*float32'):
      transforms.map_clients(
          source_fn(),
          lambda raw: {'x': raw['x'].astype(np.float64)},
          _SPEC,
          keeps_sizes=True,
      ).examples('ann')

  @parameterized.parameters(
      _packed(),
      client_data.PackedClientArrays.from_partition(
          {'x': np.float32([1, 2, 3])}, {'a': [2, 0], 'b': [1]}
      ),
  )
  def test_shared_rows_whose_number_is_not_kept_raise(self, source):
    num_rows = len(source.values['x'])
    with self.assertRaisesRegex(ValueError, f'`keeps_sizes=.* {num_rows} into'):
      transforms.map_clients(
          source,
          lambda raw: {'x': np.repeat(raw['x'], 2)},
          _SPEC,
          keeps_sizes=True,
      )

  def test_lazy_clients_whose_sizes_are_not_kept_raise(self):
    mapped = transforms.map_clients(
        _lazy(), lambda raw: {'x': raw['x'][:2]}, _SPEC, keeps_sizes=True
    )
    with self.assertRaisesRegex(ValueError, "'ann'.* 4 .*`keeps_sizes`"):
      mapped.examples('ann')


class ChooseClientsTest(parameterized.TestCase):

  def test_a_sample_depends_on_the_seed_and_keeps_the_order(self):
    ids = [f'client_{i:03}' for i in range(100)]
    draws = [transforms.sample_client_ids(ids, 10, seed) for seed in (0, 0, 1)]
    self.assertEqual(draws[0], draws[1])
    self.assertNotEqual(draws[0], draws[2])
    self.assertLen(set(draws[0]), 10)
    self.assertEqual(list(draws[0]), sorted(draws[0]))
    self.assertEqual(transforms.sample_client_ids(ids, 100, 0), tuple(ids))

  @parameterized.parameters(_packed, _lazy)
  def test_selects_in_the_order_asked_for(self, source_fn):
    source = source_fn()
    chosen = transforms.select_clients(source, ['cid', 'ann'])
    self.assertEqual(
        list(_values(chosen).items()),
        [('cid', _CLIENTS['cid']['x'].tolist()), ('ann', [1, 2, 3, 4])],
    )
    self.assertEqual(chosen.total_examples, 12)
    with self.assertRaisesRegex(KeyError, 'bob'):
      chosen.num_examples('bob')
    with self.assertRaisesRegex(KeyError, "'dan'"):
      transforms.select_clients(source, ['dan'])

  @parameterized.parameters(_packed, _lazy)
  def test_a_client_selected_twice_raises(self, source_fn):
    with self.assertRaisesRegex(ValueError, 'twice|more than once'):
      transforms.select_clients(source_fn(), ['ann', 'ann'])

  def test_selected_rows_are_not_copied(self):
    source = _packed()
    chosen = transforms.select_clients(source, ['cid'])
    self.assertTrue(np.shares_memory(chosen.values['x'], source.values['x']))


class SplitExamplesTest(parameterized.TestCase):

  @parameterized.parameters(_packed, _lazy)
  def test_splits_every_client(self, source_fn):
    source = source_fn()
    train, test = transforms.split_examples(source, 0.25, seed=3)
    self.assertEqual(train.client_ids, source.client_ids)
    self.assertEqual(test.client_ids, ('ann', 'cid'))
    for name, size in (('ann', 1), ('cid', 2)):
      self.assertEqual(test.num_examples(name), size)
      held_out = test.examples(name)['x'].tolist()
      kept = train.examples(name)['x'].tolist()
      self.assertLen(held_out, size)
      self.assertEqual(
          sorted(kept + held_out), source.examples(name)['x'].tolist()
      )
      self.assertEqual(kept, sorted(kept))

  @parameterized.parameters(
      (_packed, _lazy, 0.5), (_repeating, _lazily_repeating, 0.3)
  )
  def test_packed_and_lazy_clients_are_split_alike(self, packed, lazy, part):
    packed, lazy = (
        transforms.split_examples(source(), part, seed=3)
        for source in (packed, lazy)
    )
    for one, other in zip(packed, lazy):
      self.assertEqual(_values(one), _values(other))

  def test_depends_on_the_seed(self):
    tests = [
        _values(transforms.split_examples(_packed(), 0.5, seed)[1])
        for seed in (0, 0, 1)
    ]
    self.assertEqual(tests[0], tests[1])
    self.assertNotEqual(tests[0], tests[2])

  def test_too_few_examples_raise(self):
    with self.assertRaisesRegex(ValueError, '0.1.* has 8, .* all 12 are'):
      transforms.split_examples(_packed(), 0.1, 0)
    same = client_data.PackedClientArrays.from_clients({'a': {'x': [1.0] * 9}})
    for fraction in (0.1, 0.9):
      with self.assertRaisesRegex(ValueError, 'has 9, and 1 of all 9 are'):
        transforms.split_examples(same, fraction, 0)

  @parameterized.parameters(_repeating, _lazily_repeating)
  def test_copies_of_an_example_are_on_one_side(self, source_fn):
    source = source_fn()
    for fraction in (0.1, 0.3):
      train, test = transforms.split_examples(source, fraction, seed=0)
      trained, tested = _all_rows(train), _all_rows(test)
      self.assertEmpty(trained & tested)
      self.assertEqual(trained | tested, _all_rows(source))
      self.assertEqual(
          train.total_examples + test.total_examples, source.total_examples
      )
      self.assertAlmostEqual(
          test.total_examples / source.total_examples, fraction, delta=0.02
      )
      for name in source.client_ids:
        share = test.num_examples(name) / source.num_examples(name)
        self.assertAlmostEqual(share, fraction, delta=0.15)

  def test_a_part_of_a_part_is_its_fraction(self):
    rest, _ = transforms.split_examples(_repeating(), 0.3, seed=0)
    train, test = transforms.split_examples(rest, 0.3, seed=0)
    self.assertEmpty(_all_rows(train) & _all_rows(test))
    share = test.total_examples / rest.total_examples
    self.assertAlmostEqual(share, 0.3, delta=0.02)

  @parameterized.parameters(
      client_arrays_testing.packed, client_arrays_testing.lazy
  )
  def test_clients_without_training_examples_are_left_out(self, build):
    clients = {
        'a': {'x': np.float32([1, 1])},
        'b': {'x': np.float32([1, 2])},
        'c': {'x': np.float32([])},
    }
    with self.assertLogs('absl', 'WARNING') as logs:
      train, test = transforms.split_examples(build(clients), 0.6, seed=0)
    self.assertEqual(_values(train), {'b': [2], 'c': []})
    self.assertEqual(_values(test), {'a': [1, 1], 'b': [1]})
    self.assertIn(
        '1 of 3 clients have no training examples left', logs.output[0]
    )


class SplitClientsTest(parameterized.TestCase):

  @parameterized.parameters(_packed, _lazy)
  def test_clients_without_copies_are_those_selected(self, source_fn):
    train, test = transforms.split_clients(source_fn(), ['cid'])
    self.assertEqual(
        _values(train),
        _values(transforms.select_clients(_packed(), ['ann', 'bob'])),
    )
    self.assertEqual(
        _values(test), _values(transforms.select_clients(_packed(), ['cid']))
    )
    with self.assertRaisesRegex(KeyError, "'dan'"):
      transforms.split_clients(source_fn(), ['dan'])

  @parameterized.parameters(_repeating, _lazily_repeating)
  def test_copies_are_left_out_of_the_others(self, source_fn):
    source = source_fn()
    held_out = transforms.sample_client_ids(source.client_ids, 3, seed=0)
    train, test = transforms.split_clients(source, held_out)
    self.assertEqual(test.client_ids, held_out)
    for name in held_out:
      self.assertEqual(
          test.examples(name)['x'].tolist(), source.examples(name)['x'].tolist()
      )
    tested = set(transforms.concatenate(test)['x'].tolist())
    num_left_out = 0
    for name in train.client_ids:
      rows = source.examples(name)['x'].tolist()
      kept = [row for row in rows if row not in tested]
      self.assertEqual(train.examples(name)['x'].tolist(), kept)
      self.assertEqual(train.num_examples(name), len(kept))
      num_left_out += len(rows) - len(kept)
    self.assertGreater(num_left_out, 1000)

  def test_examples_left_out_are_counted(self):
    clients = {
        'a': {'x': np.float32([1, 2, 1])},
        'b': {'x': np.float32([1])},
        'c': {'x': np.float32([1, 3])},
    }
    source = client_data.PackedClientArrays.from_clients(clients)
    with self.assertLogs('absl', 'WARNING') as logs:
      train, _ = transforms.split_clients(source, ['c'])
    self.assertEqual(_values(train), {'a': [2]})
    self.assertIn('3 of 4 training examples equal an example', logs.output[0])
    self.assertIn(
        '1 of 2 clients have no training examples left', logs.output[1]
    )
    with self.assertRaisesRegex(ValueError, 'All 1 examples of the other'):
      transforms.split_clients(source, ['a', 'c'])

  def test_lazy_clients_are_read_when_they_are_needed(self):
    read = []
    train, _ = transforms.split_clients(_lazy(read), ['ann'])
    self.assertEqual(read, ['ann'])
    self.assertIsNone(train.known_num_examples('cid'))
    self.assertEqual(train.num_examples('cid'), 8)


class TogetherTest(absltest.TestCase):

  def test_materializes_lazy_clients(self):
    packed = transforms.materialize(_lazy())
    self.assertIsInstance(packed, client_data.PackedClientArrays)
    self.assertEqual(_values(packed), _values(_lazy()))
    self.assertIs(transforms.materialize(packed), packed)

  def test_concatenates_clients_with_rows_in_common(self):
    source = client_data.PackedClientArrays.from_partition(
        {'x': np.float32([1, 2])}, {'a': [1, 1], 'b': [0]}
    )
    self.assertEqual(transforms.concatenate(source)['x'].tolist(), [2, 2, 1])
    self.assertLen(transforms.concatenate(_lazy())['x'], 12)

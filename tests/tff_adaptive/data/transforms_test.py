# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of transforms."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive.data import client_data
from tff_adaptive.data import transforms

_CLIENTS = {
    'ann': {'x': np.float32([1, 2, 3, 4])},
    'bob': {'x': np.float32([])},
    'cid': {'x': np.float32([10, 20, 30, 40, 50, 60, 70, 80])},
}
_SPEC = {'x': tf.TensorSpec([], tf.float32)}


def _packed():
  return client_data.PackedClientArrays.from_clients(_CLIENTS)


def _lazy(read=None):
  def load(client_id):
    if read is not None:
      read.append(client_id)
    return _CLIENTS[client_id]

  return client_data.LazyClientArrays(
      _CLIENTS,
      load,
      _SPEC,
      client_sizes={name: len(one['x']) for name, one in _CLIENTS.items()},
  )


def _values(source):
  return {
      name: source.examples(name)['x'].tolist() for name in source.client_ids
  }


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
    with self.assertRaisesRegex(
        ValueError, f'`keeps_sizes=True`, but turned {num_rows} into'
    ):
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
    with self.assertRaisesRegex(
        ValueError, "'ann' must have 4 .*`keeps_sizes`"
    ):
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

  @parameterized.parameters(0, 4)
  def test_a_number_out_of_range_raises(self, num_clients):
    with self.assertRaisesRegex(ValueError, f'1 and 3.* {num_clients}'):
      transforms.sample_client_ids('abc', num_clients, 0)

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

  def test_packed_and_lazy_clients_are_split_alike(self):
    packed = transforms.split_examples(_packed(), 0.5, seed=3)
    lazy = transforms.split_examples(_lazy(), 0.5, seed=3)
    for one, other in zip(packed, lazy):
      self.assertEqual(_values(one), _values(other))

  def test_depends_on_the_seed(self):
    tests = [
        _values(transforms.split_examples(_packed(), 0.5, seed)[1])
        for seed in (0, 0, 1)
    ]
    self.assertEqual(tests[0], tests[1])
    self.assertNotEqual(tests[0], tests[2])

  @parameterized.parameters(0.0, 1.0, float('nan'))
  def test_a_fraction_out_of_range_raises(self, fraction):
    with self.assertRaisesRegex(ValueError, 'between 0 and 1'):
      transforms.split_examples(_packed(), fraction, 0)

  def test_too_few_examples_raise(self):
    with self.assertRaisesRegex(ValueError, 'No client.*the largest has 8'):
      transforms.split_examples(_packed(), 0.1, 0)


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

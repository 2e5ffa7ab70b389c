# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of tff_client_data."""

import collections
from unittest import mock

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import case_testing
from tests import folder_testing
from tests.tff_adaptive.data import client_arrays_testing
from tff_adaptive import data as data_lib
from tff_adaptive.data import client_data
from tff_adaptive.data import sqlite
from tff_adaptive.data import tff_client_data

_CLIENTS = collections.OrderedDict(
    ann=collections.OrderedDict(
        x=np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32),
        y=np.array([1, 2, 3], np.int32),
    ),
    bob=collections.OrderedDict(
        x=np.array([[7.0, 8.0]], np.float32), y=np.array([4], np.int32)
    ),
)


def _packed():
  return client_arrays_testing.packed(_CLIENTS)


_SOURCES = client_arrays_testing.SOURCES


def _labels(dataset):
  return [int(example['y']) for example in dataset]


class ToClientDataTest(parameterized.TestCase):

  @parameterized.named_parameters(*_SOURCES)
  def test_a_client_has_one_dataset(self, build):
    data = data_lib.to_client_data(build(_CLIENTS))
    batched = data.preprocess(lambda dataset: dataset.batch(2))
    again = batched.preprocess(lambda dataset: dataset.take(1))
    for found in (data, batched, again):
      ann = found.create_tf_dataset_for_client('ann')
      self.assertIs(found.create_tf_dataset_for_client('ann'), ann)
      self.assertIsNot(found.create_tf_dataset_for_client('bob'), ann)
    self.assertEqual(
        [
            batch['y'].numpy().tolist()
            for batch in batched.create_tf_dataset_for_client('ann')
        ],
        [[1, 2], [3]],
    )
    self.assertLen(list(again.create_tf_dataset_for_client('ann')), 1)

  def test_datasets_not_used_for_longest_make_room(self):
    # Ann has 36 bytes, Bob 12.
    with mock.patch.object(tff_client_data, '_KEPT_BYTES', 40):
      data = tff_client_data.to_client_data(_packed())
      ann = data.create_tf_dataset_for_client('ann')
      bob = data.create_tf_dataset_for_client('bob')
      self.assertIs(data.create_tf_dataset_for_client('bob'), bob)
      self.assertIsNot(data.create_tf_dataset_for_client('ann'), ann)

  @parameterized.named_parameters(*_SOURCES)
  def test_datasets_hold_the_examples(self, build):
    data = tff_client_data.to_client_data(build(_CLIENTS))
    self.assertEqual(data.client_ids, ['ann', 'bob'])
    self.assertEqual(data.element_type_structure, _packed().element_spec)
    for make in (
        data.create_tf_dataset_for_client,
        data.serializable_dataset_fn,
        tf.function(data.serializable_dataset_fn),
    ):
      dataset = make('ann')
      self.assertEqual(dataset.element_spec, data.element_type_structure)
      examples = list(dataset.as_numpy_iterator())
      np.testing.assert_array_equal(
          [example['x'] for example in examples], _CLIENTS['ann']['x']
      )
      self.assertEqual(_labels(examples), [1, 2, 3])

  @parameterized.named_parameters(*_SOURCES)
  def test_the_rest_of_the_interface_works(self, build):
    data = tff_client_data.to_client_data(build(_CLIENTS))
    together = data.create_tf_dataset_from_all_clients(seed=0)
    self.assertCountEqual(_labels(together), [1, 2, 3, 4])
    self.assertLen(list(data.datasets(limit_count=1, seed=0)), 1)
    train, test = tff.simulation.datasets.ClientData.train_test_client_split(
        data, 1, seed=0
    )
    self.assertCountEqual(train.client_ids + test.client_ids, ['ann', 'bob'])

  @parameterized.named_parameters(*_SOURCES)
  def test_unknown_client_raises_a_value_error_as_tff_says(self, build):
    data = tff_client_data.to_client_data(build(_CLIENTS))
    with self.assertRaisesRegex(ValueError, "no client 'anna'.*'ann'"):
      data.create_tf_dataset_for_client('anna')

  def test_a_key_error_of_reading_a_client_stays_one(self):
    source = client_data.LazyClientArrays(
        ['a'], lambda unused_id: {}['image'], {'x': tf.TensorSpec([])}
    )
    with self.assertRaisesRegex(KeyError, 'image'):
      tff_client_data.to_client_data(source).create_tf_dataset_for_client('a')

  @parameterized.named_parameters(*_SOURCES)
  def test_unknown_client_raises_inside_a_graph(self, build):
    data = tff_client_data.to_client_data(build(_CLIENTS))
    make = tf.function(data.serializable_dataset_fn)
    with self.assertRaisesRegex(tf.errors.OpError, 'no client'):
      list(make('anna'))

  def test_packed_clients_serialize_into_a_computation(self):
    data = tff_client_data.to_client_data(
        client_arrays_testing.partitioned(_CLIENTS)
    )
    computation = data.dataset_computation
    self.assertEqual(
        str(computation.type_signature), '(str -> <x=float32[2],y=int32>*)'
    )

  def test_empty_client_is_an_empty_dataset(self):
    source = client_data.PackedClientArrays.from_partition(
        {'y': np.arange(3)}, {'a': [], 'b': [1]}
    )
    data = tff_client_data.to_client_data(source)
    self.assertEmpty(list(data.create_tf_dataset_for_client('a')))
    self.assertEmpty(list(data.serializable_dataset_fn('a')))


class FromClientDataTest(parameterized.TestCase):

  def _assert_same_clients(self, source):
    self.assertEqual(source.client_ids, ('ann', 'bob'))
    self.assertEqual(source.element_spec, _packed().element_spec)
    for client_id, expected in _CLIENTS.items():
      examples = source.examples(client_id)
      self.assertEqual(list(examples), ['x', 'y'])
      for name in expected:
        np.testing.assert_array_equal(examples[name], expected[name])
        self.assertEqual(examples[name].dtype, expected[name].dtype)

  @parameterized.named_parameters(*_SOURCES)
  def test_round_trip(self, build):
    data = tff_client_data.to_client_data(build(_CLIENTS))
    self._assert_same_clients(tff_client_data.from_client_data(data))

  def test_from_tffs_test_client_data(self):
    data = tff.simulation.datasets.TestClientData(dict(_CLIENTS))
    self._assert_same_clients(tff_client_data.from_client_data(data))

  def test_pairs_become_x_and_y(self):
    data = tff.simulation.datasets.TestClientData(
        {name: (part['x'], part['y']) for name, part in _CLIENTS.items()}
    )
    self._assert_same_clients(tff_client_data.from_client_data(data))

  def test_function_of_python_strings(self):
    data = tff.simulation.datasets.ClientData.from_clients_and_tf_fn(
        list(_CLIENTS),
        lambda name: tf.data.Dataset.from_tensor_slices(_CLIENTS[name]),
    )
    self._assert_same_clients(tff_client_data.from_client_data(data))

  def test_source_that_cannot_be_traced(self):
    class Untraceable(tff.simulation.datasets.ClientData):
      client_ids = list(_CLIENTS)
      element_type_structure = _packed().element_spec

      @property
      def serializable_dataset_fn(self):
        raise NotImplementedError()

      def create_tf_dataset_for_client(self, client_id):
        return tf.data.Dataset.from_tensor_slices(_CLIENTS[client_id])

    source = tff_client_data.from_client_data(Untraceable())
    self._assert_same_clients(source)

  @parameterized.named_parameters(
      ('traced', tff_client_data.to_client_data(_packed())),
      ('not_traced', tff.simulation.datasets.TestClientData(dict(_CLIENTS))),
  )
  def test_preprocessing_is_traced_once_for_all_clients(self, data):
    traces = []

    def rename(dataset):
      traces.append(dataset)
      return dataset.map(
          lambda example: collections.OrderedDict(label=example['y'] * 10)
      )

    source = tff_client_data.from_client_data(data, rename, cache_bytes=0)
    for _ in range(3):
      self.assertEqual(source.examples('ann')['label'].tolist(), [10, 20, 30])
      self.assertEqual(source.examples('bob')['label'].tolist(), [40])
    self.assertLen(traces, 1)

  def test_clients_of_many_and_of_no_examples(self):
    source = client_data.PackedClientArrays.from_clients(
        {'many': {'x': np.arange(3000.0)}, 'none': {'x': np.zeros([0])}}
    )
    data = tff_client_data.to_client_data(source)
    back = tff_client_data.from_client_data(data)
    np.testing.assert_array_equal(back.examples('many')['x'], np.arange(3000.0))
    self.assertEqual(back.examples('none')['x'].shape, (0,))
    self.assertEqual(back.num_examples('none'), 0)

  def test_strings(self):
    data = tff.simulation.datasets.TestClientData({'a': {'t': ['u', 'vw']}})
    source = tff_client_data.from_client_data(data)
    self.assertEqual(source.examples('a')['t'].tolist(), [b'u', b'vw'])

  @case_testing.named(
      batches=(
          lambda d: d.batch(2),
          ValueError,
          "single examples.*'x'.*BatchPlan",
      ),
      without_end=(
          lambda d: d.repeat(),
          ValueError,
          "'ann' has examples without end",
      ),
      nested=(
          lambda d: d.map(lambda e: {'a': {'b': e['y']}}),
          TypeError,
          'flat mapping',
      ),
      ragged=(
          lambda d: d.batch(1).map(
              lambda e: tf.RaggedTensor.from_tensor(e['x'])
          ),
          TypeError,
          'dense tensors, or a pair, found',
      ),
      sparse=(
          lambda d: d.batch(1).map(lambda e: tf.sparse.from_dense(e['x'])),
          TypeError,
          'dense tensors, or a pair, found',
      ),
  )
  def test_elements_of_other_forms_raise(self, preprocess, error, sentence):
    data = tff_client_data.to_client_data(_packed())
    with self.assertRaisesRegex(error, sentence):
      tff_client_data.from_client_data(data, preprocess)

  @parameterized.parameters(1, 1024)
  def test_examples_of_different_shapes_raise(self, num_alike):
    source = tff.simulation.datasets.ClientData.from_clients_and_tf_fn(
        ['ann'],
        lambda name: tf.data.Dataset.range(num_alike + 1).map(
            lambda i: {'x': tf.range(1 + i // num_alike)}
        ),
    )
    clients = tff_client_data.from_client_data(source)
    with self.assertRaisesRegex(ValueError, "'ann'.*'x'.*pad them"):
      clients.examples('ann')

  def test_batches_of_different_sizes_raise(self):
    source = tff.simulation.datasets.ClientData.from_clients_and_tf_fn(
        ['ann'], lambda name: tf.data.Dataset.range(3).batch(2)
    ).preprocess(lambda dataset: dataset.map(lambda x: {'x': x}).prefetch(1))
    clients = tff_client_data.from_client_data(source)
    with self.assertRaisesRegex(ValueError, "'ann'.*'x'.*`unbatch`"):
      clients.examples('ann')

  def test_a_source_without_clients_raises(self):
    path = folder_testing.new(self) / 'clients.sqlite'
    sqlite.write_sqlite_clients(path, {'train': _packed()})
    data = tff.simulation.datasets.SqlClientData(str(path), 'test')
    with self.assertRaisesRegex(ValueError, 'at least one client, found none'):
      tff_client_data.from_client_data(data)

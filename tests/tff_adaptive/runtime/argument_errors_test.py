# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the compiled runtime's errors say of wrong arguments."""

import collections
from typing import Any

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import data
from tff_adaptive import runtime

_Dict = collections.OrderedDict


class ArgumentsTest(compiled_testing.TestCase):

  def _assert_refused(self, clients: Any, *words: str) -> None:
    process = compiled_testing.process()
    with compiled_testing.installed():
      state = process.initialize()
      with self.assertRaises(TypeError) as caught:
        process.next(state, clients)
    for word in words:
      self.assertIn(word, str(caught.exception))

  @parameterized.parameters(3, 2.5, None)
  def test_no_list_of_clients(self, clients):
    self._assert_refused(
        clients, 'must be a list', f'found {type(clients).__name__}'
    )

  def test_dataset_in_place_of_a_list_of_them(self):
    dataset = testing.dataset(5)
    self._assert_refused(
        dataset, 'must be a list', f'found {type(dataset).__name__}'
    )

  def test_values_of_several_shapes(self):

    @tff.federated_computation(
        tff.FederatedType(tff.TensorType(np.float32, [None, 2]), tff.CLIENTS)
    )
    def count(arrays):
      size = tff.tensorflow.computation(
          lambda array: tf.cast(tf.size(array), tf.float32)
      )
      return tff.federated_sum(tff.federated_map(size, arrays))

    arrays = [np.ones([rows, 2], np.float32) for rows in (3, 1, 3)]
    with compiled_testing.installed():
      self.assertEqual(count(arrays[::2]), 12.0)
      with self.assertRaisesRegex(
          runtime.UnsupportedComputationError,
          r'float32\[\?,2\] differ in shape: \(1, 2\) and \(3, 2\)',
      ):
        count(arrays)

  def test_dataset_of_other_shapes(self):
    dataset = tf.data.Dataset.from_tensor_slices(
        _Dict(x=np.zeros([3, 7], np.float32), y=np.zeros([3], np.int32))
    )
    self._assert_refused(
        [dataset.batch(2)],
        'elements of type <x=float32[?,5],y=int32[?]>',
        "found float32[?,7] in field 'x'; make it float32[?,5].",
    )

  def test_dataset_that_is_not_batched(self):
    self._assert_refused(
        [testing.dataset(5).unbatch()],
        "found float32[5] in field 'x'; make it float32[?,5].",
    )

  def test_dataset_of_other_dtypes(self):
    dataset = testing.dataset(5).map(
        lambda b: _Dict(x=b['x'], y=tf.cast(b['y'], tf.int64))
    )
    self._assert_refused(
        [testing.dataset(5), dataset],
        'y=int32[?]',
        "found int64[?] in field 'y'; make it int32[?].",
    )

  def test_dataset_of_other_names(self):
    dataset = testing.dataset(5).map(lambda b: _Dict(a=b['x'], b=b['y']))
    self._assert_refused(
        [dataset],
        'x=float32[?,5]',
        "found the fields ['a', 'b']; make them ['x', 'y'].",
    )

  def test_dataset_without_a_feature(self):
    dataset = testing.dataset(5).map(lambda b: _Dict(x=b['x']))
    self._assert_refused(
        [dataset], 'x=float32[?,5]', "the fields ['x']; make them ['x', 'y']."
    )

  def test_dataset_without_values(self):
    dataset = testing.dataset(5).map(lambda b: _Dict(x=None, y=b['y']))
    self._assert_refused([dataset], 'x=float32[?,5]', 'NoneTensorSpec')

  def test_dataset_that_another_computation_has_read(self):
    element = _Dict(x=tff.TensorType(np.float32, [None]))
    read = tff.tensorflow.computation(
        lambda dataset: dataset.reduce(
            0.0, lambda total, e: total + tf.reduce_sum(e['x'])
        ),
        tff.SequenceType(element),
    )

    @tff.federated_computation(testing.at_clients(tff.SequenceType(element)))
    def add_up(clients):
      return tff.federated_sum(tff.federated_map(read, clients))

    dataset = tf.data.Dataset.from_tensor_slices(
        _Dict(x=np.ones([3], np.float32))
    ).batch(2)
    with compiled_testing.installed():
      self.assertEqual(add_up([dataset]), 3.0)
    self._assert_refused([dataset], 'x=float32[?,5]', "the fields ['x']")

  def test_batches_of_other_shapes(self):
    batch = _Dict(x=np.zeros([2, 7], np.float32), y=np.zeros([2], np.int32))
    self._assert_refused(
        [[batch]], 'x=float32[?,5]', "float32[2,7] in field 'x'", '[?,5]'
    )

  def test_batches_without_a_feature(self):
    self._assert_refused(
        [[_Dict(x=np.zeros([2, 5], np.float32))]],
        'x=float32[?,5],y=int32[?]',
        "found OrderedDict with different fields: ['x'].",
    )

  def test_batches_with_a_feature_more(self):
    batch = _Dict(
        x=np.zeros([2, 5], np.float32),
        y=np.zeros([2], np.int32),
        z=np.zeros([2], np.int32),
    )
    self._assert_refused(
        [[batch]],
        'x=float32[?,5],y=int32[?]',
        "found OrderedDict with different fields: ['x', 'y', 'z'].",
    )

  def test_batch_in_place_of_a_list_of_them(self):
    batch = _Dict(x=np.zeros([2, 5], np.float32), y=np.zeros([2], np.int32))
    self._assert_refused(
        [batch],
        'a list of elements of type <x=float32[?,5],y=int32[?]>',
        'found OrderedDict; if it is a single element, put it into a list.',
    )

  def test_batches_without_names_or_arrays(self):
    self._assert_refused(['xy'], 'x=float32[?,5],y=int32[?]', 'found str.')

  @parameterized.parameters(
      ('y', np.float32([0.5, np.nan]), 'int32', 'float32'),
      ('y', np.array(['0', '1']), 'int32', 'str'),
      ('x', np.zeros([2, 5], np.complex64), 'float32', 'complex64'),
  )
  def test_numbers_that_a_cast_would_change(self, name, value, wanted, found):
    batch = _Dict(x=np.zeros([2, 5], np.float32), y=np.zeros([2], np.int32))
    batch[name] = value
    self._assert_refused(
        [[batch]],
        f"Field '{name}': ",
        f'elements of type {wanted}',
        f'array of type {found}',
    )

  @parameterized.parameters(
      ('y', np.array([0, 2**32]), 'int32', '4294967296'),
      ('x', np.full([2, 5], 1e300), 'float32', '1e+300'),
  )
  def test_numbers_out_of_the_range_of_a_type(self, name, value, wanted, found):
    batch = _Dict(x=np.zeros([2, 5], np.float32), y=np.zeros([2], np.int32))
    batch[name] = value
    process = compiled_testing.process()
    with compiled_testing.installed():
      with self.assertRaises(ValueError) as raised:
        process.next(process.initialize(), [[batch]])
    self.assertStartsWith(str(raised.exception), f"Field '{name}': ")
    self.assertIn(f'elements of type {wanted}', str(raised.exception))
    self.assertIn(f'the number {found} ', str(raised.exception))

  def test_numbers_that_a_type_holds_after_rounding(self):
    batches = [
        _Dict(x=np.full([2, 5], 0.1, x_type), y=np.array([0, 1], y_type))
        for x_type, y_type in ((np.float32, np.int32), (np.float64, np.int64))
    ]
    process = compiled_testing.process()
    with compiled_testing.installed():
      wanted, found = (
          process.get_model_weights(
              process.next(process.initialize(), [[batch]]).state
          ).trainable
          for batch in batches
      )
    for w, v in zip(wanted, found):
      self.assertAllEqual(w, v)

  def test_labels_out_of_range(self):
    process, clients = compiled_testing.process(), testing.clients([5])
    clients[0][0]['y'][0] = testing.NUM_CLASSES
    with compiled_testing.installed():
      with self.assertRaisesRegex(
          ValueError,
          "^TensorFlow rejected the clients' data: Received a "
          r'label value of 3 which is outside the valid range of \[0, 3\); '
          r'`data\.check_clients` finds the client\.$',
      ):
        process.next(process.initialize(), clients)

  def test_client_that_is_no_sequence(self):
    self._assert_refused(
        [3], 'a list of elements of type <x=float32[?,5]', 'found int'
    )

  @parameterized.parameters(
      ({'x': np.zeros([3, 5])}, "the fields ['x']; make them ['x', 'y']"),
      (
          {'x': np.zeros([3, 5]), 'y': np.zeros([3], np.int32)},
          "float64[?,5] in field 'x'; make it float32[?,5]",
      ),
      (
          {'x': np.zeros([3, 4], np.float32), 'y': np.zeros([3], np.int32)},
          "float32[?,4] in field 'x'; make it float32[?,5]",
      ),
  )
  def test_cohort_of_other_features(self, features, found):
    source = data.PackedClientArrays.from_clients({'a': features})
    cohort = data.Cohort(source, ['a'], 0, 1, data.BatchPlan(2))
    self._assert_refused(cohort, 'x=float32[?,5],y=int32[?]', found)

  def test_context_continues_after_an_error(self):
    process, clients = compiled_testing.process(), testing.clients([5, 9])
    with compiled_testing.installed():
      before = compiled_testing.train(process, clients)
      with self.assertRaises(TypeError):
        process.next(process.initialize(), 3)
      after = compiled_testing.train(process, clients)
    self.assert_same_bits(before, after)

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
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import data

_Dict = collections.OrderedDict
# The type of the elements of `compiled_testing.process`.
_XY = 'x=float32[?,5],y=int32[?]'


def _batch(**changes: Any) -> _Dict:
  """Returns a batch of two examples, with changes."""
  return _Dict(
      {
          'x': np.zeros([2, 5], np.float32),
          'y': np.zeros([2], np.int32),
          **changes,
      }
  )


def _mapped(change: Any) -> tf.data.Dataset:
  return testing.dataset(5).map(change)


class ArgumentsTest(compiled_testing.TestCase):

  def _assert_refused(self, clients: Any, *words: str) -> None:
    process = compiled_testing.process()
    with compiled_testing.installed():
      state = process.initialize()
      with self.assertRaises(TypeError) as caught:
        process.next(state, clients)
    for word in words:
      self.assertIn(word, str(caught.exception))

  def test_values_of_another_shape(self):
    add_up = sequence_testing.over_clients(
        lambda x: tf.reduce_sum(x), tff.TensorType(np.float32, [2])
    )
    with compiled_testing.installed():
      with self.assertRaisesRegex(
          TypeError, r'float32\[2\], found one of shape \(3,\)'
      ):
        add_up([np.ones([3], np.float32)])

  @parameterized.parameters('ann', b'ann')
  def test_a_string_is_no_sequence_of_letters(self, text):
    count = sequence_testing.over_clients(
        lambda words: words.reduce(0, lambda n, _: n + 1),
        tff.SequenceType(np.str_),
    )
    with compiled_testing.installed():
      with self.assertRaisesRegex(TypeError, f'found {type(text).__name__}'):
        count([text])

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
    count = sequence_testing.over_clients(
        lambda array: tf.cast(tf.size(array), tf.float32),
        tff.TensorType(np.float32, [None, 2]),
    )
    arrays = [np.ones([rows, 2], np.float32) for rows in (3, 1, 3)]
    with compiled_testing.installed():
      self.assertEqual(count(arrays[::2]), 12.0)
      self.assertEqual(count(arrays), 14.0)

  @parameterized.named_parameters(
      (
          'shapes',
          lambda: tf.data.Dataset.from_tensors(
              _batch(x=np.zeros([2, 7], np.float32))
          ),
          "found float32[2,7] in field 'x'; make it float32[?,5].",
      ),
      (
          'examples',
          lambda: testing.dataset(5).unbatch(),
          "found float32[5] in field 'x'; make it float32[?,5].",
      ),
      (
          'dtypes',
          lambda: _mapped(lambda b: _Dict(b, y=tf.cast(b['y'], tf.int64))),
          "found int64[?] in field 'y'; make it int32[?].",
      ),
      (
          'names',
          lambda: _mapped(lambda b: _Dict(a=b['x'], b=b['y'])),
          "found the fields ['a', 'b']; make them ['x', 'y'].",
      ),
      (
          'one_feature',
          lambda: _mapped(lambda b: _Dict(x=b['x'])),
          "the fields ['x']; make them ['x', 'y'].",
      ),
      ('none', lambda: _mapped(lambda b: _Dict(b, x=None)), 'NoneTensorSpec'),
  )
  def test_dataset_of_other(self, build, found):
    self._assert_refused([testing.dataset(5), build()], _XY, found)

  def test_dataset_that_another_computation_has_read(self):
    element = _Dict(x=tff.TensorType(np.float32, [None]))
    add_up = sequence_testing.over_clients(
        lambda dataset: dataset.reduce(
            0.0, lambda total, e: total + tf.reduce_sum(e['x'])
        ),
        tff.SequenceType(element),
    )
    dataset = tf.data.Dataset.from_tensor_slices(
        _Dict(x=np.ones([3], np.float32))
    ).batch(2)
    with compiled_testing.installed():
      self.assertEqual(add_up([dataset]), 3.0)
    self._assert_refused([dataset], 'x=float32[?,5]', "the fields ['x']")

  @parameterized.named_parameters(
      (
          'shapes',
          [_batch(x=np.zeros([2, 7], np.float32))],
          "float32[2,7] in field 'x'",
      ),
      (
          'one_feature',
          [_Dict(x=np.zeros([2, 5], np.float32))],
          "found OrderedDict with different fields: ['x'].",
      ),
      (
          'three_features',
          [_batch(z=np.zeros([2], np.int32))],
          "found OrderedDict with different fields: ['x', 'y', 'z'].",
      ),
      (
          'a_batch_alone',
          _batch(),
          'found OrderedDict; if it is a single element, put it into a list.',
      ),
      ('a_string', 'xy', 'found str.'),
      ('a_number', 3, 'found int'),
      ('an_iterator', iter([_batch()]), 'found list_iterator.'),
  )
  def test_batches_of_other(self, client, found):
    self._assert_refused([client], _XY, found)

  def test_elements_of_another_shape_outside_of_a_round(self):
    numbers = tff.SequenceType(tff.TensorType(np.float32, [5]))

    @tff.tensorflow.computation(numbers)
    def add_up(dataset):
      return dataset.reduce(0.0, lambda total, x: total + tf.reduce_sum(x))

    with compiled_testing.installed():
      self.assertEqual(add_up([np.ones([5], np.float32)]), 5.0)
      with self.assertRaisesRegex(TypeError, r'float32\[7\].*float32\[5\]'):
        add_up([np.ones([7], np.float32)])

  @parameterized.parameters(
      ('y', np.float32([0.5, np.nan]), 'int32', 'float32'),
      ('y', np.array(['0', '1']), 'int32', 'str'),
      ('x', np.zeros([2, 5], np.complex64), 'float32', 'complex64'),
  )
  def test_numbers_that_a_cast_would_change(self, name, value, wanted, found):
    batch = _batch(**{name: value})
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
    batch = _batch(**{name: value})
    process = compiled_testing.process()
    with compiled_testing.installed():
      with self.assertRaises(ValueError) as raised:
        process.next(process.initialize(), [[batch]])
    self.assertStartsWith(str(raised.exception), f"Field '{name}': ")
    self.assertIn(f'elements of type {wanted}', str(raised.exception))
    self.assertIn(f'the number {found} ', str(raised.exception))

  @parameterized.parameters(
      (np.float64(2.5), TypeError, 'int32, found an array of type float64'),
      (np.array(2**40), ValueError, 'the number 1099511627776 of type int64'),
  )
  def test_tensors_that_a_cast_would_change(self, value, error, found):
    add_up = sequence_testing.over_clients(lambda x: x, np.int32)
    with compiled_testing.installed():
      self.assertEqual(add_up([np.int64(2), np.True_]), 3)
      with self.assertRaisesRegex(error, found):
        add_up([value])

  def test_numbers_in_place_of_texts(self):
    count = sequence_testing.over_clients(
        lambda words: words.reduce(0, lambda n, _: n + 1),
        tff.SequenceType(np.str_),
    )
    with compiled_testing.installed():
      self.assertEqual(count([['a', 'b']]), 2)
      with self.assertRaisesRegex(
          TypeError, 'type string, found an array of type int64'
      ):
        count([[1, 2]])

  def test_an_empty_array_has_no_texts(self):
    count = sequence_testing.over_clients(
        lambda batches: batches.reduce(0, lambda n, words: n + tf.size(words)),
        tff.SequenceType(tff.TensorType(np.str_, [None])),
    )
    with compiled_testing.installed():
      self.assertEqual(count([[np.array([]), np.array(['a', 'b'])]]), 2)

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
          "^TensorFlow rejected the clients' data at "
          "'sparse_categorical_crossentropy/.*': Received a "
          r'label value of 3 which is outside the valid range of \[0, 3\); '
          r'`data\.check_clients` finds the client\.$',
      ):
        process.next(process.initialize(), clients)

  def test_an_op_of_the_server(self):

    @tff.tensorflow.computation(np.float32)
    def check(total):
      return tf.debugging.check_numerics(total, 'too large', name='checked')

    @tff.federated_computation(testing.at_clients())
    def run(values):
      return tff.federated_map(check, tff.federated_sum(values))

    with compiled_testing.installed():
      self.assertEqual(run([1.0, 2.0]), 3.0)
      with self.assertRaisesRegex(
          ValueError,
          "^TensorFlow failed in the server's part \\('update'\\) at "
          "'.*checked'?.*: too large : Tensor had Inf values\\.$",
      ):
        run([1.0, np.inf])

  def test_an_op_of_the_clients(self):

    @tff.tensorflow.computation(np.float32)
    def check(value):
      low = tf.debugging.assert_less(value, 5.0, 'High value', name='high')
      with tf.control_dependencies([low]):
        return tf.debugging.check_numerics(value, 'none', name='checked')

    @tff.federated_computation(testing.at_clients())
    def run(values):
      return tff.federated_sum(tff.federated_map(check, values))

    with compiled_testing.installed():
      for value, pattern in (
          (-np.inf, "^TensorFlow failed in the clients' work at '.*checked'"),
          (7.0, "^An assertion of the clients' work failed at '.*high"),
      ):
        with self.assertRaisesRegex(ValueError, pattern):
          run([1.0, value])

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

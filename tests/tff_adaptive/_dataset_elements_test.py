# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading datasets without TensorFlow's exception of the end."""

import collections
from unittest import mock

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
from tensorflow.python.eager import core

from tff_adaptive import _dataset_elements

_RANGE = tf.data.Dataset.range(5)


class DatasetElementsTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('known', _RANGE.batch(2)),
      ('unknown', _RANGE.filter(lambda x: x != 3).batch(2)),
      ('empty', _RANGE.take(0)),
      ('empty_unknown', _RANGE.filter(lambda x: x > 9)),
      ('scalars', _RANGE),
      ('texts', tf.data.Dataset.from_tensor_slices(['a', 'b'])),
      (
          'nested',
          tf.data.Dataset.from_tensor_slices(
              collections.OrderedDict(x=([1, 2], [3.0, 4.0]), y=[5, 6])
          ),
      ),
  )
  def test_elements_are_those_of_tensorflow(self, dataset):
    found = list(_dataset_elements.iterate(dataset))
    expected = list(dataset.as_numpy_iterator())
    tf.nest.assert_same_structure(found, expected)
    for ours, theirs in zip(tf.nest.flatten(found), tf.nest.flatten(expected)):
      np.testing.assert_array_equal(ours, theirs)
      # A text alone is bytes, of no dtype.
      self.assertEqual(ours.dtype, getattr(theirs, 'dtype', object))
      self.assertFalse(ours.flags.writeable)

  @parameterized.parameters(True, False)
  def test_the_end_is_no_exception_of_tensorflow(self, is_known):
    dataset = _RANGE if is_known else _RANGE.filter(lambda x: x != 3)
    made = mock.Mock()
    raised = core._NotOkStatusException
    original = raised.__init__

    def init(error, *args):
      made()
      original(error, *args)

    with mock.patch.object(raised, '__init__', init):
      list(dataset)
      self.assertEqual(made.call_count, 1)  # It would be noticed.
      list(_dataset_elements.iterate(dataset))
    self.assertEqual(made.call_count, 1)

  def test_an_error_within_is_raised(self):
    dataset = _RANGE.map(lambda x: tf.debugging.check_numerics(1 / (x - 3), ''))
    with self.assertRaises(tf.errors.InvalidArgumentError):
      list(_dataset_elements.iterate(dataset))

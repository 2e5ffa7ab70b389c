# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the arrays that programs take, and of their shapes."""

from absl.testing import parameterized
import jax
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import batching
from tff_adaptive.runtime.accelerators import cohort_arrays
from tff_adaptive.runtime.accelerators import device_values


class SizesTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('even', [[20, 20]], True, (20,), False),
      ('uneven', [[20, 20, 7]], True, (20,), True),
      ('uneven_later', [[20, 20], [20, 7]], True, (20,), True),
      ('even_again', [[20, 7], [20]], True, (20,), True),
      ('empty', [[20, 0, 7]], True, (0, 20), True),
      ('empty_alone', [[20], [0]], True, (0, 20), False),
      ('no_batch', [[]], True, (1,), False),
      ('much_smaller', [[100, 10, 10, 10]], True, (25, 50, 100), True),
      ('larger', [[20, 7], [30, 7]], True, (30,), True),
      ('larger_again', [[20, 7], [30, 7], [33, 60]], True, (64,), True),
      ('apart', [[20, 7], [3]], False, (3, 7, 20), False),
      ('all_apart', [[4, 2], [3], [1]], False, (1, 2, 3, 4), False),
  )
  def test_of_branches(self, cohorts, pads, expected, is_padded):
    sizes = cohort_arrays._Sizes()
    for lengths in cohorts:
      found = sizes.add(np.asarray(lengths, np.int32), pads)
    self.assertEqual(found, (expected, is_padded))

  def test_branches_stay_when_cohorts_are_smaller(self):
    sizes = cohort_arrays._Sizes()
    first = sizes.add(np.array([100, 10, 10, 10]), True)
    self.assertEqual(sizes.add(np.array([60, 1]), True), first)

  @parameterized.parameters((1, 16), (16, 16), (17, 32), (33, 64))
  def test_sizes_are_rounded_up(self, size, expected):
    self.assertEqual(cohort_arrays.bucket(size), expected)


class ValuesTest(parameterized.TestCase):

  def test_values_on_a_device_are_of_the_type(self):
    placement = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    convert = device_values.build_conversion(
        tff.TensorType(np.float32, [2]), placement
    )

    def on_device(*numbers):
      return device_values.to_numpy(
          jax.device_put(np.array(numbers), placement)
      )

    own = on_device(np.float32(1), np.float32(2))
    self.assertIs(convert(own)[0], convert(own)[0])
    self.assertEqual(convert(on_device(1, 2))[0].dtype, np.float32)
    with self.assertRaisesRegex(TypeError, r'found one of shape \(1,\)'):
      convert(on_device(np.float32(1)))

  def test_an_array_that_is_two_leaves_is_on_the_device_twice(self):
    placement = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    convert = device_values.build_conversion(
        tff.to_type([(np.float32, [2])] * 2), placement
    )
    array = device_values.to_numpy(
        jax.device_put(np.array([1, 2], np.float32), placement)
    )
    one, other = convert([array, array])
    self.assertIsNot(one, other)
    np.testing.assert_array_equal(one, other)


class RowsTest(parameterized.TestCase):

  def _put(self, arrays, table, order, sizes):
    """Returns the rows on the device, and the rows of all batches."""
    leaf = batching.PackedClients(
        *tf.nest.map_structure(
            tf.constant,
            batching.of_batches([table], np.array(order), sizes, [1, 1]),
        )
    )
    leaf = leaf._replace(rows=[table])
    with jax.enable_x64(True):
      _, ((rows,),), ((picks, *_),) = arrays.of([leaf], 2, is_exact=False)
    return rows, np.asarray(rows)[picks[: len(order)]]

  @parameterized.parameters((None, 2048), (2**20, 2048), (16_000, 16))
  def test_rows_travel_where_they_do_not_fit(self, max_bytes, size):
    table = tf.random.stateless_normal([2000, 3], seed=[0, 0])
    arrays = cohort_arrays.CohortArrays(jax.devices('cpu')[0], 1, max_bytes)
    before = None
    for order in ([1999, 5, 5], [7, 1]):
      rows, found = self._put(arrays, table, order, [len(order) - 1, 1])
      np.testing.assert_array_equal(found, table.numpy()[order])
      self.assertLen(rows, size)
      if before is not None:
        self.assertEqual(rows is before, size == 2048)
      before = rows

  def test_what_stays_counts(self):
    arrays = cohort_arrays.CohortArrays(jax.devices('cpu')[0], 1, 40_000)
    tables = [tf.fill([2000, 4], value) for value in (1.0, 2.0)]
    sizes = [len(self._put(arrays, t, [0, 1], [1, 1])[0]) for t in tables]
    self.assertEqual(sizes, [2048, 16])
    # Of another round, too, as long as the tensor lives.
    other = cohort_arrays.CohortArrays(jax.devices('cpu')[0], 1, 40_000)
    self.assertLen(self._put(other, tables[1], [0, 1], [1, 1])[0], 16)
    del tables[0]
    self.assertLen(self._put(other, tables[0], [0, 1], [1, 1])[0], 2048)

  def test_cpus_have_no_limit(self):
    device = jax.devices('cpu')[0]
    self.assertIsNone(cohort_arrays.find_max_bytes(device))

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of held_out."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive.data import held_out
from tff_adaptive.data import random_streams


def _digests(**features):
  return held_out.row_digests(features).tolist()


class RowDigestsTest(parameterized.TestCase):

  @parameterized.parameters(
      np.bool_,
      np.uint8,
      np.int16,
      np.int32,
      np.int64,
      np.float16,
      np.float32,
      np.float64,
      np.complex64,
      tf.bfloat16.as_numpy_dtype,
  )
  def test_equal_rows_and_no_others_have_equal_digests(self, dtype):
    bits = np.arange(64)[:, np.newaxis] >> np.arange(6) & 1
    rows = bits.reshape([64, 3, 2]).astype(dtype)
    digests = _digests(x=np.concatenate([rows, rows[::-1]]))
    self.assertLen(set(digests), 64)
    self.assertEqual(digests[:64], digests[:63:-1])

  def test_every_feature_counts(self):
    x, y = np.array([1, 1, 2, 2, 2]), np.array([1, 2, 1, 2, 2])
    digests = _digests(x=x, y=y)
    self.assertLen(set(digests), 4)
    self.assertEqual(digests[3], digests[4])
    self.assertEqual(digests, _digests(y=y, x=x))
    self.assertNotEqual(digests, _digests(x=y, y=x))

  def test_rows_are_the_same_in_any_array(self):
    x = np.random.default_rng(0).random([50, 7], np.float32)
    digests = _digests(x=x)
    self.assertEqual(_digests(x=x[::-1]), digests[::-1])
    self.assertEqual(_digests(x=x[7:9]), digests[7:9])
    self.assertEqual(_digests(x=np.asfortranarray(x)), digests)

  def test_rows_of_several_blocks_are_those_of_one(self):
    x = np.random.default_rng(0).integers(0, 2, [5, 1 << 21]).astype(np.int32)
    one_by_one = [_digests(x=x[i : i + 1])[0] for i in range(5)]
    self.assertEqual(_digests(x=x), one_by_one)
    self.assertLen(set(one_by_one), 5)

  def test_the_zeros_are_equal(self):
    zero, minus, one = _digests(x=np.float32([0.0, -0.0, 1.0]))
    self.assertEqual(zero, minus)
    self.assertNotEqual(zero, one)

  def test_strings_are_equal_in_every_form(self):
    words = ['a', 'b\u00e9', '', 'a']
    digests = _digests(x=np.array(words))
    self.assertEqual(digests[0], digests[3])
    self.assertLen(set(digests), 3)
    as_bytes = [word.encode() for word in words]
    for form in (
        np.array(words, 'U9'),
        np.array(words, np.object_),
        np.array(as_bytes, np.object_),
        np.array(as_bytes),
    ):
      self.assertEqual(_digests(x=form), digests)
    pairs = _digests(x=np.array([['a', 'bc'], ['ab', 'c'], ['bc', 'a']]))
    self.assertLen(set(pairs), 3)

  def test_without_rows_or_values(self):
    self.assertEqual(_digests(x=np.zeros([0, 3])), [])
    self.assertEqual(_digests(x=np.zeros([2, 0])), [0, 0])

  def test_digests_are_the_sums_of_the_docstring(self):
    factors = random_streams.stream(
        0, random_streams.DATA_SPLIT, 'row', 'x'
    ).integers(0, 2**64, 2, np.uint64)
    expected = (7 * int(factors[0]) + 9 * int(factors[1])) % 2**64
    self.assertEqual(_digests(x=np.int64([7 + (9 << 32)])), [expected])
    self.assertEqual(_digests(x=np.uint8([[7, 0, 0, 0, 9]])), [expected])


class ChooseExamplesTest(parameterized.TestCase):

  @parameterized.parameters(0.1, 0.3, 0.5)
  def test_rows_that_occur_once_are_chosen_by_client(self, fraction):
    digests = {'a': np.arange(20), 'b': np.arange(20, 29), 'c': np.arange(0)}
    chosen = held_out.choose_examples(digests, fraction, seed=3)
    for name, part in digests.items():
      order = random_streams.stream(
          3, random_streams.DATA_SPLIT, name
      ).permutation(len(part))
      expected = sorted(order[: int(len(part) * fraction)])
      self.assertEqual(np.flatnonzero(chosen[name]).tolist(), expected)

  def test_other_rows_fill_up_the_part_of_a_client(self):
    # Each client has a copy of the rows 0 to 9, and ten rows of its own.
    digests = {
        f'{i}': np.append(np.arange(10), 100 * (i + 1) + np.arange(10))
        for i in range(5)
    }
    chosen = held_out.choose_examples(digests, 0.25, seed=0)
    of_all = chosen['0'][:10]
    self.assertEqual(of_all.sum(), 2)
    for part in chosen.values():
      np.testing.assert_array_equal(part[:10], of_all)
      self.assertEqual(part.sum(), 5)
    self.assertGreater(len({tuple(part) for part in chosen.values()}), 1)

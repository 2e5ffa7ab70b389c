# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `random_streams`."""

from absl.testing import parameterized
import numpy as np

from tff_adaptive.data import random_streams


def _draw(*args) -> list[int]:
  return random_streams.stream(*args).integers(1000, size=5).tolist()


class RandomStreamsTest(parameterized.TestCase):

  def test_literal_numbers_so_that_no_release_changes_a_run(self):
    self.assertEqual(
        _draw(1, random_streams.SAMPLING, 0), [405, 173, 458, 828, 916]
    )
    self.assertEqual(
        _draw(1, random_streams.SHUFFLING, 3, 'client_007'),
        [534, 822, 524, 798, 998],
    )
    self.assertEqual(random_streams.derived_seed(1, 'u', 'k'), 937728013)

  def test_family_gives_the_same_numbers(self):
    family = random_streams.StreamFamily(7, 'use', 2)
    for key in ('a', 3, 'b', 'a'):
      np.testing.assert_array_equal(
          family.start(key).random(10),
          random_streams.stream(7, 'use', 2, key).random(10),
      )

  def test_family_starts_afresh_after_half_a_draw(self):
    family = random_streams.StreamFamily(7, 'use')
    family.start('a').integers(2**16, dtype=np.uint16)  # Keeps half a word.
    np.testing.assert_array_equal(
        family.start('b').integers(2**16, size=9, dtype=np.uint16),
        random_streams.stream(7, 'use', 'b').integers(
            2**16, size=9, dtype=np.uint16
        ),
    )

  def test_family_gives_the_same_seeds(self):
    family = random_streams.StreamFamily(7, 'use', 2)
    keys = ['a', 1]
    np.testing.assert_array_equal(
        family.stateless_seeds(keys),
        [random_streams.stateless_seed(7, 'use', 2, key) for key in keys],
    )
    none = family.stateless_seeds([])
    self.assertEqual((none.dtype, none.shape), (np.int32, (0, 2)))

  def test_stateless_seeds_differ(self):
    seeds = {
        tuple(random_streams.stateless_seed(1, 'use', key).tolist())
        for key in range(100)
    }
    self.assertLen(seeds, 100)
    seed = random_streams.stateless_seed(1, 'use', 3)
    self.assertEqual((seed.dtype, seed.shape), (np.int32, (2,)))

  @parameterized.named_parameters(
      ('seed', (8, 'use', 2, 'a')),
      ('use', (7, 'other', 2, 'a')),
      ('round', (7, 'use', 3, 'a')),
      ('client', (7, 'use', 2, 'b')),
      ('fewer_keys', (7, 'use', 2)),
      ('order_of_keys', (7, 'use', 'a', 2)),
      ('joined_keys', (7, 'use2', 'a')),
      ('type_of_key', (7, 'use', '2', 'a')),
  )
  def test_any_other_argument_gives_other_numbers(self, args):
    self.assertNotEqual(_draw(*args), _draw(7, 'use', 2, 'a'))

  def test_numpy_integers_are_the_same_keys(self):
    self.assertEqual(_draw(np.int64(7), 'use', np.int32(2)), _draw(7, 'use', 2))

  def test_large_seeds_do_not_wrap(self):
    self.assertNotEqual(_draw(2**64 + 1, 'use'), _draw(1, 'use'))

  def test_derived_seed_is_a_31_bit_integer(self):
    seeds = [random_streams.derived_seed(i, 'use') for i in range(200)]
    self.assertBetween(min(seeds), 0, 2**31 - 1)
    self.assertBetween(max(seeds), 2**30, 2**31 - 1)
    self.assertLen(set(seeds), 200)

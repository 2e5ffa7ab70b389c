# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for `element_orders`."""

import collections
from collections.abc import Sequence
import itertools

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive.runtime.datasets import element_orders
from tff_adaptive.runtime.datasets.element_orders import Batch
from tff_adaptive.runtime.datasets.element_orders import Cache
from tff_adaptive.runtime.datasets.element_orders import Filter
from tff_adaptive.runtime.datasets.element_orders import Repeat
from tff_adaptive.runtime.datasets.element_orders import Shard
from tff_adaptive.runtime.datasets.element_orders import Shuffle
from tff_adaptive.runtime.datasets.element_orders import Skip
from tff_adaptive.runtime.datasets.element_orders import Take
from tff_adaptive.runtime.datasets.element_orders import Unbatch

# TensorFlow's seeds of `shuffle(seed=1)` without a global seed.
_SEEDS = (87654321, 1)
_NUM_DRAWS = 4000


def _draw(place: int, number: int) -> np.random.Generator:
  return np.random.default_rng([place, number])


def _laws(num_elements: int, buffer_size: int) -> dict[Sequence[int], float]:
  """Returns the probability of each order that a buffer can give."""
  laws: dict[Sequence[int], float] = collections.defaultdict(float)

  def go_on(order, buffer, coming, probability):
    if not buffer:
      laws[order] += probability
    for place, element in enumerate(buffer):
      rest = buffer[:place] + buffer[place + 1 :]
      if coming < num_elements:
        rest += (coming,)
      share = probability / len(buffer)
      go_on(order + (element,), rest, coming + 1, share)

  size = min(buffer_size, num_elements)
  go_on((), tuple(range(size)), size, 1.0)
  return laws


class RunTest(tf.test.TestCase, parameterized.TestCase):

  def setUp(self):
    super().setUp()
    tf.random.set_seed(None)  # That of TensorFlow's test case.

  @parameterized.named_parameters(
      ('shuffle', lambda d: d.shuffle(8, seed=1), [Shuffle(8, _SEEDS)]),
      (
          'epochs',
          lambda d: d.shuffle(3, seed=1).repeat(3).batch(5),
          [Shuffle(3, _SEEDS), Repeat(3, is_joined=True), Batch(5, False)],
      ),
      (
          'shuffled_epochs',
          lambda d: d.repeat(3).shuffle(10, seed=1).batch(5, True),
          [Repeat(3), Shuffle(10, _SEEDS), Batch(5, True)],
      ),
      (
          'part_of_endless',
          lambda d: d.repeat().shuffle(10, seed=1).take(30),
          [Repeat(-1), Shuffle(10, _SEEDS), Take(30)],
      ),
      (
          'part_of_endless_epochs',
          lambda d: d.shuffle(3, seed=1).repeat().skip(3).take(29),
          [Shuffle(3, _SEEDS), Repeat(-1), Skip(3), Take(29)],
      ),
      (
          'one_order',
          lambda d: d.shuffle(3, seed=1, reshuffle_each_iteration=False).repeat(
              3
          ),
          [Shuffle(3, _SEEDS, False), Repeat(3)],
      ),
      (
          'cached_order',
          lambda d: d.shuffle(3, seed=1).cache().repeat(3),
          [Shuffle(3, _SEEDS), Cache(), Repeat(3)],
      ),
      (
          'shuffled_batches',
          lambda d: d.batch(2).shuffle(3, seed=1).repeat(2).unbatch(),
          [
              Batch(2, False),
              Shuffle(3, _SEEDS),
              Repeat(2, is_joined=True),
              Unbatch(),
          ],
      ),
      (
          'parts_of_epochs',
          lambda d: d.shuffle(4, seed=1).take(5).repeat(4).shard(2, 1),
          [Shuffle(4, _SEEDS), Take(5), Repeat(4), Shard(2, 1)],
      ),
      (
          'filtered',
          lambda d: d.shuffle(4, seed=1).filter(lambda n: n > 2).take(3),
          [Shuffle(4, _SEEDS), Filter(np.arange(8) > 2), Take(3)],
      ),
      (
          'epochs_of_epochs',
          lambda d: d.shuffle(8, seed=1).batch(3).repeat(2).skip(1).repeat(2),
          [
              Shuffle(8, _SEEDS),
              Batch(3, False),
              Repeat(2),
              Skip(1),
              Repeat(2),
          ],
      ),
      (
          'part_of_epochs',
          lambda d: d.shuffle(8, seed=1).batch(3).repeat(2).take(6),
          [Shuffle(8, _SEEDS), Batch(3, False), Repeat(2), Take(6)],
      ),
      (
          'more_than_all_epochs',
          lambda d: d.shuffle(8, seed=1).batch(3).repeat(2).take(7),
          [Shuffle(8, _SEEDS), Batch(3, False), Repeat(2), Take(7)],
      ),
      (
          'one_epoch',
          lambda d: d.shuffle(8, seed=1).shuffle(3, seed=1).repeat(1),
          [Shuffle(8, _SEEDS), Shuffle(3, _SEEDS), Repeat(1)],
      ),
      ('none', lambda d: d.take(0).repeat(2), [Take(0), Repeat(2)]),
      ('no_epoch', lambda d: d.repeat(0).batch(2), [Repeat(0), Batch(2, True)]),
      ('all', lambda d: d.take(-1), [Take(-1)]),
      ('skipped', lambda d: d.skip(-1), [Skip(-1)]),
  )
  def test_is_what_tensorflow_yields(self, build, ops):
    dataset = build(tf.data.Dataset.range(8))
    # Each iteration has other orders.
    for numbers in itertools.islice(element_orders.iterations(ops, 8), 3):
      batches = list(dataset.as_numpy_iterator())
      self.assertAllEqual(
          numbers.order, np.concatenate([[], *map(np.atleast_1d, batches)])
      )
      if numbers.sizes is not None:
        self.assertAllEqual(numbers.sizes, list(map(len, batches)))

  @parameterized.parameters(1, 2, 3, 4, 9)
  def test_unseeded_shuffles_have_the_law_of_the_buffer(self, buffer_size):
    dataset = tf.data.Dataset.range(4).shuffle(buffer_size)
    dataset = dataset.repeat(_NUM_DRAWS).batch(4)
    ours = element_orders.run(
        [Shuffle(buffer_size), Repeat(_NUM_DRAWS)], 4, _draw
    )
    laws = _laws(4, buffer_size)
    for orders in (
        ours.order.reshape([-1, 4]),
        np.stack(list(dataset.as_numpy_iterator())),
    ):
      counts = collections.Counter(map(tuple, orders.tolist()))
      self.assertContainsSubset(counts, laws)
      expected = {order: _NUM_DRAWS * share for order, share in laws.items()}
      distance = sum(
          (counts[order] - mean) ** 2 / mean for order, mean in expected.items()
      )
      # The mean of chi-square plus six standard deviations.
      freedom = len(laws) - 1
      self.assertLessEqual(distance, freedom + 6 * (2 * freedom) ** 0.5)

  def test_each_shuffle_and_epoch_has_its_stream(self):
    ops = [Shuffle(50), Repeat(2), Shuffle(50), Shuffle(50, reshuffles=False)]
    first, second = (element_orders.run(ops, 50, _draw) for _ in range(2))
    self.assertAllEqual(first.order, second.order)
    epochs = element_orders.run([Shuffle(50), Repeat(2)], 50, _draw).order
    self.assertNotAllEqual(epochs[:50], epochs[50:])
    same = element_orders.run(
        [Shuffle(50, reshuffles=False), Repeat(2)], 50, _draw
    )
    self.assertAllEqual(same.order[:50], same.order[50:])

  def test_what_has_no_end(self):
    for ops in ([Repeat(-1)], [Repeat(-1), Shuffle(3), Batch(2, True)]):
      with self.assertRaisesRegex(element_orders.EndlessError, 'infinite'):
        element_orders.run(ops, 3, _draw)

  def test_ranges(self):
    for lengths in itertools.product(range(3), repeat=3):
      starts = np.array([7, 0, 2])
      expected = [
          number
          for start, length in zip(starts, lengths)
          for number in range(start, start + length)
      ]
      found = element_orders.ranges(starts, np.array(lengths))
      self.assertAllEqual(found, expected)

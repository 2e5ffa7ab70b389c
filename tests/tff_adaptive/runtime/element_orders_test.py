# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for `element_orders`; `dataset_splits_test` has its orders."""

import collections
from collections.abc import Sequence
import itertools

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive.runtime.datasets import element_orders
from tff_adaptive.runtime.datasets.element_orders import Batch
from tff_adaptive.runtime.datasets.element_orders import Repeat
from tff_adaptive.runtime.datasets.element_orders import Shuffle

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


class RunTest(sequence_testing.UnseededTestCase):

  @parameterized.parameters(2, 3, 9)
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

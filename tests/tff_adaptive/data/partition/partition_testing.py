# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A test case for functions that divide rows among clients."""

from collections.abc import Callable, Mapping
from typing import Any

from absl.testing import parameterized
import numpy as np


def as_lists(parts: Mapping[str, np.ndarray]) -> dict[str, list[int]]:
  return {client_id: rows.tolist() for client_id, rows in parts.items()}


class PartitionTestCase(parameterized.TestCase):

  def assert_divides(
      self, parts: Mapping[str, np.ndarray], num_rows: int
  ) -> None:
    """Fails unless each of the rows is in exactly one client."""
    np.testing.assert_array_equal(
        np.sort(np.concatenate(list(parts.values()))), np.arange(num_rows)
    )

  def assert_sizes_differ_by_at_most(
      self, parts: Mapping[str, np.ndarray], difference: int
  ) -> None:
    sizes = [len(rows) for rows in parts.values()]
    self.assertLessEqual(max(sizes) - min(sizes), difference)

  def assert_seed_decides(self, build: Callable[[int], Any]) -> None:
    """Fails unless equal seeds give equal parts, and other seeds others."""
    first, again, other = (as_lists(build(seed)) for seed in (1, 1, 2))
    self.assertEqual(first, again)
    self.assertNotEqual(first, other)

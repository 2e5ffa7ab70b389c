# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finding the leaves of a sum to which a part of a round only adds."""

from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tff_adaptive.runtime import computations
from tff_adaptive.runtime import sums

_TYPE = tff.StructType([np.float32, tff.TensorType(np.float32, [3])])


class SumsTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('both', lambda a, b: (a[0] + b[0], a[1] + b[1]), {0: 0, 1: 1}),
      ('of_a_product', lambda a, b: (a[0] + b[0] * b[0], a[1] + b[1]), {1: 1}),
      ('value_twice', lambda a, b: (a[0] + b[0], a[1] + b[0]), {}),
      ('sum_twice', lambda a, b: (a[0] + b[0], a[1] * a[0] + b[1]), {}),
      ('doubled', lambda a, b: (a[0] + 2 * b[0], a[1] - b[1]), {}),
      ('replaced', lambda a, b: (b[0], a[1] + b[1]), {1: 1}),
  )
  def test_finds_what_adds(self, fn, added):
    computation = tff.tensorflow.computation(fn, (_TYPE, _TYPE))
    found = sums.find_added(computations.read(computation))
    self.assertEqual(found, added)

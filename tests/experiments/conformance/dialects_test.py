# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the formulas that go by one name."""

from absl.testing import parameterized
import numpy as np

from experiments.conformance import dialects


class DialectsTest(parameterized.TestCase):
  """Literal numbers of two rounds with D = 0.3, then -0.1.

  The code that made them, for FedAdam; FedYogi and FedAdagrad have their v:

  ```
  m, v, x = 0.0, v_start, 0.0
  for s, d in ((1, 0.3), (2, -0.1)):
    m = 0.9 * m + 0.1 * d
    v = 0.99 * v + 0.01 * d * d
    x += 0.05 * step(m, v, s)
    print(x)
  ```
  """

  @parameterized.named_parameters(
      # step: m / (sqrt(v) + .001)
      ('reddi', 'FedAdam', dialects.REDDI, (0.0483613631235, 0.0745186575478)),
      (
          'from_zero',
          'FedAdam',
          dialects.REDDI_FROM_ZERO,
          (0.0483870967742, 0.0745569246588),
      ),
      # step: m / (1 - .9**s) / (sqrt(v / (1 - .99**s)) + .001)
      (
          'kingma',
          'FedAdam',
          dialects.KINGMA_FROM_ZERO,
          (0.0498338870432, 0.0697917135721),
      ),
      # step: sqrt(1 - .99**s) / (1 - .9**s) * m / (sqrt(v) + .001)
      (
          'rate',
          'FedAdam',
          dialects.CORRECTED_RATE_FROM_ZERO,
          (0.0483870967742, 0.067817141648),
      ),
      # The same, with s + 1 for s.
      (
          'late',
          'FedAdam',
          dialects.LATE_CORRECTED_RATE_FROM_ZERO,
          (0.0359254736324, 0.0525679179044),
      ),
      # v = v - .01 * d * d * sign(v - d * d)
      ('yogi', 'FedYogi', dialects.REDDI, (0.0483611033993, 0.0744038998326)),
      (
          'm_from_v',
          'FedYogi',
          dialects.KINGMA_FROM_ACCUMULATORS,
          (0.0498078106407, 0.0696670873157),
      ),
      # m = d, v = v + d * d
      (
          'adagrad',
          'FedAdagrad',
          dialects.REDDI,
          (0.0498336111103, 0.0340721437528),
      ),
      # step: m / sqrt(v + .001)
      (
          'inner',
          'FedAdagrad',
          dialects.INNER_EPSILON,
          (0.0497242426005, 0.0339914010975),
      ),
  )
  def test_math(self, method, dialect, expected):
    found = dialects.iterate(dialect, method, [[0.3], [-0.1]])
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-9)

  @parameterized.parameters(*dialects.METHODS)
  def test_columns_are_different_formulas(self, method):
    changes = [[0.3], [0.2]]
    found = [
        dialects.iterate(dialect, method, changes)[-1, 0]
        for dialect in dialects.DIALECTS[method]
    ]
    self.assertLen(set(found), len(found))

  @parameterized.product(
      method=list(dialects.METHODS),
      dialect=[
          dialects.REDDI,
          dialects.REDDI_FROM_ZERO,
          dialects.KINGMA_FROM_ZERO,
      ],
  )
  def test_weight_that_nobody_changes_stays(self, method, dialect):
    found = dialects.iterate(dialect, method, [[0.0]] * 3)
    np.testing.assert_array_equal(found, np.zeros([3, 1]))

  def test_m_that_starts_with_v_moves_what_nobody_changes(self):
    found = dialects.iterate(
        dialects.KINGMA_FROM_ACCUMULATORS, 'FedYogi', [[0.0]]
    )
    # .05 * (.9e-6 / .1) / (sqrt(1e-6 / .01) + .001)
    np.testing.assert_allclose(found, [[0.05 * 9e-6 / 0.011]], rtol=1e-9)

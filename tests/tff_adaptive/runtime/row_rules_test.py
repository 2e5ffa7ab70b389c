# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rules about rows that are not kept, against the ops themselves."""

import itertools

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive.runtime import row_rules

_Rest = row_rules.Rest
_RECEIVED = np.array([[1.5, -2.0], [0.5, 3.0]], np.float32)
_VALUES = {
    _Rest.RECEIVED: _RECEIVED,
    _Rest.ZERO: np.zeros_like(_RECEIVED),
    _Rest.SHARED: np.array([0.25, -4.0], np.float32),
}


def _select(condition, a, b):
  return tf.where(condition > 0, a, b)


def _add_n(*terms):
  return tf.add_n([tf.broadcast_to(term, [2, 2]) for term in terms])


# The ops, and the number of their inputs.
_OPS = {
    'Identity': (tf.identity, 1),
    'StopGradient': (tf.stop_gradient, 1),
    'ZerosLike': (tf.zeros_like, 1),
    'IsFinite': (tf.math.is_finite, 1),
    'AddV2': (tf.add, 2),
    'AddN': (_add_n, 3),
    'Sub': (tf.subtract, 2),
    'Mul': (tf.multiply, 2),
    'RealDiv': (tf.divide, 2),
    'DivNoNan': (tf.math.divide_no_nan, 2),
    'SelectV2': (_select, 3),
}


class RowRulesTest(parameterized.TestCase, tf.test.TestCase):

  @parameterized.parameters(*row_rules.ENTRYWISE)
  def test_rest_is_that_of_the_op(self, op):
    fn, num_inputs = _OPS[op]
    num_known = 0
    for rests in itertools.product(_VALUES, repeat=num_inputs):
      # At least one input has rows.
      if set(rests) == {_Rest.SHARED}:
        continue
      rest = row_rules.ENTRYWISE[op](*rests)
      if rest is not None:
        num_known += 1
        expected = _VALUES.get(rest, np.ones([2, 2], bool))
        self.assertAllEqual(fn(*(_VALUES[r] for r in rests)), expected)
    self.assertGreater(num_known, 0)

  def test_unknown_values_have_no_rest(self):
    for op, rests in {
        'Mul': (_Rest.RECEIVED, _Rest.SHARED),
        'AddV2': (_Rest.ZERO, _Rest.SHARED),
        'Sub': (_Rest.ZERO, _Rest.RECEIVED),
        'RealDiv': (_Rest.ZERO, _Rest.ZERO),
        'SelectV2': (_Rest.ZERO, _Rest.ZERO, _Rest.ZERO),
    }.items():
      self.assertIsNone(row_rules.ENTRYWISE[op](*rests))

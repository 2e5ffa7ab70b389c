# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what processes with changing rates refuse."""

import collections

from absl.testing import absltest
import numpy as np
import tensorflow_federated as tff

from tff_adaptive.algorithms import scaled_rates


class ScaledRatesTest(absltest.TestCase):

  def test_integer_rate_is_refused(self):
    hparams_type = tff.to_type(collections.OrderedDict(learning_rate=np.int32))
    with self.assertRaisesRegex(ValueError, 'client optimizer is an integer'):
      scaled_rates._check_has_rate(hparams_type, 'client optimizer')

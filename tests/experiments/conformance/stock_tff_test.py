# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of stock TFF's verdicts, and of the library's through the same door."""

from absl.testing import parameterized
import pytest
import tensorflow as tf

from experiments import conformance
from tests.experiments.conformance import golden_testing
from tff_adaptive import runtime

# The same formulas.
_AGREES = (
    'fedavg_examples',
    'fedavg_server_lr',
    'fedavgm',
    'sgdm_client',
    'adam_client',
    'adagrad_client',
)
# The reason, and the least error that it makes after four rounds.
_DIFFERS = {
    # The bias is corrected, and v starts at 0.
    'fedadam': 0.05,
    # Epsilon stands beside the root of the v that is not corrected.
    'fedadam_bias_correction_v0_zero': 0.01,
    # The bias is corrected.
    'fedyogi': 0.05,
    # Epsilon stands in the root.
    'fedadagrad': 0.01,
    # The proximal term has the other sign.
    'fedprox': 0.005,
}


def _check(name, run, problems):
  with runtime.CompiledContext():
    return conformance.check(conformance.create_adapter(name), run, problems)


class StockTffTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      ('client', {'name': 'delta_sgd', 'eta0': 0.2}, 'delta_sgd'),
      ('server', {'name': 'fedexp'}, 'fedexp'),
      ('loss', {'name': 'moon', 'mu': 1.0}, 'moon'),
      ('schedule', 'step_decay', 'step_decay'),
      ('compression', 'top_k', 'top_k'),
      ('loss', {'name': 'fedprox', 'mu': 1, 'temperature': 2}, 'temperature=2'),
      ('weighting', 'loss', 'weighting'),
      ('server', {'name': 'fedadagrad', 'lr': 1.0, 'beta1': 0.9}, 'beta1=0.9'),
      ('server', {'name': 'fedadam', 'lr': 1.0, 'v0': 1e-6}, 'v0=1e-06'),
  )
  def test_says_what_tff_lacks(self, key, value, named):
    run, problems = golden_testing.create_tiny_run(**{key: value})
    result = conformance.check(
        conformance.create_adapter('stock_tff'), run, problems
    )
    self.assertTrue(result.skipped)
    self.assertIn(named, result.reason)

  @parameterized.named_parameters(
      *golden_testing.name_parameters('quadratic', _AGREES)
  )
  @pytest.mark.slow
  def test_agrees(self, run, problems):
    result = _check('stock_tff', run, problems)
    self.assertTrue(result.passed, result)

  @parameterized.named_parameters(
      (f'{problem}_{name}', run, problems)
      for problem in ('quadratic', 'softmax')
      for name, run, problems in golden_testing.name_parameters(
          problem, _DIFFERS
      )
  )
  @pytest.mark.slow
  def test_differs(self, run, problems):
    result = _check('stock_tff', run, problems)
    self.assertIsNotNone(result.max_error, result.reason)
    self.assertGreater(result.max_error, _DIFFERS[result.name])
    self.assertFalse(result.passed)

  @parameterized.named_parameters(
      *golden_testing.name_parameters('quadratic', ('fedprox', 'scaffold'))
  )
  @pytest.mark.slow
  def test_library_passes_through_the_interface(self, run, problems):
    result = _check('tff_adaptive', run, problems)
    self.assertTrue(result.passed, result)

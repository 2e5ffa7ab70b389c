# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the autoencoder of EMNIST."""

from absl.testing import absltest
import numpy as np
import pytest
import tensorflow_federated as tff

from tasks import emnist
from tests.tasks import baseline_testing
from tests.tasks.images import emnist_testing


def _tff_model_fn():
  """TFF's own model."""
  spec = tff.simulation.baselines.ClientSpec(num_epochs=1, batch_size=4)
  return tff.simulation.baselines.emnist.create_autoencoder_task(
      spec, use_synthetic_data=True
  ).model_fn


class EmnistAeModelsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    # Not once: Keras gives up models once TFF has built others in a graph.
    self.model = emnist.EMNIST_AE.build_keras_model(seed=3)

  def test_outputs_loss_and_metrics_are_those_of_tff(self):
    theirs = _tff_model_fn()()
    ours = emnist.EMNIST_AE.build_variable_model_fn(seed=3)()
    for variable, value in zip(
        theirs.trainable_variables, self.model.get_weights()
    ):
      variable.assign(value)
    x = emnist_testing.examples(4, seed=2)['pixels'].reshape(4, 784)
    output = ours.forward_pass({'x': x, 'y': x}, training=False)
    expected = theirs.forward_pass((x, x), training=False)
    np.testing.assert_allclose(
        output.predictions, expected.predictions, atol=1e-6
    )
    self.assertAlmostEqual(float(output.loss), float(expected.loss), places=6)
    found = ours.report_local_unfinalized_metrics()
    wanted = theirs.report_local_unfinalized_metrics()
    self.assertCountEqual(found, wanted)
    for name in ('mean_squared_error', 'mean_absolute_error'):
      np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5)

  @pytest.mark.slow
  def test_functional_metrics_are_those_of_tff(self):
    model = emnist.EMNIST_AE.build_functional_model(seed=3)
    x = emnist_testing.examples(4, seed=2)['pixels'].reshape(4, 784)
    output, loss, metrics = baseline_testing.evaluate_functional(model, x, x)
    self.assertEqual(
        list(metrics), ['mean_squared_error', 'mean_absolute_error']
    )
    squared, absolute = np.mean((output - x) ** 2), np.mean(np.abs(output - x))
    np.testing.assert_allclose(loss, squared, rtol=1e-5)
    np.testing.assert_allclose(
        list(metrics.values()), [squared, absolute], rtol=1e-5
    )

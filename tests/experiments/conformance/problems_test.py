# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the small problems."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from experiments.conformance import problems


def _problem(name, dim):
  return {
      'name': name,
      'x0': list(np.arange(dim) / dim),
      'clients': [{'X': np.ones([3, 5]), 'y': [0, 1, 2]}],
  }


class GoldenProblemsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(('quadratic', 4), ('softmax', 18), ('mlp', 39))
  def test_weights_are_the_flat_vector_in_order(self, name, dim):
    problem = _problem(name, dim)
    model = problems.create_functional_model(problem)
    self.assertAllClose(
        problems.flatten_weights(model.initial_weights[0]), problem['x0']
    )

  def test_quadratic_predicts_and_measures(self):
    model = problems.create_functional_model(_problem('quadratic', 4))
    output = model.predict_on_batch(model.initial_weights, np.ones([2, 4], 'f'))
    self.assertAllClose(output, [1.5, 1.5])
    self.assertAllClose(model.loss(output, tf.constant([0.5, 1.5])), 0.25)

  def test_batches_are_in_order_short_last_and_repeated(self):
    (client,) = problems.create_client_batches(
        _problem('softmax', 18), batch_size=2, num_epochs=2
    )
    batches = client.as_numpy_iterator()
    self.assertEqual([list(b['y']) for b in batches], [[0, 1], [2]] * 2)

  def test_wrong_length_raises(self):
    with self.assertRaisesRegex(ValueError, '18 weights.*(17,)'):
      problems.create_functional_model(_problem('softmax', 17))

  def test_unknown_name_raises(self):
    with self.assertRaisesRegex(ValueError, "'cubic'.*mlp"):
      problems.create_functional_model(_problem('cubic', 4))

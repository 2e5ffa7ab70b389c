# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that imports of graphs do not multiply: each of them is slow."""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import runtime


def _deep_model(num_layers):
  return tff.learning.models.functional_model_from_keras(
      tf.keras.Sequential(
          [tf.keras.layers.InputLayer((5,))]
          + [tf.keras.layers.Dense(5) for _ in range(num_layers)]
      ),
      tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      testing.INPUT_SPEC,
  )


def _count_imports(model):
  """Returns how many imports it takes to compile a round."""
  sgd = tff.learning.optimizers.build_sgdm
  process = tff.learning.algorithms.build_weighted_fed_avg(
      model, sgd(0.1), sgd(1.0)
  )
  context = runtime.create_compiled_context(
      devices='CPU', plan='loop', strict=True
  )
  with tff.framework.get_context_stack().install(context):
    state = process.initialize()
    with mock.patch.object(
        tf.graph_util, 'import_graph_def', wraps=tf.graph_util.import_graph_def
    ) as import_graph_def:
      process.next(state, testing.clients([5, 9]))
  return import_graph_def.call_count


@tff.tensorflow.computation(np.float32)
def _double_often(number):
  @tf.function
  def double(value):
    return 2.0 * value

  return [double(number + i) for i in range(9)]


class GraphImportTest(compiled_testing.TestCase):

  @pytest.mark.slow
  def test_layers_share_imports(self):
    self.assertEqual(
        _count_imports(_deep_model(1)), _count_imports(_deep_model(9))
    )

  def test_results_share_a_function(self):
    with compiled_testing.installed():
      self.assertEqual(_double_often(1.0), [2.0 * (1.0 + i) for i in range(9)])

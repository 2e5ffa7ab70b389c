# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that imports of graphs do not multiply: each of them is slow."""

import contextlib
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


@contextlib.contextmanager
def _counted_imports():
  """Counts the imports of graphs; yields the mock that does."""
  with mock.patch.object(
      tf.graph_util, 'import_graph_def', wraps=tf.graph_util.import_graph_def
  ) as import_graph_def:
    yield import_graph_def


def _count_of_round(model):
  """Returns how many imports it takes to compile a round."""
  sgd = tff.learning.optimizers.build_sgdm
  process = tff.learning.algorithms.build_weighted_fed_avg(
      model, sgd(0.1), sgd(1.0)
  )
  context = runtime.CompiledContext(
      devices='CPU', num_parallel_clients=1, strict=True
  )
  with tff.framework.get_context_stack().install(context):
    state = process.initialize()
    with _counted_imports() as imports:
      process.next(state, testing.clients([5, 9]))
  return imports.call_count


def _count_of_results(num_results):
  """Returns how many imports it takes to call a function that many times."""

  @tff.tensorflow.computation(np.float32)
  def double_often(number):
    @tf.function
    def double(value):
      return 2.0 * value

    return [double(number + i) for i in range(num_results)]

  with compiled_testing.installed(), _counted_imports() as imports:
    results = double_often(1.0)
  assert results == [2.0 * (1.0 + i) for i in range(num_results)], results
  return imports.call_count


class GraphImportTest(compiled_testing.TestCase):

  @pytest.mark.slow
  def test_layers_share_imports(self):
    count = _count_of_round(_deep_model(1))
    self.assertGreater(count, 0)
    self.assertEqual(count, _count_of_round(_deep_model(9)))

  def test_results_share_a_function(self):
    count = _count_of_results(1)
    self.assertGreater(count, 0)
    self.assertEqual(count, _count_of_results(9))

# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Tests of dropout on the native runtime that repeats."""

from typing import Any

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import dropout_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.runtime import native


def _train(process: Any, *rounds: Any, **kwargs: Any) -> list[np.ndarray]:
  """The weights after each round, on a worker of its own."""
  weights = []
  with runtime.native_context(seeded_clients=True, **kwargs):
    state = process.initialize()
    for clients in rounds:
      state = process.next(state, clients).state
      weights.append(
          np.concatenate([w.reshape([-1]) for w in testing.trainable(state)])
      )
  return weights


def _client(label: float = 1e6) -> list[Any]:
  """Two batches of one example."""
  return [dropout_testing.ones(1, label)] * 2


class NativeSeedsTest(tf.test.TestCase, parameterized.TestCase):

  def _check_round_that_is_run_again(self, kind):
    process = algorithms.build_fed_opt(
        testing.either_model(kind, dropout=0.5),
        client_optimizer=optimizers.build_delta_sgd(),
        server_optimizer=optimizers.build_fedavg(),
    )
    clients = [testing.client(9, 1), testing.client(6, 2)]
    first, again = (_train(process, clients, clients) for _ in range(2))
    self.assertAllEqual(first, again)

  def test_round_that_is_run_again_gives_the_same(self):
    self._check_round_that_is_run_again('functional')

  @pytest.mark.slow
  def test_round_of_a_variable_model_gives_the_same(self):
    self._check_round_that_is_run_again('variable')

  def test_masks_differ_by_client_round_and_step(self):
    process = dropout_testing.build_process('variable')
    first, second = _train(process, [_client()], [_client()])
    # Of a mask, entries are 0 or 2; two that differ have sums of 2, too.
    self.assertContainsSubset({0.0, 2.0, 4.0}, set(first))
    self.assertNotAllEqual(first, second - first)
    (other,) = _train(process, [_client(label=2e6)])
    self.assertNotAllEqual(first, other)
    # Nor do they depend on who else takes part, and when.
    (both,) = _train(
        process,
        [_client(), _client(label=2e6)],
        max_concurrent_computation_calls=1,
    )
    self.assertAllClose(both, (first + other) / 2)

  def test_numbers_differ_by_the_upper_bits_of_integers(self):
    draw = dropout_testing.build_draw(lambda: tf.random.uniform([]))
    clients = [[np.int64(number)] for number in (1, 1, 1 + 2**32)]
    with runtime.native_context(seeded_clients=True):
      one, again, other = draw(clients)
    self.assertEqual(one, again)
    self.assertNotEqual(one, other)

  @parameterized.parameters(
      (tf.bool, False, True),
      (tf.int16, 1, 1 + 2**14),
      (tf.int64, 1, 1 + 2**32),
      (tf.uint64, 1, 1 + 2**63),
      (tf.bfloat16, 1, 1 + 2**-7),
      (tf.float64, 1, 1 + 2**-52),
      (tf.complex64, 1, 1 + 1j),
      (tf.string, 'a', 'b'),
  )
  def test_digest_depends_on_every_bit(self, dtype, one, other):
    digests = [
        native._digest([tf.constant([value], dtype)]) for value in (one, other)
    ]
    self.assertNotAllEqual(*digests)

  def test_other_computations_stay_as_they_are(self):
    process = tff.learning.algorithms.build_weighted_fed_avg(
        testing.variable_model_fn(), tff.learning.optimizers.build_sgdm(0.1)
    )
    before = tff.framework.serialize_computation(process.next)
    after = tff.framework.serialize_computation(native.with_seeds(process.next))
    self.assertEqual(before, after)


if __name__ == '__main__':
  tf.test.main()

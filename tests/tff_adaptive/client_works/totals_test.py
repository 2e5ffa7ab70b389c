# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of which clients are rejected, and why."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from tests.tff_adaptive import testing
from tests.tff_adaptive.client_works import training_testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import client_works
from tff_adaptive import optimizers
from tff_adaptive.client_works import totals

_REJECTION = client_works.Rejection


class JudgeClientTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      (1, True, [3.0, 4.0], None, _REJECTION.NONE),
      (1, True, [3.0, 4.0], 5.0, _REJECTION.NONE),
      (1, True, [3.0, 4.0], 4.99, _REJECTION.TOO_LARGE),
      # Its square overflows.
      (1, True, [1e30, 0.0], 1e38, _REJECTION.TOO_LARGE),
      (1, False, [3.0, 4.0], 1.0, _REJECTION.NOT_FINITE),
      (1, False, [np.nan, 4.0], 5.0, _REJECTION.NOT_FINITE),
      (0, True, [9.0, 9.0], 1.0, _REJECTION.NO_EXAMPLE),
      (0, False, [np.nan, 9.0], None, _REJECTION.NO_EXAMPLE),
  )
  def test_verdict(self, num_examples, is_finite, update, limit, expected):
    verdict = totals.judge_client(
        tf.constant(num_examples, tf.int64),
        tf.constant(is_finite),
        tuple(map(tf.constant, update)),
        limit,
    )
    self.assertEqual(verdict.dtype, tf.int64)
    self.assertEqual(verdict, expected)

  @parameterized.parameters(tf.float16, tf.float64)
  def test_norm_in_the_dtype_of_steps(self, dtype):
    update = (tf.constant([300.0, 400.0], dtype),)
    for limit, expected in (
        (499.0, _REJECTION.TOO_LARGE),
        (501.0, _REJECTION.NONE),
    ):
      self.assertEqual(
          totals.judge_client(1, tf.constant(True), update, limit), expected
      )


class MaxUpdateNormTest(tf.test.TestCase):

  def test_client_beyond_it_counts_nowhere(self):
    batches = testing.client(10, seed=0)
    update, _ = training_testing.plain_loop(batches, [0.5] * 3)
    norm = np.sqrt(sum(np.sum(np.square(u)) for u in update))
    for limit, rejection in (
        (1.01 * norm, _REJECTION.NONE),
        (0.99 * norm, _REJECTION.TOO_LARGE),
    ):
      result = training_testing.train(
          testing.functional_model(),
          optimizers.build_sgd(0.5),
          batches,
          max_update_norm=float(limit),
      )
      is_healthy = rejection == _REJECTION.NONE
      self.assertEqual(result.rejection, rejection)
      self.assertEqual(result.is_healthy, is_healthy)
      self.assertEqual(result.num_examples, 10 * is_healthy)
      self.assertEqual(result.statistics['sum']['num_healthy'], is_healthy)
      self.assertAllClose(
          result.update, [is_healthy * u for u in update], atol=1e-6
      )


def _build_process():
  """Builds a process whose limit only exploding clients exceed, by far."""
  return algorithms.build_fed_opt(
      testing.functional_model(), optimizers.build_sgd(0.1), max_update_norm=1.0
  )


def _exploding():
  (batch,) = testing.client(4, seed=3)
  return [{**batch, 'x': 1e6 * batch['x']}]


def _cohort():
  """Returns twelve clients: healthy, with NaN, empty, exploding in turn."""
  kinds = [
      testing.client(10, seed=1),
      testing.unhealthy_client(),
      [],
      _exploding(),
      testing.client(3, seed=2),
  ]
  return kinds * 2 + kinds[1::-1]


_EXPECTED = [0, 2, 1, 3, 0] * 2 + [2, 0]


class NamesTest(tf.test.TestCase, parameterized.TestCase):

  def _check(self, process):
    output = process.next(process.initialize(), _cohort())
    measured = output.metrics['client_work']
    self.assertAllEqual(measured['rejections'], _EXPECTED)
    self.assertEqual(
        measured['clients']['num_rejected'], np.count_nonzero(_EXPECTED)
    )
    without = process.next(output.state, [])
    self.assertEqual(without.metrics['client_work']['rejections'].shape, (0,))

  @parameterized.parameters(4, 1)
  @pytest.mark.sample(1)
  def test_rejections_are_in_the_order_of_the_clients(self, number):
    with compiled_testing.installed(number):
      self._check(_build_process())

  @pytest.mark.slow
  @pytest.mark.usefixtures('native_runtime')
  def test_so_they_are_on_the_native_runtime(self):
    for _ in range(3):
      self._check(_build_process())

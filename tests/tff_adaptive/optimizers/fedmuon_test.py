# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedMuon."""

import json
import math
import pathlib

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive import optimizers
from tff_adaptive.optimizers.client import fedmuon

_GOLDENS = pathlib.Path(__file__).parents[2] / 'goldens/tuning_free.json'
_MATRIX = np.array([[2.0, 0.5, -1.0], [0.25, 1.0, 0.5]])
_VECTOR = np.array([0.5, -2.0])


class OrthogonalizeTest(tf.test.TestCase, parameterized.TestCase):

  def test_reference_numbers(self):
    cases = json.loads(_GOLDENS.read_text())['unit']['orthogonalize']
    self.assertLen(cases, 3)
    for case in cases:
      matrix = tf.constant(case['matrix'], tf.float64)
      self.assertAllClose(fedmuon.orthogonalize_by_svd(matrix), case['svd'])
      self.assertAllClose(
          fedmuon.orthogonalize_by_newton_schulz(matrix, 5),
          case['newton_schulz'],
          atol=1e-7,
      )

  def test_small_singular_values_count_in_float32(self):
    left, _ = np.linalg.qr(np.random.default_rng(1).normal(size=[300, 40]))
    matrix = left * np.logspace(0, -5, 40)
    found = fedmuon.orthogonalize_by_svd(tf.constant(matrix, tf.float32))
    self.assertAllClose(found, left, atol=5e-3)

  def test_rounding_noise_is_no_direction(self):
    for seed in range(50):
      # As gradients of a softmax, whose rows add up to zero.
      values = np.random.default_rng(seed).normal(size=[2, 5, 3])
      values -= values.mean(axis=-1, keepdims=True)
      change, control = tf.constant(values, tf.float32)
      found = fedmuon.orthogonalize_by_svd(change / 4 + control - control)
      self.assertAllClose(np.sum(found, axis=1), np.zeros(5), atol=1e-5)
      self.assertNear(np.linalg.norm(found), np.sqrt(2), 1e-5)

  def test_zeros_stay_and_nans_show(self):
    for orthogonalize in (
        fedmuon.orthogonalize_by_svd,
        lambda m: fedmuon.orthogonalize_by_newton_schulz(m, 5),
    ):
      self.assertAllEqual(orthogonalize(tf.zeros([2, 3])), np.zeros([2, 3]))
      bad = orthogonalize(tf.constant([[float('nan'), 1.0], [1.0, 1.0]]))
      self.assertFalse(np.any(np.isfinite(bad)))


class FedMuonTest(tf.test.TestCase, parameterized.TestCase):

  def test_two_steps_by_hand(self):
    rate, alpha, beta, decay, vector_rate = 0.125, 0.25, 0.5, 0.5, 0.0625
    rule = optimizers.build_fedmuon(
        rate,
        alpha,
        beta,
        decay,
        vector_rate,
        beta_1=0.5,
        beta_2=0.75,
        epsilon=0.0625,
        orthogonalize='svd',
    )
    specs = (tf.TensorSpec([2, 3], tf.float64), tf.TensorSpec([2], tf.float64))
    shared = rule.initialize_shared(specs)
    direction = (0.5 * np.ones([2, 3]), -np.ones([2]))
    shared['global_direction'] = tf.nest.map_structure(tf.constant, direction)
    shared['momentum'] = (tf.constant(_MATRIX), tf.zeros([2], tf.float64))
    state = rule.start_round(rule.initialize(specs), shared, {}, 0)
    x = tuple(tf.zeros(s.shape, s.dtype) for s in specs)
    w, b = np.zeros([2, 3]), np.zeros(2)
    momentum, m, v = _MATRIX, np.zeros(2), np.zeros(2)
    for k in range(2):
      g = (_MATRIX * (1 - w), _VECTOR + b)
      state, x = rule.next(
          state,
          x,
          tf.nest.map_structure(tf.constant, g),
          value=tf.constant(1.0),
      )
      momentum = beta * momentum + g[0]
      left, _, right = np.linalg.svd(momentum, full_matrices=False)
      u = math.sqrt(3 / 2) * left @ right
      w = w - (1 - alpha) * rate * (u + decay * w) - alpha * rate * direction[0]
      m, v = 0.5 * m + 0.5 * g[1], 0.75 * v + 0.25 * g[1] ** 2
      adam = m / (1 - 0.5 ** (k + 1))
      adam /= np.sqrt(v / (1 - 0.75 ** (k + 1))) + 0.0625
      b = b - (1 - alpha) * vector_rate * (adam + decay * b)
      b = b - alpha * rate * direction[1]
      self.assertAllClose(x[0], w, atol=1e-6)
      self.assertAllClose(x[1], b, atol=1e-6)
    sent, _ = rule.finish_round(state)
    self.assertAllClose(sent['momentum'][0], momentum)
    self.assertAllClose(sent['global_direction'][0], -w / rate, atol=1e-5)
    self.assertAllClose(sent['num_steps'], 2.0)

  def test_last_axis_of_a_tensor_is_its_columns(self):
    rule = optimizers.build_fedmuon(1.0, 0.0, weight_decay=0.0)
    kernel = np.random.default_rng(0).normal(size=[2, 2, 3])
    moved = []
    for g in (kernel, kernel.reshape([4, 3])):
      state = rule.initialize(tf.TensorSpec(g.shape, tf.float64))
      x = tf.zeros(g.shape, tf.float64)
      moved.append(rule.next(state, x, tf.constant(g), value=tf.constant(1.0)))
    self.assertAllClose(moved[0][1].numpy().reshape([4, 3]), moved[1][1])

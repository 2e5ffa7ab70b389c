# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A server rule of your own, to which clients report two scalars."""

import collections

import tensorflow as tf

from tff_adaptive import optimizers


class AgreementStep(optimizers.ServerOptimizer):
  """x_{t+1} = x_t + eta D, eta = |D| / mean |delta_i|, 1 if all agree."""

  client_reports = {
      'length': optimizers.Report(
          lambda end: tf.linalg.global_norm(end.update)
      ),
      'largest_loss': optimizers.Report(
          at_end=lambda end: end.gathered,
          on_step=lambda largest, step: tf.maximum(largest, step.loss),
      ),
  }

  def initialize(self, specs):
    return collections.OrderedDict(
        agreement=tf.ones([]), largest_loss=tf.zeros([])
    )

  def next(self, state, weights, gradients, *, reports):
    length = tf.linalg.global_norm(tf.nest.flatten(gradients))
    eta = tf.math.divide_no_nan(length, reports['length'])
    eta = tf.clip_by_value(eta, 0.0, 1.0)  # Noise may leave the range.
    moved = tf.nest.map_structure(lambda x, g: x - eta * g, weights, gradients)
    new_state = collections.OrderedDict(
        agreement=eta, largest_loss=reports['largest_loss']
    )
    return new_state, moved

  def report(self, state):
    return state

  def get_hparams(self, state):
    return collections.OrderedDict()

  def set_hparams(self, state, hparams):
    return state


def build_agreement_step() -> optimizers.ServerOptimizer:
  """Builds the rule, whose step is as long as clients agree."""
  return AgreementStep()

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A client rule of your own: steps of one size in every coordinate."""

import collections

import tensorflow as tf

from tff_adaptive import optimizers
from tff_adaptive import ranges


class SignDescent(optimizers.ExtraArgsOptimizer):
  """x = x - learning_rate * sign(g), coordinate by coordinate."""

  def __init__(self, learning_rate):
    self._learning_rate = learning_rate

  def initialize(self, specs):
    return collections.OrderedDict(learning_rate=self._learning_rate)

  def next(self, state, weights, gradients, **unused_extra_args):
    rate = state['learning_rate']
    moved = tf.nest.map_structure(
        lambda x, g: x - rate * tf.sign(g), weights, gradients
    )
    return state, moved

  def report(self, state):
    return collections.OrderedDict(step_size=state['learning_rate'])

  def get_hparams(self, state):
    return collections.OrderedDict(learning_rate=state['learning_rate'])

  def set_hparams(self, state, hparams):
    return collections.OrderedDict(state, **hparams)


def build_sign_descent(learning_rate: ranges.NotNegative = 0.01):
  """Builds sign descent.

  Args:
    learning_rate: The size of each step. Default 0.01.
  """
  return SignDescent(learning_rate)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A method for the leaderboard in one file: steps of one length."""

import collections

import tensorflow as tf

from tff_adaptive import optimizers
from tff_adaptive import ranges

SUBMISSION = {
    'name': 'Normalized-SGD',
    'defaults': 'ours',
    'search': [
        {
            'flag': 'client_learning_rate',
            'values': 'log_uniform(0.01,1)',
            'reason': 'a decade to each side of the default',
        },
    ],
}


class NormalizedSGD(optimizers.ExtraArgsOptimizer):
  """x = x - learning_rate * g / |g|, over all weights together."""

  def __init__(self, learning_rate):
    self._learning_rate = learning_rate

  def initialize(self, specs):
    return collections.OrderedDict(learning_rate=self._learning_rate)

  def next(self, state, weights, gradients, **unused_extra_args):
    norm = tf.linalg.global_norm(tf.nest.flatten(gradients))
    step = tf.math.divide_no_nan(state['learning_rate'], norm)
    moved = tf.nest.map_structure(lambda x, g: x - step * g, weights, gradients)
    return state, moved


def build_normalized_sgd(learning_rate: ranges.NotNegative = 0.1):
  """Builds normalized gradient descent.

  Args:
    learning_rate: The length of each step. Default 0.1.
  """
  return NormalizedSGD(learning_rate)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A method of your own with two sides: clients vote, the server counts."""

import collections

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import optimizers


class MajorityVote(optimizers.FederatedOptimizer):
  """Clients train by SGD and send the signs of their updates."""

  client_weighting = tff.learning.ClientWeighting.UNIFORM

  def __init__(self, learning_rate):
    self._learning_rate = learning_rate

  def initialize(self, specs):
    return collections.OrderedDict(learning_rate=self._learning_rate)

  def start_round(self, state, shared, kept, round_num):
    return state

  def next(self, state, weights, gradients, **unused_extra_args):
    rate = state['learning_rate']
    moved = tf.nest.map_structure(lambda x, g: x - rate * g, weights, gradients)
    return state, moved

  def sent_update(self, state, update):
    # The sign of infinity is 1, which would hide that the client fails.
    return tf.nest.map_structure(
        lambda u: tf.where(tf.math.is_finite(u), tf.sign(u), u), update
    )

  def finish_round(self, state):
    nothing = collections.OrderedDict()
    return nothing, nothing  # What the client sends, and what it keeps.

  def at_server(self, optimizer, client_weighting):
    return _MajorityStep(optimizer)

  def get_hparams(self, state):
    return collections.OrderedDict(learning_rate=state['learning_rate'])

  def set_hparams(self, state, hparams):
    return collections.OrderedDict(state, **hparams)


class _MajorityStep(tff.learning.optimizers.Optimizer):
  """Takes the server optimizer's step along the signs of the mean vote."""

  def __init__(self, optimizer):
    self._optimizer = optimizer

  def initialize(self, specs):
    return self._optimizer.initialize(specs)

  def next(self, state, weights, gradients):
    votes = tf.nest.map_structure(tf.sign, gradients)
    return self._optimizer.next(state, weights, votes)

  def get_hparams(self, state):
    return self._optimizer.get_hparams(state)

  def set_hparams(self, state, hparams):
    return self._optimizer.set_hparams(state, hparams)


def build_majority_vote(
    learning_rate: float = 0.05,
) -> optimizers.FederatedOptimizer:
  """Builds the method.

  Args:
    learning_rate: The size of local steps, not negative. Default 0.05.
  """
  return MajorityVote(learning_rate)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedPAC: a preconditioner and a direction that clients share.

The common part of FedAdamW, FedMuon and FedPAC with SOAP or Sophia. Each of
them is a preconditioner, in a file of its own.
"""

import abc
import collections
from typing import Any

import tensorflow as tf

from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.client import fedcm

# The mean number of steps over clients, summed over all earlier rounds.
NUM_STEPS_KEY = 'num_steps'


class FedPAC(
    vector_optimizer.VectorOptimizer, federated_optimizer.FederatedOptimizer
):
  """A rule with a shared preconditioner, corrected by the last round.

  With P the preconditioned direction, weight decay included:

  ```
  x = x - learning_rate * ((1 - alpha) P + alpha G)           (each local step)
  G = -D / (K learning_rate)                                       (each round)
  ```

  with D the mean update and K the mean number of steps. Clients begin the round
  with the mean of the preconditioners that they sent in the last one.

  Attributes:
    preconditioner_keys: The parts of the state that make up the preconditioner.
    blends: Whether P is scaled by 1 - alpha.
  """

  moment_keys: tuple[str, ...] = (fedcm.DIRECTION_KEY, fedcm.SUM_KEY)
  preconditioner_keys: tuple[str, ...] = ()
  blends = True

  @abc.abstractmethod
  def precondition(
      self, state: Any, g: Any, hparams: Any, extra: vector_optimizer.Extra
  ) -> tuple[dict[str, Any], Any]:
    """Returns the changed entries of the state, and P.

    Args:
      state: As for `step`.
      g: As for `step`.
      hparams: As for `step`.
      extra: As for `step`.
    """

  def step(self, state, x, g, hparams, extra):
    changed, own = self.precondition(state, g, hparams, extra)
    alpha = hparams['alpha']
    share = vectors.complement(alpha) if self.blends else 1.0
    direction = vectors.combine(share, own, alpha, state[fedcm.DIRECTION_KEY])
    summed, moved = fedcm.move(state, x, direction, hparams['learning_rate'])
    return {**changed, **summed}, moved

  def initialize_preconditioner(self, specs: Any) -> dict[str, Any]:
    """Returns the first values of `preconditioner_keys`; zeros by default.

    Args:
      specs: A structure of `tf.TensorSpec`s, the weights.
    """
    return {
        key: vectors.fill_moments(specs) for key in self.preconditioner_keys
    }

  def _share(self, direction: Any, num_steps: Any, parts: Any) -> Any:
    # TFF cannot average nothing, so that empty parts are left out.
    filled = {
        key: parts[key]
        for key in self.preconditioner_keys
        if tf.nest.flatten(parts[key])
    }
    return collections.OrderedDict(
        {fedcm.DIRECTION_KEY: direction, NUM_STEPS_KEY: num_steps, **filled}
    )

  def initialize_shared(self, specs):
    parts = self.initialize_preconditioner(specs)
    return self._share(vectors.fill_moments(specs), tf.zeros([]), parts)

  def start_round(self, state, shared, kept, round_num):
    del kept, round_num  # Unused.
    keys = (fedcm.DIRECTION_KEY, *self.preconditioner_keys)
    held = {key: shared[key] for key in keys if key in shared}
    return collections.OrderedDict(state, **held)

  def finish_round(self, state):
    num_steps = tf.cast(state[vector_optimizer.NUM_STEPS_KEY], tf.float32)
    sent = self._share(state[fedcm.SUM_KEY], num_steps, state)
    return sent, collections.OrderedDict()

  def update_shared(self, shared, mean_sent, num_clients):
    del num_clients  # Unused.
    # Noise may leave less than one step.
    num_steps = tf.maximum(mean_sent[NUM_STEPS_KEY], 1.0)
    direction = vectors.divide(mean_sent[fedcm.DIRECTION_KEY], num_steps)
    return collections.OrderedDict(
        mean_sent,
        **{
            fedcm.DIRECTION_KEY: direction,
            NUM_STEPS_KEY: shared[NUM_STEPS_KEY] + num_steps,
        },
    )

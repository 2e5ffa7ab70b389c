# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learning processes whose server rule sets the clients' learning rate."""

from typing import Any

import tensorflow_federated as tff

from tff_adaptive.optimizers import schedules

_CLIENT_WORK_KEY = 'client_work'


def scale_client_rate(
    process: tff.learning.templates.LearningProcess, server_optimizer: Any
) -> tff.learning.templates.LearningProcess:
  """Multiplies the clients' learning rate by a factor from the server rule.

  Args:
    process: A process whose client optimizer has a learning rate.
    server_optimizer: Its server rule, whose `client_rate_scale` maps the rule's
      state to the factor of the next round.

  Returns:
    The process with the factor. Its state holds the unscaled hyperparameters.

  Raises:
    ValueError: If the client optimizer has no learning rate.
  """
  state_type = process.initialize.type_signature.result.member
  schedules.check_has_rate(
      process.get_hparams.type_signature.result[_CLIENT_WORK_KEY],
      'client optimizer',
  )

  @tff.tensorflow.computation(state_type)
  def enter_round(state):
    hparams = process.get_hparams(state)
    finalizer = state.finalizer
    # A schedule of the server's rate wraps the state of the rule.
    finalizer = finalizer.get('inner', finalizer)
    hparams[_CLIENT_WORK_KEY] = schedules.scale(
        hparams[_CLIENT_WORK_KEY], server_optimizer.client_rate_scale(finalizer)
    )
    return process.set_hparams(state, hparams)

  @tff.tensorflow.computation(state_type, state_type)
  def leave_round(entered, state):
    hparams = process.get_hparams(state)
    before = process.get_hparams(entered)
    hparams[_CLIENT_WORK_KEY] = before[_CLIENT_WORK_KEY]
    return process.set_hparams(state, hparams)

  parameter_type = process.next.type_signature.parameter

  @tff.federated_computation(parameter_type[0], parameter_type[1])
  def next_fn(state, client_data):
    entered = tff.federated_map(enter_round, state)
    output = process.next(entered, client_data)
    left = tff.federated_map(leave_round, (state, output.state))
    return tff.learning.templates.LearningProcessOutput(left, output.metrics)

  return tff.learning.templates.LearningProcess(
      process.initialize,
      next_fn,
      process.get_model_weights,
      process.set_model_weights,
      get_hparams_fn=process.get_hparams,
      set_hparams_fn=process.set_hparams,
  )

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rules, for tests of what all of them do."""

from collections.abc import Callable
import functools
from typing import Any

import numpy as np
import tensorflow as tf

from experiments import registry
from tff_adaptive import finalizers
from tff_adaptive import optimizers
from tff_adaptive.optimizers import optimizer as optimizer_lib


def builders(kind: str) -> dict[str, Callable[[], Any]]:
  """Builders of the registry's rules of a kind, by name, without arguments."""
  return {
      row.name: functools.partial(
          registry.resolve(row.builder), **{name: 3 for name in row.supplied}
      )
      for row in registry.ROWS[kind].values()
      if row.builder is not None
  }


# Of rules that are tested with more than their defaults: name, builder, two
# sets of arguments with the same structure of state.
_SPECIAL: tuple[tuple[str, Any, dict[str, Any], dict[str, Any]], ...] = (
    ('sgd', optimizers.build_sgd, dict(learning_rate=0.1), {}),
    (
        'sgdm',
        optimizers.build_sgd,
        dict(learning_rate=0.1, momentum=0.9),
        dict(momentum=0.5),
    ),
    (
        'delta_sgd',
        optimizers.build_delta_sgd,
        dict(learning_rate=0.1),
        dict(learning_rate=0.4, theta=0.5, gamma=1.0, delta=0.3),
    ),
    (
        'delta_sgd_reuse',
        optimizers.build_delta_sgd,
        dict(learning_rate=0.1, previous_gradient='reuse'),
        dict(gamma=1.0, previous_gradient='reuse'),
    ),
    (
        'sps',
        optimizers.build_sps,
        {},
        dict(c=0.9, epsilon=0.1, optimal_value=-1.0),
    ),
    (
        'sps_max',
        optimizers.build_sps_max,
        dict(max_step_size=0.4),
        dict(max_step_size=0.3, c=0.9),
    ),
    (
        'sps_smooth',
        optimizers.build_sps_smooth,
        dict(initial_step_size=0.1, batches_per_epoch=1),
        dict(initial_step_size=0.02, gamma=1.5),
    ),
    (
        'armijo',
        optimizers.build_armijo,
        dict(max_step_size=0.4),
        dict(max_step_size=2.0, c=0.3, beta=0.8, gamma=4.0),
    ),
    (
        'adam',
        optimizers.build_adam,
        dict(learning_rate=0.05),
        dict(beta_1=0.5, beta_2=0.9, epsilon=0.1),
    ),
    (
        'adagrad',
        optimizers.build_adagrad,
        dict(learning_rate=0.5),
        dict(epsilon=0.1),
    ),
    (
        'adagrad_norm',
        optimizers.build_adagrad_norm,
        dict(learning_rate=2.0),
        dict(learning_rate=0.3, initial_norm=0.5),
    ),
    (
        'adagrad_norm_kept',
        optimizers.build_adagrad_norm,
        dict(learning_rate=2.0, carry_state=True),
        dict(initial_norm=0.5, carry_state=True),
    ),
    (
        'dog',
        optimizers.build_dog,
        dict(learning_rate=1.0, relative_distance=0.05),
        dict(relative_distance=0.1, epsilon=0.1),
    ),
    (
        'dog_average_kept',
        optimizers.build_dog,
        dict(
            learning_rate=1.0,
            first_step_size=0.1,
            send='average',
            carry_state=True,
        ),
        dict(
            first_step_size=0.2,
            send='average',
            average_gamma=2.0,
            carry_state=True,
        ),
    ),
    (
        'dowg',
        optimizers.build_dowg,
        dict(learning_rate=1.0, initial_squared_distance=0.01),
        dict(epsilon=0.1, initial_squared_distance=0.1),
    ),
    (
        'momo',
        optimizers.build_momo,
        dict(learning_rate=1.0),
        dict(beta=0.5, lower_bound=-0.1, weight_decay=0.1),
    ),
    (
        'momo_star',
        optimizers.build_momo,
        # With momentum the estimate rises above the minimum.
        dict(
            learning_rate=1.0,
            beta=0.0,
            bias_correction=True,
            estimate_lower_bound=True,
        ),
        dict(beta=0.5, bias_correction=True, estimate_lower_bound=True),
    ),
    (
        'momo_adam',
        optimizers.build_momo_adam,
        dict(learning_rate=0.1),
        dict(beta_1=0.5, beta_2=0.9, epsilon=0.1),
    ),
    (
        'd_adaptation_sgd',
        optimizers.build_d_adaptation_sgd,
        dict(learning_rate=0.5, initial_distance=0.1),
        dict(initial_distance=0.2, momentum=0.5, growth_rate=1.5),
    ),
    (
        'd_adaptation_adam',
        optimizers.build_d_adaptation_adam,
        dict(learning_rate=0.5, initial_distance=0.1, growth_rate=1.02),
        dict(initial_distance=0.2, beta_1=0.5, beta_2=0.9, epsilon=0.1),
    ),
    (
        'prodigy',
        optimizers.build_prodigy,
        dict(learning_rate=1.0, initial_distance=0.1),
        dict(initial_distance=0.2, distance_factor=0.5, growth_rate=1.5),
    ),
    (
        'prodigy_kept',
        optimizers.build_prodigy,
        dict(
            learning_rate=1.0,
            initial_distance=0.1,
            bias_correction=True,
            carry_state=True,
        ),
        dict(initial_distance=0.2, bias_correction=True, carry_state=True),
    ),
    (
        'schedule_free_sgd',
        optimizers.build_schedule_free_sgd,
        dict(learning_rate=0.5),
        dict(beta=0.5, warmup_steps=2, r=1.0, weight_decay=0.1),
    ),
    (
        'schedule_free_adamw',
        optimizers.build_schedule_free_adamw,
        # The mean is to forget the first iterates.
        dict(learning_rate=0.3, r=10.0),
        dict(beta=0.5, beta_2=0.9, epsilon=0.1, weight_lr_power=1.0),
    ),
    (
        'fedsam',
        optimizers.build_fedsam,
        dict(learning_rate=0.2, rho=1e-4),
        dict(rho=0.01, epsilon=0.1),
    ),
    (
        'fedcm',
        optimizers.build_fedcm,
        dict(learning_rate=1.0, alpha=0.5),
        dict(alpha=0.2),
    ),
    (
        'mofedsam',
        optimizers.build_mofedsam,
        dict(learning_rate=1.0, alpha=0.5, rho=1e-4),
        dict(alpha=0.2, rho=0.01),
    ),
    (
        'feddyn',
        functools.partial(optimizers.build_feddyn, 3),
        dict(learning_rate=0.2),
        dict(alpha=0.1),
    ),
    (
        'fedspeed',
        functools.partial(optimizers.build_fedspeed, 3),
        dict(learning_rate=0.2, rho=1e-4),
        dict(proximal_lambda=2.0, rho=0.01, alpha=0.5),
    ),
    (
        'mime',
        optimizers.build_mime,
        dict(learning_rate=1.0, momentum=0.5),
        dict(momentum=0.5),
    ),
    (
        'mimelite',
        optimizers.build_mimelite,
        dict(learning_rate=1.0, momentum=0.5),
        dict(momentum=0.5),
    ),
    (
        'fedhyper_client_local',
        optimizers.build_fedhyper_client_local,
        dict(learning_rate=0.2),
        dict(hyper_learning_rate=2.0, max_scale=2.0),
    ),
    (
        'fedhyper_global',
        optimizers.build_fedhyper_global,
        dict(max_scale=1.2),
        dict(hyper_learning_rate=0.5, min_scale=0.1),
    ),
    (
        'fedhyper_server_local',
        optimizers.build_fedhyper_server_local,
        dict(learning_rate=0.5),
        dict(hyper_learning_rate=0.5, min_scale=0.2),
    ),
    (
        'fedadamw',
        optimizers.build_fedadamw,
        dict(learning_rate=0.1, weight_decay=0.0),
        dict(alpha=0.2, beta_1=0.5, beta_2=0.9, epsilon=0.1),
    ),
    (
        'fedmuon',
        optimizers.build_fedmuon,
        dict(learning_rate=0.1, weight_decay=0.0),
        dict(alpha=0.2, beta=0.5, beta_1=0.5, beta_2=0.9, epsilon=0.1),
    ),
    (
        'sm3',
        optimizers.build_sm3,
        dict(learning_rate=1.0),
        dict(epsilon=0.1),
    ),
    (
        'sm3_delay',
        optimizers.build_sm3,
        dict(learning_rate=1.0, version='i', delay=2),
        dict(epsilon=0.1, version='i', delay=2),
    ),
    (
        'yogi',
        optimizers.build_yogi,
        dict(learning_rate=0.05),
        dict(beta_1=0.5, beta_2=0.9, epsilon=0.1),
    ),
    ('fedavg', optimizers.build_fedavg, dict(learning_rate=0.7), {}),
    (
        'fedavgm',
        optimizers.build_fedavgm,
        dict(learning_rate=0.1),
        dict(momentum=0.5),
    ),
    (
        'fedadagrad',
        optimizers.build_fedadagrad,
        dict(learning_rate=0.5),
        dict(learning_rate=0.1),
    ),
    (
        'fedadam',
        optimizers.build_fedadam,
        dict(learning_rate=0.05),
        dict(beta_1=0.5, beta_2=0.9),
    ),
    (
        'fedyogi',
        optimizers.build_fedyogi,
        dict(learning_rate=0.05),
        dict(beta_1=0.5, beta_2=0.9),
    ),
    (
        'fedams',
        optimizers.build_fedams,
        dict(learning_rate=0.2),
        dict(beta_1=0.5, beta_2=0.9, epsilon=1e-4),
    ),
    (
        'fedams_amsgrad',
        optimizers.build_fedams,
        dict(learning_rate=0.2, option=2, bias_correction=True),
        dict(epsilon=0.1, option=2, bias_correction=True),
    ),
    (
        'fedcada_adam',
        optimizers.build_fedcada_adam,
        dict(learning_rate=0.05),
        dict(beta_1=0.5, beta_2=0.9, epsilon=0.1),
    ),
    (
        'fafed',
        optimizers.build_fafed,
        dict(learning_rate=0.1),
        dict(alpha=0.5, beta=0.9, rho=0.1),
    ),
    (
        'adaalter',
        optimizers.build_adaalter,
        dict(learning_rate=1.0),
        dict(epsilon=0.5),
    ),
    (
        'scaffold_sgd',
        functools.partial(optimizers.build_scaffold_sgd, 3),
        dict(learning_rate=0.2),
        {},
    ),
)
_CLIENTS = builders(registry.CLIENT_OPTIMIZER)
# Those that take gradients, or changes, alone.
_SERVERS = {
    name: build
    for name, build in builders(registry.SERVER_OPTIMIZER).items()
    if not isinstance(build(), finalizers.ReportsOptimizer)
}
# As `_SPECIAL`, with all rules.
RULES = _SPECIAL + tuple(
    (name, build, {}, {})
    for name, build in {**_CLIENTS, **_SERVERS}.items()
    if name not in [row[0] for row in _SPECIAL]
)
# Rules of servers alone: their names in `RULES`.
SERVER_RULES = (*_SERVERS, 'fedams_amsgrad')


def specs(weights):
  return tf.nest.map_structure(
      lambda t: tf.TensorSpec(t.shape, t.dtype), weights
  )


def _loss(weights, gradients):
  """The loss of which linear `gradients` are the gradients, in float64."""
  pairs = zip(tf.nest.flatten(weights), tf.nest.flatten(gradients))
  products = [
      tf.cast(w, tf.float64) * tf.cast(tf.convert_to_tensor(g), tf.float64)
      for w, g in pairs
      if g is not None
  ]
  return sum((0.5 * tf.reduce_sum(p) for p in products), np.float64(0.0))


def next_step(optimizer, state, weights, gradient_fn):
  """One step; `gradient_fn` maps weights to gradients, which are linear."""
  gradients = gradient_fn(weights)
  if not optimizer_lib.takes_extra_args(optimizer):
    return optimizer.next(state, weights, gradients)

  def value_and_grad_fn(at):
    gradients = gradient_fn(at)
    return _loss(at, gradients), gradients

  return optimizer.next(
      state,
      weights,
      gradients,
      value=_loss(weights, gradients),
      value_and_grad_fn=value_and_grad_fn,
  )

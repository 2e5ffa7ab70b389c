# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""All rules, for tests of the properties that they share."""

from collections.abc import Callable
import functools
from typing import Any

import numpy as np
import tensorflow as tf

from experiments import registry
from tff_adaptive.optimizers import optimizer as optimizer_lib


def builders(kind: str) -> dict[str, Callable[[], Any]]:
  """Returns builders of the registry's rules of a kind by name."""
  return {
      row.name: functools.partial(
          registry.resolve(row.builder), **{name: 3 for name in row.supplied}
      )
      for row in registry.ROWS[kind].values()
      if row.builder is not None
  }


# Rules that are tested with other arguments than their defaults. With the first
# ones they converge; the second ones give the same structure of state.
_FIRST: dict[str, dict[str, Any]] = {
    'sgd': dict(learning_rate=0.1),
    'sgdm': dict(learning_rate=0.1, momentum=0.9),
    'delta_sgd': dict(learning_rate=0.1),
    'delta_sgd_reuse': dict(learning_rate=0.1),
    'delta_sgd_previous_batch': dict(learning_rate=0.1),
    'sps': {},
    'sps_max': dict(max_step_size=0.4),
    'sps_smooth': dict(initial_step_size=0.1, batches_per_epoch=1),
    'armijo': dict(max_step_size=0.4),
    'adam': dict(learning_rate=0.05),
    'adagrad': dict(learning_rate=0.5),
    'adagrad_norm': dict(learning_rate=2.0),
    'adagrad_norm_kept': dict(learning_rate=2.0),
    'dog': dict(learning_rate=1.0, relative_distance=0.05),
    'dog_average_kept': dict(learning_rate=1.0, first_step_size=0.1),
    'dowg': dict(learning_rate=1.0, initial_squared_distance=0.01),
    'momo': dict(learning_rate=1.0),
    # With momentum the estimate rises above the minimum.
    'momo_star': dict(learning_rate=1.0, beta=0.0),
    'momo_adam': dict(learning_rate=0.1),
    'd_adaptation_sgd': dict(learning_rate=0.5, initial_distance=0.1),
    'd_adaptation_adam': dict(
        learning_rate=0.5, initial_distance=0.1, growth_rate=1.02
    ),
    'prodigy': dict(learning_rate=1.0, initial_distance=0.1),
    'prodigy_kept': dict(learning_rate=1.0, initial_distance=0.1),
    'schedule_free_sgd': dict(learning_rate=0.5),
    # A large `r` makes the mean forget the first iterates.
    'schedule_free_adamw': dict(learning_rate=0.3, r=10.0),
    'fedsam': dict(learning_rate=0.2, rho=1e-4),
    'fedcm': dict(learning_rate=1.0, alpha=0.5),
    'mofedsam': dict(learning_rate=1.0, alpha=0.5, rho=1e-4),
    'feddyn': dict(learning_rate=0.2),
    'fedspeed': dict(learning_rate=0.2, rho=1e-4),
    'mime': dict(learning_rate=1.0, momentum=0.5),
    'mimelite': dict(learning_rate=1.0, momentum=0.5),
    'fedhyper_client_local': dict(learning_rate=0.2),
    'fedhyper_global': dict(max_scale=1.2),
    'fedhyper_server_local': dict(learning_rate=0.5),
    'fedadamw': dict(learning_rate=0.1, weight_decay=0.0),
    'fedmuon': dict(learning_rate=0.1, weight_decay=0.0),
    'fedmuon_nesterov': dict(learning_rate=0.1, weight_decay=0.0),
    'fedmuon_lmo': dict(learning_rate=0.1),
    'fedpac_soap': dict(
        learning_rate=0.1, alpha=0.0, beta_2=0.999, weight_decay=0.0
    ),
    'fedpac_sophia': dict(learning_rate=0.1, weight_decay=0.0),
    'fedlion': dict(learning_rate=0.1),
    'cocob': dict(alpha=10.0),
    'adgd': dict(learning_rate=0.1),
    'adgd_2020': dict(learning_rate=0.1),
    'mechanic_sgd': dict(learning_rate=1.0, initial_scale=0.1),
    'mechanic_sgd_kept': dict(learning_rate=1.0, initial_scale=0.1),
    'mechanic_adam': dict(learning_rate=1.0, initial_scale=0.1),
    # The mean of all iterates would remember the first ones.
    'schedule_free_polyak_sgd': dict(beta=0.0, max_step_size=0.5),
    'schedule_free_polyak_adam': dict(beta=0.0, max_step_size=0.5),
    'schedule_free_plus': dict(learning_rate=1.0, beta=0.5, r=10.0),
    'sm3': dict(learning_rate=1.0),
    'sm3_delay': dict(learning_rate=1.0),
    'yogi': dict(learning_rate=0.05),
    'fedadamom': dict(learning_rate=0.2),
    'gpa': dict(learning_rate=0.5),
    'fed_schedule_free': dict(learning_rate=0.5),
    'fedavgm_nesterov': dict(learning_rate=0.1),
    'fedavg': dict(learning_rate=0.7),
    'fedavgm': dict(learning_rate=0.1),
    'fedadagrad': dict(learning_rate=0.5),
    'fedadam': dict(learning_rate=0.05),
    'fedyogi': dict(learning_rate=0.05),
    'fedams': dict(learning_rate=0.2),
    'fedams_amsgrad': dict(learning_rate=0.2),
    'fedcada_adam': dict(learning_rate=0.05),
    'fafed': dict(learning_rate=0.1),
    'adaalter': dict(learning_rate=1.0),
    'scaffold_sgd': dict(learning_rate=0.2),
}
_SECOND: dict[str, dict[str, Any]] = {
    'sgdm': dict(momentum=0.5),
    'delta_sgd': dict(learning_rate=0.4, theta=0.5, gamma=1.0, delta=0.3),
    'delta_sgd_reuse': dict(gamma=1.0),
    'delta_sgd_previous_batch': dict(gamma=1.0, max_step_size=0.3),
    'sps': dict(c=0.9, epsilon=0.1, optimal_value=-1.0),
    'sps_max': dict(max_step_size=0.3, c=0.9),
    'sps_smooth': dict(initial_step_size=0.02, gamma=1.5),
    'armijo': dict(max_step_size=2.0, c=0.3, beta=0.8, gamma=4.0),
    'adam': dict(beta_1=0.5, beta_2=0.9, epsilon=0.1),
    'adagrad': dict(epsilon=0.1),
    'adagrad_norm': dict(learning_rate=0.3, initial_norm=0.5),
    'adagrad_norm_kept': dict(initial_norm=0.5),
    'dog': dict(relative_distance=0.1, epsilon=0.1),
    'dog_average_kept': dict(first_step_size=0.2, average_gamma=2.0),
    'dowg': dict(epsilon=0.1, initial_squared_distance=0.1),
    'momo': dict(beta=0.5, lower_bound=-0.1, weight_decay=0.1),
    'momo_star': dict(beta=0.5),
    'momo_adam': dict(beta_1=0.5, beta_2=0.9, epsilon=0.1),
    'd_adaptation_sgd': dict(
        initial_distance=0.2, momentum=0.5, growth_rate=1.5
    ),
    'd_adaptation_adam': dict(
        initial_distance=0.2, beta_1=0.5, beta_2=0.9, epsilon=0.1
    ),
    'prodigy': dict(initial_distance=0.2, distance_factor=0.5, growth_rate=1.5),
    'prodigy_kept': dict(initial_distance=0.2),
    'schedule_free_sgd': dict(
        beta=0.5, warmup_steps=2, r=1.0, weight_decay=0.1
    ),
    'schedule_free_adamw': dict(
        beta=0.5, beta_2=0.9, epsilon=0.1, weight_lr_power=1.0
    ),
    'fedsam': dict(rho=0.01, epsilon=0.1),
    'fedcm': dict(alpha=0.2),
    'mofedsam': dict(alpha=0.2, rho=0.01),
    'feddyn': dict(alpha=0.1),
    'fedspeed': dict(proximal_lambda=2.0, rho=0.01, alpha=0.5),
    'mime': dict(momentum=0.5),
    'mimelite': dict(momentum=0.5),
    'fedhyper_client_local': dict(hyper_learning_rate=2.0, max_scale=2.0),
    'fedhyper_global': dict(hyper_learning_rate=0.5, min_scale=0.1),
    'fedhyper_server_local': dict(hyper_learning_rate=0.5, min_scale=0.2),
    'fedadamw': dict(alpha=0.2, beta_1=0.5, beta_2=0.9, epsilon=0.1),
    'fedmuon': dict(alpha=0.2, beta=0.5, beta_1=0.5, beta_2=0.9, epsilon=0.1),
    'fedmuon_nesterov': dict(alpha=0.2, beta=0.5),
    'fedmuon_lmo': dict(alpha=0.5),
    'fedpac_soap': dict(alpha=0.2, beta_1=0.5, beta_2=0.9, shampoo_beta=0.5),
    'fedpac_sophia': dict(alpha=0.2, beta_1=0.5, beta_2=0.9, rho=2.0),
    'fedlion': dict(beta_1=0.5, beta_2=0.8, weight_decay=0.1),
    'cocob': dict(alpha=4.0, epsilon=0.1, weight_decay=0.1),
    'adgd': dict(learning_rate=0.2, theta=1.0),
    'adgd_2020': dict(theta=0.5),
    'mechanic_sgd': dict(initial_scale=0.2, momentum=0.5, weight_decay=0.0),
    'mechanic_sgd_kept': dict(initial_scale=0.2, epsilon=1e-4),
    'mechanic_adam': dict(initial_scale=0.2, beta_1=0.5, beta_2=0.9),
    'schedule_free_polyak_sgd': dict(
        beta=0.5, lower_bound=-0.1, min_squared_norm=0.1
    ),
    'schedule_free_polyak_adam': dict(beta=0.5, beta_2=0.9, epsilon=0.1),
    'schedule_free_plus': dict(
        beta=0.4, max_beta=0.6, anneal_steps=2, norm_decay=0.5, r=2.0
    ),
    'sm3': dict(epsilon=0.1),
    'sm3_delay': dict(epsilon=0.1),
    'yogi': dict(beta_1=0.5, beta_2=0.9, epsilon=0.1),
    'fedadamom': dict(beta_0=0.5, epsilon=0.1),
    'gpa': dict(eval_coefficient=0.5, train_coefficient=0.8),
    'fedavgm': dict(momentum=0.5),
    'fedavgm_nesterov': dict(momentum=0.5),
    'fedadagrad': dict(learning_rate=0.1),
    'fedadam': dict(beta_1=0.5, beta_2=0.9),
    'fedyogi': dict(beta_1=0.5, beta_2=0.9),
    'fedams': dict(beta_1=0.5, beta_2=0.9, epsilon=1e-4),
    'fedams_amsgrad': dict(epsilon=0.1),
    'fedcada_adam': dict(beta_1=0.5, beta_2=0.9, epsilon=0.1),
    'fafed': dict(alpha=0.5, beta=0.9, rho=0.1),
    'adaalter': dict(epsilon=0.5),
}
# Second forms of rules, with arguments that are part of both.
_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    'sgdm': ('sgd', {}),
    'delta_sgd_reuse': ('delta_sgd', dict(previous_gradient='reuse')),
    'delta_sgd_previous_batch': (
        'delta_sgd',
        dict(previous_gradient='previous_batch', growth='always'),
    ),
    'adagrad_norm_kept': ('adagrad_norm', dict(carry_state=True)),
    'dog_average_kept': ('dog', dict(send='average', carry_state=True)),
    'momo_star': (
        'momo',
        dict(bias_correction=True, estimate_lower_bound=True),
    ),
    'prodigy_kept': ('prodigy', dict(bias_correction=True, carry_state=True)),
    'fedmuon_nesterov': ('fedmuon', dict(nesterov=True)),
    'adgd_2020': ('adgd', dict(version='2020', previous_gradient='reuse')),
    'mechanic_sgd_kept': ('mechanic_sgd', dict(carry_state=True)),
    'fedavgm_nesterov': ('fedavgm', dict(nesterov=True)),
    'sm3_delay': ('sm3', dict(version='i', delay=2)),
    'fedams_amsgrad': ('fedams', dict(option=2, bias_correction=True)),
}
_CLIENTS = builders(registry.CLIENT_OPTIMIZER)
# Those that take gradients, or changes, alone.
_SERVERS = {
    name: build
    for name, build in builders(registry.SERVER_OPTIMIZER).items()
    if not getattr(build(), 'client_reports', None)
}
_ALL = {**_CLIENTS, **_SERVERS}


def _special(name: str) -> tuple[str, Any, dict[str, Any], dict[str, Any]]:
  """Returns the row of a rule in `RULES`."""
  rule, both = _VARIANTS.get(name, (name, {}))
  second = {**both, **_SECOND[name]} if name in _SECOND else {}
  return name, _ALL[rule], {**both, **_FIRST[name]}, second


# Rows of name, builder, first and second arguments.
RULES = tuple(map(_special, _FIRST)) + tuple(
    (name, build, {}, {}) for name, build in _ALL.items() if name not in _FIRST
)
# Rules of servers alone: their names in `RULES`.
SERVER_RULES = (*_SERVERS, 'fedams_amsgrad', 'fedavgm_nesterov')


def specs(weights):
  return tf.nest.map_structure(
      lambda t: tf.TensorSpec(t.shape, t.dtype), weights
  )


def _loss(weights, gradients):
  """Returns the loss with these linear `gradients`, in float64."""
  pairs = zip(tf.nest.flatten(weights), tf.nest.flatten(gradients))
  products = [
      tf.cast(w, tf.float64) * tf.cast(tf.convert_to_tensor(g), tf.float64)
      for w, g in pairs
      if g is not None
  ]
  return sum((0.5 * tf.reduce_sum(p) for p in products), np.float64(0.0))


def next_step(optimizer, state, weights, gradient_fn):
  """Takes a step; `gradient_fn` maps weights to linear gradients."""
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

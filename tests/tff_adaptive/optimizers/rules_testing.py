# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
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

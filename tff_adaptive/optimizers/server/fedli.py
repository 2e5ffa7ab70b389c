# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedLi's server rules without hyperparameters: line search, Frank-Wolfe."""

import collections
from typing import Literal, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import client_reports
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import server_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.server import fedavg

MAX = 'max'
UNIT = 'unit'

_STEP_SIZE_KEY = 'server_step_size'
_VELOCITY_KEY = 'velocity'


class _LargestStep(
    vector_optimizer.VectorOptimizer, server_optimizer.ServerOptimizer
):
  """The server rule of FedLi-LS with the clients' largest last step size."""

  name = 'The line search step'
  reported_keys = (_STEP_SIZE_KEY,)
  client_reports = {
      'last_step_size': client_reports.Report(
          at_end=lambda end: end.gathered,
          on_step=lambda _, step: step.report[optimizer.STEP_SIZE_KEY],
          reduction='max',
      )
  }

  def check_client(self, client_optimizer):
    if not _has_step_size(client_optimizer):
      raise ValueError(
          "The server rule needs the clients' step sizes, but the client "
          f'optimizer {optimizer.name_of(client_optimizer)} has none that is '
          'common to all weights. Use one with a step size, such as '
          '`tff_adaptive.optimizers.build_armijo()`, or another server rule.'
      )

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict([(_STEP_SIZE_KEY, tf.ones([], dtype))])

  def step(self, state, x, g, hparams, extra):
    del state, hparams  # Unused.
    step_size = tf.cast(extra.reports['last_step_size'], vectors.step_dtype(x))
    return {_STEP_SIZE_KEY: step_size}, vectors.descend(x, g, step_size)


def _has_step_size(
    client_optimizer: tff.learning.optimizers.Optimizer,
) -> bool:
  """Returns whether steps are a known number times a common direction."""
  state = client_optimizer.initialize(tf.TensorSpec([2], tf.float32))
  report = optimizer.step_report(client_optimizer, state)
  if optimizer.STEP_SIZE_KEY not in report:
    return False
  # A rule with a learning rate may still scale it per weight, as Adam does.
  # Then the first step is not along the gradient.
  gradient = tf.constant([1.0, 2.0])
  extra_args = {}
  if optimizer.takes_extra_args(client_optimizer):
    value = tf.ones([])
    extra_args = dict(
        value=value, value_and_grad_fn=lambda _: (value, gradient)
    )
  _, (first, second) = client_optimizer.next(
      state, tf.zeros([2]), gradient, **extra_args
  )
  return np.isclose(second, 2.0 * first)


def build_line_search_step(
    scale: Union[str, float] = MAX,
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedLi-LS.

  With D the weighted mean of the clients' updates:

  ```
  x_{t+1} = x_t + eta_s * D
  eta_s   = the largest step size accepted in the last local step of a client of
            the round          (`'max'`, for objectives that are not convex)
            1                     (`'unit'`, for convex ones)
            a constant            (a number)
  ```

  FedLi's authors replaced FedLi-LS and FedLi-LU by FedSLS and FedExpSLS:
  `build_armijo` on the clients, and `build_fedavg` or `build_fedexp` on the
  server. They have no server step from the clients' steps, which nothing bounds
  for the objective of all clients. Use FedSLS: with five seeds on digits, AG
  News and MNIST it is ahead of FedLi-LS, by 3.1 points at most, or cannot be
  told apart from it, while FedExpSLS is 3.6 points behind on AG News and 1.9 on
  MNIST, both tuned (docs/results/methods_2026.md).

  FedLi-LS has `tff_adaptive.optimizers.build_armijo` on the clients; `'max'`
  needs a client rule with a step size. The objective of all clients together
  may increase even if every client's line search succeeds and all objectives
  are convex.

  Args:
    scale: `'max'`, the default, `'unit'`, or a number that is not negative.
      With `'max'` each client reports one more number, `last_step_size`, in the
      clear: a maximum is not a sum, so no secure or private aggregator applies
      to it, and privacy of the updates alone does not make the model private.

  Returns:
    With `'max'` a `ServerOptimizer` without hyperparameters, for client
    optimizers with a step size. Its state has `server_step_size`, the last
    eta_s, also a metric of the round. Otherwise
    `tff_adaptive.optimizers.build_fedavg` with that step size.

  Raises:
    TypeError: If `scale` is neither a text nor a number.
    ValueError: If it is not one of these.

  Example:

    >>> rule = build_line_search_step('max')
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = rule.next(state, tf.constant(0.0), tf.constant(-2.0),
    ...                  reports={'last_step_size': tf.constant(0.5)})
    >>> float(x)
    1.0

  References:
    Towards Hyper-parameter-free Federated Learning, 2024,
    https://arxiv.org/abs/2408.17145v1, section 3, Algorithm FedLi-LS and
    StepSizeSync. Deviation: the global descent of its Remark 1 does not hold;
    the tests have a counterexample. The published code averages the models and
    never takes the step.
  """
  if scale == MAX:
    return _LargestStep({})
  if scale == UNIT:
    return fedavg.build_fedavg(1.0)
  if isinstance(scale, str):
    raise ValueError(
        f"`scale` must be '{MAX}', '{UNIT}' or a number, found {scale!r}."
    )
  arguments.check('scale', scale, 'The line search step', ranges.NotNegative)
  return fedavg.build_fedavg(scale)


def _mean_over_steps(end: client_reports.ClientRoundEnd) -> tf.Tensor:
  assert end.gathered is not None
  return end.gathered / end.num_steps


def _add_received_loss(
    total: tf.Tensor, step: client_reports.LocalStep
) -> tf.Tensor:
  assert step.loss_at is not None
  return total + step.loss_at(step.received)


# The values of `objective_at`, and what they need clients to report.
_OBJECTIVES = {
    'local_mean': (
        'mean_loss',
        client_reports.Report(
            _mean_over_steps, lambda total, step: total + step.loss
        ),
    ),
    'received_model': (
        'received_model_loss',
        client_reports.Report(
            _mean_over_steps,
            _add_received_loss,
            evaluates_again=True,
        ),
    ),
    'last': (
        'last_loss',
        client_reports.Report(
            lambda end: end.gathered, lambda _, step: step.loss
        ),
    ),
}


class _FrankWolfe(
    vector_optimizer.VectorOptimizer, server_optimizer.ServerOptimizer
):
  """The step of FedLi-LU, see `build_frank_wolfe`."""

  name = 'Frank-Wolfe'
  reported_keys = ('gamma', 'objective')

  def __init__(self, hparams: dict[str, float], objective_at: str):
    super().__init__(hparams)
    # Without momentum there is neither a velocity nor the hyperparameter.
    self._has_momentum = hparams['momentum'] > 0.0
    if self._has_momentum:
      self.moment_keys = (_VELOCITY_KEY,)
    else:
      del self._hparams['momentum']
    self._objective, report = _OBJECTIVES[objective_at]
    self.client_reports = {self._objective: report}

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict(
        gamma=tf.ones([], dtype), objective=tf.zeros([], dtype)
    )

  def step(self, state, x, g, hparams, extra):
    rate = hparams['learning_rate']
    objective = tf.cast(extra.reports[self._objective], rate.dtype)
    decay = tf.nest.map_structure(
        lambda t: tf.cast(hparams['weight_decay'], t.dtype) * t, x
    )
    gamma = tf.math.divide_no_nan(
        objective - rate * vectors.inner(g, decay, rate.dtype),
        rate * tf.square(vectors.norm(g, rate.dtype)) + hparams['epsilon'],
    )
    gamma = tf.clip_by_value(gamma, 0.0, 1.0)
    changed = dict(gamma=gamma, objective=objective)
    moved = vectors.descend(x, vectors.combine(1.0, decay, gamma, g), rate)
    if self._has_momentum:
      velocity = vectors.combine(
          hparams['momentum'],
          state[_VELOCITY_KEY],
          -rate * gamma,
          tf.nest.map_structure(tf.add, g, decay),
      )
      moved = vectors.combine(1.0, moved, hparams['momentum'], velocity)
      changed[_VELOCITY_KEY] = velocity
    return changed, moved


@arguments.checked
def build_frank_wolfe(
    learning_rate: ranges.Positive = 1.0,
    weight_decay: ranges.NotNegative = 0.0,
    momentum: ranges.NotNegative = 0.0,
    epsilon: ranges.NotNegative = 1e-5,
    *,
    objective_at: Literal[
        'local_mean', 'received_model', 'last'
    ] = 'local_mean',
) -> server_optimizer.ServerOptimizer:
  """Builds the server rule of FedLi-LU.

  FedLi's authors replaced this method; use FedSLS, see
  `build_line_search_step`.

  With Delta = -sum_i w_i delta_i, minus the weighted mean of the clients'
  updates, fbar the weighted mean of their losses, and r = weight_decay * x_t:

  ```
  gamma   = clip((fbar - eta <Delta, r>) / (eta |Delta|^2 + epsilon), 0, 1)
  z_t     = momentum * z_{t-1} - eta * gamma * (Delta + r)          (z_{-1} = 0)
  x_{t+1} = x_t - eta * (r + gamma * Delta) + momentum * z_t
  ```

  where eta is the learning rate. The step size along the mean update is
  eta * gamma, in [0, eta]. With the defaults this is FedAvg, unless the Polyak
  step size fbar / |Delta|^2 is smaller than 1; it is then used instead. If the
  loss is not positive, gamma is 0 (without weight decay).

  The paper derives the step for the multi-class hinge loss,
  `tff_adaptive.losses.MulticlassHinge`, and trains with cross-entropy and SGD
  on the clients.

  Each client reports its loss, one more number, as `mean_loss`,
  `received_model_loss` or `last_loss`. The round's metrics include `gamma` and
  `objective`, fbar.

  Args:
    learning_rate: eta, the proximal rate. Default 1.0. The authors' code uses
      0.01 with weight decay 1e-5 and momentum 0.9; gamma is then nearly always
      1, and the server moves far more slowly than FedAvg.
    weight_decay: The strength of the regularizer. Default 0. The objective does
      not include it.
    momentum: mu. Default 0.
    epsilon: Added to the denominator. Default 1e-5, as in the code of deep
      Frank-Wolfe.
    objective_at: Whether fbar is the mean over a client's batches of the loss
      before each local step (`'local_mean'`, the default, at no cost); the mean
      of the same batches' losses at the received model (`'received_model'`, as
      the linearization requires, at the cost of one more pass); or the loss
      before the last local step (`'last'`). Batches have equal weights, and
      losses include loss terms.

  Returns:
    A `ServerOptimizer` with the hyperparameters `learning_rate`,
    `weight_decay`, `momentum` (if above 0) and `epsilon`, for
    `tff_adaptive.algorithms.build_fed_opt`. Its state also has `gamma` and
    `objective` of the last round and, with momentum, `velocity`, z, with the
    weights' structure.

  Example:

    >>> rule = build_frank_wolfe(epsilon=0.0)
    >>> state = rule.initialize(tf.TensorSpec([2], tf.float32))
    >>> _, x = rule.next(state, tf.zeros([2]), tf.constant([1.0, 2.0]),
    ...                  reports={'mean_loss': tf.constant(0.5)})
    >>> [round(float(value), 2) for value in x]  # gamma = 0.5 / 5
    [-0.1, -0.2]

  References:
    Towards Hyper-parameter-free Federated Learning, 2024,
    https://arxiv.org/abs/2408.17145v1, Algorithm FedLi-LU; Berrada, Zisserman,
    Kumar, Deep Frank-Wolfe For Neural Network Optimization, ICLR 2019,
    https://arxiv.org/abs/1811.07591, whose published optimizer the formula
    follows. The code published with FedLi never takes this step.
  """
  hparams = dict(
      learning_rate=learning_rate,
      weight_decay=weight_decay,
      momentum=momentum,
      epsilon=epsilon,
  )
  return _FrankWolfe(hparams, objective_at)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Delta-SGD: each client tunes its step to the local smoothness."""

import collections
from typing import Any, Literal, NamedTuple, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vectors

# In the order of `_StepSize`.
_LAST_KEYS = (
    'last_step_size',
    'last_theta',
    'last_smoothness_limit',
    'last_growth_limit',
)

# Reported limits are summed over steps in float32. A sum that is not finite
# would make the client count as diverged, so a limit that overflows is cut.
_LARGEST_REPORTED_LIMIT = 1e30

_State = collections.OrderedDict[str, Any]


class _StepSize(NamedTuple):
  """The step size of a step and where it is from, scalars.

  Attributes:
    step_size: The smaller one of the limits.
    theta: Its ratio to the step size before.
    smoothness_limit: The limit from the estimated smoothness; the other one
      where there is no estimate.
    growth_limit: The limit from the step size before.
  """

  step_size: tf.Tensor
  theta: tf.Tensor
  smoothness_limit: tf.Tensor
  growth_limit: tf.Tensor


def _leaves(structure: Any, gradients: Any) -> list[tf.Tensor]:
  """The leaves of a structure, without those that have no gradient."""
  pairs = zip(tf.nest.flatten(structure), tf.nest.flatten(gradients))
  return [leaf for leaf, gradient in pairs if gradient is not None]


def _distance(
    left: list[tf.Tensor], right: list[tf.Tensor], dtype: tf.DType
) -> tf.Tensor:
  return vectors.norm([a - b for a, b in zip(left, right)], dtype)


def _next_step_size(
    weight_change: tf.Tensor,
    gradient_change: tf.Tensor,
    last_step_size: tf.Tensor,
    last_theta: tf.Tensor,
    gamma: tf.Tensor,
    delta: tf.Tensor,
) -> _StepSize:
  """The step size of a step after the first; see `build_delta_sgd`.

  Args:
    weight_change: The norm of x_k - x_{k-1}, a scalar.
    gradient_change: The norm of g_k - h_k, a scalar.
    last_step_size: The step size of step k-1, a scalar.
    last_theta: The theta of step k-1, a scalar.
    gamma: The hyperparameter, a scalar.
    delta: The hyperparameter, a scalar.

  Returns:
    The step size of step k; NaN where a change is not finite, as are its theta
    and the limit from the smoothness.
  """
  grown = tf.sqrt(1.0 + delta * last_theta) * last_step_size
  smooth = tf.math.divide_no_nan(gamma * weight_change, 2.0 * gradient_change)
  # Without a change there is no estimate of the smoothness: grow.
  has_estimate = (weight_change > 0.0) & (gradient_change > 0.0)
  smooth = tf.where(has_estimate, smooth, grown)
  # min() and the comparisons would pick the growth limit over a NaN, and an
  # infinite change would give a step of 0. Such a client must be seen to fail.
  is_finite = tf.math.is_finite(weight_change + gradient_change)
  smooth = tf.where(is_finite, smooth, float('nan'))
  step_size = tf.where(is_finite, tf.minimum(smooth, grown), float('nan'))
  theta = tf.math.divide_no_nan(step_size, last_step_size)
  return _StepSize(step_size, theta, smooth, grown)


class _DeltaSGD(optimizer.HparamsInState, optimizer.ExtraArgsOptimizer):
  """Delta-SGD, see `build_delta_sgd`."""

  def __init__(
      self, hparams: _State, previous_gradient: str, amplify_first: bool
  ):
    for name in ('learning_rate', 'gamma'):
      optimizer.check_positive(name, hparams[name], 'Delta-SGD')
    for name in ('theta', 'delta'):
      optimizer.check_rate(name, hparams[name], 'Delta-SGD')
    if previous_gradient not in ('recompute', 'reuse'):
      raise ValueError(
          "Delta-SGD `previous_gradient` must be 'recompute' or 'reuse', found "
          f'{previous_gradient!r}.'
      )
    super().__init__(hparams)
    self.evaluates_again = previous_gradient == 'recompute'
    self._amplify_first = amplify_first

  def initialize(self, specs: Any) -> _State:
    state = collections.OrderedDict(
        self._hparams,
        num_steps=tf.zeros([], tf.int32),
        **dict.fromkeys(_LAST_KEYS, tf.zeros([], vectors.step_dtype(specs))),
        previous_weights=vectors.zeros(specs),
    )
    if not self.evaluates_again:
      state['previous_gradients'] = vectors.zeros(specs)
    return state

  def next(
      self, state, weights, gradients, *, value=None, value_and_grad_fn=None
  ):
    del value  # Unused.
    gradients = optimizer.dense_gradients(weights, gradients)
    optimizer.check_weights_state_match(
        weights, state['previous_weights'], 'previous_weights'
    )
    old_gradients = self._gradients_at_previous_weights(
        state, gradients, value_and_grad_fn
    )
    taken = self._step_size(state, weights, gradients, old_gradients)
    new_state = collections.OrderedDict(
        state,
        num_steps=state['num_steps'] + 1,
        **dict(zip(_LAST_KEYS, taken)),
        # Stock TFF loops hand over variables and assign to them afterwards.
        previous_weights=tf.nest.map_structure(tf.convert_to_tensor, weights),
    )
    if not self.evaluates_again:
      new_state['previous_gradients'] = vectors.with_zeros(weights, gradients)
    return new_state, vectors.descend(weights, gradients, taken.step_size)

  def _gradients_at_previous_weights(
      self,
      state: _State,
      gradients: Any,
      value_and_grad_fn: Optional[optimizer.ValueAndGradFn],
  ) -> list[tf.Tensor]:
    """h_k, a flat list without the leaves that have no gradient."""
    if not self.evaluates_again:
      return _leaves(state['previous_gradients'], gradients)
    if value_and_grad_fn is None:
      raise ValueError(
          "Delta-SGD with `previous_gradient='recompute'` evaluates each batch "
          'twice and needs `value_and_grad_fn`, which was not given: train '
          'with `tff_adaptive.algorithms.build_fed_opt`, or take '
          "`previous_gradient='reuse'`, which runs inside the algorithms of "
          '`tff.learning`.'
      )

    def evaluate():
      _, old = value_and_grad_fn(state['previous_weights'])
      old = tff.learning.optimizers.handle_indexed_slices_gradients(old)
      return _leaves(old, gradients)

    # The first step has no previous point: one gradient, not two.
    return tf.cond(
        state['num_steps'] > 0,
        evaluate,
        lambda: [tf.identity(g) for g in _leaves(gradients, gradients)],
    )

  def _step_size(
      self,
      state: _State,
      weights: Any,
      gradients: Any,
      old_gradients: list[tf.Tensor],
  ) -> _StepSize:
    """The step size of this step."""
    dtype = vectors.step_dtype(weights)
    learning_rate, initial_theta, gamma, delta = (
        tf.cast(state[key], dtype) for key in self._hparams
    )
    is_first = tf.equal(state['num_steps'], 0)
    weight_change = _distance(
        _leaves(weights, gradients),
        _leaves(state['previous_weights'], gradients),
        dtype,
    )
    gradient_change = _distance(
        _leaves(gradients, gradients), old_gradients, dtype
    )
    if self._amplify_first:
      # In the published code both points are equal at the first step: nothing
      # has changed, and the step grows from the initial one.
      unchanged = tf.zeros([], dtype)
      first = _next_step_size(
          unchanged, unchanged, learning_rate, initial_theta, gamma, delta
      )
    else:
      # Nothing limits it but the hyperparameter.
      first = _StepSize(
          learning_rate, initial_theta, learning_rate, learning_rate
      )
    later = _next_step_size(
        weight_change,
        gradient_change,
        state['last_step_size'],
        state['last_theta'],
        gamma,
        delta,
    )
    return _StepSize(*(tf.where(is_first, *pair) for pair in zip(first, later)))

  def report(self, state: _State) -> _State:
    evaluations = tf.ones([], tf.int32)
    if self.evaluates_again:
      evaluations += tf.cast(state['num_steps'] > 1, tf.int32)
    step_size, theta, limit, growth_limit = (state[key] for key in _LAST_KEYS)
    largest = tf.constant(_LARGEST_REPORTED_LIMIT, limit.dtype)
    return collections.OrderedDict(
        step_size=step_size,
        theta=theta,
        # Chosen, not `minimum`, which may drop a NaN.
        smoothness_limit=tf.where(limit > largest, largest, limit),
        growth_limit=growth_limit,
        gradient_evaluations=evaluations,
    )


def build_delta_sgd(
    learning_rate: float = 0.2,
    theta: float = 1.0,
    gamma: float = 2.0,
    delta: float = 0.1,
    *,
    previous_gradient: Literal['recompute', 'reuse'] = 'recompute',
    amplify_first: bool = False,
    carry_state: bool = False,
) -> optimizer.ExtraArgsOptimizer:
  """Builds Delta-SGD, the client optimizer that tunes its own step.

  With x_k the weights before local step k, B_k its batch, g_k = g(x_k; B_k) the
  gradient and norms over the vector of all trainable weights:

  ```
  step 0:   eta_0   = learning_rate,  theta_0 = theta
  step k:   h_k     = g(x_{k-1}; B_k)                      (same batch as g_k)
            grow    = sqrt(1 + delta * theta_{k-1}) * eta_{k-1}
            eta_k   = min(gamma * |x_k - x_{k-1}| / (2 * |g_k - h_k|), grow)
            theta_k = eta_k / eta_{k-1}
  always:   x_{k+1} = x_k - eta_k * g_k
  ```

  The first branch is gamma/2 over the local smoothness along the last step, the
  second limits how fast the step may grow. Where either norm is zero, eta_k is
  `grow`. Where one is not finite, eta_k is NaN, so the client is counted as
  rejected instead of training on. The history starts anew in every round and
  continues over the epochs of a round; with one local step a round this is SGD
  with step `learning_rate`.

  With `carry_state` the history continues over the rounds: a client keeps
  eta, theta and the point of its last step, and its first step of the next
  round is a step k, not step 0. With one local step a round, `gamma=1` and
  `delta=1` this is equation (4) of the paper, whose convergence Theorem 5 is
  about.

  It sends the model's change alone, keeps nothing on the server and holds one
  more copy of the weights (two with `'reuse'`) while it trains, or with
  `carry_state` for good.

  Args:
    learning_rate: eta_0, the step size of each round's first step, above zero.
      Default 0.2, section 4 of the paper.
    theta: theta_0, the ratio that the second step assumes for the first, not
      negative. Default 1.0, section 4.
    gamma: Scales the estimate from the smoothness, above zero. Default 2.0,
      section 4. The paper calls this factor the amplifier. Its theory takes
      other values: Theorem 1 one of order 1 / (K sqrt(T)) for K local steps and
      T rounds, Theorem 5 takes 1.
    delta: Limits the growth of the step, not negative. Default 0.1, section 4.
      The published code calls this one `amplifier`, with default 0.02, and runs
      it at 0.1.
    previous_gradient: `'recompute'`, the default and the published code's way,
      evaluates h_k on the batch of g_k and with its dropout mask: two gradients
      a step from the second on. `'reuse'` takes the stored g_{k-1} in its
      place: one gradient a step, but of another batch, which makes the steps
      shorter; this form is a plain TFF optimizer and also runs inside the
      algorithms of `tff.learning`.
    amplify_first: Whether step 0 takes sqrt(1 + delta * theta) * learning_rate,
      as the published code does, in place of `learning_rate`, as Algorithm 1
      says. Default False.
    carry_state: Whether clients keep their step sizes, thetas and last points
      until they take part again, as in equation (4), in place of starting anew
      in every round, as Algorithm 1 does. Default False.

  Returns:
    An `ExtraArgsOptimizer`, with `carry_state` a `FederatedOptimizer`, with the
    hyperparameters `learning_rate`, `theta`, `gamma` and `delta`. It reports of
    each step `step_size`, `theta` and both arguments of the minimum,
    `smoothness_limit` (at most 1e30) and `growth_limit`, of which the step size
    is the smaller one. Where a limit does not exist it equals the step size:
    both at step 0, and the first where a norm is zero. Where a norm is not
    finite, all but `growth_limit` are NaN.

  Raises:
    TypeError: If an argument is no number.
    ValueError: If an argument is out of its range, or, from `next`, if
      `previous_gradient='recompute'` is used by a loop that cannot evaluate a
      batch again.

  Example:

    >>> optimizer = build_delta_sgd(previous_gradient='reuse')
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> x, steps = tf.constant(1.0), []
    >>> for _ in range(3):  # f(x) = 5 x^2
    ...   state, x = optimizer.next(state, x, 10.0 * x)
    ...   steps.append(round(float(state['last_step_size']), 4))
    >>> steps  # 0.2, then gamma/2 over the smoothness 10
    [0.2, 0.1, 0.1]

  References:
    Kim, Toghani, Uribe, Kyrillidis, Adaptive Federated Learning with
    Auto-Tuned Clients, ICLR 2024, https://arxiv.org/abs/2306.11201, Algorithm
    1, equation (4), and Figure 7 for both limits over the steps; Malitsky and
    Mishchenko, Adaptive Gradient Descent without Descent, ICML 2020,
    https://arxiv.org/abs/1910.09529, Algorithm 1.
    Deviations: none from Algorithm 1 with the defaults. The published code adds
    1e-8 to eta_k and amplifies the first step; the paper does not, nor do we.
  """
  hparams = collections.OrderedDict(
      learning_rate=learning_rate, theta=theta, gamma=gamma, delta=delta
  )
  rule = _DeltaSGD(hparams, previous_gradient, amplify_first)
  return federated_optimizer.KeptOptimizer(rule) if carry_state else rule

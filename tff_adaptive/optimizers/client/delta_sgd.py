# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Delta-SGD: each client adapts its step size to the local smoothness."""

import collections
import math
from typing import Any, Literal, NamedTuple

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

# In the order of `StepSize`'s fields.
_LAST_KEYS = (
    'last_step_size',
    'last_theta',
    'last_smoothness_limit',
    'last_growth_limit',
)

# The training loop sums reported limits in float32 and counts a client as
# diverged if a sum is not finite, so limits are clipped to this value.
_LARGEST_REPORTED_LIMIT = 1e30

# With `previous_gradient='previous_batch'`: the changes along the last step.
_CHANGE_KEYS = ('last_weight_change', 'last_gradient_change')

# The norms of the changes of the weights and of the gradient.
Changes = tuple[tf.Tensor, tf.Tensor]


class StepSize(NamedTuple):
  """The step size of a step and its limits, scalars.

  Attributes:
    step_size: The smaller of the two limits.
    theta: Its ratio to the previous step size.
    smoothness_limit: The limit from the estimated smoothness; `growth_limit` if
      there is no estimate.
    growth_limit: The limit from the previous step size.
  """

  step_size: tf.Tensor
  theta: tf.Tensor
  smoothness_limit: tf.Tensor
  growth_limit: tf.Tensor


def _distance(left: Any, right: Any) -> tf.Tensor:
  difference = tf.nest.map_structure(tf.subtract, left, right)
  return vectors.norm(difference, vectors.step_dtype(left))


def _next_step_size(
    weight_change: tf.Tensor,
    gradient_change: tf.Tensor,
    last_step_size: tf.Tensor,
    last_theta: tf.Tensor,
    gamma: tf.Tensor,
    delta: tf.Tensor,
    *,
    growth: str,
    max_step_size: float,
) -> StepSize:
  """Returns the step size of a step after the first; see `build_delta_sgd`.

  Args:
    weight_change: The norm of x_k - x_{k-1}, a scalar.
    gradient_change: The norm of g_k - h_k, a scalar.
    last_step_size: The step size of step k-1, a scalar.
    last_theta: The theta of step k-1, a scalar.
    gamma: The hyperparameter, a scalar.
    delta: The hyperparameter, a scalar.
    growth: The argument of `build_delta_sgd`.
    max_step_size: The argument of `build_delta_sgd`.

  Returns:
    The step size of step k. If a norm is not finite, all of it but the growth
    limit is NaN.
  """
  grown = tf.sqrt(1.0 + delta * last_theta) * last_step_size
  if growth == 'if_moved':
    # Not `weight_change > 0`, which is false for NaN.
    stayed = tf.equal(weight_change, 0.0)
    grown = tf.where(stayed, last_step_size, grown)
  grown = tf.minimum(grown, tf.cast(max_step_size, grown.dtype))
  smooth = tf.math.divide_no_nan(gamma * weight_change, 2.0 * gradient_change)
  # Without a change there is no estimate, and only the other limit binds.
  has_estimate = (weight_change > 0.0) & (gradient_change > 0.0)
  smooth = tf.where(has_estimate, smooth, grown)
  # `min` and comparisons would drop a NaN, and an infinite change would give a
  # step of 0. Use NaN instead, so that the client is seen to fail.
  is_finite = tf.math.is_finite(weight_change + gradient_change)
  smooth = tf.where(is_finite, smooth, float('nan'))
  step_size = tf.where(is_finite, tf.minimum(smooth, grown), float('nan'))
  theta = tf.math.divide_no_nan(step_size, last_step_size)
  return StepSize(step_size, theta, smooth, grown)


class DeltaSGD(vector_optimizer.VectorOptimizer):
  """Delta-SGD, see `build_delta_sgd`."""

  name = 'Delta-SGD'
  remembers_weights = True
  otherwise = ", or use `previous_gradient='reuse'`"

  def __init__(
      self,
      hparams: dict[str, float],
      *,
      previous_gradient: str,
      amplify_first: bool,
      growth: str,
      max_step_size: float,
  ):
    super().__init__(hparams)
    self.scalar_keys = _LAST_KEYS
    if previous_gradient == 'previous_batch':
      self.scalar_keys += _CHANGE_KEYS
    elif previous_gradient == 'reuse':
      self.moment_keys = ('previous_weights', 'previous_gradients')
    else:
      self.moment_keys = ('previous_weights',)
    self.evaluates_again = previous_gradient != 'reuse'
    self._previous_gradient = previous_gradient
    self._amplify_first = amplify_first
    self._growth = growth
    self._max_step_size = max_step_size

  def step(self, state, x, g, hparams, extra):
    if self._previous_gradient == 'previous_batch':
      changes = tuple(state[key] for key in _CHANGE_KEYS)
    else:
      at_previous = self._gradients_at_previous_weights(state, g, extra)
      changes = (
          _distance(x, state['previous_weights']),
          _distance(g, at_previous),
      )
    taken = self.step_size(state, changes, hparams)
    moved = vectors.descend(x, g, taken.step_size)
    changed: dict[str, Any] = dict(zip(_LAST_KEYS, taken))
    if self._previous_gradient == 'previous_batch':
      _, after = extra.value_and_grad_fn(moved)
      found = (_distance(moved, x), _distance(after, g))
      changed.update(zip(_CHANGE_KEYS, found))
      return changed, moved
    changed['previous_weights'] = x
    if self._previous_gradient == 'reuse':
      changed['previous_gradients'] = g
    return changed, moved

  def _gradients_at_previous_weights(
      self, state: Any, g: Any, extra: vector_optimizer.Extra
  ) -> Any:
    """Returns h_k."""
    if self._previous_gradient == 'reuse':
      return state['previous_gradients']
    # The first step has no previous point and needs no second gradient.
    leaves = tf.cond(
        self.is_first(state),
        lambda: [tf.identity(leaf) for leaf in tf.nest.flatten(g)],
        lambda: tf.nest.flatten(
            extra.value_and_grad_fn(state['previous_weights'])[1]
        ),
    )
    return tf.nest.pack_sequence_as(g, leaves)

  def step_size(self, state: Any, changes: Changes, hparams: Any) -> StepSize:
    """Returns the step size of this step."""
    learning_rate, initial_theta, gamma, delta = (
        hparams[key] for key in ('learning_rate', 'theta', 'gamma', 'delta')
    )
    # The first step is limited by nothing but hyperparameters.
    step_size, theta = learning_rate, initial_theta
    if self._amplify_first:
      # The published code takes the previous point equal to the first one, so
      # that the first step grows from the initial step size.
      step_size *= tf.sqrt(1.0 + delta * initial_theta)
    step_size = tf.minimum(
        step_size, tf.cast(self._max_step_size, step_size.dtype)
    )
    if self._amplify_first:
      theta = tf.math.divide_no_nan(step_size, learning_rate)
    first = StepSize(step_size, theta, step_size, step_size)
    later = _next_step_size(
        *changes,
        state['last_step_size'],
        state['last_theta'],
        gamma,
        delta,
        growth=self._growth,
        max_step_size=self._max_step_size,
    )
    is_first = self.is_first(state)
    pairs = zip(first, later)
    return StepSize(*(tf.where(is_first, *pair) for pair in pairs))

  def report(self, state):
    evaluations = tf.ones([], tf.int32)
    if self._previous_gradient == 'recompute':
      evaluations += tf.cast(state['num_steps'] > 1, tf.int32)
    elif self._previous_gradient == 'previous_batch':
      evaluations += 1
    step_size, theta, limit, growth_limit = (state[key] for key in _LAST_KEYS)
    largest = tf.constant(_LARGEST_REPORTED_LIMIT, limit.dtype)
    return collections.OrderedDict(
        step_size=step_size,
        theta=theta,
        # `tf.minimum` could drop a NaN.
        smoothness_limit=tf.where(limit > largest, largest, limit),
        growth_limit=growth_limit,
        relative_step_size=tf.math.divide_no_nan(
            step_size, tf.cast(state['learning_rate'], step_size.dtype)
        ),
        gradient_evaluations=evaluations,
    )


@arguments.checked
def build_delta_sgd(
    learning_rate: ranges.Positive = 0.2,
    theta: ranges.NotNegative = 1.0,
    gamma: ranges.Positive = 2.0,
    delta: ranges.NotNegative = 0.1,
    *,
    previous_gradient: Literal[
        'recompute', 'reuse', 'previous_batch'
    ] = 'recompute',
    growth: Literal['if_moved', 'always'] = 'if_moved',
    max_step_size: ranges.Limit = math.inf,
    amplify_first: bool = False,
    carry_state: bool = False,
) -> optimizer.ExtraArgsOptimizer:
  """Builds Delta-SGD, SGD whose step size adapts to the local smoothness.

  With x_k the weights before local step k, B_k its batch, g_k = g(x_k; B_k) the
  gradient, and norms over the vector of all trainable weights:

  ```
  step 0:   eta_0   = learning_rate,  theta_0 = theta
  step k:   h_k     = g(x_{k-1}; B_k)                      (same batch as g_k)
            grow    = sqrt(1 + delta * theta_{k-1}) * eta_{k-1}
            eta_k   = min(gamma * |x_k - x_{k-1}| / (2 * |g_k - h_k|), grow)
            theta_k = eta_k / eta_{k-1}
  always:   x_{k+1} = x_k - eta_k * g_k
  ```

  The first argument of the minimum is gamma/2 over the local smoothness along
  the last step; the second limits the growth of the step size. If either norm
  is zero, eta_k is `grow`. If one is not finite, eta_k is NaN, and the client
  is rejected. The history spans all epochs of a round and is reset between
  rounds; with one local step per round this is SGD with `learning_rate`.

  After a step that did not move the weights, because its batch had no gradient,
  `grow` is eta_{k-1}: nothing has been learned about the loss, so the step size
  stays. `growth='always'` is the paper's rule.

  With `carry_state` the history spans rounds: a client keeps eta, theta and the
  point of its last step, and continues with step k instead of step 0. With one
  local step per round, `gamma=1` and `delta=1` this is equation (4) of the
  paper, the subject of its Theorem 5.

  The client sends nothing but its model update. It holds one more copy of the
  weights (two with `'reuse'`, none with `'previous_batch'`) during a round,
  with `carry_state` permanently.

  Args:
    learning_rate: eta_0, the step size of each round's first step. Default 0.2,
      section 4 of the paper.
    theta: theta_0, the ratio assumed for the first step. Default 1.0, section
      4.
    gamma: Scales the limit from the smoothness. Default 2.0, section 4, where
      it is called the amplifier. In theory it is of order 1 / (K sqrt(T)) for K
      local steps and T rounds (Theorem 1), or 1 (Theorem 5).
    delta: Limits the growth of the step size. Default 0.1, section 4. The
      published code calls this one `amplifier`, with default 0.02, and runs it
      at 0.1.
    previous_gradient: The gradients that estimate the smoothness.
      `'recompute'`, the default and as in the published code, evaluates h_k on
      the batch and dropout mask of g_k, at two gradients per step from the
      second on. `'reuse'` takes the stored g_{k-1} as h_k. It costs one
      gradient, makes steps shorter, as g_{k-1} is of another batch, and also
      works in the algorithms of `tff.learning`. `'previous_batch'` compares the
      stored g_{k-1} with g(x_k; B_{k-1}), so that both are of the batch of the
      step just taken, at two gradients per step.
    growth: Whether the step size grows only after a step that moved the weights
      (`'if_moved'`, the default) or always (`'always'`, the paper's rule).
      They differ only after a gradient of exactly zero.
    max_step_size: The largest step size; infinite by default, as in the paper.
      Set it for losses whose gradients nearly vanish on single batches, such as
      a logistic loss with one example per batch.
    amplify_first: Whether step 0 is sqrt(1 + delta * theta) * learning_rate, as
      in the published code, instead of `learning_rate`, as in Algorithm 1.
      Default False.
    carry_state: Whether clients keep their history until they participate
      again, as in equation (4), instead of resetting it in every round, as in
      Algorithm 1. Default False.

  Returns:
    An `ExtraArgsOptimizer`, with `carry_state` a `FederatedOptimizer`, with the
    hyperparameters `learning_rate`, `theta`, `gamma` and `delta`. For each step
    it reports `step_size`, `theta`, the two arguments of the minimum,
    `smoothness_limit` (at most 1e30) and `growth_limit` (at most
    `max_step_size`), and `relative_step_size`, the step size divided by
    `learning_rate`. A limit that does not exist equals the step size: both at
    step 0, and the first if a norm is zero. If a norm is not finite, all but
    `growth_limit` are NaN. `tff_adaptive.simulation.run_training` warns of a
    `relative_step_size` above 1000.

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
    Deviations: with the default `growth='if_moved'` the step size does not grow
    after a gradient of exactly zero. In Algorithm 1, as in the published code,
    it grows by up to 5 percent a step then, without bound. With batches of one
    example, an epoch on 200 separable examples and the hinge loss, it reaches
    4,160, and the accuracy after five rounds is 0.957; here these are 2.2 and
    0.991. Where no gradient is zero, as in 15 rounds on MNIST with alpha 0.01
    and on AG News, both have the same numbers. With batches of one and 150
    examples a client, the accuracies after ten rounds are 0.729 with this
    growth and 0.795 without it on MNIST (logistic, alpha 0.1), 0.726 and 0.715
    on AG News.
    Algorithm 1 computes eta_k after the step of line 8, so its "same batches"
    can also mean that both gradients are of the batch of that step:
    `'previous_batch'`. The published code takes both of the next step's batch,
    as does the default. The code also adds 1e-8 to eta_k and amplifies the
    first step; the paper and this rule do not.
  """
  hparams = collections.OrderedDict(
      learning_rate=learning_rate, theta=theta, gamma=gamma, delta=delta
  )
  rule = DeltaSGD(
      hparams,
      previous_gradient=previous_gradient,
      amplify_first=amplify_first,
      growth=growth,
      max_step_size=max_step_size,
  )
  return federated_optimizer.KeptOptimizer(rule) if carry_state else rule

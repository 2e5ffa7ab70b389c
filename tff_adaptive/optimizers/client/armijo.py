# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""SGD with a backtracking line search for Armijo's condition on each batch."""

import collections
from typing import Any, Literal

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

# The values of `reset`: where the search of a step starts.
_FROM_LAST, _FROM_GROWN_LAST, _FROM_MAX = range(3)


class _Armijo(vector_optimizer.VectorOptimizer):
  """SGD with Armijo line search, see `build_armijo`."""

  name = 'Armijo'
  evaluates_again = True
  needs_value = True

  def __init__(self, hparams: dict[str, float], reset: int, max_trials: int):
    if reset not in (_FROM_LAST, _FROM_GROWN_LAST, _FROM_MAX):
      raise ValueError(
          'Armijo `reset` must be 0 (start from the last step size), 1 (from '
          'the last one, grown) or 2 (from `max_step_size`), found '
          f'{reset!r}.'
      )
    super().__init__(hparams)
    self._reset = reset
    self._max_trials = max_trials

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict(
        # Zero stands for `max_step_size`, since `set_hparams` may change it.
        last_step_size=tf.zeros([], dtype),
        backtracks=tf.zeros([], tf.int32),
    )

  def step(self, state, x, g, hparams, extra):
    dtype = vectors.step_dtype(x)
    loss = tf.cast(extra.value, dtype)
    gradient_norm = vectors.norm(g, dtype)
    is_finite = vectors.is_finite(loss, gradient_norm)

    def try_step(step_size, backtracks, _):
      # Only the loss is used, so the gradients of a trial are never computed.
      trial, _ = extra.value_and_grad_fn(vectors.descend(x, g, step_size))
      enough = hparams['c'] * step_size * tf.square(gradient_norm)
      # False for a NaN.
      is_accepted = tf.cast(trial, dtype) <= loss - enough
      return (
          tf.where(is_accepted, step_size, hparams['beta'] * step_size),
          backtracks + tf.cast(~is_accepted, tf.int32),
          is_accepted,
      )

    step_size, backtracks, is_accepted = tf.while_loop(
        lambda step_size, backtracks, is_accepted: ~is_accepted,
        try_step,
        (
            self._start(state, hparams),
            tf.zeros([], tf.int32),
            vectors.is_negligible(gradient_norm) | ~is_finite,
        ),
        maximum_iterations=self._max_trials,
    )
    step_size = tf.where(is_accepted, step_size, hparams['fallback_step_size'])
    step_size = tf.where(is_finite, step_size, float('nan'))
    changed = {'last_step_size': step_size, 'backtracks': backtracks}
    return changed, vectors.descend(x, g, step_size)

  def _start(self, state: Any, hparams: Any) -> tf.Tensor:
    """Returns the first step size to try."""
    largest = hparams['max_step_size']
    if self._reset == _FROM_MAX:
      return largest
    start = last = state['last_step_size']
    if self._reset == _FROM_GROWN_LAST:
      grown = vectors.grow(last, hparams['gamma'], hparams['batches_per_epoch'])
      start = tf.minimum(largest, grown)
    return tf.where(last > 0.0, start, largest)

  def report(self, state):
    return collections.OrderedDict(
        step_size=state['last_step_size'],
        backtracks=tf.cast(state['backtracks'], tf.float32),
        gradient_evaluations=tf.ones([], tf.int32),  # Trials need no gradient.
    )


@arguments.checked
def build_armijo(
    max_step_size: ranges.Positive = 1.0,
    c: ranges.OpenShare = 0.1,
    beta: ranges.OpenShare = 0.9,
    *,
    gamma: ranges.Positive = 2.0,
    reset: Literal[0, 1, 2] = 1,
    batches_per_epoch: ranges.PositiveSteps = 32,
    max_trials: ranges.Count = 100,
    fallback_step_size: ranges.Positive = 1e-6,
) -> optimizer.ExtraArgsOptimizer:
  """Builds SGD with Armijo line search, the client optimizer of FedLi-LS.

  With f(x; B_k) the loss on the batch of local step k, loss terms included, g_k
  its gradient at x_k, and the norm over the vector of all trainable weights:

  ```
  eta_k   = start_k * beta^j   with the smallest j >= 0 such that
            f(x_k - eta_k * g_k; B_k) <= f(x_k; B_k) - c * eta_k * |g_k|^2
  x_{k+1} = x_k - eta_k * g_k

  start_0 = max_step_size
  start_k = eta_{k-1}                                               (reset 0)
            min(max_step_size, eta_{k-1} * gamma^(1 / batches_per_epoch))
                                                                    (reset 1)
            max_step_size                                           (reset 2)
  ```

  A trial whose loss is NaN is rejected. If `max_trials` trials fail, eta_k is
  `fallback_step_size`. If |g_k| < 1e-8, there is no search and eta_k is
  start_k. If the loss or the gradient at x_k is not finite, eta_k is NaN, and
  the client is rejected.

  Every step but a fallback reduces the loss of its batch by at least
  c * eta_k * |g_k|^2. On a loss of smoothness L, eta_k is at least
  min(start_k, 2 * beta * (1 - c) / L).

  All trials of a step use its batch and its dropout mask. A step costs one
  gradient, and one loss per trial. A client sends nothing but its model update
  and keeps nothing between rounds. Clipping and weight decay change g_k but not
  the loss, so with weight decay the search may fail near the minimum of the
  loss; a loss term such as that of FedProx changes both.

  The defaults are those of the published code of the line search, except for
  `batches_per_epoch`, which is FedLi's.

  Args:
    max_step_size: eta_max, the largest step size and each round's first trial.
    c: The required share of the decrease predicted by the gradient.
    beta: The factor on a rejected step size.
    gamma: The largest growth of the step size in one epoch with reset 1.
    reset: The start of the search from the second step on: 0 for the last step
      size, 1 for the last one grown, 2 for `max_step_size`.
    batches_per_epoch: The number of local steps in an epoch; the mean if
      clients differ. Only reset 1 uses it.
    max_trials: The largest number of trials in a step.
    fallback_step_size: The step size if all trials fail, from which the next
      step continues.

  Returns:
    An `ExtraArgsOptimizer` with all arguments but `reset` and `max_trials` as
    hyperparameters; it has no learning rate. For each step it reports
    `step_size` and `backtracks`, j above.

  Example:

    >>> optimizer = build_armijo(c=0.5, beta=0.5)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> def value_and_grad_fn(x):  # The smoothness is 4.
    ...   return 2.0 * x**2, 4.0 * x
    >>> x = tf.constant(1.0)
    >>> value, gradient = value_and_grad_fn(x)
    >>> state, x = optimizer.next(
    ...     state, x, gradient, value=value, value_and_grad_fn=value_and_grad_fn
    ... )
    >>> float(state['last_step_size']), int(state['backtracks'])
    (0.25, 2)

  References:
    Vaswani, Mishkin, Laradji, Schmidt, Gidel, Lacoste-Julien, Painless
    Stochastic Gradient: Interpolation, Line-Search, and Convergence Rates,
    NeurIPS 2019, https://arxiv.org/abs/1905.09997, Algorithms 1 and 2; its
    published code is https://github.com/IssamLaradji/sls.
    Deviations: with reset 1 the start is at most `max_step_size`, as in FedLi;
    in the published code it may grow. `batches_per_epoch` is 500 there.
  """
  hparams = collections.OrderedDict(
      max_step_size=max_step_size,
      c=c,
      beta=beta,
      gamma=gamma,
      batches_per_epoch=batches_per_epoch,
      fallback_step_size=fallback_step_size,
  )
  return _Armijo(hparams, reset, max_trials)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Optimizers written as formulas on the flat vector of weights."""

import abc
import collections
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Optional

import tensorflow as tf

from tff_adaptive import _autograph
from tff_adaptive import _tff_internals
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import server_optimizer
from tff_adaptive.optimizers import vectors

NUM_STEPS_KEY = 'num_steps'
# The weights before the first step, for rules that measure distances from them.
ANCHOR_KEY = 'initial_weights'

State = collections.OrderedDict[str, Any]
Hparams = Mapping[str, tf.Tensor]


class Extra(NamedTuple):
  """The inputs of a step besides weights and gradients.

  Attributes:
    value: The loss, see `ExtraArgsOptimizer.next`.
    value_and_grad_fn: As in `ExtraArgsOptimizer.next`, but in the dtypes of the
      step; not `None` if the rule `evaluates_again`.
    reports: What clients report, see `ServerOptimizer.next`.
    decaying: The weights that weight decay applies to: zero where there is no
      gradient.
  """

  value: Optional[tf.Tensor]
  value_and_grad_fn: Any
  reports: Mapping[str, tf.Tensor]
  decaying: Any


class VectorOptimizer(optimizer.HparamsInState, optimizer.ExtraArgsOptimizer):
  """A base class of rules, of clients and servers, written as a formula.

  A rule implements `step`. It sees dense weights and gradients in float32 or
  float64, with zeros for missing gradients. A formula for one tensor becomes a
  step by `vectors.step_tensors`.

  A rule with state that crosses rounds is also a `FederatedOptimizer`, and one
  to which clients report a `ServerOptimizer`.

  Attributes:
    name: The rule's name, for messages.
    scalar_keys: The parts of the state that are scalars, 0 at first.
    step_size_key: The part of the state that is reported as the step size, or
      `None`.
    reported_keys: The parts of the state that are reported by their names.
    moment_keys: The parts of the state with one tensor per weight.
    is_anchored: Whether the state holds the weights before the first step.
    remembers_weights: Whether it holds weights of another step.
    moves_all: Whether `step` moves weights without a gradient, which stay by
      default.
    needs_value: Whether `step` needs the loss.
    otherwise: What else to do where a batch cannot be evaluated again, for the
      message of a rule that `evaluates_again`.
  """

  name: str = ''
  scalar_keys: tuple[str, ...] = ()
  step_size_key: Optional[str] = None
  reported_keys: tuple[str, ...] = ()
  moment_keys: tuple[str, ...] = ()
  is_anchored: bool = False
  remembers_weights: bool = False
  moves_all: bool = False
  needs_value: bool = False
  otherwise: str = ''

  def __init__(self, hparams: Mapping[str, Any]):
    """Initializes the optimizer.

    Args:
      hparams: The hyperparameters by name, which the builder has checked; those
        that are `None` are left out.
    """
    super().__init__({k: v for k, v in hparams.items() if v is not None})

  def initialize_rule(self, specs: Any, dtype: tf.DType) -> State:
    """Returns the state besides hyperparameters, moments and the step count.

    Args:
      specs: A structure of `tf.TensorSpec`s, the weights.
      dtype: The dtype of norms and step sizes.

    Returns:
      An ordered dictionary; by default that of `scalar_keys`.
    """
    del specs
    return collections.OrderedDict(
        (key, tf.zeros([], dtype)) for key in self.scalar_keys
    )

  @abc.abstractmethod
  def step(
      self,
      state: State,
      x: Any,
      g: Any,
      hparams: Hparams,
      extra: Extra,
  ) -> tuple[Mapping[str, Any], Any]:
    """Takes one step.

    Args:
      state: The state; `num_steps` counts the steps before this one.
      x: The weights.
      g: The gradients, a structure like `x`.
      hparams: The hyperparameters in the dtype of norms and step sizes.
      extra: The remaining inputs.

    Returns:
      The changed entries of the state, and the new weights.
    """

  def initialize(self, specs):
    keys = (*self.moment_keys, *([ANCHOR_KEY] if self.is_anchored else []))
    return collections.OrderedDict(
        [
            *self._hparams.items(),
            (NUM_STEPS_KEY, tf.zeros([], tf.int32)),
            *self.initialize_rule(specs, vectors.step_dtype(specs)).items(),
            *((key, vectors.fill_moments(specs)) for key in keys),
        ]
    )

  def next(
      self,
      state,
      weights,
      gradients,
      *,
      value=None,
      value_and_grad_fn=None,
      reports=None,
  ):
    self._check_caller(value, value_and_grad_fn, reports)
    # TFF passes the variables of a model, and assigns them before it reads a
    # state that holds them.
    weights = tf.nest.map_structure(tf.convert_to_tensor, weights)
    gradients = optimizer.dense_gradients(weights, gradients)
    if self.moves_all:
      gradients = vectors.with_zeros(weights, gradients)
    checked = (ANCHOR_KEY,) if self.is_anchored else self.moment_keys
    optimizer.check_moments(weights, state, checked)
    x, g = _widen(weights), _widen(vectors.with_zeros(weights, gradients))
    state = collections.OrderedDict(state)
    if self.is_anchored:
      state[ANCHOR_KEY] = self._anchor(state, x)
    dtype = vectors.step_dtype(weights)
    hparams = {key: tf.cast(state[key], dtype) for key in self._hparams}
    extra = Extra(
        value,
        value_and_grad_fn and _widened(value_and_grad_fn, weights),
        reports or {},
        decaying=tf.nest.map_structure(
            lambda t, g: tf.zeros_like(t) if g is None else t, x, gradients
        ),
    )
    changed, moved = _autograph.call(self.step, state, x, g, hparams, extra)
    state.update(changed)
    state[NUM_STEPS_KEY] += 1
    moved = tf.nest.map_structure(
        lambda w, g, m: w if g is None else tf.cast(m, w.dtype),
        weights,
        gradients,
        moved,
    )
    return state, moved

  def _check_caller(
      self, value: Any, value_and_grad_fn: Any, reports: Any
  ) -> None:
    """Raises if `next` was called without what the rule needs."""
    if isinstance(self, federated_optimizer.FederatedOptimizer):
      federated_optimizer.check_caller(value, self.name)
    if isinstance(self, server_optimizer.ServerOptimizer):
      server_optimizer.check_reports(reports, self)
    if self.needs_value and value is None:
      raise ValueError(
          f'{self.name} sets its step size from the loss and needs `value`, '
          'which was not given: use it as the client optimizer of '
          '`tff_adaptive.algorithms.build_fed_opt`. Servers and the algorithms '
          'of `tff.learning` do not pass a loss.'
      )
    if self.evaluates_again and value_and_grad_fn is None:
      raise ValueError(
          f'{self.name} evaluates a batch again and needs `value_and_grad_fn`, '
          'which was not given: use it as the client optimizer of '
          f'`tff_adaptive.algorithms.build_fed_opt`{self.otherwise}. Servers '
          'and the algorithms of `tff.learning` cannot evaluate a batch.'
      )
    if value is None:
      self._check_module(_tff_internals.stepping_module())

  def _check_module(self, module: Optional[str]) -> None:
    """Raises if a module of TFF would train something else than the rule.

    Args:
      module: The module that calls `next`, see
        `_tff_internals.stepping_module`.
    """
    cure = (
        'use it as the client optimizer of '
        '`tff_adaptive.algorithms.build_fed_opt`.'
    )
    is_client = module in _tff_internals.CLIENT_STEPS
    if is_client and optimizer.has_final_weights(self):
      raise ValueError(
          f'{self.name} ends the round of a client with the mean of its '
          'iterates, but the algorithms of `tff.learning` send the last '
          f'iterate: {cure}'
      )
    remembers = self.is_anchored or self.remembers_weights
    if module == _tff_internals.MIME_STEP and remembers:
      raise ValueError(
          f'{self.name} remembers weights, but MimeLite of `tff.learning` '
          f'updates its state at weights of zero: {cure}'
      )

  def report(self, state):
    report = collections.OrderedDict()
    if self.step_size_key is not None:
      report[optimizer.STEP_SIZE_KEY] = state[self.step_size_key]
    report.update((key, state[key]) for key in self.reported_keys)
    if self.evaluates_again:
      report[optimizer.GRADIENT_EVALUATIONS_KEY] = tf.constant(2)
    return report

  def _anchor(self, state: State, x: Any) -> Any:
    """Returns the weights before the first step."""
    leaves, held = tf.nest.flatten(x), tf.nest.flatten(state[ANCHOR_KEY])
    if not leaves:
      return x
    chosen = tf.cond(
        self.is_first(state),
        lambda: [tf.identity(leaf) for leaf in leaves],
        lambda: [tf.identity(leaf) for leaf in held],
    )
    return tf.nest.pack_sequence_as(x, chosen)

  def is_first(self, state: State) -> tf.Tensor:
    """Returns whether the next step is the first one."""
    return tf.equal(state[NUM_STEPS_KEY], 0)

  def distance_from_anchor(self, state: State, x: Any) -> tf.Tensor:
    """Returns the distance of `x` from the weights before the first step."""
    difference = tf.nest.map_structure(tf.subtract, x, state[ANCHOR_KEY])
    return vectors.norm(difference, vectors.step_dtype(x))


def _widen(structure: Any) -> Any:
  return tf.nest.map_structure(
      lambda leaf: tf.cast(leaf, vectors.step_dtype(leaf)), structure
  )


def _widened(
    value_and_grad_fn: optimizer.ValueAndGradFn, weights: Any
) -> Callable[[Any], Any]:
  """Returns the function on widened weights, with dense widened gradients."""

  def evaluate(x):
    point = tf.nest.map_structure(lambda w, t: tf.cast(t, w.dtype), weights, x)
    value, gradients = value_and_grad_fn(point)
    gradients = optimizer.dense_gradients(point, gradients)
    return value, _widen(vectors.with_zeros(point, gradients))

  return evaluate

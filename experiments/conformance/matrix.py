# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The matrix of frameworks and their formulas for the FedOpt rules."""

from collections.abc import Callable
from typing import Any, NamedTuple, Optional, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments import pages
from experiments.conformance import dialects
from tff_adaptive import optimizers


class Implementation(NamedTuple):
  """A framework's implementation of a server rule.

  Attributes:
    name: The framework.
    source: The place in its source code.
    rule: The formula read there, or a function that builds the optimizer to run
      from the hyperparameters.
  """

  name: str
  source: str
  rule: Union[dialects.Dialect, Callable[[dialects.Hparams], object]]

  @property
  def is_run(self) -> bool:
    return not isinstance(self.rule, dialects.Dialect)


def _iterate(implementation: Implementation, method: str) -> np.ndarray:
  """Returns the weights after each round of `CHANGES`, starting at 0."""
  if isinstance(implementation.rule, dialects.Dialect):
    return dialects.iterate(implementation.rule, method, CHANGES)
  optimizer: Any = implementation.rule(dialects.METHODS[method].hparams)
  is_keras = isinstance(optimizer, tf.keras.optimizers.Optimizer)
  x = tf.Variable(tf.zeros([len(CHANGES[0])], tf.float64))
  if not is_keras:
    state = optimizer.initialize(tf.TensorSpec(x.shape, x.dtype))
  iterates = []
  for change in CHANGES:
    gradient = -tf.constant(change, tf.float64)
    if is_keras:
      optimizer.apply_gradients([(gradient, x)])
    else:
      state, moved = optimizer.next(state, x.read_value(), gradient)
      x.assign(moved)
    iterates.append(x.numpy())
  return np.stack(iterates)


_OURS = 'tff_adaptive'
_TFF = 'TFF 0.87'
_KERAS = 'Keras 2'
_FLOWER = 'flwr/server/strategy'
_OPTAX = 'optax/_src/transform.py'

# Every optimizer is as close to Algorithm 2 as its arguments permit: v starts
# at epsilon^2 if there is an argument for it.
IMPLEMENTATIONS = {
    'FedAdam': (
        Implementation(
            _OURS, '`build_fedadam`', lambda h: optimizers.build_fedadam(*h)
        ),
        Implementation(
            _TFF,
            '`tff.learning.optimizers.build_adam`',
            lambda h: tff.learning.optimizers.build_adam(*h),
        ),
        Implementation(
            _KERAS,
            '`tf.keras.optimizers.Adam`',
            lambda h: tf.keras.optimizers.Adam(*h),
        ),
        Implementation(
            'google-research/federated',
            '`utils/optimizers/optimizer_utils.py`: the Adam of Keras',
            dialects.CORRECTED_RATE_FROM_ZERO,
        ),
        Implementation(
            'PyTorch', '`torch/optim/adam.py`', dialects.KINGMA_FROM_ZERO
        ),
        Implementation(
            'pfl-research, PyTorch',
            '`benchmarks/lm/pytorch/train.py`: the Adam of PyTorch',
            dialects.KINGMA_FROM_ZERO,
        ),
        Implementation(
            'pfl-research, TensorFlow',
            '`benchmarks/lm/tf/train.py`: the Adam of Keras',
            dialects.CORRECTED_RATE_FROM_ZERO,
        ),
        Implementation(
            'optax',
            f'`{_OPTAX}`: `scale_by_adam`',
            dialects.KINGMA_FROM_ZERO,
        ),
        Implementation(
            'FedJAX',
            '`fedjax/core/optimizers.py`: the Adam of optax',
            dialects.KINGMA_FROM_ZERO,
        ),
        Implementation(
            'Flower, before #4362',
            f'`{_FLOWER}/fedadam.py`',
            dialects.REDDI_FROM_ZERO,
        ),
        Implementation(
            'Flower, since #4362',
            f'`{_FLOWER}/fedadam.py`, `flwr/serverapp/strategy/fedadam.py`',
            dialects.LATE_CORRECTED_RATE_FROM_ZERO,
        ),
    ),
    'FedYogi': (
        Implementation(
            _OURS, '`build_fedyogi`', lambda h: optimizers.build_fedyogi(*h)
        ),
        Implementation(
            _TFF,
            '`tff.learning.optimizers.build_yogi`',
            lambda h: tff.learning.optimizers.build_yogi(*h, h.epsilon**2),
        ),
        Implementation(
            'google-research/federated',
            '`utils/optimizers/yogi.py`',
            dialects.CORRECTED_RATE,
        ),
        Implementation(
            'optax',
            f'`{_OPTAX}`: `scale_by_yogi`',
            dialects.KINGMA_FROM_ACCUMULATORS,
        ),
        Implementation(
            'Flower',
            f'`{_FLOWER}/fedyogi.py`, `flwr/serverapp/strategy/fedyogi.py`',
            dialects.REDDI_FROM_ZERO,
        ),
    ),
    'FedAdagrad': (
        Implementation(
            _OURS,
            '`build_fedadagrad`',
            lambda h: optimizers.build_fedadagrad(
                h.learning_rate, epsilon=h.epsilon
            ),
        ),
        Implementation(
            _TFF,
            '`tff.learning.optimizers.build_adagrad`',
            lambda h: tff.learning.optimizers.build_adagrad(
                h.learning_rate, h.epsilon**2, h.epsilon
            ),
        ),
        Implementation(
            _KERAS,
            '`tf.keras.optimizers.Adagrad`',
            lambda h: tf.keras.optimizers.Adagrad(
                h.learning_rate, h.epsilon**2, h.epsilon
            ),
        ),
        Implementation(
            'google-research/federated',
            '`utils/optimizers/optimizer_utils.py`: the Adagrad of Keras '
            'before 2.11',
            dialects.REDDI,
        ),
        Implementation('PyTorch', '`torch/optim/adagrad.py`', dialects.REDDI),
        Implementation(
            'optax', f'`{_OPTAX}`: `scale_by_rss`', dialects.INNER_EPSILON
        ),
        Implementation(
            'FedJAX',
            '`fedjax/core/optimizers.py`: the Adagrad of optax',
            dialects.INNER_EPSILON,
        ),
        Implementation(
            'Flower',
            f'`{_FLOWER}/fedadagrad.py`, '
            '`flwr/serverapp/strategy/fedadagrad.py`',
            dialects.REDDI_FROM_ZERO,
        ),
    ),
}


# D_t of six rounds, for a weight that grows steadily, a small one that changes
# sign, one that changes only at first, and one that never changes.
CHANGES = (
    (0.30, 0.010, 0.2, 0.0),
    (0.25, -0.020, 0.1, 0.0),
    (0.35, 0.015, 0.0, 0.0),
    (0.30, -0.005, 0.0, 0.0),
    (0.20, 0.020, 0.0, 0.0),
    (0.25, -0.010, 0.0, 0.0),
)

# TFF computes the corrected rate in float32, even for float64 weights.
_TOLERANCE = 5e-6


class Deviation(NamedTuple):
  """The comparison of an implementation with a dialect.

  Attributes:
    first_round: The first round, from 1, after which they differ, or `None`.
    difference: The largest absolute difference of a weight in any round.
  """

  first_round: Optional[int]
  difference: float

  def __str__(self) -> str:
    if self.first_round is None:
      return 'equal'
    return f'from round {self.first_round} by {self.difference:.1g}'


def compare(
    implementation: Implementation,
    dialect: dialects.Dialect,
    method: str,
) -> Deviation:
  """Compares an implementation with a dialect on `CHANGES`.

  Args:
    implementation: The implementation.
    dialect: The formula.
    method: A key of `dialects.METHODS`.
  """
  found = _iterate(implementation, method)
  expected = dialects.iterate(dialect, method, CHANGES)
  differences = np.max(np.abs(found - expected), axis=1)
  differs = ~(differences <= _TOLERANCE)  # NaN differs.
  first_round = int(np.argmax(differs)) + 1 if differs.any() else None
  return Deviation(first_round, float(np.max(differences)))


def _table(method: str) -> str:
  columns = dialects.DIALECTS[method]
  header = [method, *(column.name for column in columns), 'how', 'where']
  rows = []
  for implementation in IMPLEMENTATIONS[method]:
    deviations = [
        str(compare(implementation, column, method)) for column in columns
    ]
    how = 'run' if implementation.is_run else 'read'
    rows.append([implementation.name, *deviations, how, implementation.source])
  return pages.text_table(header, rows)


def to_markdown() -> str:
  """Returns the matrix as Markdown: one table per method.

  Each row is an implementation. A cell says `equal`, or gives the first round
  after which the weights differ and their largest difference.
  """
  return '\n'.join(map(_table, dialects.METHODS))

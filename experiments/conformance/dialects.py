# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Formulas in use under the names FedAdam, FedYogi and FedAdagrad.

Let D_t be the mean change of the clients' weights in round t = 0, 1, ..., and
s = t + 1. All formulas keep, coordinate by coordinate,

```
m_t = beta_1 m_{t-1} + (1 - beta_1) D_t                (FedAdagrad: m_t = D_t)
v_t = beta_2 v_{t-1} + (1 - beta_2) D_t^2                            (FedAdam)
v_t = v_{t-1} - (1 - beta_2) D_t^2 sign(v_{t-1} - D_t^2)             (FedYogi)
v_t = v_{t-1} + D_t^2                                             (FedAdagrad)
```

and differ in the initial v and in the step computed from m_t and v_t.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np


class Hparams(NamedTuple):
  """The hyperparameters of every formula.

  Attributes:
    learning_rate: The server learning rate.
    beta_1: The decay rate of m.
    beta_2: The decay rate of v.
    epsilon: The constant called tau by Reddi et al. and epsilon elsewhere.
  """

  learning_rate: float = 0.05
  beta_1: float = 0.9
  beta_2: float = 0.99
  epsilon: float = 1e-3


def _plain_step(m, v, unused_s, hparams):
  return hparams.learning_rate * m / (np.sqrt(v) + hparams.epsilon)


def _corrected_step(m, v, s, hparams):
  m = m / (1 - hparams.beta_1**s)
  v = v / (1 - hparams.beta_2**s)
  return _plain_step(m, v, s, hparams)


def _corrected_rate_step(m, v, s, hparams):
  correction = np.sqrt(1 - hparams.beta_2**s) / (1 - hparams.beta_1**s)
  return correction * _plain_step(m, v, s, hparams)


def _late_corrected_rate_step(m, v, s, hparams):
  return _corrected_rate_step(m, v, s + 1, hparams)


def _inner_epsilon_step(m, v, unused_s, hparams):
  return hparams.learning_rate * m / np.sqrt(v + hparams.epsilon)


def _average(v, change, hparams):
  return hparams.beta_2 * v + (1 - hparams.beta_2) * change**2


def _move_by_sign(v, change, hparams):
  return v - (1 - hparams.beta_2) * change**2 * np.sign(v - change**2)


def _add(v, change, unused_hparams):
  return v + change**2


class Dialect(NamedTuple):
  """One formula.

  Attributes:
    name: Its name in the matrix.
    step: Maps m_t, v_t, s and the hyperparameters to the step of a round.
    starts_at_zero: Whether v_{-1} is 0; otherwise it is epsilon^2.
    first_moment_starts_with_second: Whether m_{-1} is v_{-1}; otherwise it
      is 0.
  """

  name: str
  step: Callable[..., np.ndarray]
  starts_at_zero: bool = False
  first_moment_starts_with_second: bool = False


class Method(NamedTuple):
  """A server rule of Reddi et al.

  Attributes:
    accumulate: Maps v_{t-1}, D_t and the hyperparameters to v_t.
    hparams: The hyperparameters of the comparison.
  """

  accumulate: Callable[..., np.ndarray]
  hparams: Hparams


# As in Section 4 of the paper, where FedAdagrad has no momentum.
METHODS = {
    'FedAdam': Method(_average, Hparams()),
    'FedYogi': Method(_move_by_sign, Hparams()),
    'FedAdagrad': Method(_add, Hparams(beta_1=0.0)),
}

REDDI = Dialect('Reddi', _plain_step)
REDDI_FROM_ZERO = Dialect('Reddi, v from 0', _plain_step, starts_at_zero=True)
KINGMA_FROM_ZERO = Dialect(
    'Kingma, v from 0', _corrected_step, starts_at_zero=True
)
CORRECTED_RATE = Dialect('corrected rate', _corrected_rate_step)
CORRECTED_RATE_FROM_ZERO = Dialect(
    'corrected rate, v from 0', _corrected_rate_step, starts_at_zero=True
)
LATE_CORRECTED_RATE_FROM_ZERO = Dialect(
    'corrected rate of the next round, v from 0',
    _late_corrected_rate_step,
    starts_at_zero=True,
)
INNER_EPSILON = Dialect('epsilon in the root', _inner_epsilon_step)
KINGMA_FROM_ACCUMULATORS = Dialect(
    'Kingma, m from v', _corrected_step, first_moment_starts_with_second=True
)

# The columns of the matrix: the paper's formula and the others in use.
DIALECTS = {
    'FedAdam': (
        REDDI,
        REDDI_FROM_ZERO,
        KINGMA_FROM_ZERO,
        CORRECTED_RATE_FROM_ZERO,
        LATE_CORRECTED_RATE_FROM_ZERO,
    ),
    'FedYogi': (
        REDDI,
        REDDI_FROM_ZERO,
        CORRECTED_RATE,
        KINGMA_FROM_ACCUMULATORS,
    ),
    'FedAdagrad': (REDDI, REDDI_FROM_ZERO, INNER_EPSILON),
}


def iterate(
    dialect: Dialect, method: str, changes: Sequence[Sequence[float]]
) -> np.ndarray:
  """Returns the weights after each round, starting at 0.

  Args:
    dialect: The formula.
    method: A key of `METHODS`.
    changes: D_t of each round.

  Returns:
    An array of shape [rounds, weights].

  Example:

    >>> round(float(iterate(REDDI, 'FedAdagrad', [[1.0]])[0, 0]), 5)
    0.04995
  """
  accumulate, hparams = METHODS[method]
  x = np.zeros(len(changes[0]))
  v = np.full_like(x, 0.0 if dialect.starts_at_zero else hparams.epsilon**2)
  m = v if dialect.first_moment_starts_with_second else np.zeros_like(x)
  iterates = []
  for s, change in enumerate(np.asarray(changes), start=1):
    m = hparams.beta_1 * m + (1 - hparams.beta_1) * change
    v = accumulate(v, change, hparams)
    x = x + dialect.step(m, v, s, hparams)
    iterates.append(x)
  return np.stack(iterates)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The formulas of FedAdam, FedYogi and FedAdagrad, on given mean changes.

Let D_t be the mean change of the weights in round t = 0, 1, ..., and s = t + 1.
All formulas keep, coordinate by coordinate,

```
m_t = beta_1 m_{t-1} + (1 - beta_1) D_t                (FedAdagrad: m_t = D_t)
v_t = beta_2 v_{t-1} + (1 - beta_2) D_t^2                            (FedAdam)
v_t = v_{t-1} - (1 - beta_2) D_t^2 sign(v_{t-1} - D_t^2)             (FedYogi)
v_t = v_{t-1} + D_t^2                                             (FedAdagrad)
```

and differ in the initial v and in the step from m_t and v_t.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

_Hparams = Mapping[str, float]
# As in Section 4 of the paper, where FedAdagrad has no momentum.
_HPARAMS: _Hparams = {
    'learning_rate': 0.05,
    'beta_1': 0.9,
    'beta_2': 0.99,
    'epsilon': 1e-3,
}
HPARAMS: Mapping[str, _Hparams] = {
    'FedAdam': _HPARAMS,
    'FedYogi': _HPARAMS,
    'FedAdagrad': {**_HPARAMS, 'beta_1': 0.0},
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
TOLERANCE = 5e-6


def _plain(m, v, unused_s, h):
  return h['learning_rate'] * m / (np.sqrt(v) + h['epsilon'])


def _corrected(m, v, s, h):
  return _plain(m / (1 - h['beta_1'] ** s), v / (1 - h['beta_2'] ** s), s, h)


def _corrected_rate(m, v, s, h):
  rate = np.sqrt(1 - h['beta_2'] ** s) / (1 - h['beta_1'] ** s)
  return rate * _plain(m, v, s, h)


def _late_corrected_rate(m, v, s, h):
  return _corrected_rate(m, v, s + 1, h)


def _inner_epsilon(m, v, unused_s, h):
  return h['learning_rate'] * m / np.sqrt(v + h['epsilon'])


_ACCUMULATE: Mapping[str, Callable[..., np.ndarray]] = {
    'FedAdam': lambda v, d, h: h['beta_2'] * v + (1 - h['beta_2']) * d**2,
    'FedYogi': lambda v, d, h: v - (1 - h['beta_2']) * d**2 * np.sign(v - d**2),
    'FedAdagrad': lambda v, d, h: v + d**2,
}


class Formula(NamedTuple):
  """A formula.

  Attributes:
    name: Its name in the table.
    step: Maps m_t, v_t, s and the hyperparameters to the step of a round.
    is_from_zero: Whether v_{-1} is 0; otherwise it is epsilon^2.
    starts_both: Whether m_{-1} is -v_{-1}, as both accumulators of the gradient
      -D_t start alike; otherwise it is 0.
    scales_changes: Whether D_t is multiplied by the learning rate first.
  """

  name: str
  step: Callable[..., np.ndarray]
  is_from_zero: bool = False
  starts_both: bool = False
  scales_changes: bool = False


PAPER = Formula('Reddi', _plain)
_FROM_ZERO = Formula('Reddi, v from 0', _plain, is_from_zero=True)
_KINGMA = Formula('Kingma, v from 0', _corrected, is_from_zero=True)
_RATE = Formula('corrected rate', _corrected_rate)
_RATE_FROM_ZERO = Formula(
    'corrected rate, v from 0', _corrected_rate, is_from_zero=True
)
_LATE = Formula(
    'corrected rate of the next round, v from 0',
    _late_corrected_rate,
    is_from_zero=True,
)
_INNER = Formula('epsilon in the root', _inner_epsilon)
_KINGMA_BOTH = Formula('Kingma, m from v', _corrected, starts_both=True)
_SCALED = Formula(
    'Reddi of eta D_t, v from 0', _plain, is_from_zero=True, scales_changes=True
)
# The columns of the tables.
FORMULAS: Mapping[str, Sequence[Any]] = {
    'FedAdam': (PAPER, _FROM_ZERO, _SCALED, _KINGMA, _RATE_FROM_ZERO, _LATE),
    'FedYogi': (PAPER, _FROM_ZERO, _SCALED, _RATE, _KINGMA_BOTH),
    'FedAdagrad': (PAPER, _FROM_ZERO, _SCALED, _INNER),
}
# The formula read in the named source, for frameworks that are not run.
READ = {
    'FedAdam': (
        ('PyTorch', '`torch/optim/adam.py`', _KINGMA),
        (
            'FedJAX',
            '`fedjax/core/optimizers.py`: the Adam of optax',
            _KINGMA,
        ),
        (
            'google-research/federated',
            '`utils/optimizers/optimizer_utils.py`: the Adam of Keras',
            _RATE_FROM_ZERO,
        ),
        (
            'pfl-research, PyTorch',
            '`benchmarks/lm/pytorch/train.py`: the Adam of PyTorch',
            _KINGMA,
        ),
        (
            'pfl-research, TensorFlow',
            '`benchmarks/lm/tf/train.py`: the Adam of Keras',
            _RATE_FROM_ZERO,
        ),
        (
            'NVFlare, PyTorch',
            '`nvflare/app_opt/pt/fedopt.py`: the Adam of PyTorch',
            _KINGMA,
        ),
        (
            'NVFlare, TensorFlow',
            '`nvflare/app_opt/tf/fedopt_ctl.py` of 2.9.0: the Adam of Keras',
            _RATE_FROM_ZERO,
        ),
        ('fluke', '`fluke/algorithms/fedopt.py`', _SCALED),
        (
            'Flower, before #4362',
            '`flwr/server/strategy/fedadam.py`',
            _FROM_ZERO,
        ),
    ),
    'FedYogi': (
        (
            'google-research/federated',
            '`utils/optimizers/yogi.py`',
            _RATE,
        ),
        ('fluke', '`fluke/algorithms/fedopt.py`', _SCALED),
    ),
    'FedAdagrad': (
        ('PyTorch', '`torch/optim/adagrad.py`', PAPER),
        (
            'FedJAX',
            '`fedjax/core/optimizers.py`: the Adagrad of optax',
            _INNER,
        ),
        (
            'google-research/federated',
            '`utils/optimizers/optimizer_utils.py`: the Adagrad of Keras '
            'before 2.11',
            PAPER,
        ),
        (
            'NVFlare, PyTorch',
            '`nvflare/app_opt/pt/fedopt.py`: the Adagrad of PyTorch',
            PAPER,
        ),
        (
            'NVFlare, TensorFlow',
            '`nvflare/app_opt/tf/fedopt_ctl.py` of 2.9.0: the Adagrad of Keras',
            _INNER,
        ),
        ('fluke', '`fluke/algorithms/fedopt.py`', _SCALED),
    ),
}


def iterate(formula: Formula, method: str) -> np.ndarray:
  """Returns the weights after each round.

  They start at 0 and receive `CHANGES`.

  Args:
    formula: One of `FORMULAS[method]`.
    method: A key of `FORMULAS`.

  Example:

    >>> round(float(iterate(PAPER, 'FedAdagrad')[0, 0]), 5)
    0.04983
  """
  h = HPARAMS[method]
  x = np.zeros(len(CHANGES[0]))
  v = np.full_like(x, 0.0 if formula.is_from_zero else h['epsilon'] ** 2)
  m = -v if formula.starts_both else np.zeros_like(x)
  iterates = []
  changes = np.asarray(CHANGES)
  if formula.scales_changes:
    changes = h['learning_rate'] * changes
  for s, change in enumerate(changes, start=1):
    m = h['beta_1'] * m + (1 - h['beta_1']) * change
    v = _ACCUMULATE[method](v, change, h)
    x = x + formula.step(m, v, s, h)
    iterates.append(x)
  return np.stack(iterates)


def describe_problem() -> dict[str, Any]:
  """Returns what the frameworks are asked to run, as `server_rules` reads."""
  return {'changes': CHANGES, 'hparams': HPARAMS}

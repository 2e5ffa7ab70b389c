# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The formulas of FedProx and SCAFFOLD, on a least-squares problem.

Client i has n_i examples and the gradient g_i. In a round with server weights x
and cohort S, it starts at y = x and takes K local steps with rate r.

```
FedProx:  y <- y - r (g_i(y) + mu (y - x))
SCAFFOLD: y <- y - r (g_i(y) - c_i + c)
          option I   c_i <- g_i(x)
          option II  c_i <- c_i - c + (x - y) / (K r)
          c <- c + (sum over S of the changes of c_i) / (number of all clients)
```

In both papers x becomes the plain mean of y over the cohort. SCAFFOLD's server
rate is 1, and all controls start at 0.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

NUM_STEPS = 3
LEARNING_RATE = 0.1
MU = 0.5
COHORTS = ((0, 1), (1, 2), (0, 2), (1, 2), (0, 1))
# TFF trains the problem in float32.
TOLERANCE = 2e-5
SIZES = (2, 4, 8)
_NUM_WEIGHTS = 4


def create_problem() -> dict[str, Any]:
  """Creates the problem, in the form of the files of reference trajectories."""
  rng = np.random.default_rng(0)
  clients = []
  for size in SIZES:
    x = rng.normal(size=(size, _NUM_WEIGHTS)).round(2)
    y = rng.normal(scale=2.0, size=size).round(2)
    clients.append({'X': x.tolist(), 'y': y.tolist()})
  x0 = [0.5, -0.5, 0.25, 0.0]
  return {'name': 'quadratic', 'x0': x0, 'clients': clients}


class Prox(NamedTuple):
  """A formula of FedProx.

  Attributes:
    name: Its name in the table.
    term: Maps y - x to what is added to the gradient, over mu.
    by_examples: Whether the mean over the cohort is weighted by n_i.
  """

  name: str
  term: Callable[[np.ndarray], np.ndarray]
  by_examples: bool = False


class Scaffold(NamedTuple):
  """A formula of SCAFFOLD.

  Attributes:
    name: Its name in the table.
    is_option_1: Whether controls are gradients at the server's weights.
    sign: The factor of the gradient, or of x - y, in the client's control.
    by_examples: Whether the mean of y over the cohort is weighted by n_i.
    by_cohort: Whether the server's control moves by the mean over the cohort.
  """

  name: str
  is_option_1: bool = False
  sign: float = 1.0
  by_examples: bool = False
  by_cohort: bool = False


def _square(difference):
  return difference


def _opposite(difference):
  return -difference


def _norm(difference):
  norm = np.linalg.norm(difference)
  return 0.5 * difference / norm if norm else difference


_LI = Prox('Li', _square)
_LI_BY_EXAMPLES = Prox('Li, mean by examples', _square, by_examples=True)
_NORM = Prox('norm without square, mean by examples', _norm, by_examples=True)
_OPTION_2 = Scaffold('II')
_BY_EXAMPLES = Scaffold('II, mean by examples', by_examples=True)
_BY_COHORT = Scaffold('II, mean change of the cohort', by_cohort=True)
_OPPOSITE_2 = Scaffold('II, opposite sign', sign=-1.0)
# The columns of the tables.
FORMULAS: Mapping[str, Sequence[Any]] = {
    'FedProx': (
        _LI,
        _LI_BY_EXAMPLES,
        Prox('opposite sign, mean by examples', _opposite, by_examples=True),
        _NORM,
    ),
    'SCAFFOLD': (
        _OPTION_2,
        Scaffold('I', is_option_1=True),
        _BY_EXAMPLES,
        _BY_COHORT,
        _OPPOSITE_2,
        Scaffold('I, opposite sign', is_option_1=True, sign=-1.0),
    ),
}
# The formula read in the named source, for frameworks that are not run.
_PFL = 'pfl-research, PyTorch'
READ = {
    'FedProx': (
        (
            'Flower',
            '`flwr/serverapp/strategy/fedprox.py` of 1.41.0: the client of its '
            'documentation',
            _NORM,
        ),
        (_PFL, '`pfl/internal/bridge/pytorch/proximal.py`', _LI),
        ('fluke', '`fluke/algorithms/fedprox.py`', _LI_BY_EXAMPLES),
        ('FedLab', '`fedlab/contrib/algorithm/fedprox.py`', _LI),
        ('FedJAX', '`fedjax/algorithms/fed_prox.py`', _LI_BY_EXAMPLES),
    ),
    'SCAFFOLD': (
        (_PFL, '`pfl/algorithm/scaffold.py`', _OPPOSITE_2),
        (
            'NVFlare, PyTorch',
            '`nvflare/app_common/workflows/scaffold.py`',
            _BY_COHORT,
        ),
        ('fluke', '`fluke/algorithms/scaffold.py`', _BY_EXAMPLES),
        ('FedLab', '`fedlab/contrib/algorithm/scaffold.py`', _OPTION_2),
    ),
}


def _gradient(client, x):
  features, labels = np.asarray(client['X']), np.asarray(client['y'])
  return features.T @ (features @ x - labels) / len(labels)


def _average(clients, cohort, values, by_examples):
  sizes = [len(clients[i]['y']) for i in cohort]
  return np.average(values, axis=0, weights=sizes if by_examples else None)


def _iterate_prox(formula, problem):
  clients, x, iterates = problem['clients'], np.asarray(problem['x0']), []
  for cohort in COHORTS:
    trained = []
    for i in cohort:
      y = x
      for _ in range(NUM_STEPS):
        gradient = _gradient(clients[i], y) + MU * formula.term(y - x)
        y = y - LEARNING_RATE * gradient
      trained.append(y)
    x = _average(clients, cohort, trained, formula.by_examples)
    iterates.append(x)
  return np.stack(iterates)


def _iterate_scaffold(formula, problem):
  clients, x, iterates = problem['clients'], np.asarray(problem['x0']), []
  server, controls = np.zeros_like(x), np.zeros((len(clients), len(x)))
  for cohort in COHORTS:
    trained, changes = [], []
    for i in cohort:
      y = x
      for _ in range(NUM_STEPS):
        gradient = _gradient(clients[i], y) - controls[i] + server
        y = y - LEARNING_RATE * gradient
      new = formula.sign * _gradient(clients[i], x)
      if not formula.is_option_1:
        moved = (x - y) / (NUM_STEPS * LEARNING_RATE)
        new = controls[i] - server + formula.sign * moved
      trained.append(y)
      changes.append(new - controls[i])
      controls[i] = new
    x = _average(clients, cohort, trained, formula.by_examples)
    count = len(cohort) if formula.by_cohort else len(clients)
    server = server + np.sum(changes, axis=0) / count
    iterates.append(x)
  return np.stack(iterates)


_ITERATE = {'FedProx': _iterate_prox, 'SCAFFOLD': _iterate_scaffold}


def iterate(formula: Any, method: str) -> np.ndarray:
  """Returns the weights after each round.

  Args:
    formula: One of `FORMULAS[method]`.
    method: A key of `FORMULAS`.

  Example:

    >>> iterate(FORMULAS['FedProx'][0], 'FedProx').shape
    (5, 4)
  """
  return _ITERATE[method](formula, create_problem())


def describe_problem() -> dict[str, Any]:
  """Returns what the frameworks are asked to train, as `client_rules` reads."""
  return {
      'problem': create_problem(),
      'cohorts': COHORTS,
      'num_steps': NUM_STEPS,
      'learning_rate': LEARNING_RATE,
      'mu': MU,
  }

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
"""Claims of Delta-SGD, workshop and conference version."""

import numpy as np

from experiments.audit import claim
from experiments.audit import quadratics
from experiments.audit import runs

PAPER = claim.Paper('delta_sgd', 'Kim et al., ICLR 2024')

_NUM_QUADRATICS = 200
_SIZE = 5
_NUM_STEPS = 15
# The relative error that rounding may cause.
_ROUNDING = 1e-6
_NUM_STOCHASTIC = 100
_NUM_BATCHES = 20


def _follow(lab: claim.Laboratory, **arguments):
  """Yields random quadratics, and the paths of Delta-SGD on them."""
  for hessian in quadratics.draw_hessians(_NUM_QUADRATICS, _SIZE):
    batches = quadratics.repeat(hessian, _NUM_STEPS)
    yield hessian, lab.steps('delta_sgd', batches, np.ones(_SIZE), **arguments)


def _check_lyapunov(lab: claim.Laboratory, gamma: float) -> claim.Verdict:
  """Counts the steps at which the function of the proof rises.

  With the minimizer 0 of value 0 and theta_k = eta_k / eta_{k-1} it falls if

  ```
  |x_{k+1}|^2 + |x_{k+1} - x_k|^2 / 2 + 2 eta_k (1 + theta_k) f(x_k)
      <= |x_k|^2 + |x_k - x_{k-1}|^2 / 2 + 2 eta_k theta_k f(x_{k-1})
  ```
  """
  violations, told = {}, [f'{_NUM_QUADRATICS} random quadratics, ']
  for delta in (0.1, 1.0):
    rises = []
    for hessian, path in _follow(lab, gamma=gamma, delta=delta):
      x, eta = path.points, path.step_sizes
      values = 0.5 * np.einsum('ki,ij,kj->k', x, hessian, x)
      theta = eta[1:] / eta[:-1]
      squares = np.sum(x**2, axis=1)
      moves = np.sum(np.diff(x, axis=0) ** 2, axis=1) / 2
      scaled = 2 * eta[1:]
      after = squares[2:] + moves[1:] + scaled * (1 + theta) * values[1:-1]
      before = squares[1:-1] + moves[:-1] + scaled * theta * values[:-2]
      rises += list(~(after <= before * (1 + _ROUNDING) + 1e-300))
    violations[f'delta {delta}'] = int(np.sum(rises))
    told.append(f'delta {delta}: {sum(rises)} violations in {len(rises)} steps')
  return claim.decide_for_all(
      not any(violations.values()),
      f'{told[0]}{"; ".join(told[1:])}.',
      violations,
  )


@PAPER.claim('Theorem 1, equation (31)')
def theorem(lab: claim.Laboratory) -> claim.Verdict:
  """With gamma = 1 the Lyapunov function of the proof falls at every step.

  Local training on random convex quadratics with full batches, delta 0.1 and 1.
  """
  return _check_lyapunov(lab, gamma=1.0)


@PAPER.claim('Section 4, with Theorems 1 and 5')
def theorem_at_defaults(lab: claim.Laboratory) -> claim.Verdict:
  """The theory covers the parameters that are recommended, gamma = 2.

  The inequality of the proof on the same quadratics, with gamma = 2 and delta
  0.1, the recommended one, and 1, that of the theory.
  """
  return _check_lyapunov(lab, gamma=2.0)


@PAPER.claim('Section 3, equation (4)')
def step_bounds(lab: claim.Laboratory) -> claim.Verdict:
  """The step follows the local smoothness, between gamma/2L and gamma/2mu.

  On the same quadratics at the defaults, with L and mu their extreme
  curvatures: min(gamma/(2L), growth limit) <= step <= gamma/(2 mu).
  """
  gamma, delta = 2.0, 0.1
  inside = []
  for hessian, path in _follow(lab):
    smallest, largest = np.linalg.eigvalsh(hessian)[[0, -1]]
    eta = path.step_sizes
    theta = np.append(1.0, eta[1:] / eta[:-1])[:-1]
    grown = np.sqrt(1 + delta * theta) * eta[:-1]
    low = np.minimum(gamma / (2 * largest), grown) * (1 - _ROUNDING)
    high = np.minimum(gamma / (2 * smallest), grown) * (1 + _ROUNDING)
    inside += list((low <= eta[1:]) & (eta[1:] <= high))
  outside = inside.count(False)
  return claim.decide_for_all(
      not outside,
      f'{outside} of {len(inside)} steps on {_NUM_QUADRATICS} random '
      'quadratics are outside.',
      {'outside': outside, 'steps': len(inside)},
  )


def _measure_round(lab: claim.Laboratory) -> dict[str, dict[str, int]]:
  """Returns the costs of a round with SGD and with Delta-SGD on clients."""
  configs = {
      'SGD': quadratics.fedavg(),
      'Delta-SGD': quadratics.fedavg(client={'name': 'delta_sgd'}),
  }
  found = {}
  for name, config in configs.items():
    training = lab.train(config, num_local_steps=quadratics.NUM_LOCAL_STEPS)
    found[name] = {key: int(value) for key, value in training.clients.items()}
  return found


@PAPER.claim('Section 4')
def no_additional_gradients(lab: claim.Laboratory) -> claim.Verdict:
  """Taking the same batch at both points needs no additional gradients.

  Counts the gradients of two clients with five local steps each, of SGD and of
  Delta-SGD with both gradients on the same batch, as the authors' code has it;
  and with the gradient of the step before, which is of another batch.
  """
  numbers = {
      name: costs['num_gradient_evaluations']
      for name, costs in _measure_round(lab).items()
  }
  reused = [
      lab.steps(
          'delta_sgd',
          quadratics.of_client(client, quadratics.NUM_LOCAL_STEPS),
          np.zeros(1),
          previous_gradient='reuse',
      ).reports['gradient_evaluations']
      for client in quadratics.CLIENTS
  ]
  numbers['Delta-SGD with the gradient before'] = int(np.sum(reused))
  told = ', '.join(f'{name} {count}' for name, count in numbers.items())
  return claim.decide(
      numbers['Delta-SGD'] <= numbers['SGD'],
      f'Gradients of a round: {told}.',
      numbers,
  )


@PAPER.claim('Algorithm 1')
def no_additional_communication(lab: claim.Laboratory) -> claim.Verdict:
  """A client sends nothing but the model, as in FedAvg.

  Compares the bytes that the clients of a round send with those of FedAvg.
  """
  costs = _measure_round(lab)
  sent = {name: cost['bytes_up'] for name, cost in costs.items()}
  received = {name: cost['bytes_down'] for name, cost in costs.items()}
  # Hyperparameters travel with the model; Delta-SGD has three more of them.
  return claim.decide(
      sent['Delta-SGD'] == sent['SGD'],
      f'Bytes up {sent}, down {received}, of which four a hyperparameter.',
      {'up': sent, 'down': received},
  )


def _compare_batches(lab: claim.Laboratory, noise: float) -> runs.Difference:
  """Returns the decimal digits of the distance that the same batch gains.

  Args:
    lab: The laboratory.
    noise: The spread of the minimizers of the batches; with 0 all are 0.
  """
  digits: dict[str, dict[int, float]] = {'recompute': {}, 'reuse': {}}
  for seed in range(_NUM_STOCHASTIC):
    hessians = quadratics.draw_hessians(_NUM_BATCHES, _SIZE, seed=seed)
    rng = np.random.default_rng(seed)
    centers = noise * rng.normal(size=[_NUM_BATCHES, _SIZE])
    slopes = -np.einsum('kij,kj->ki', hessians, centers)
    minimizer = np.linalg.solve(hessians.sum(axis=0), -slopes.sum(axis=0))
    batches = quadratics.Batches(hessians, slopes)
    for name, by_seed in digits.items():
      path = lab.steps(
          'delta_sgd', batches, np.ones(_SIZE), previous_gradient=name
      )
      left = np.linalg.norm(path.points[-1] - minimizer)
      by_seed[seed] = -float(np.log10(left))
  return runs.compare(digits['recompute'], digits['reuse'])


@PAPER.claim('workshop version: the same batch at both points')
def same_batch_is_better(lab: claim.Laboratory) -> claim.Verdict:
  """Both gradients on the same batch serve better than on two batches.

  Least squares with 20 batches on 100 random problems, with one minimizer for
  all batches and with one for each; compares the logarithm of the distance to
  the minimizer of the mean after an epoch, paired by problem.
  """
  found = {
      name: _compare_batches(lab, noise)
      for name, noise in (('one minimizer', 0.0), ('spread by 0.3', 0.3))
  }
  told = ', '.join(f'{name} {d}' for name, d in found.items())
  return claim.Verdict(
      runs.unite([runs.ahead(d) for d in found.values()]),
      f'Decimal digits of the distance that the same batch gains: {told}.',
      {name: difference.to_numbers() for name, difference in found.items()},
  )


@PAPER.claim('Section 5, Table 1')
def published_places(lab: claim.Laboratory) -> claim.Verdict:
  """Delta-SGD is first in 73% and first or second in all settings of Table 1.

  Counts places in the numbers that the table prints; ties share the better one.
  """
  table = lab.find_table('delta_sgd/table_1')
  places = list(runs.find_places(table, ('Delta-SGD',)).values())
  first = places.count(1) / len(places)
  second = (places.count(1) + places.count(2)) / len(places)
  return claim.decide(
      round(100 * first) >= 73 and second == 1.0,
      f'First in {first:.0%}, first or second in {second:.0%} of {len(places)} '
      'settings.',
      {'first': first, 'first or second': second},
  )


def _as_good(lab: claim.Laboratory, table: str, **columns) -> claim.Verdict:
  return runs.answer(lab, table, 'Delta-SGD', runs.not_behind, **columns)


@PAPER.claim('Section 5, Table 1, MNIST')
def as_good_without_tuning(lab: claim.Laboratory) -> claim.Verdict:
  """Without tuning it is as good as the best tuned method, for every alpha.

  Finished runs of the column: for each alpha it is as good as each of the seven
  others, within a margin of 0.5 points.
  """
  return _as_good(lab, 'delta_sgd/table_1', column='MNIST')


@PAPER.claim('Section 5, Table 1, MNIST')
def leads_without_tuning(lab: claim.Laboratory) -> claim.Verdict:
  """Without tuning it leads all tuned methods, for every alpha.

  Finished runs of the column: for each alpha it is ahead of each of the seven
  others.
  """
  return runs.answer(
      lab, 'delta_sgd/table_1', 'Delta-SGD', runs.ahead, column='MNIST'
  )


@PAPER.claim('Section 5, Table 4, MNIST')
def with_fedadam(lab: claim.Laboratory) -> claim.Verdict:
  """With FedAdam on the server, too, it is as good as the best tuned method.

  Finished runs of the column, as for Table 1.
  """
  return _as_good(lab, 'delta_sgd/table_4', column='MNIST')


@PAPER.claim('Section 5, Table 6, MNIST')
def with_fedprox(lab: claim.Laboratory) -> claim.Verdict:
  """With the loss term of FedProx, too, it is as good as the best tuned method.

  Finished runs of the column, as for Table 1.
  """
  return _as_good(lab, 'delta_sgd/table_6', column='MNIST')


@PAPER.claim('Section 5, Table 5')
def with_moon(lab: claim.Laboratory) -> claim.Verdict:
  """With the loss term of MOON, too, it is as good as the best tuned method.

  Finished runs of the whole table, as for Table 1; ResNet-18 takes a GPU.
  """
  return _as_good(lab, 'delta_sgd/table_5', needs_gpu=True)


@PAPER.claim('Section 5, Table 2')
def on_text(lab: claim.Laboratory) -> claim.Verdict:
  """On texts, too, it is as good as the best tuned method.

  Finished runs of the text tasks, as for Table 1; DistilBERT takes a GPU.
  """
  return _as_good(lab, 'delta_sgd/table_2', needs_gpu=True)

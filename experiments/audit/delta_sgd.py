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
from experiments.audit import workbench

PAPER = claim.Paper('delta_sgd', 'Kim et al., ICLR 2024')

_NUM_QUADRATICS = 200
_SIZE = 5
_NUM_STEPS = 15
# What rounding may cost, of a sum of numbers of this size.
_ROUNDING = 1e-6
_NUM_STOCHASTIC = 100
_NUM_BATCHES = 20


def _count_violations(lab: workbench.Workbench, **arguments) -> tuple[int, int]:
  """Counts the steps at which the function of the proof rises, and all steps.

  With the minimizer 0 of value 0 and theta_k = eta_k / eta_{k-1} it falls if

  ```
  |x_{k+1}|^2 + |x_{k+1} - x_k|^2 / 2 + 2 eta_k (1 + theta_k) f(x_k)
      <= |x_k|^2 + |x_k - x_{k-1}|^2 / 2 + 2 eta_k theta_k f(x_{k-1})
  ```
  """
  violations = steps = 0
  for hessian in quadratics.draw_hessians(_NUM_QUADRATICS, _SIZE):
    batches = quadratics.repeat(hessian, _NUM_STEPS)
    path = lab.steps('delta_sgd', batches, np.ones(_SIZE), **arguments)
    values = 0.5 * np.einsum('ki,ij,kj->k', path.points, hessian, path.points)
    eta = path.step_sizes
    theta = eta[1:] / eta[:-1]
    squares = np.sum(path.points**2, axis=1)
    moves = np.sum(np.diff(path.points, axis=0) ** 2, axis=1)
    after = (
        squares[2:] + moves[1:] / 2 + 2 * eta[1:] * (1 + theta) * values[1:-1]
    )
    before = squares[1:-1] + moves[:-1] / 2 + 2 * eta[1:] * theta * values[:-2]
    violations += int(np.sum(~(after <= before * (1 + _ROUNDING) + 1e-300)))
    steps += len(after)
  return violations, steps


def _lyapunov_verdict(
    counts: dict[str, tuple[int, int]],
) -> claim.Verdict:
  """A counterexample if the inequality is violated anywhere."""
  told = '; '.join(
      f'{name}: {violations} violations in {steps} steps'
      for name, (violations, steps) in counts.items()
  )
  return claim.Verdict(
      claim.Status.COUNTEREXAMPLE
      if any(violations for violations, _ in counts.values())
      else claim.Status.HOLDS,
      f'{_NUM_QUADRATICS} random quadratics, {told}.',
      {name: violations for name, (violations, _) in counts.items()},
  )


@PAPER.claim('Theorem 1, equation (31)')
def theorem(lab: workbench.Workbench) -> claim.Verdict:
  """With gamma = 1 the Lyapunov function of the proof falls at every step.

  Local training on random convex quadratics with full batches, delta 0.1 and 1.
  """
  return _lyapunov_verdict(
      {
          f'delta {delta}': _count_violations(lab, gamma=1.0, delta=delta)
          for delta in (0.1, 1.0)
      }
  )


@PAPER.claim('Section 4, with Theorems 1 and 5')
def theorem_at_defaults(lab: workbench.Workbench) -> claim.Verdict:
  """The theory covers the parameters that are recommended, gamma = 2.

  The inequality of the proof on the same quadratics, with gamma = 2 and delta
  0.1, the recommended one, and 1, that of the theory.
  """
  return _lyapunov_verdict(
      {
          f'delta {delta}': _count_violations(lab, gamma=2.0, delta=delta)
          for delta in (0.1, 1.0)
      }
  )


@PAPER.claim('Section 3, equation (4)')
def step_bounds(lab: workbench.Workbench) -> claim.Verdict:
  """The step follows the local smoothness, between gamma/2L and gamma/2mu.

  On the same quadratics at the defaults, with L and mu their extreme
  curvatures: min(gamma/(2L), growth limit) <= step <= gamma/(2 mu).
  """
  gamma, delta = 2.0, 0.1
  outside = steps = 0
  for hessian in quadratics.draw_hessians(_NUM_QUADRATICS, _SIZE):
    batches = quadratics.repeat(hessian, _NUM_STEPS)
    path = lab.steps('delta_sgd', batches, np.ones(_SIZE))
    smallest, largest = np.linalg.eigvalsh(hessian)[[0, -1]]
    eta = path.step_sizes
    theta = np.append(1.0, eta[1:] / eta[:-1])[:-1]
    grown = np.sqrt(1 + delta * theta) * eta[:-1]
    low = np.minimum(gamma / (2 * largest), grown) * (1 - _ROUNDING)
    high = np.minimum(gamma / (2 * smallest), grown) * (1 + _ROUNDING)
    outside += int(np.sum(~((low <= eta[1:]) & (eta[1:] <= high))))
    steps += len(grown)
  return claim.Verdict(
      claim.Status.COUNTEREXAMPLE if outside else claim.Status.HOLDS,
      f'{outside} of {steps} steps on {_NUM_QUADRATICS} random quadratics are '
      'outside.',
      {'outside': outside, 'steps': steps},
  )


def _measure_round(lab: workbench.Workbench) -> dict[str, dict[str, int]]:
  """What a round of FedAvg costs with SGD and with Delta-SGD on clients."""
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
def no_additional_gradients(lab: workbench.Workbench) -> claim.Verdict:
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
  return claim.Verdict(
      claim.Status.HOLDS
      if numbers['Delta-SGD'] <= numbers['SGD']
      else claim.Status.FAILS,
      f'Gradients of a round: {told}.',
      numbers,
  )


@PAPER.claim('Algorithm 1')
def no_additional_communication(lab: workbench.Workbench) -> claim.Verdict:
  """A client sends nothing but the model, as in FedAvg.

  Compares the bytes that the clients of a round send with those of FedAvg.
  """
  costs = _measure_round(lab)
  sent = {name: cost['bytes_up'] for name, cost in costs.items()}
  received = {name: cost['bytes_down'] for name, cost in costs.items()}
  # Hyperparameters travel with the model; Delta-SGD has three more of them.
  return claim.Verdict(
      claim.Status.HOLDS
      if sent['Delta-SGD'] == sent['SGD']
      else claim.Status.FAILS,
      f'Bytes up {sent}, down {received}, of which four a hyperparameter.',
      {'up': sent, 'down': received},
  )


def _compare_batches(
    lab: workbench.Workbench, noise: float
) -> claim.Difference:
  """The decimal digits that the same batch gains of the distance that is left.

  Args:
    lab: The workbench.
    noise: How far the minimizers of the batches are spread; with 0 all are 0.

  Returns:
    The difference over the problems, paired.
  """
  digits: dict[str, claim.Scores] = {'recompute': {}, 'reuse': {}}
  for seed in range(_NUM_STOCHASTIC):
    hessians = quadratics.draw_hessians(_NUM_BATCHES, _SIZE, seed=seed)
    centers = noise * np.random.default_rng(seed).normal(
        size=[_NUM_BATCHES, _SIZE]
    )
    slopes = -np.einsum('kij,kj->ki', hessians, centers)
    minimizer = np.linalg.solve(hessians.sum(axis=0), -slopes.sum(axis=0))
    batches = quadratics.Batches(hessians, slopes)
    for name, by_seed in digits.items():
      path = lab.steps(
          'delta_sgd', batches, np.ones(_SIZE), previous_gradient=name
      )
      left = np.linalg.norm(path.points[-1] - minimizer)
      by_seed[seed] = -float(np.log10(left))
  return claim.compare(digits['recompute'], digits['reuse'])


@PAPER.claim('workshop version: the same batch at both points')
def same_batch_is_better(lab: workbench.Workbench) -> claim.Verdict:
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
      claim.unite([claim.ahead(d) for d in found.values()]),
      f'Decimal digits of the distance that the same batch gains: {told}.',
      {name: difference.to_numbers() for name, difference in found.items()},
  )


@PAPER.claim('Section 5, Table 1')
def published_places(lab: workbench.Workbench) -> claim.Verdict:
  """Delta-SGD is first in 73% and first or second in all settings of Table 1.

  Counts places in the numbers that the table prints; ties share the better one.
  """
  table = lab.find_table('delta_sgd/table_1')
  if table is None:
    return claim.missing_table('delta_sgd/table_1')
  places = list(runs.find_places(table, ('Delta-SGD',)).values())
  first = places.count(1) / len(places)
  second = (places.count(1) + places.count(2)) / len(places)
  return claim.Verdict(
      claim.Status.HOLDS
      if round(100 * first) >= 73 and second == 1.0
      else claim.Status.FAILS,
      f'First in {first:.0%}, first or second in {second:.0%} of {len(places)} '
      'settings.',
      {'first': first, 'first or second': second},
  )


def _as_good(lab: workbench.Workbench, table: str, column: str = 'MNIST', **kw):
  question = runs.Question(
      table, 'Delta-SGD', claim.not_behind, column=column, **kw
  )
  return runs.answer(lab, question)


@PAPER.claim('Section 5, Table 1, MNIST')
def as_good_without_tuning(lab: workbench.Workbench) -> claim.Verdict:
  """Without tuning it is as good as the best tuned method, for every alpha.

  Finished runs of the column: for each alpha it is as good as each of the seven
  others, within a margin of 0.5 points.
  """
  return _as_good(lab, 'delta_sgd/table_1')


@PAPER.claim('Section 5, Table 1, MNIST')
def leads_without_tuning(lab: workbench.Workbench) -> claim.Verdict:
  """Without tuning it leads all tuned methods, for every alpha.

  Finished runs of the column: for each alpha it is ahead of each of the seven
  others.
  """
  question = runs.Question(
      'delta_sgd/table_1', 'Delta-SGD', claim.ahead, column='MNIST'
  )
  return runs.answer(lab, question)


@PAPER.claim('Section 5, Table 4, MNIST')
def with_fedadam(lab: workbench.Workbench) -> claim.Verdict:
  """With FedAdam on the server, too, it is as good as the best tuned method.

  Finished runs of the column, as for Table 1.
  """
  return _as_good(lab, 'delta_sgd/table_4')


@PAPER.claim('Section 5, Table 6, MNIST')
def with_fedprox(lab: workbench.Workbench) -> claim.Verdict:
  """With the loss term of FedProx, too, it is as good as the best tuned method.

  Finished runs of the column, as for Table 1.
  """
  return _as_good(lab, 'delta_sgd/table_6')


@PAPER.claim('Section 5, Table 5')
def with_moon(lab: workbench.Workbench) -> claim.Verdict:
  """With the loss term of MOON, too, it is as good as the best tuned method.

  Finished runs of the whole table, as for Table 1; ResNet-18 takes a GPU.
  """
  return _as_good(lab, 'delta_sgd/table_5', column='', needs_gpu=True)


@PAPER.claim('Section 5, Table 2')
def on_text(lab: workbench.Workbench) -> claim.Verdict:
  """On texts, too, it is as good as the best tuned method.

  Finished runs of the text tasks, as for Table 1; DistilBERT takes a GPU.
  """
  return _as_good(lab, 'delta_sgd/table_2', column='', needs_gpu=True)

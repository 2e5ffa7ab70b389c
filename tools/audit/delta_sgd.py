# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Claims of Delta-SGD, from its workshop and conference versions."""

from typing import NamedTuple

import numpy as np

from tools.audit import claim
from tools.audit import quadratics
from tools.audit import runs

PAPER = claim.Paper('delta_sgd', 'Kim et al., ICLR 2024')

_NUM_QUADRATICS = 200
_SIZE = 5
_NUM_STEPS = 15
# Tolerance for rounding errors, relative.
_ROUNDING = 1e-6
_NUM_STOCHASTIC = 100
_NUM_BATCHES = 20
_NUM_ROUNDS_OF_FIGURE_7 = 300


def _follow(lab: claim.Laboratory, **arguments):
  """Yields random quadratics and the paths of Delta-SGD on them."""
  for hessian in quadratics.draw_hessians(_NUM_QUADRATICS, _SIZE):
    batches = quadratics.repeat(hessian, _NUM_STEPS)
    yield hessian, lab.steps('delta_sgd', batches, np.ones(_SIZE), **arguments)


class _Rounds(NamedTuple):
  """Rounds of equation (4): every client takes one step on its whole loss.

  Attributes:
    points: The models before each round and after the last, [rounds + 1, size].
    step_sizes: The clients' step sizes, [rounds, clients].
    gradients: The clients' gradients, [rounds, clients, size].
  """

  points: np.ndarray
  step_sizes: np.ndarray
  gradients: np.ndarray


def _train_rounds(
    hessians: np.ndarray, centers: np.ndarray, delta: float
) -> _Rounds:
  """Runs rounds of clients with losses 1/2 (x - c)'A(x - c) and gamma 1.

  Args:
    hessians: A of each client, [clients, size, size].
    centers: c of each client, [clients, size].
    delta: The hyperparameter delta.
  """
  x = np.ones(hessians.shape[-1])
  eta, theta = np.full(len(hessians), 0.2), np.ones(len(hessians))
  points = [x]
  step_sizes: list[np.ndarray] = []
  gradients: list[np.ndarray] = []
  for _ in range(_NUM_STEPS):
    gradient = np.einsum('mij,mj->mi', hessians, x - centers)
    if step_sizes:
      change = np.linalg.norm(x - points[-2])
      change /= 2 * np.linalg.norm(gradient - gradients[-1], axis=1)
      new = np.minimum(change, np.sqrt(1 + delta * theta) * eta)
      eta, theta = new, new / eta
    x = x - np.mean(eta[:, np.newaxis] * gradient, axis=0)
    points.append(x)
    step_sizes.append(eta)
    gradients.append(gradient)
  return _Rounds(*map(np.array, (points, step_sizes, gradients)))


def _rises(
    rounds: _Rounds, hessians: np.ndarray, centers: np.ndarray, reading: str
) -> list[bool]:
  """Returns, for each round, whether the Lyapunov function of the proof rises.

  Args:
    rounds: The rounds.
    hessians: See `_train_rounds`.
    centers: See `_train_rounds`.
    reading: The move of x_t^i in a round: 'local', the client's own step, or
      'server', the step of the model.
  """
  x, eta = rounds.points, rounds.step_sizes
  minimizer = np.linalg.solve(
      hessians.sum(0), np.einsum('mij,mj->i', hessians, centers)
  )

  def losses(x):
    away = x - centers
    return 0.5 * np.einsum('...mi,mij,...mj->...m', away, hessians, away)

  gaps = losses(x[:, np.newaxis]) - losses(minimizer)
  squares = np.sum((x - minimizer) ** 2, axis=1)
  steps = (
      eta[:, :, np.newaxis] * rounds.gradients
      if reading == 'local'
      else -np.diff(x, axis=0)[:, np.newaxis]
  )
  moves = np.sum(steps**2, axis=2).mean(axis=1) / 2
  theta = eta[1:] / eta[:-1]
  now, before = 2 * eta[1:] * (1 + theta), 2 * eta[1:] * theta
  after = squares[2:] + moves[1:] + np.mean(now * gaps[1:-1], axis=1)
  limit = squares[1:-1] + moves[:-1] + np.mean(before * gaps[:-2], axis=1)
  return list(~(after <= limit + _ROUNDING * np.abs(limit) + 1e-300))


@PAPER.claim('Appendix A.2, Lemma 4, equation (31)')
def theorem(lab: claim.Laboratory) -> claim.Verdict:
  """With gamma = 1 the Lyapunov function of Theorem 5 falls in every round.

  Equation (4) on random convex quadratics: 1, 2 and 5 clients, one local step
  per round on the whole loss, step sizes carried over rounds, one common
  minimizer or one per client, delta 0.1 and 1 (that of equation (4)). In the
  proof x_t^i is x_t. Two readings are checked: it moves by the client's own
  step, as in (34), or by the step of the model, as in the step size; the
  authors may mean another. The check is a plain loop without the library.
  """
  del lab  # Only the mathematics is checked.
  violations: dict[str, int] = {}
  for num_clients in (1, 2, 5):
    drawn = quadratics.draw_hessians(_NUM_QUADRATICS * num_clients, _SIZE)
    problems = drawn.reshape([_NUM_QUADRATICS, num_clients, _SIZE, _SIZE])
    rng = np.random.default_rng(0)
    for shared in (True, False):
      if num_clients == 1 and not shared:
        continue
      for delta in (0.1, 1.0):
        counts = {'local': 0, 'server': 0}
        for hessians in problems:
          centers = rng.normal(size=[num_clients, _SIZE]) * (not shared)
          rounds = _train_rounds(hessians, centers, delta)
          for reading in counts:
            found = _rises(rounds, hessians, centers, reading)
            counts[reading] += sum(found)
        minimizers = 'one minimizer' if shared else 'own minimizers'
        for reading, count in counts.items():
          name = (
              f'{num_clients} clients, {minimizers}, delta {delta}, {reading}'
          )
          violations[name] = int(count)
  num_rounds = _NUM_QUADRATICS * (_NUM_STEPS - 1)
  told = '; '.join(f'{n} with {name}' for name, n in violations.items() if n)
  return claim.decide_for_all(
      not any(violations.values()),
      f'Of {num_rounds:,} rounds in each setting, it rises in '
      f'{told or "none"}. It never rises in the other '
      f'{sum(not n for n in violations.values())} settings. This refutes '
      'inequality (31), a step of the proof of Theorem 5, but not its '
      'conclusion, (39).',
      violations,
  )


@PAPER.claim('Section 3, equation (4)')
def step_bounds(lab: claim.Laboratory) -> claim.Verdict:
  """The step follows the local smoothness, between gamma/2L and gamma/2mu.

  The same quadratics and the default hyperparameters, with L and mu the
  largest and smallest curvature: min(gamma/(2L), growth limit) <= step <=
  gamma/(2 mu).
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
  """Returns the costs of a round with SGD and with Delta-SGD on the clients."""
  configs = {
      'SGD': quadratics.fedavg(),
      'Delta-SGD': quadratics.fedavg(client={'name': 'delta_sgd'}),
  }
  found = {}
  for name, config in configs.items():
    training = lab.train(config, num_local_steps=quadratics.NUM_LOCAL_STEPS)
    found[name] = {key: int(value) for key, value in training.clients.items()}
  return found


@PAPER.claim('Section 3, after Algorithm 1')
def one_gradient_a_step(lab: claim.Laboratory) -> claim.Verdict:
  """The gradient of the step before prevents additional gradient evaluations.

  Counts the gradients of two clients with five local steps each, for SGD, for
  Delta-SGD with the stored gradient, as in the claim, and for Delta-SGD with
  both gradients on the same batch, as in the authors' code.
  """
  costs = _measure_round(lab)
  paths = [
      lab.client_steps('delta_sgd', client, previous_gradient='reuse')
      for client in quadratics.CLIENTS
  ]
  reused = [path.reports['gradient_evaluations'] for path in paths]
  numbers = {
      'SGD': costs['SGD']['num_gradient_evaluations'],
      'stored gradient': int(np.sum(reused)),
      'same batch': costs['Delta-SGD']['num_gradient_evaluations'],
  }
  told = ', '.join(f'{name} {count}' for name, count in numbers.items())
  return claim.decide(
      numbers['stored gradient'] <= numbers['SGD'],
      f'Gradients of a round: {told}.',
      numbers,
  )


@PAPER.claim('Algorithm 1')
def no_additional_communication(lab: claim.Laboratory) -> claim.Verdict:
  """A client sends only its model, as in FedAvg.

  Compares the bytes sent by the clients of a round with those of FedAvg.
  """
  costs = _measure_round(lab)
  sent = {name: cost['bytes_up'] for name, cost in costs.items()}
  received = {name: cost['bytes_down'] for name, cost in costs.items()}
  # Hyperparameters travel with the model; Delta-SGD has three more of them.
  return claim.decide(
      sent['Delta-SGD'] == sent['SGD'],
      f'Bytes up {sent}, down {received}, including four per hyperparameter.',
      {'up': sent, 'down': received},
  )


def _compare_batches(lab: claim.Laboratory, noise: float) -> runs.Difference:
  """Returns the decimal digits of accuracy gained by using the same batch.

  Args:
    lab: The laboratory.
    noise: The standard deviation of the batches' minimizers around 0.
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
  """Computing both gradients on the same batch beats using two batches.

  Least squares with 20 batches on 100 random problems, with one minimizer for
  all batches and with one per batch; compares the logarithm of the distance to
  the minimizer of the mean after one epoch, paired by problem.
  """
  found = {
      name: _compare_batches(lab, noise)
      for name, noise in (('one minimizer', 0.0), ('spread by 0.3', 0.3))
  }
  told = ', '.join(f'{name} {d}' for name, d in found.items())
  return claim.Verdict(
      runs.unite([runs.ahead(d) for d in found.values()]),
      f'Decimal digits of accuracy gained by using the same batch: {told}.',
      {name: difference.to_numbers() for name, difference in found.items()},
  )


@PAPER.claim('workshop version, abstract; Table 1', claim.Basis.PRINTED)
def published_places(lab: claim.Laboratory) -> claim.Verdict:
  """Delta-SGD is first in 73% and first or second in all settings of Table 1.

  Counts places in the printed numbers; ties share the better place.
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


# SPS has the defaults of its authors' code in all tables.
_TUNED = ('SGD', 'SGD(down)', 'SGDM', 'SGDM(down)', 'Adam', 'Adagrad')


def _as_good(lab: claim.Laboratory, table: str, **columns) -> claim.Verdict:
  return runs.answer(
      lab, table, 'Delta-SGD', runs.not_behind, others=_TUNED, **columns
  )


@PAPER.claim('Section 4.1, Table 1, MNIST', claim.Basis.TRAINING)
def as_good_without_tuning(lab: claim.Laboratory) -> claim.Verdict:
  """Without tuning it is as good as the best tuned method, for every alpha.

  Finished runs of the column: for each alpha it is as good as each of the six
  tuned methods, within a margin of 0.5 points. SPS is not tuned in the paper.
  """
  return _as_good(lab, 'delta_sgd/table_1', column='MNIST')


@PAPER.claim('Section 4.1, Table 1, MNIST', claim.Basis.TRAINING)
def leads_without_tuning(lab: claim.Laboratory) -> claim.Verdict:
  """Without tuning it leads all tuned methods, for every alpha.

  Finished runs of the column: for each alpha it is ahead of each of the six
  tuned methods.
  """
  return runs.answer(
      lab,
      'delta_sgd/table_1',
      'Delta-SGD',
      runs.ahead,
      others=_TUNED,
      column='MNIST',
  )


@PAPER.claim('Appendix B.4, Table 4, MNIST', claim.Basis.TRAINING)
def with_fedadam(lab: claim.Laboratory) -> claim.Verdict:
  """With FedAdam on the server it is also as good as the best tuned method.

  Finished runs of the column, as for Table 1.
  """
  return _as_good(lab, 'delta_sgd/table_4', column='MNIST')


@PAPER.claim('Appendix B.6, Table 6, MNIST', claim.Basis.TRAINING)
def with_fedprox(lab: claim.Laboratory) -> claim.Verdict:
  """With the FedProx loss term it is also as good as the best tuned method.

  Finished runs of the column, as for Table 1.
  """
  return _as_good(lab, 'delta_sgd/table_6', column='MNIST')


@PAPER.claim('Appendix B.5, Table 5', claim.Basis.TRAINING)
def with_moon(lab: claim.Laboratory) -> claim.Verdict:
  """With the MOON loss term it is also as good as the best tuned method.

  Finished runs of the whole table, as for Table 1; ResNet-18 needs a GPU.
  """
  return _as_good(lab, 'delta_sgd/table_5', needs_gpu=True)


@PAPER.claim('Section 4.1, Table 2a', claim.Basis.TRAINING)
def on_text(lab: claim.Laboratory) -> claim.Verdict:
  """On text it is also as good as the best tuned method.

  Finished runs of the text tasks, as for Table 1; DistilBERT needs a GPU.
  """
  return _as_good(lab, 'delta_sgd/table_2', needs_gpu=True)


@PAPER.claim('Appendix B.7, Table 7', claim.Basis.PRINTED)
def published_spread(lab: claim.Laboratory) -> claim.Verdict:
  """Its average is the best and its standard deviation very small.

  The printed numbers: the average must be first on all three tasks, and the
  standard deviation first or second.
  """
  table = lab.find_table('delta_sgd/table_7')
  places = list(runs.find_places(table, ('Delta-SGD',)).values())
  spreads = {
      column.name: sorted(
          (cell.published_std or 0.0, cell.row)
          for cell in table.cells
          if cell.column == column.name
      )
      for column in table.columns
  }
  ranks = {
      name: 1 + [row for _, row in ranked].index('Delta-SGD')
      for name, ranked in spreads.items()
  }
  told = ', '.join(f'{name} {rank}' for name, rank in ranks.items())
  return claim.decide(
      set(places) == {1} and max(ranks.values()) <= 2,
      f'First average on {places.count(1)} of {len(places)} tasks; places of '
      f'the standard deviation among eight: {told}.',
      ranks,
  )


@PAPER.claim('Appendix B.1, Figure 4, MNIST', claim.Basis.TRAINING)
def little_influence_of_delta(lab: claim.Laboratory) -> claim.Verdict:
  """The parameter delta has very little impact on the final accuracy.

  Finished runs of the figure on MNIST: accuracies with delta 0.01, 0.1 and 1
  differ by at most the margin.
  """
  return runs.agree(lab, 'delta_sgd/figure_4', 'column', rows=['MNIST'])


@PAPER.claim('Appendix B.2, Figure 5', claim.Basis.TRAINING)
def little_influence_of_epochs(lab: claim.Laboratory) -> claim.Verdict:
  """More local epochs gain little: one is enough.

  Finished runs of the figure: accuracies with 1, 2 and 3 epochs differ by at
  most the margin; ResNet-50 needs a GPU.
  """
  return runs.agree(lab, 'delta_sgd/figure_5', 'row', needs_gpu=True)


@PAPER.claim('Appendix B.8, Figure 7', claim.Basis.TRAINING)
def both_conditions_are_needed(lab: claim.Laboratory) -> claim.Verdict:
  """Both conditions of the step size act.

  The paper calls both "indeed necessary". Finished runs of Table 1 on MNIST,
  alpha 0.1, first 300 rounds: the mean step of a round is below the mean of a
  condition if the other condition is smaller in some local step. Each must be
  so in more than half of the rounds. Whether training needs both conditions
  would take runs without one.
  """
  table = lab.find_table('delta_sgd/figure_7').restrict(columns=['MNIST'])
  results = lab.collect(table)
  if results.runs.empty:
    return runs.lacking(lab, results, table.cells)
  shares = {}
  for name in ('smoothness_limit', 'growth_limit'):
    below = []
    for run in results.runs.run:
      _, limits = run.series(f'clients/{name}_mean')
      _, steps = run.series('clients/step_size_mean')
      pairs = list(zip(steps, limits))[:_NUM_ROUNDS_OF_FIGURE_7]
      below += [step < limit * (1 - _ROUNDING) for step, limit in pairs]
    shares[name] = float(np.mean(below))
  return claim.decide(
      min(shares.values()) > 0.5,
      f'The step is below the first condition in '
      f'{shares["smoothness_limit"]:.1%} of the rounds and below the second in '
      f'{shares["growth_limit"]:.1%}.',
      shares,
  )

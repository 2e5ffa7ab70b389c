# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Claims of Adaptive Federated Optimization: FedAdagrad, FedAdam, FedYogi."""

import numpy as np

from tools.audit import claim
from tools.audit import quadratics
from tools.audit import runs

PAPER = claim.Paper('fedopt', 'Reddi et al., ICLR 2021')

_ADAPTIVE = ('FedAdagrad', 'FedAdam', 'FedYogi')
_ROUNDING = 1e-6
_NUM_ROUNDS = 50
_SIZE = 20


def _draw_changes() -> np.ndarray:
  """Samples updates whose coordinates differ in scale by four decades."""
  rng = np.random.default_rng(0)
  scales = np.logspace(-3, 1, _SIZE)
  return scales * (0.5 + rng.normal(size=[_NUM_ROUNDS, _SIZE]))


def _follow(lab: claim.Laboratory, rule: str, changes, **arguments):
  """Returns the path of a server rule, which TFF calls with negated updates."""
  start = np.zeros(changes.shape[1])
  return lab.steps(rule, quadratics.linear(-changes), start, **arguments)


@PAPER.claim('Section 3')
def no_client_state(lab: claim.Laboratory) -> claim.Verdict:
  """FedAdam keeps no state on clients and sends what FedAvg sends.

  Compares the bytes of a round with those of FedAvg, and checks whether the
  process keeps client state.
  """
  fedadam = quadratics.fedavg(server={'name': 'fedadam', 'lr': 0.1})
  trainings = {
      'FedAvg': lab.train(quadratics.fedavg()),
      'FedAdam': lab.train(fedadam),
  }
  keys = ('bytes_up', 'bytes_down')
  numbers = {
      name: {key: int(training.clients[key]) for key in keys}
      for name, training in trainings.items()
  }
  keeps_state = trainings['FedAdam'].keeps_state
  agrees = numbers['FedAvg'] == numbers['FedAdam'] and not keeps_state
  state = 'keep state' if keeps_state else 'keep no state'
  return claim.decide(
      agrees,
      f'{numbers}; clients of FedAdam {state}.',
      {**numbers, 'keeps state': keeps_state},
  )


@PAPER.claim('Section 3: tau controls the degree of adaptivity')
def tau_is_adaptivity(lab: claim.Laboratory) -> claim.Verdict:
  """The larger tau is, the less FedAdam differs from FedAvg with momentum.

  The cosine between the last of 50 steps and the momentum, for updates whose
  coordinates differ in scale by four decades; it must rise with tau, to 1.
  """
  changes = _draw_changes()
  cosines = {}
  for tau in (1e-5, 1e-3, 1e-1, 1e1, 1e3):
    path = _follow(lab, 'fedadam', changes, epsilon=tau)
    step = path.points[-1] - path.points[-2]
    momentum = -path.states['accumulator'][-1]
    cosines[f'{tau:g}'] = float(
        step @ momentum / np.linalg.norm(step) / np.linalg.norm(momentum)
    )
  values = list(cosines.values())
  agrees = np.all(np.diff(values) > -1e-9) and values[-1] > 0.999
  told = ', '.join(f'tau {tau} {value:.4f}' for tau, value in cosines.items())
  return claim.decide(
      agrees,
      f'Cosine of step and momentum: {told}.',
      cosines,
  )


@PAPER.claim('Section 3, after Algorithm 2')
def scale_invariance(lab: claim.Laboratory) -> claim.Verdict:
  """Scaling the client learning rate and tau alike changes no server step.

  50 rounds of random updates, and of the same updates times 10 with 10 tau: the
  largest difference of the models, relative to the largest weight.
  """
  changes = _draw_changes()
  differences = {}
  for rule in ('fedadagrad', 'fedadam', 'fedyogi'):
    points, scaled = (
        _follow(lab, rule, factor * changes, epsilon=factor * 1e-3).points
        for factor in (1.0, 10.0)
    )
    largest = np.max(np.abs(points))
    differences[rule] = float(np.max(np.abs(scaled - points)) / largest)
  told = ', '.join(f'{rule} {value:.1g}' for rule, value in differences.items())
  return claim.decide(
      bool(np.all(np.array(list(differences.values())) <= _ROUNDING)),
      f'Largest difference of the models: {told}.',
      differences,
  )


@PAPER.claim('Appendix B.3')
def lookahead(lab: claim.Laboratory) -> claim.Verdict:
  """Lookahead is the case of one client and SGD on the server.

  One round of one client with five local steps and server learning rate 0.5:
  the server must move half as far as the fast weights, those of plain SGD.
  """
  client = quadratics.CLIENTS[0]
  path = lab.client_steps('sgd', client, learning_rate=quadratics.LEARNING_RATE)
  half = lab.train(
      quadratics.fedavg(server={'name': 'sgd', 'lr': 0.5}),
      clients=[client],
      num_local_steps=quadratics.NUM_LOCAL_STEPS,
  ).points[-1]
  full = float(path.points[-1, 0])
  return claim.decide(
      abs(half - 0.5 * full) <= _ROUNDING,
      f'The fast weights moved by {full:.6f}, the server by {half:.6f}.',
      {'fast weights': full, 'server': half},
  )


@PAPER.claim('Section 3, Algorithm 2')
def yogi_changes_slowly(lab: claim.Laboratory) -> claim.Verdict:
  """FedYogi's v, unlike FedAdam's, changes by at most (1 - beta_2) D^2.

  50 rounds of random updates, the first five of them large: the largest change
  of v in a round, relative to the bound.
  """
  rng = np.random.default_rng(0)
  sizes = np.where(np.arange(_NUM_ROUNDS) < 5, 100.0, 1.0)
  changes = sizes[:, np.newaxis] * rng.uniform(0.5, 1.5, [_NUM_ROUNDS, _SIZE])
  ratios = {}
  for rule in ('fedyogi', 'fedadam'):
    v = _follow(lab, rule, changes).states['preconditioner']
    bound = (1 - 0.99) * changes[1:] ** 2
    ratios[rule] = float(np.max(np.abs(np.diff(v, axis=0)) / bound))
  agrees = ratios['fedyogi'] <= 1 + 1e-5 < ratios['fedadam']
  return claim.decide(
      agrees,
      f'Largest change of v over the bound: FedYogi {ratios["fedyogi"]:.4f}, '
      f'FedAdam {ratios["fedadam"]:.3g}.',
      ratios,
  )


@PAPER.claim('Algorithm 2 and the published code')
def published_code(lab: claim.Laboratory) -> claim.Verdict:
  """The Adam that the published experiments call is FedAdam of Algorithm 2.

  Six rounds of updates of size one with server learning rate 0.1 and tau 0.001:
  the largest difference between the models of FedAdam and of
  `tff.learning.optimizers.build_adam` with its default beta_2 = 0.999, which
  the code's documentation names.
  """
  signs = np.sign(np.random.default_rng(0).normal(size=[6, 8]))
  adam = 'tensorflow_federated:learning.optimizers.build_adam'
  stock = _follow(lab, adam, signs, learning_rate=0.1, epsilon=1e-3)
  paper = _follow(lab, 'fedadam', signs)
  gap = float(np.max(np.abs(stock.points - paper.points)))
  return claim.decide_for_all(
      gap <= 1e-3,
      f'After six rounds the models differ by up to {gap:.3f}, having moved by '
      f'up to {np.max(np.abs(paper.points)):.3f}.',
      {'largest difference': gap},
  )


@PAPER.claim('Section 5.1, Table 1', claim.Basis.PRINTED)
def published_lead(lab: claim.Laboratory) -> claim.Verdict:
  """The best adaptive server is ahead of FedAvg and FedAvgM on every task.

  Counts the columns in which one of them is first, in the printed numbers.
  """
  return runs.lead(lab, 'fedopt/table_1', _ADAPTIVE)


@PAPER.claim(
    'Section 5.1, Dense-gradient tasks, Shakespeare', claim.Basis.TRAINING
)
def as_good_on_dense_gradients(lab: claim.Laboratory) -> claim.Verdict:
  """FedAdam performs comparably to or better than FedAvg and FedAvgM.

  Finished runs of Table 1 on Shakespeare, all at their published rates, within
  a margin of 0.5 points.
  """
  return runs.answer(
      lab,
      'fedopt/table_1',
      'FedAdam',
      runs.not_behind,
      others=('FedAvg', 'FedAvgM'),
      column='Shakespeare',
  )

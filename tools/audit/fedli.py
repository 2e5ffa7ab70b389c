# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Claims of FedLi: line search on clients and linearization on the server."""

import numpy as np

from tools.audit import claim
from tools.audit import quadratics
from tools.audit import runs

PAPER = claim.Paper('fedli', 'FedLi, arXiv 2408.17145v1')

_ROUNDING = 1e-6
_TABLE = 'fedli/comparison_mnist'


@PAPER.claim('Section 5, Remark 1')
def free_descent(lab: claim.Laboratory) -> claim.Verdict:
  """With line search on clients, descent of the global loss comes for free.

  FedLi-LS with unit server step: one local step from the minimizer of the mean
  of 5 (x - 1)^2 and (x + 1)^2 / 2.
  """
  config = quadratics.fedavg(
      client={'name': 'armijo'}, server={'name': 'fedli_ls', 'scale': 'unit'}
  )
  points = lab.train(config, quadratics.MINIMIZER).points
  before, after = (
      float(np.mean([client.loss(x) for client in quadratics.CLIENTS]))
      for x in points
  )
  limit = before * (1 + _ROUNDING)
  why = (
      ': the mean of f(x_i), not that of f_i(x_i), bounds the loss of the mean '
      'model'
  )
  return claim.decide_for_all(
      after <= limit,
      f'The mean of two convex losses goes from {before:.3f} to {after:.3f} in '
      f'a round in which every line search succeeds{why * (after > limit)}.',
      {'before': before, 'after': after},
  )


def _search(lab: claim.Laboratory):
  """Yields random quadratics and line searches on them."""
  for hessian in quadratics.draw_hessians(100, 5):
    batches = quadratics.repeat(hessian, 15)
    yield hessian, batches, lab.steps('armijo', batches, np.ones(5))


@PAPER.claim('Section 5, Definition 1')
def local_descent(lab: claim.Laboratory) -> claim.Verdict:
  """Every local step lowers the client's loss by at least c eta |g|^2.

  15 steps on 100 random quadratics with full batches, c = 0.1.
  """
  violations = steps = 0
  for hessian, batches, path in _search(lab):
    values = np.array([batches.value(0, x) for x in path.points])
    squares = np.sum((path.points[:-1] @ hessian) ** 2, axis=1)
    promised = values[:-1] - 0.1 * path.step_sizes * squares
    violations += int(
        np.sum(~(values[1:] <= promised * (1 + _ROUNDING) + 1e-12))
    )
    steps += len(promised)
  return claim.decide_for_all(
      not violations,
      f'{violations} violations in {steps} steps.',
      {'violations': violations, 'steps': steps},
  )


@PAPER.claim('Section 5, Lemma 2')
def step_bounds(lab: claim.Laboratory) -> claim.Verdict:
  """Steps stay in (0, eta_max], and above a bound from the smoothness.

  The same quadratics, with L their largest curvature, beta = 0.9 and eta_max =
  1: min(eta_{k-1}, 2 beta (1 - c) / L) <= eta_k <= 1.
  """
  outside = steps = 0
  for hessian, _, path in _search(lab):
    largest = np.linalg.eigvalsh(hessian)[-1]
    eta = path.step_sizes
    before = np.append(1.0, eta[:-1])
    low = np.minimum(before, 2 * 0.9 * 0.9 / largest) * (1 - _ROUNDING)
    outside += int(np.sum(~((low <= eta) & (eta <= 1 + _ROUNDING))))
    steps += len(eta)
  return claim.decide_for_all(
      not outside,
      f'{outside} of {steps} steps are outside.',
      {'outside': outside, 'steps': steps},
  )


@PAPER.claim('the published code and Appendix C, Table 1')
def published_code_moves(lab: claim.Laboratory) -> claim.Verdict:
  """The published code of FedLi-LU trains the model.

  The trainer in the code returns no loss, so the formula sees 0. Measures the
  server step with the code's settings, except weight decay, with that loss and
  with a loss of 1.
  """
  changes = np.random.default_rng(0).normal(size=[4, 10])
  taken = {
      f'loss {loss:g}': lab.server_step(
          'frank_wolfe', changes, loss, learning_rate=0.01, momentum=0.9
      )
      for loss in (0.0, 1.0)
  }
  return claim.decide(
      taken['loss 0'] > 0,
      f'Step along the mean update: {taken["loss 0"]:g} with the loss of the '
      f'code, {taken["loss 1"]:.3g} with a loss of 1.',
      taken,
  )


@PAPER.claim('Appendix C, Table 1', claim.Basis.PRINTED)
def published_lead(lab: claim.Laboratory) -> claim.Verdict:
  """FedLi-LU or FedLi-LS has the best accuracy on every task.

  Counts the columns in which one of them is first, in the printed numbers.
  """
  return runs.lead(lab, 'fedli/table_1', ('LU', 'LS'))


@PAPER.claim('Appendix C, Table 1', claim.Basis.TRAINING)
def line_search_helps(lab: claim.Laboratory) -> claim.Verdict:
  """FedLi-LS is ahead of FedAvg.

  Above the table stands that both methods of FedLi outperform FedAvg "across
  the board"; in it LS is behind FedAvg in three of four columns. Finished runs
  of the leaderboard, in which both are tuned with the same number of trials, LS
  by its largest step and the slope of its condition.
  """
  return runs.answer_tuned(lab, 'FedLi-LS', 'FedAvg', runs.ahead)


@PAPER.claim('Appendix C, Table 1', claim.Basis.TRAINING)
def linearization_helps(lab: claim.Laboratory) -> claim.Verdict:
  """FedLi-LU is ahead of FedAvg.

  Above the table stands that both methods of FedLi outperform FedAvg "across
  the board"; in it LU is behind FedAvg in one of four columns. Finished runs
  of our comparison on MNIST.
  """
  return runs.answer(lab, _TABLE, 'LU', runs.ahead, others=('FedAvg',))

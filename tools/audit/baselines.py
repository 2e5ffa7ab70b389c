# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Claims of the methods with which the papers compare."""

import numpy as np

from tools.audit import claim
from tools.audit import quadratics

_FEDEXP = claim.Paper('fedexp', 'Jhunjhunwala et al., ICLR 2023')
_SPS = claim.Paper('sps', 'Loizou et al., AISTATS 2021')
_SCAFFOLD = claim.Paper('scaffold', 'Karimireddy et al., ICML 2020')
_FEDPROX = claim.Paper('fedprox', 'Li et al., MLSys 2020')
PAPERS = (_FEDEXP, _SPS, _SCAFFOLD, _FEDPROX)

_ROUNDING = 1e-5


@_FEDEXP.claim('equation of the server step')
def step_at_least_one(lab: claim.Laboratory) -> claim.Verdict:
  """The server step of FedExP is never shorter than that of FedAvg.

  200 random rounds with client updates of all sizes and similarities.
  """
  rng = np.random.default_rng(0)
  taken = []
  for size, common in 10.0 ** rng.uniform(-2, 2, size=[200, 2]):
    changes = size * (rng.normal(size=[5, 10]) + common * rng.normal(size=10))
    taken.append(lab.server_step('fedexp', changes))
  shorter = int(np.sum(~(np.array(taken) >= 1 - _ROUNDING)))
  return claim.decide_for_all(
      not shorter,
      f'{shorter} of {len(taken)} steps are below 1; they lie between '
      f'{min(taken):.3f} and {max(taken):.3f}.',
      {'shorter': shorter, 'largest': max(taken)},
  )


@_SPS.claim('the step size of Polyak')
def exact_on_isotropic_quadratics(lab: claim.Laboratory) -> claim.Verdict:
  """With c = 1/2, one step solves an isotropic quadratic.

  Curvatures from 0.01 to 100 in five dimensions: less than 1e-3 of the distance
  to the minimizer may remain; epsilon, 1e-8, leaves some for small gradients.
  """
  left = {}
  for curvature in (0.01, 1.0, 100.0):
    batch = quadratics.repeat(curvature * np.eye(5), 1)
    path = lab.steps('sps', batch, np.ones(5), c=0.5)
    norm = np.linalg.norm(path.points[-1])
    left[f'{curvature:g}'] = float(norm / np.sqrt(5))
  # `max` would ignore NaN.
  most = float(np.max(list(left.values())))
  return claim.decide_for_all(
      most < 1e-3,
      f'At most {most:.2g} of the distance remains.',
      left,
  )


@_SCAFFOLD.claim('Section 1: client drift')
def corrects_drift(lab: claim.Laboratory) -> claim.Verdict:
  """With several local steps SCAFFOLD reaches the optimum; FedAvg does not.

  Two clients with curvatures 10 and 1 and minimizers 1 and -1, five local
  steps with learning rate 0.05, 60 rounds: the final distance to the minimizer
  of the mean loss.
  """
  left = {}
  for name in ('scaffold', 'sgd'):
    client = {'name': name, 'lr': quadratics.LEARNING_RATE}
    training = lab.train(
        quadratics.fedavg(client=client),
        num_rounds=60,
        num_local_steps=quadratics.NUM_LOCAL_STEPS,
    )
    left[name] = abs(training.points[-1] - quadratics.MINIMIZER)
  agrees = left['scaffold'] <= 1e-4 < left['sgd']
  return claim.decide(
      agrees,
      f'Final distance: SCAFFOLD {left["scaffold"]:.2g}, FedAvg '
      f'{left["sgd"]:.3f}.',
      left,
  )


@_FEDPROX.claim('equation (2)')
def limits_drift(lab: claim.Laboratory) -> claim.Verdict:
  """The proximal term keeps clients closer to the model they received.

  One client of curvature 10, five local steps with learning rate 0.05: the
  distance it moves with mu 0 and with mu 5.
  """
  client = quadratics.CLIENTS[0]
  with_term = lab.train(
      quadratics.fedavg(loss={'name': 'fedprox', 'mu': 5.0}),
      clients=[client],
      num_local_steps=quadratics.NUM_LOCAL_STEPS,
  )
  without = lab.client_steps(
      'sgd', client, learning_rate=quadratics.LEARNING_RATE
  )
  moved = {
      'mu 0': float(abs(without.points[-1, 0])),
      'mu 5': abs(with_term.points[-1]),
  }
  return claim.decide(
      moved['mu 5'] < moved['mu 0'],
      f'It moves by {moved["mu 0"]:.3f} with mu 0 and by {moved["mu 5"]:.3f} '
      'with mu 5.',
      moved,
  )

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Algorithm 2 of "Adaptive Federated Optimization" for PyTorch.

pfl-research and NVFlare take any optimizer of PyTorch as their server's rule:
`Reddi` imports nothing of this project, so that it can be copied.
"""

import importlib

import torch


def import_torchvision() -> None:
  """Imports torchvision, also with a PyTorch without its operators.

  Builds of PyTorch for CPUs do not load those of torchvision for GPUs. The
  frameworks that import it here do not call them.
  """
  try:
    importlib.import_module('torchvision')
  except RuntimeError:
    schema = '(Tensor dets, Tensor scores, float iou_threshold) -> Tensor'
    for name in ('nms', 'qnms'):
      torch.library.define(f'torchvision::{name}', schema)


class Reddi(torch.optim.Optimizer):
  """FedAdam, FedYogi and FedAdagrad, without bias correction.

  The gradient is the negative mean change of the clients' weights.

  Args:
    params: The weights.
    method: 'FedAdam', 'FedYogi' or 'FedAdagrad'.
    learning_rate: The server's learning rate.
    beta_1: The decay of m, which starts at 0.
    beta_2: The decay of v, which FedAdagrad ignores.
    epsilon: tau, which is added to the root of v. v starts at its square.
  """

  def __init__(
      self, params, method, learning_rate, beta_1=0.9, beta_2=0.99, epsilon=1e-3
  ):
    self._method = method
    super().__init__(
        params,
        {
            'lr': learning_rate,
            'beta_1': beta_1,
            'beta_2': beta_2,
            'epsilon': epsilon,
        },
    )

  def _accumulate(self, v, squared, beta_2):
    if self._method == 'FedAdagrad':
      return v + squared
    if self._method == 'FedYogi':
      return v - (1 - beta_2) * squared * torch.sign(v - squared)
    return beta_2 * v + (1 - beta_2) * squared

  @torch.no_grad()
  def step(self, closure=None):
    """Applies a round's change, which is the negative of each `grad`."""
    del closure  # Unused.
    for h in self.param_groups:
      for x in h['params']:
        if x.grad is None:
          continue
        state = self.state[x]
        if not state:
          state['m'] = torch.zeros_like(x)
          state['v'] = torch.full_like(x, h['epsilon'] ** 2)
        state['m'] = h['beta_1'] * state['m'] - (1 - h['beta_1']) * x.grad
        state['v'] = self._accumulate(state['v'], x.grad**2, h['beta_2'])
        x += h['lr'] * state['m'] / (state['v'].sqrt() + h['epsilon'])

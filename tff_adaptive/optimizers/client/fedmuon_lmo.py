# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedMuon of Takezawa et al.: control variates inside the momentum."""

from typing import Any, Literal

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.client import fedmuon
from tff_adaptive.optimizers.client import scaffold

_MOMENTUM_KEY = 'momentum'


def _normalize(tensor: tf.Tensor) -> tf.Tensor:
  return tf.math.divide_no_nan(tensor, tf.norm(tensor))


class _FedMuonLMO(scaffold.ControlledOptimizer):
  """This FedMuon, see `build_fedmuon_lmo`."""

  name = 'FedMuon (LMO)'
  moment_keys = (_MOMENTUM_KEY, *scaffold.ControlledOptimizer.moment_keys)

  def __init__(
      self, num_clients: int, hparams: Any, orthogonalize: str, ns_steps: int
  ):
    super().__init__(num_clients, hparams)
    self._orthogonalize = fedmuon.choose_orthogonalize(orthogonalize, ns_steps)

  def start_round(self, state, shared, kept, round_num):
    state = super().start_round(state, shared, kept, round_num)
    state[_MOMENTUM_KEY] = kept['control']
    return state

  def new_control(self, state):
    return state[_MOMENTUM_KEY]

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    momentum = vectors.move_towards(state[_MOMENTUM_KEY], g, hparams['alpha'])

    def direct(m, correction):
      m += correction
      if fedmuon.is_matrix(m):
        return self._orthogonalize(m)
      return _normalize(m)

    direction = tf.nest.map_structure(direct, momentum, state['correction'])
    moved = vectors.descend(x, direction, hparams['learning_rate'])
    return {_MOMENTUM_KEY: momentum}, moved


@arguments.checked
def build_fedmuon_lmo(
    num_clients: ranges.Count,
    learning_rate: ranges.NotNegative = 0.01,
    alpha: ranges.ClosedShare = 0.1,
    *,
    orthogonalize: Literal['newton_schulz', 'svd'] = 'newton_schulz',
    ns_steps: ranges.Count = 5,
) -> federated_optimizer.FederatedOptimizer:
  """Builds FedMuon with control variates inside the momentum.

  With c the control of the server and c_i that of client i, 0 at first, and M =
  c_i at the start of the round:

  ```
  M   = (1 - alpha) M + alpha g                               (each local step)
  x   = x - learning_rate * dir(M - c_i + c)
  c   = c + 1 / num_clients * sum over the cohort of (M - c_i)
  c_i = M                                                      (after the round)
  ```

  dir orthogonalizes tensors with two or more axes, as `build_fedmuon` does but
  without its factor, and divides others by their norm. Each tensor of the
  update is thus no longer than the number of steps times `learning_rate`, for a
  matrix with exact steps in the spectral norm.

  The server sends c with the model, and clients return M - c_i with their
  update, which reveals their momentum. The client keeps c_i, the momentum that
  it continues; in a simulation it is in the client state store. A client that
  is not sampled, or not healthy, keeps its c_i. Without `orthogonalize`, and
  with alpha 1 and one step, this would be SCAFFOLD.

  `build_fed_opt` weights the updates equally unless told, as in the paper;
  controls always have equal weights. The paper's server, which leaves the
  models of absent clients in the mean, is `build_fedavg` with the rate cohort /
  num_clients; the default rate is 1, as for SCAFFOLD.

  Args:
    num_clients: The number of all clients, sampled or not.
    learning_rate: The step size. Default 0.01, ours.
    alpha: The weight of the gradient in M. Default 0.1, ours.
    orthogonalize: See `build_fedmuon`. Any number of iterations converges,
      according to the paper.
    ns_steps: See `build_fedmuon`.

  Returns:
    A `FederatedOptimizer` with the hyperparameters `learning_rate` and `alpha`.
    It shares and keeps `control`, with the structure of the weights, in float32
    or float64.

  Example:

    >>> rule = build_fedmuon_lmo(num_clients=10, learning_rate=0.5)
    >>> state = rule.initialize(tf.TensorSpec([2], tf.float32))
    >>> g = tf.constant([0.0, 4.0])
    >>> _, x = rule.next(state, tf.ones([2]), g, value=tf.constant(1.0))
    >>> x.numpy().tolist()
    [1.0, 0.5]

  References:
    Takezawa, Koloskova, Jiang, Stich, FedMuon: Federated Learning with
    Bias-corrected LMO-based Optimization, ICLR 2026,
    https://arxiv.org/abs/2509.26337, Algorithm 1. Deviations: tensors with one
    axis are normalized, as the paper treats matrices alone; the coefficients of
    the iteration are Muon's; the server's rate, above.
  """
  hparams = dict(learning_rate=learning_rate, alpha=alpha)
  return _FedMuonLMO(num_clients, hparams, orthogonalize, ns_steps)

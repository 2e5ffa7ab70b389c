# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedMuon: orthogonalized matrix momentum, shared between clients."""

from collections.abc import Callable
from typing import Any, Literal, Optional

import numpy as np
import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.client import fedadamw
from tff_adaptive.optimizers.client import fedpac

_MOMENTUM_KEY = 'momentum'
# The coefficients of a quintic polynomial that moves singular values near 1.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_SMALLEST_NORM = 1e-7
# Relative to the largest.
_SMALLEST_SINGULAR_VALUE = 1e-7


def orthogonalize_by_svd(matrix: tf.Tensor) -> tf.Tensor:
  """Returns U V^T of the singular values that are not negligible."""
  # In float32, rounding would hide singular values that are not negligible.
  values, left, right = tf.linalg.svd(tf.cast(matrix, tf.float64))
  # Rounding of the matrix makes a singular value of zero as large as this.
  one = np.ones([], matrix.dtype.as_numpy_dtype)
  rounding = min(matrix.shape) * (float(np.nextafter(one, one + one)) - 1.0)
  smallest = max(_SMALLEST_SINGULAR_VALUE, rounding)
  kept = values > smallest * tf.reduce_max(values)
  product = tf.cast(
      tf.matmul(left * tf.cast(kept, left.dtype), right, transpose_b=True),
      matrix.dtype,
  )
  # The comparison above would turn NaN into zeros.
  is_finite = tf.reduce_all(tf.math.is_finite(matrix))
  return tf.where(is_finite, product, float('nan') * tf.ones_like(product))


def orthogonalize_by_newton_schulz(
    matrix: tf.Tensor, num_steps: int
) -> tf.Tensor:
  """Returns a matrix with singular values of about 0.7 to 1.2, by products."""
  is_tall = matrix.shape[0] > matrix.shape[1]
  x = tf.transpose(matrix) if is_tall else matrix
  x /= tf.norm(x) + tf.cast(_SMALLEST_NORM, x.dtype)
  a, b, c = (tf.cast(value, x.dtype) for value in _COEFFICIENTS)
  for _ in range(num_steps):
    gram = tf.matmul(x, x, transpose_b=True)
    x = a * x + tf.matmul(b * gram + c * tf.matmul(gram, gram), x)
  return tf.transpose(x) if is_tall else x


def is_matrix(tensor: tf.Tensor) -> bool:
  """Returns whether a tensor has two or more axes."""
  return tensor.shape.rank >= 2


def _size(tensor: tf.Tensor) -> float:
  """Returns the factor of an orthogonalized tensor."""
  columns = tensor.shape[-1]
  rows = (tensor.shape.num_elements() or 1) / max(columns, 1)
  return max(1.0, columns / rows) ** 0.5


def choose_orthogonalize(
    method: str, num_steps: int
) -> Callable[[tf.Tensor], tf.Tensor]:
  """Returns a function that orthogonalizes tensors with two or more axes.

  Args:
    method: `'newton_schulz'` or `'svd'`.
    num_steps: The number of Newton-Schulz iterations, positive.

  Returns:
    The function. The last axis of a tensor is the columns of its matrix.
  """

  def orthogonalize(tensor):
    if not tensor.shape.num_elements():
      return tensor
    matrix = tf.reshape(tensor, [-1, tensor.shape[-1]])
    if method == 'svd':
      result = orthogonalize_by_svd(matrix)
    else:
      result = orthogonalize_by_newton_schulz(matrix, num_steps)
    return tf.reshape(result, tensor.shape)

  return orthogonalize


class _FedMuon(fedpac.FedPAC):
  """FedMuon, see `build_fedmuon`."""

  name = 'FedMuon'
  preconditioner_keys = (_MOMENTUM_KEY,)
  moment_keys = (
      _MOMENTUM_KEY,
      fedadamw.FIRST_MOMENT_KEY,
      fedadamw.SECOND_MOMENT_KEY,
      *fedpac.FedPAC.moment_keys,
  )

  def __init__(
      self, hparams: Any, orthogonalize: str, ns_steps: int, nesterov: bool
  ):
    super().__init__(hparams)
    self._orthogonalize = choose_orthogonalize(orthogonalize, ns_steps)
    self._nesterov = nesterov

  def precondition(self, state, g, hparams, extra):
    rate = hparams['learning_rate']
    vector_rate = hparams.get('vector_learning_rate', rate)

    def accumulate(m, g):
      if not is_matrix(m):
        return m
      return tf.cast(hparams['beta'], m.dtype) * m + g

    momentum = tf.nest.map_structure(accumulate, state[_MOMENTUM_KEY], g)
    moments, adam = self._adam(state, g, hparams)
    ahead = momentum
    if self._nesterov:
      ahead = tf.nest.map_structure(accumulate, momentum, g)

    def direct(m, a, w):
      u = _size(m) * self._orthogonalize(m) if is_matrix(m) else a
      u += tf.cast(hparams['weight_decay'], u.dtype) * w
      if is_matrix(m):
        return u
      # Scaled such that the step has the size `vector_learning_rate`.
      return tf.cast(tf.math.divide_no_nan(vector_rate, rate), u.dtype) * u

    direction = tf.nest.map_structure(direct, ahead, adam, extra.decaying)
    return {**moments, _MOMENTUM_KEY: momentum}, direction

  def _adam(self, state: Any, g: Any, hparams: Any) -> tuple[Any, Any]:
    """Returns Adam's moments and direction of tensors that are not matrices."""
    m_key, v_key = fedadamw.FIRST_MOMENT_KEY, fedadamw.SECOND_MOMENT_KEY
    beta_1, beta_2 = hparams['beta_1'], hparams['beta_2']
    num_steps = state[vector_optimizer.NUM_STEPS_KEY] + 1
    g = tf.nest.map_structure(
        lambda t: tf.zeros_like(t) if is_matrix(t) else t, g
    )
    squares = tf.nest.map_structure(tf.square, g)
    moments = {
        m_key: vectors.average(beta_1, state[m_key], g),
        v_key: vectors.average(beta_2, state[v_key], squares),
    }
    root = tf.sqrt(vectors.complement(beta_2, num_steps))
    direction = vectors.over_root(
        moments[m_key], moments[v_key], hparams['epsilon'], root
    )
    scale = 1.0 / vectors.complement(beta_1, num_steps)
    return moments, tf.nest.map_structure(
        lambda u: tf.cast(scale, u.dtype) * u, direction
    )


@arguments.checked
def build_fedmuon(
    learning_rate: ranges.NotNegative = 0.01,
    alpha: ranges.ClosedShare = 0.5,
    beta: ranges.Share = 0.95,
    weight_decay: ranges.NotNegative = 0.01,
    vector_learning_rate: Optional[ranges.NotNegative] = None,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.95,
    epsilon: ranges.NotNegative = 1e-10,
    *,
    orthogonalize: Literal['newton_schulz', 'svd'] = 'newton_schulz',
    ns_steps: ranges.Count = 5,
    nesterov: bool = False,
) -> federated_optimizer.FederatedOptimizer:
  """Builds FedMuon's client rule.

  A client starts the round with the momentum M and the mean direction G that
  the server sends, 0 at first. A tensor with two or more axes is a matrix whose
  columns are its last axis. In each local step, with g its gradient:

  ```
  M_i = beta M_i + g                                      (M at the first step)
  u   = sqrt(max(1, columns / rows)) * orthogonalize(M_i)
                                              (of g + beta M_i with `nesterov`)
  x   = x - learning_rate * ((1 - alpha) (u + weight_decay x) + alpha G)
  ```

  For other tensors u is Adam's direction, with bias correction and a state that
  is reset in every round, and `vector_learning_rate` is the rate of the first
  summand. The server averages M_i to M, and G = -D / (K learning_rate) with D
  the mean update and K the mean number of steps. Clients receive M and G
  besides the model, and send M_i and their update twice, once for G.

  Args:
    learning_rate: The step size. Default 0.01, ours.
    alpha: The weight of G. Default 0.5, as in the paper.
    beta: The decay rate of M. Default 0.95.
    weight_decay: The strength of decoupled weight decay. Default 0.01.
    vector_learning_rate: The learning rate of tensors that are not matrices;
      neither schedules nor FedHyper change it, but at a `learning_rate` of 0
      nothing moves. Default `None`: `learning_rate`.
    beta_1: The decay rate of Adam's m. Default 0.9.
    beta_2: The decay rate of Adam's v. Default 0.95.
    epsilon: Added to Adam's root. Default 1e-10.
    orthogonalize: Whether to use `ns_steps` Newton-Schulz iterations
      (`'newton_schulz'`, the default and as in Muon), which leave singular
      values of about 0.7 to 1.2, or an exact decomposition (`'svd'`).
    ns_steps: The number of Newton-Schulz iterations. Default 5, as in Muon.
      Unused with `'svd'`.
    nesterov: Whether to orthogonalize g + beta M_i, as the published code and
      FedPAC with Muon do, whose average of the gradients differs from M_i by a
      factor that is forgotten. Default False, as in the paper.

  Returns:
    A `FederatedOptimizer` whose hyperparameters are the numeric arguments but
    `ns_steps`. It shares `momentum`, M, and `global_direction`, G, with the
    structure of the weights, in float32 or float64, and `num_steps`, a scalar,
    the sum over all rounds of the mean number of steps of a client.

  Example:

    >>> rule = build_fedmuon(
    ...     learning_rate=0.5, alpha=0.0, weight_decay=0.0, orthogonalize='svd')
    >>> state = rule.initialize(tf.TensorSpec([2, 2], tf.float32))
    >>> x = tf.zeros([2, 2])
    >>> g = tf.linalg.diag([3.0, 0.1])
    >>> _, x = rule.next(state, x, g, value=tf.constant(1.0))
    >>> x.numpy().round(4).tolist()
    [[-0.5, 0.0], [0.0, -0.5]]

  References:
    Liu et al., FedMuon: Accelerating Federated Learning with Matrix
    Orthogonalization, 2025, https://arxiv.org/abs/2510.27403, Algorithm 1.
    Deviations: Nesterov momentum, as in the published code, is an option, and
    uploads are not compressed to a low rank. FedPAC with Muon: see
    `build_fedpac_soap`.
  """
  hparams = dict(
      learning_rate=learning_rate,
      alpha=alpha,
      beta=beta,
      weight_decay=weight_decay,
      vector_learning_rate=vector_learning_rate,
      beta_1=beta_1,
      beta_2=beta_2,
      epsilon=epsilon,
  )
  return _FedMuon(hparams, orthogonalize, ns_steps, nesterov)

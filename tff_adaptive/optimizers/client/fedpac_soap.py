# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedPAC with SOAP: Adam in the eigenbases of shared Gram matrices."""

import collections
from collections.abc import Sequence
from typing import Any, Literal

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.client import fedpac

_FIRST_MOMENT_KEY = 'first_moment'
_SECOND_MOMENT_KEY = 'second_moment'
# A_j and Q_j of all axes of all tensors, one after another.
_GRAM_KEY = 'gram'
_BASES_KEY = 'bases'
_WAIT_KEY = 'wait'
_NUM_MOVES_KEY = 'num_moves'


def _gram(tensor: tf.Tensor, axis: int) -> tf.Tensor:
  """Returns the Gram matrix of a tensor's slices along an axis."""
  others = [a for a in range(tensor.shape.rank) if a != axis]
  return tf.tensordot(tensor, tensor, [others, others])


def _eigenvectors(matrix: tf.Tensor) -> tf.Tensor:
  """Returns the eigenvectors as columns, from the largest eigenvalue down."""
  # The decomposition refuses what is not finite, which must show.
  is_finite = tf.reduce_all(tf.math.is_finite(matrix))
  symmetric = tf.where(is_finite, matrix, tf.zeros_like(matrix))
  # Noise leaves it unsymmetric.
  symmetric = 0.5 * (symmetric + tf.transpose(symmetric))
  _, found = tf.linalg.eigh(tf.cast(symmetric, tf.float64))
  found = tf.cast(tf.reverse(found, [1]), matrix.dtype)
  return tf.where(is_finite, found, float('nan'))


class _FedPACSOAP(fedpac.FedPAC):
  """FedPAC with SOAP, see `build_fedpac_soap`."""

  name = 'FedPAC with SOAP'
  preconditioner_keys = (_GRAM_KEY,)
  moment_keys = (
      _FIRST_MOMENT_KEY,
      _SECOND_MOMENT_KEY,
      *fedpac.FedPAC.moment_keys,
  )

  def __init__(
      self,
      hparams: Any,
      frequency: int,
      cold_steps: int,
      skip: str,
      max_dimension: int,
  ):
    super().__init__(hparams)
    self._frequency = frequency
    self._waits = (cold_steps, int(skip == 'always'))
    self._max_dimension = max_dimension

  def _axes(self, tensor: Any) -> list[int]:
    """Returns the axes that have a matrix."""
    sizes = tensor.shape.as_list()
    if len(sizes) < 2:
      return []
    return [a for a, n in enumerate(sizes) if 0 < n <= self._max_dimension]

  def _fill(self, specs: Any) -> tuple[tf.Tensor, ...]:
    """Returns the matrices of all axes of all tensors, zeros."""
    leaves = tf.nest.flatten(vectors.moment_specs(specs))
    return tuple(
        tf.zeros([s.shape[axis]] * 2, s.dtype)
        for s in leaves
        for axis in self._axes(s)
    )

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict(
        [
            (_WAIT_KEY, tf.constant(self._waits[0])),
            (_NUM_MOVES_KEY, tf.zeros([], tf.int32)),
            (_GRAM_KEY, self._fill(specs)),
            (_BASES_KEY, self._fill(specs)),
        ]
    )

  def initialize_preconditioner(self, specs):
    return {_GRAM_KEY: self._fill(specs)}

  def start_round(self, state, shared, kept, round_num):
    state = super().start_round(state, shared, kept, round_num)
    first, later = self._waits
    state[_WAIT_KEY] = tf.where(tf.equal(round_num, 0), first, later)
    return state

  def precondition(self, state, g, hparams, extra):
    moves = state[vector_optimizer.NUM_STEPS_KEY] >= state[_WAIT_KEY]
    num_moves = state[_NUM_MOVES_KEY]
    is_due = moves & tf.equal(num_moves % self._frequency, 0)
    bases = self._bases(state, is_due)
    num_moves += tf.cast(moves, tf.int32)
    # Turning is linear: m is held as it is, and turned with each new basis.
    m = vectors.average(hparams['beta_1'], state[_FIRST_MOMENT_KEY], g)
    squares = tf.nest.map_structure(tf.square, self._turn(g, bases, 0))
    v = vectors.average(hparams['beta_2'], state[_SECOND_MOMENT_KEY], squares)
    power = tf.maximum(num_moves, 1)
    scale = tf.sqrt(vectors.complement(hparams['beta_2'], power))
    scale /= vectors.complement(hparams['beta_1'], power)
    adam = vectors.over_root(self._turn(m, bases, 0), v, hparams['epsilon'])
    adam = vectors.combine(
        scale,
        self._turn(adam, bases, 1),
        hparams['weight_decay'],
        extra.decaying,
    )
    # A step that waits must not hide that the client fails.
    still = tf.nest.map_structure(
        lambda t: tf.where(tf.math.is_finite(t), tf.zeros_like(t), t), g
    )
    changed = {
        _FIRST_MOMENT_KEY: vectors.choose(moves, m, state[_FIRST_MOMENT_KEY]),
        _SECOND_MOMENT_KEY: vectors.choose(moves, v, state[_SECOND_MOMENT_KEY]),
        _NUM_MOVES_KEY: num_moves,
        _BASES_KEY: bases,
        _GRAM_KEY: vectors.average(
            hparams['shampoo_beta'], state[_GRAM_KEY], self._grams(g)
        ),
    }
    return changed, vectors.choose(moves, adam, still)

  def _bases(self, state: Any, is_due: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Returns the eigenvectors of the Gram matrices, those held if not due."""
    if not state[_GRAM_KEY]:
      return ()
    return tuple(
        tf.cond(
            is_due,
            lambda: [_eigenvectors(matrix) for matrix in state[_GRAM_KEY]],
            lambda: [tf.identity(basis) for basis in state[_BASES_KEY]],
        )
    )

  def _turn(self, structure: Any, bases: Sequence[tf.Tensor], by: int) -> Any:
    """Returns tensors turned into the bases (by 0) or back (by 1)."""
    remaining = iter(bases)

    def turn(tensor):
      for axis in self._axes(tensor):
        turned = tf.tensordot(next(remaining), tensor, [[by], [axis]])
        order = list(range(1, tensor.shape.rank))
        order.insert(axis, 0)
        tensor = tf.transpose(turned, order)
      return tensor

    return tf.nest.map_structure(turn, structure)

  def _grams(self, structure: Any) -> tuple[tf.Tensor, ...]:
    """Returns the Gram matrices of all axes of all tensors."""
    leaves = tf.nest.flatten(structure)
    return tuple(_gram(t, axis) for t in leaves for axis in self._axes(t))


@arguments.checked
def build_fedpac_soap(
    learning_rate: ranges.NotNegative = 3e-3,
    alpha: ranges.ClosedShare = 0.5,
    beta_1: ranges.Share = 0.95,
    beta_2: ranges.Share = 0.95,
    shampoo_beta: ranges.Share = 0.95,
    weight_decay: ranges.NotNegative = 0.01,
    epsilon: ranges.NotNegative = 1e-8,
    *,
    frequency: ranges.Count = 10,
    cold_steps: ranges.Count = 1,
    skip: Literal['cold', 'always'] = 'cold',
    max_dimension: ranges.Count = 10_000,
) -> federated_optimizer.FederatedOptimizer:
  """Builds the client rule of FedPAC with SOAP.

  A tensor with two or more axes has for each axis j a matrix A_j, the decaying
  mean of the Gram matrices of its gradients along that axis. A client starts
  the round with m = v = 0, s = 0, and with A_j and the mean direction G of the
  last round, 0 at first. With wait = `cold_steps` in the first round, and in
  later ones 0, or 1 with `skip='always'`:

  ```
  k < wait:   u = 0, without weight decay
  k >= wait:  Q_j = eigenvectors of A_j          (every `frequency` such steps)
              s = s + 1,   m = beta_1 m + (1 - beta_1) g
              v = beta_2 v + (1 - beta_2) (g turned into the bases Q_j)^2
              u = sqrt(1 - beta_2^s) / (1 - beta_1^s)
                  (m turned into the bases) / (sqrt(v) + epsilon), turned back
  x   = x - learning_rate * ((1 - alpha) (u + weight_decay x) + alpha G)
  A_j = shampoo_beta A_j + (1 - shampoo_beta) gram_j(g)
  ```

  A vector has no matrix: its u is Adam's direction. The server averages A_j,
  and G = -D / (K learning_rate) with D the mean update and K the mean number of
  steps. With alpha = 1 the model never moves.

  Clients receive A_j and G besides the model, and send A_j and their update
  twice, once for G: for each axis of length n, n^2 numbers more than the
  update. The decompositions cost n^3, at the start of a round and each
  `frequency` steps. Matrices of few examples are singular, and the bases are
  arbitrary in their null space: a larger `cold_steps`, and an `epsilon` of
  1e-3, make the result reproducible. With a tiny epsilon, rounding errors along
  a direction without gradient become full steps; the sum over the classes of a
  softmax layer is such a direction.

  Args:
    learning_rate: The step size. Default 3e-3.
    alpha: The weight of G, beta of the paper. Default 0.5, as there.
    beta_1: The decay rate of m. Default 0.95.
    beta_2: The decay rate of v. Default 0.95.
    shampoo_beta: The decay rate of A_j. Default 0.95.
    weight_decay: The strength of decoupled weight decay. Default 0.01.
    epsilon: Added to the root. Default 1e-8.
    frequency: The number of steps between decompositions. Default 10.
    cold_steps: The number of steps in the first round that only gather A_j.
      Default 1.
    skip: Whether a client skips the first step of later rounds, too
      (`'always'`, as in the published code). Default `'cold'`.
    max_dimension: The largest length of an axis that has a matrix. Default
      10,000, as in the published code.

  Returns:
    A `FederatedOptimizer` whose hyperparameters are the arguments before
    `frequency`. It shares `gram`, all A_j in a tuple, unless there are none;
    `global_direction`, G, with the structure of the weights; and `num_steps`, a
    scalar.

  Example:

    >>> rule = build_fedpac_soap(
    ...     learning_rate=0.5, alpha=0.0, weight_decay=0.0)
    >>> state = rule.initialize(tf.TensorSpec([2, 2], tf.float32))
    >>> x, g = tf.zeros([2, 2]), tf.constant([[3.0, 0.0], [0.0, 0.1]])
    >>> for _ in range(2):  # The first step waits.
    ...   state, x = rule.next(state, x, g, value=tf.constant(1.0))
    >>> x.numpy().round(2).tolist()
    [[-0.5, 0.0], [0.0, -0.5]]

  References:
    Liu, Shang, Liu, Liu, An, Liu, Taming Preconditioner Drift: Unlocking the
    Potential of Second-Order Optimizers for Federated Learning on Non-IID Data,
    ICML 2026, https://arxiv.org/abs/2602.19271, with published code (commit
    1011fd7, `main_FedPAC.py`, `soap.py`); Vyas et al., SOAP: Improving and
    Stabilizing Shampoo using Adam, ICLR 2025, https://arxiv.org/abs/2409.11321.
    Deviations: bases are eigenvectors, to which the code takes one step of a
    power iteration; it skips the first step of every round, and sometimes does
    not restore A_j. Means have the weights of `build_fed_opt`, and G the mean
    number of steps. The correction, `--gamma` there, weighs 0.15 by default.
  """
  hparams = dict(
      learning_rate=learning_rate,
      alpha=alpha,
      beta_1=beta_1,
      beta_2=beta_2,
      shampoo_beta=shampoo_beta,
      weight_decay=weight_decay,
      epsilon=epsilon,
  )
  return _FedPACSOAP(hparams, frequency, cold_steps, skip, max_dimension)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""SM3: Adagrad with one accumulator per slice of a tensor."""

import collections
import functools
from typing import Any, Literal

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_COVERS_KEY = 'accumulators'
_PRECONDITIONER_KEY = 'preconditioner'


def _shape(tensor: Any) -> list[int]:
  """Returns the shape; that of a scalar has one axis."""
  return tensor.shape.as_list() or [1]


def _across(cover: tf.Tensor, axis: int, rank: int) -> tf.Tensor:
  """Returns a cover of an axis, reshaped to broadcast over the tensor."""
  return tf.reshape(cover, [-1 if a == axis else 1 for a in range(rank)])


def _largest(tensor: tf.Tensor, axis: int) -> tf.Tensor:
  """Returns the largest entry of each slice of an axis."""
  others = [a for a in range(tensor.shape.rank) if a != axis]
  # An empty tensor has no largest entry; 0 is where accumulators start.
  return tf.maximum(tf.reduce_max(tensor, others), 0.0) if others else tensor


class _SM3(vector_optimizer.VectorOptimizer):
  """SM3, see `build_sm3`."""

  name = 'SM3'

  def __init__(self, hparams: Any, version: str, delay: int):
    super().__init__(hparams)
    self._is_second = version == 'ii'
    self._delay = delay
    if delay > 1:
      # Between refreshes, the preconditioner does not follow from the covers.
      self.moment_keys = (_PRECONDITIONER_KEY,)

  def initialize_rule(self, specs, dtype):
    covers = tuple(
        tuple(tf.zeros([size], vectors.step_dtype(s)) for size in _shape(s))
        for s in tf.nest.flatten(specs)
    )
    return collections.OrderedDict([(_COVERS_KEY, covers)])

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    leaves = tf.nest.flatten(g)
    _check_covers(leaves, state[_COVERS_KEY])
    covers, roots = [], []
    for leaf, held in zip(leaves, state[_COVERS_KEY]):
      cover, nu = self._accumulate(tf.square(leaf), held)
      covers.append(cover)
      roots.append(nu)
    changed = {_COVERS_KEY: tuple(covers)}
    nus = tf.nest.pack_sequence_as(g, roots)
    if self._delay > 1:
      refreshes = tf.equal(
          state[vector_optimizer.NUM_STEPS_KEY] % self._delay, 0
      )
      choose = functools.partial(tf.where, refreshes)
      changed[_COVERS_KEY] = tf.nest.map_structure(
          choose, changed[_COVERS_KEY], state[_COVERS_KEY]
      )
      nus = tf.nest.map_structure(choose, nus, state[_PRECONDITIONER_KEY])
      changed[_PRECONDITIONER_KEY] = nus

    def descend(w, g, nu):
      rate, epsilon = (
          tf.cast(hparams[key], w.dtype) for key in ('learning_rate', 'epsilon')
      )
      return w - rate * tf.math.divide_no_nan(g, tf.sqrt(nu) + epsilon)

    return changed, tf.nest.map_structure(descend, x, g, nus)

  def _accumulate(self, squares: tf.Tensor, held: Any) -> tuple[Any, Any]:
    """Returns the covers of a tensor with new squares in them, and nu."""
    shape = squares.shape
    squares = tf.reshape(squares, _shape(squares))
    rank = squares.shape.rank
    axes = range(rank)

    def smallest(covers):
      spread = [_across(cover, a, rank) for a, cover in zip(axes, covers)]
      return functools.reduce(tf.minimum, spread)

    if self._is_second:
      nu = smallest(held) + squares
      covers = tuple(_largest(nu, axis) for axis in axes)
    else:
      covers = tuple(a + _largest(squares, i) for i, a in zip(axes, held))
      nu = smallest(covers)
    # `minimum` may drop a NaN.
    nu = tf.where(tf.math.is_finite(squares), nu, squares)
    return covers, tf.reshape(nu, shape)


def _check_covers(leaves: list[tf.Tensor], covers: Any) -> None:
  expected = [_shape(leaf) for leaf in leaves]
  found = [[c.shape[0] for c in held] for held in covers]
  if expected != found:
    raise ValueError(
        f'The optimizer state `{_COVERS_KEY}` must have one entry per slice of '
        f'the weights, of shapes {expected}, found {found}. Was the state made '
        'by `initialize` for another model?'
    )


@arguments.checked
def build_sm3(
    learning_rate: ranges.NotNegative = 0.1,
    epsilon: ranges.NotNegative = 0.01,
    *,
    version: Literal['ii', 'i'] = 'ii',
    delay: ranges.Count = 1,
) -> optimizer.ExtraArgsOptimizer:
  """Builds SM3, Adagrad with the memory of SGD.

  For each tensor it keeps one number a_j[i] per slice i of each axis j, 0 at
  first. With g the gradient of a local step:

  ```
  'ii':  nu     = min_j a_j + g^2              (each a_j spread over its slices)
         a_j[i] = max of nu over slice i
  'i':   a_j[i] = a_j[i] + max of g^2 over slice i
         nu     = min_j a_j
  x = x - learning_rate * g / (sqrt(nu) + epsilon)
  ```

  For a vector nu is Adagrad's sum of squares. For other tensors it is at least
  that, and closer to it in version ii. The state is reset in every round, and
  the client sends nothing but its model update.

  With an adaptive server rule, such as `tff_adaptive.optimizers.build_fedadam`,
  this is FedAda2++. FedAda2 is `build_adagrad` or `build_adam` on the clients
  with such a rule.

  Args:
    learning_rate: The step size. Default 0.1, ours.
    epsilon: Added to the root. Default 0.01, ours.
    version: `'ii'`, the default, or `'i'`, as in FedAda2's published code.
    delay: The number of local steps per refresh of nu. Default 1. With more, nu
      is part of the state.

  Returns:
    An `ExtraArgsOptimizer` with the hyperparameters `learning_rate` and
    `epsilon`.

  Example:

    >>> optimizer = build_sm3(learning_rate=1.0, epsilon=0.0)
    >>> state = optimizer.initialize(tf.TensorSpec([2, 2], tf.float32))
    >>> g = tf.constant([[3.0, 1.0], [1.0, 1.0]])
    >>> state, _ = optimizer.next(state, tf.zeros([2, 2]), g)
    >>> [a.numpy().tolist() for a in state['accumulators'][0]]
    [[9.0, 1.0], [9.0, 1.0]]

  References:
    Anil, Gupta, Koren, Singer, Memory-Efficient Adaptive Optimization, NeurIPS
    2019, https://arxiv.org/abs/1901.11150, Algorithms SM3-I and SM3-II; Lee,
    Sharma, Zaheer, Li, Efficient Adaptive Federated Optimization, 2024,
    https://arxiv.org/abs/2410.18117, Algorithm 1. Deviation: epsilon is added,
    as in FedAda2, whose published code counts `delay` in epochs.
  """
  return _SM3(
      dict(learning_rate=learning_rate, epsilon=epsilon), version, delay
  )

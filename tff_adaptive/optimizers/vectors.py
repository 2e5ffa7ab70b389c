# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on the flat vector of all weights, held as a structure.

Norms and inner products are over the whole vector, never per tensor.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf


def step_dtype(specs: Any) -> tf.DType:
  """Returns the dtype of norms and step sizes.

  Args:
    specs: A structure of tensors or `tf.TensorSpec`s.

  Returns:
    float64 if any leaf is float64, else float32, because in bfloat16 and
    float16 sums of squares have too few digits and overflow early.
  """
  dtypes = [leaf.dtype for leaf in tf.nest.flatten(specs)]
  return tf.float64 if tf.float64 in dtypes else tf.float32


def moment_specs(specs: Any) -> Any:
  """Returns the specs of moments, one tensor per weight.

  Moments of weights in half precision are in float32: in half precision most
  decay rates round to 1, and an average would never move.

  Args:
    specs: A structure of tensors or `tf.TensorSpec`s, the weights.

  Returns:
    A structure like it of `tf.TensorSpec`s.
  """
  return tf.nest.map_structure(
      lambda s: tf.TensorSpec(s.shape, step_dtype(s)), specs
  )


def fill_moments(specs: Any, value: float = 0.0) -> Any:
  """Returns moments filled with `value`, for weights of the given specs."""
  return tf.nest.map_structure(
      lambda s: tf.fill(s.shape, tf.cast(value, s.dtype)), moment_specs(specs)
  )


def zeros(specs: Any) -> Any:
  """Returns zeros like the given specs or tensors."""
  return tf.nest.map_structure(lambda s: tf.zeros(s.shape, s.dtype), specs)


def non_negative(moments: Any) -> Any:
  """Returns the moments with negative entries, an effect of noise, set to 0."""
  return tf.nest.map_structure(lambda v: tf.maximum(v, 0.0), moments)


def norm(structure: Any, dtype: tf.DType) -> tf.Tensor:
  """Returns the Euclidean norm of all leaves together, without `None`."""
  squares = [
      tf.reduce_sum(tf.square(tf.cast(leaf, dtype)))
      for leaf in tf.nest.flatten(structure)
      if leaf is not None
  ]
  return tf.sqrt(tf.add_n(squares)) if squares else tf.zeros([], dtype)


def ratio(numerator: tf.Tensor, denominator: tf.Tensor) -> tf.Tensor:
  """Returns a quotient of scalars: 0 over 0, and NaN over infinity.

  Over infinity a step would be 0, which hides that the client fails.
  """
  quotient = tf.math.divide_no_nan(numerator, denominator)
  is_finite = tf.logical_not(tf.math.is_inf(denominator))
  return tf.where(is_finite, quotient, float('nan'))


# A gradient with a smaller norm is rounding error, not a direction.
_NEGLIGIBLE_NORM = 1e-8


def is_negligible(gradient_norm: tf.Tensor) -> tf.Tensor:
  """Returns whether a gradient is too small to follow; false for NaN."""
  return gradient_norm < _NEGLIGIBLE_NORM


def is_finite(loss: tf.Tensor, gradient_norm: tf.Tensor) -> tf.Tensor:
  """Returns whether the loss and the gradient's norm are finite.

  Comparisons and minima may replace a NaN by a number and so hide that a client
  failed. A rule therefore sets its step size to NaN where this is false.

  Args:
    loss: The loss at the current point, a scalar.
    gradient_norm: The norm of the gradient there, a scalar.

  Returns:
    A boolean scalar.
  """
  return tf.math.is_finite(loss) & tf.math.is_finite(gradient_norm)


def grow(
    step_size: tf.Tensor, gamma: tf.Tensor, batches_per_epoch: tf.Tensor
) -> tf.Tensor:
  """Returns a step size after one step of growth by `gamma` per epoch."""
  return step_size * tf.pow(gamma, 1.0 / batches_per_epoch)


def inner(left: Any, right: Any, dtype: tf.DType) -> tf.Tensor:
  """Returns the inner product of two vectors."""
  products = [
      tf.reduce_sum(tf.cast(a, dtype) * tf.cast(b, dtype))
      for a, b in zip(tf.nest.flatten(left), tf.nest.flatten(right))
  ]
  return tf.add_n(products) if products else tf.zeros([], dtype)


def combine(a: Any, left: Any, b: Any, right: Any) -> Any:
  """Returns `a * left + b * right` for scalars `a` and `b`."""
  return tf.nest.map_structure(
      lambda x, y: tf.cast(a, x.dtype) * x + tf.cast(b, y.dtype) * y,
      left,
      right,
  )


def divide(structure: Any, count: Any) -> Any:
  """Returns a vector divided by a scalar."""
  return tf.nest.map_structure(lambda t: t / tf.cast(count, t.dtype), structure)


def move_towards(left: Any, right: Any, share: Any) -> Any:
  """Returns `left + share * (right - left)` for a scalar `share`."""
  return tf.nest.map_structure(
      lambda x, y: x + tf.cast(share, x.dtype) * (y - x), left, right
  )


def choose(condition: tf.Tensor, left: Any, right: Any) -> Any:
  """Returns `left` if a boolean scalar is true, else `right`."""
  return tf.nest.map_structure(
      lambda x, y: tf.where(condition, x, y), left, right
  )


def complement(share: tf.Tensor, power: Any = 1) -> tf.Tensor:
  """Returns 1 - share^power, as exact as the decimal that `share` stands for.

  Hyperparameters are float32, in which 1 - 0.999 has a relative error of 1e-5.
  Rounding the share to seven decimal places recovers the intended number.

  Args:
    share: A scalar in [0, 1].
    power: A scalar. Default 1.

  Returns:
    A scalar of the dtype of `share`.
  """
  exact = tf.round(tf.cast(share, tf.float64) * 1e7) / 1e7
  return tf.cast(1.0 - exact ** tf.cast(power, tf.float64), share.dtype)


def average(share: tf.Tensor, mean: Any, new: Any) -> Any:
  """Returns `share * mean + (1 - share) * new` for a hyperparameter `share`."""
  return combine(share, mean, complement(share), new)


def over_root(m: Any, v: Any, epsilon: Any, root: Any = 1.0) -> Any:
  """Returns `m / (sqrt(v) / root + epsilon)`, and 0 for 0 / 0.

  Args:
    m: A structure of tensors.
    v: A structure like it.
    epsilon: A scalar.
    root: The root of the bias correction of `v`, a scalar. Default 1.

  Returns:
    A structure like `m`.
  """

  def divide(m, v):
    divisor = tf.sqrt(v) / tf.cast(root, v.dtype) + tf.cast(epsilon, v.dtype)
    return tf.math.divide_no_nan(m, divisor)

  return tf.nest.map_structure(divide, m, v)


def all_finite(structure: Any) -> tf.Tensor:
  """Returns whether all floating point entries are finite, a boolean scalar."""
  checks = [
      tf.reduce_all(tf.math.is_finite(leaf))
      for leaf in tf.nest.flatten(structure)
      if leaf.dtype.is_floating
  ]
  return tf.reduce_all(checks) if checks else tf.constant(True)


def with_zeros(weights: Any, gradients: Any) -> Any:
  """Returns the gradients with zeros in place of `None`."""
  return tf.nest.map_structure(
      lambda w, g: tf.zeros_like(w) if g is None else g, weights, gradients
  )


def descend(weights: Any, gradients: Any, step_size: tf.Tensor) -> Any:
  """Returns `weights - step_size * gradients`, updating only rows of slices.

  Args:
    weights: A structure of tensors.
    gradients: A structure like it, of tensors, `tf.IndexedSlices` and `None`;
      a weight whose gradient is `None` does not move.
    step_size: A scalar.

  Returns:
    The new weights.
  """

  def step(weight, gradient):
    if gradient is None:
      return weight
    factor = tf.cast(step_size, weight.dtype)
    if isinstance(gradient, tf.IndexedSlices):
      return tf.tensor_scatter_nd_sub(
          weight, gradient.indices[:, tf.newaxis], factor * gradient.values
      )
    return weight - factor * gradient

  return tf.nest.map_structure(step, weights, gradients)


# Maps (moments, x, g, hparams) of a tensor, moments and hparams by name, to its
# new moments and weights.
TensorStep = Callable[..., tuple[dict[str, tf.Tensor], tf.Tensor]]

# Smaller tensors stay in a core's cache between ops. A fused kernel gains
# nothing there, and compiling it takes 0.1 s per shape.
_MIN_ELEMENTS = 65_536


def _is_fused(weight: tf.Tensor) -> bool:
  """Returns whether XLA fuses the step of a tensor into one kernel.

  Eager steps would compile it every time. On a GPU, passes over memory are
  cheap and XLA needs a compiler that may not be installed.
  """
  num_elements = weight.shape.num_elements()
  return (
      num_elements is not None
      and num_elements >= _MIN_ELEMENTS
      and not tf.executing_eagerly()
      and not tf.config.list_physical_devices('GPU')
  )


def step_tensors(
    step_fn: TensorStep,
    moments: Mapping[str, Any],
    x: Any,
    g: Any,
    hparams: Mapping[str, tf.Tensor],
) -> tuple[dict[str, Any], Any]:
  """Takes a step that treats every coordinate alike, tensor by tensor.

  On a CPU the step of a large tensor is one kernel, which passes over memory
  once.

  Args:
    step_fn: The step of one tensor: maps its parts of the other arguments to
      its new moments, by name, and its new weights.
    moments: Structures like `x`, by name.
    x: The weights.
    g: The gradients.
    hparams: Scalars by name; each tensor's step gets them in its dtype.

  Returns:
    The new moments, by name, and the new weights.
  """
  fused_fn = tf.function(step_fn, autograph=False, jit_compile=True)

  def step(w, g, *held):
    fn = fused_fn if _is_fused(w) else step_fn
    cast = {name: tf.cast(scalar, w.dtype) for name, scalar in hparams.items()}
    return fn(dict(zip(moments, held)), w, g, cast)

  structures = (x, g, *moments.values())
  taken = [step(*leaves) for leaves in zip(*map(tf.nest.flatten, structures))]
  changed = {
      name: tf.nest.pack_sequence_as(x, [held[name] for held, _ in taken])
      for name in (taken[0][0] if taken else ())
  }
  return changed, tf.nest.pack_sequence_as(x, [moved for _, moved in taken])

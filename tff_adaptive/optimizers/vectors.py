# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on the flat vector of all weights, held as a structure.

Norms and inner products are over the whole vector, never per tensor.
"""

from collections.abc import Callable, Sequence
import functools
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


def extrapolate(weights: Any, gradients: Any, step_size: tf.Tensor) -> Any:
  """Returns `weights - step_size * gradients`, for steps of any size.

  The product has the dtype of `step_size`, which may exceed float16's range.

  Args:
    weights: A structure of tensors.
    gradients: A structure like it, of tensors.
    step_size: A scalar.
  """
  return tf.nest.map_structure(
      lambda w, g: w
      - tf.cast(step_size * tf.cast(g, step_size.dtype), w.dtype),
      weights,
      gradients,
  )


# Maps (coefficients, w, g, *moments, *constants) of a tensor to (w, *moments).
StepFn = Callable[..., tuple[tf.Tensor, ...]]

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
    step_fn: StepFn,
    coefficients_fn: Callable[[tf.DType], Any],
    weights: Any,
    gradients: Any,
    moments: Sequence[Any],
    constants: Sequence[Any] = (),
) -> tuple[Any, ...]:
  """Takes a step of a rule that treats every coordinate alike.

  Args:
    step_fn: The step of one tensor: maps the coefficients, the weights, the
      gradient, the moments and the constants, all in the dtype of the moments,
      to the new weights and the new moments.
    coefficients_fn: Maps that dtype to a structure of scalars, the same for all
      coordinates.
    weights: A structure of tensors.
    gradients: A structure like it; where it is `None`, weight and moments do
      not change.
    moments: Structures like it that a step updates.
    constants: Structures like it that a step only reads.

  Returns:
    The new weights and the new moments, structures like `weights`.
  """
  coefficients = functools.cache(coefficients_fn)
  fused_fn = tf.function(step_fn, autograph=False, jit_compile=True)

  def step(w, g, *held):
    if g is None:
      return w, *held[: len(moments)]
    dtype = step_dtype(w)
    fn = fused_fn if _is_fused(w) else step_fn
    new_w, *new_moments = fn(
        coefficients(dtype), tf.cast(w, dtype), tf.cast(g, dtype), *held
    )
    return tf.cast(new_w, w.dtype), *new_moments

  structures = (weights, gradients, *moments, *constants)
  moved = [step(*leaf) for leaf in zip(*map(tf.nest.flatten, structures))]
  columns = zip(*moved) if moved else [()] * (1 + len(moments))
  return tuple(
      tf.nest.pack_sequence_as(weights, list(column)) for column in columns
  )

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops of neural networks in JAX: losses, convolutions, pooling.

XLA's own convolutions inside loops are hundreds of times too slow on a CPU, and
slower than cuDNN's best for the small ones of clients on a GPU. So a
convolution is a product of patches with the kernel, and its gradients are what
JAX derives from that.
"""

import functools
from typing import Any, Optional

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import padding

_PRECISION = lax.Precision.HIGHEST


def has_channels_first(node: lowerings.Node) -> bool:
  """Returns whether images or volumes of a node have their channels first."""
  return node.text('data_format').startswith('NC')


@lowerings.lowers('BiasAdd')
def _bias_add(node, x, bias):
  if has_channels_first(node):
    return x + bias.reshape([-1] + [1] * (np.ndim(x) - 2))
  return x + bias


@lowerings.lowers('BiasAddGrad')
def _bias_add_grad(node, grad):
  channels = 1 if has_channels_first(node) else np.ndim(grad) - 1
  return jnp.sum(
      grad, [axis for axis in range(np.ndim(grad)) if axis != channels]
  )


@lowerings.lowers('SoftmaxCrossEntropyWithLogits')
def _cross_entropy(node, logits, labels):
  del node  # Unused.
  log_probabilities = jax.nn.log_softmax(logits, -1)
  loss = -jnp.sum(labels * log_probabilities, -1)
  return loss, jnp.exp(log_probabilities) - labels


@lowerings.lowers('SparseSoftmaxCrossEntropyWithLogits')
def _sparse_cross_entropy(node, logits, labels):
  del node  # Unused.
  # A label out of range has no one, and gives NaN as on TensorFlow's GPU.
  places = np.arange(logits.shape[-1]).astype(labels.dtype)
  is_label = labels[..., None] == places
  is_valid = (labels >= 0) & (labels < logits.shape[-1])
  log_probabilities = jax.nn.log_softmax(logits, -1)
  loss = -jnp.sum(jnp.where(is_label, log_probabilities, 0), -1)
  backprop = jnp.exp(log_probabilities) - is_label.astype(logits.dtype)
  nan = jnp.asarray(jnp.nan, logits.dtype)
  return (
      jnp.where(is_valid, loss, nan),
      jnp.where(is_valid[..., None], backprop, nan),
  )


def _check_layout(node: lowerings.Node) -> None:
  if has_channels_first(node):
    raise lowerings.NoLoweringError(f'{node.op} has its channels first')


def _padding_of(node, sizes, windows, strides, dilations) -> list[Any]:
  """Returns the padding before and after each spatial axis."""
  kind = node.text('padding')
  if kind == 'EXPLICIT':
    flat = node.integers('explicit_paddings')
    return [(flat[2], flat[3]), (flat[4], flat[5])]
  if kind == 'VALID':
    return [(0, 0), (0, 0)]
  paddings = []
  for size, window, stride, dilation in zip(sizes, windows, strides, dilations):
    num_outputs = -(-size // stride)
    covered = (num_outputs - 1) * stride + (window - 1) * dilation + 1
    total = max(covered - size, 0)
    paddings.append((total // 2, total - total // 2))
  return paddings


def _patches(node: lowerings.Node, x: Any, window: tuple[int, int]) -> Any:
  """Returns the patches of images.

  Args:
    node: A convolution or a pooling.
    x: The images, [examples, height, width, channels].
    window: The height and width of the kernel.

  Returns:
    For each place of the kernel, row by row, the images' entries that it meets:
    a list of [examples, output height, output width, channels].
  """
  strides = node.integers('strides')[1:3]
  dilations = (node.integers('dilations') or [1, 1, 1, 1])[1:3]
  return _patches_of(
      x,
      window,
      strides,
      dilations,
      _padding_of(node, x.shape[1:3], window, strides, dilations),
      0,
  )


def _patches_of(x, window, strides, dilations, paddings, filling) -> list[Any]:
  if np.any(paddings):
    x = jnp.pad(x, [(0, 0), *paddings, (0, 0)], constant_values=filling)
  counts = [
      (size - (length - 1) * dilation - 1) // stride + 1
      for size, length, stride, dilation in zip(
          x.shape[1:3], window, strides, dilations
      )
  ]
  found = []
  for row in range(window[0]):
    for column in range(window[1]):
      begins = row * dilations[0], column * dilations[1]
      spans = [
          slice(begin, begin + (count - 1) * stride + 1, stride)
          for begin, count, stride in zip(begins, counts, strides)
      ]
      found.append(x[:, spans[0], spans[1]])
  return found


def _convolve(node: lowerings.Node, x: Any, kernel: Any) -> Any:
  """Returns the convolution of images, as a product of their patches."""
  _check_layout(node)
  height, width, channels, num_filters = kernel.shape
  groups = x.shape[-1] // channels
  is_plain = node.text('padding') != 'EXPLICIT'
  is_plain &= set(node.integers('strides')) == {1}
  if height == width == groups == 1 and is_plain:
    return _multiply(x, kernel[0, 0])
  patches = _patches(node, x, (height, width))
  if groups == 1:
    joined = patches[0] if len(patches) == 1 else jnp.concatenate(patches, -1)
    return _multiply(joined, kernel.reshape([-1, num_filters]))
  stacked = jnp.stack(
      [
          patch.reshape([*patch.shape[:-1], groups, channels])
          for patch in patches
      ],
      -2,
  )
  by_group = kernel.reshape([height * width, channels, groups, -1])
  product = jnp.einsum(
      'bhwgpc,pcgf->bhwgf', stacked, by_group, precision=_PRECISION
  )
  return product.reshape([*product.shape[:3], num_filters])


def _multiply(x: Any, matrix: Any) -> Any:
  """Returns products of the last axis with a matrix, computed as one."""
  flat = x.reshape([-1, x.shape[-1]])
  product = jnp.matmul(flat, matrix, precision=_PRECISION)
  return product.reshape([*x.shape[:-1], matrix.shape[-1]])


@lowerings.lowers('Conv2D')
def _conv2d(node, x, kernel):
  return _convolve(node, x, kernel)


@lowerings.lowers('Conv2DBackpropFilter')
def _conv2d_filter(node, x, shape, grad):
  kernel = jnp.zeros(lowerings.as_shape(shape), grad.dtype)
  _, pull_back = jax.vjp(functools.partial(_convolve, node, x), kernel)
  return pull_back(grad)[0]


@lowerings.lowers('Conv2DBackpropInput')
def _conv2d_input(node, shape, kernel, grad):
  x = jnp.zeros(lowerings.as_shape(shape), grad.dtype)
  _, pull_back = jax.vjp(lambda x: _convolve(node, x, kernel), x)
  return pull_back(grad)[0]


def _convolve_depthwise(node, x, kernel):
  """Returns the convolution of each channel with its own kernels."""
  _check_layout(node)
  height, width, channels, multiplier = kernel.shape
  patches = _patches(node, x, (height, width))
  flat = kernel.reshape([-1, channels, multiplier])
  total = sum(
      patch[..., None] * flat[place] for place, patch in enumerate(patches)
  )
  return total.reshape([*total.shape[:3], channels * multiplier])


@lowerings.lowers('DepthwiseConv2dNative')
def _depthwise(node, x, kernel):
  return _convolve_depthwise(node, x, kernel)


@lowerings.lowers('DepthwiseConv2dNativeBackpropFilter')
def _depthwise_filter(node, x, shape, grad):
  kernel = jnp.zeros(lowerings.as_shape(shape), grad.dtype)
  _, pull_back = jax.vjp(
      functools.partial(_convolve_depthwise, node, x), kernel
  )
  return pull_back(grad)[0]


@lowerings.lowers('DepthwiseConv2dNativeBackpropInput')
def _depthwise_input(node, shape, kernel, grad):
  x = jnp.zeros(lowerings.as_shape(shape), grad.dtype)
  _, pull_back = jax.vjp(lambda x: _convolve_depthwise(node, x, kernel), x)
  return pull_back(grad)[0]


def _windows_of(node: lowerings.Node, x: Any, filling: Any) -> Any:
  """Returns the entries of each window, [places, ..., channels]."""
  _check_layout(node)
  ksize, strides = node.integers('ksize'), node.integers('strides')
  if {ksize[0], ksize[3], strides[0], strides[3]} != {1}:
    raise lowerings.NoLoweringError(f'{node.op} is of examples or channels')
  window, strides = tuple(ksize[1:3]), strides[1:3]
  dilations = (1, 1)
  paddings = _padding_of(node, x.shape[1:3], window, strides, dilations)
  return jnp.stack(
      _patches_of(x, window, strides, dilations, paddings, filling)
  )


@lowerings.lowers('MaxPool')
def _max_pool(node, x):
  """The largest number of a window; NaN is smaller than all, as on the CPU."""
  windows = _windows_of(node, x, -jnp.inf)
  if not jnp.issubdtype(x.dtype, jnp.floating):
    return jnp.max(windows, 0)
  largest = jnp.max(jnp.where(jnp.isnan(windows), -jnp.inf, windows), 0)
  return jnp.maximum(largest, jnp.finfo(x.dtype).min)


@lowerings.lowers('MaxPoolGrad')
def _max_pool_grad(node, x, output, grad):
  """The first largest entry of a window gets its gradient, as on the CPU."""
  del output  # Unused.
  windows, pull_back = jax.vjp(lambda x: _windows_of(node, x, -jnp.inf), x)
  numbers = jnp.where(jnp.isnan(windows), -jnp.inf, windows)
  # Nothing is larger than a NaN at the first place.
  first = jnp.where(jnp.isnan(windows[0]), 0, jnp.argmax(numbers, 0))
  places = np.arange(windows.shape[0]).reshape([-1] + [1] * np.ndim(x))
  return pull_back(jnp.where(places == first, grad, 0).astype(grad.dtype))[0]


def _avg_pool_of(node, x):
  counts = jnp.sum(_windows_of(node, jnp.ones_like(x), 0), 0)
  return jnp.sum(_windows_of(node, x, 0), 0) / counts


@lowerings.lowers('AvgPool')
def _avg_pool(node, x):
  return _avg_pool_of(node, x)


@lowerings.lowers('AvgPoolGrad')
def _avg_pool_grad(node, shape, grad):
  x = jnp.zeros(lowerings.as_shape(shape), grad.dtype)
  return jax.vjp(functools.partial(_avg_pool_of, node), x)[1](grad)[0]


_NUM_BATCH_NORM_OUTPUTS = {'FusedBatchNormV3': 6}


def _channels_last(node: lowerings.Node, x: Any) -> Any:
  """Returns images with their channels last, wherever a node has them."""
  if has_channels_first(node):
    return jnp.moveaxis(x, 1, -1)
  return x


def _as_given(node: lowerings.Node, x: Any) -> Any:
  """Returns images with their channels where a node has them."""
  if has_channels_first(node):
    return jnp.moveaxis(x, -1, 1)
  return x


def _moments(x: Any, size: Optional[padding.Size]) -> tuple[Any, Any, Any]:
  """Returns the mean and the variance of channels, and of how many entries.

  Args:
    x: The images, with their channels last.
    size: The number of images, if there is room for more.
  """
  num_places = int(np.prod(x.shape[1:-1]))
  axes = tuple(range(x.ndim - 1))
  if size is None:
    return jnp.mean(x, axes), jnp.var(x, axes), x.shape[0] * num_places

  def sum_of(values):
    return jnp.sum(padding.Padded(values, 0, size).masked(0), axes)

  num_entries = (size.number * num_places).astype(x.dtype)
  mean = sum_of(x) / num_entries
  return mean, sum_of((x - mean) ** 2) / num_entries, num_entries


@lowerings.lowers('FusedBatchNorm', 'FusedBatchNormV2', 'FusedBatchNormV3')
def batch_norm(node, x, scale, offset, mean, variance, *, size=None):
  """Returns what TensorFlow's op does; its last output is for gradients.

  Args:
    node: The op.
    x: The images; the other inputs are those of the op.
    scale: See there.
    offset: See there.
    mean: See there.
    variance: See there.
    size: See `_moments`. Defaults to all.
  """
  wide = _channels_last(node, x).astype(scale.dtype)
  epsilon = np.asarray(node.number('epsilon'), scale.dtype)
  averaged = mean, variance
  used = mean, variance
  if node.boolean('is_training'):
    *used, count = _moments(wide, size)
    # The averages are of the unbiased variance, the norm is of the other.
    share = jnp.asarray(count / jnp.maximum(count - 1, 1), scale.dtype)
    unbiased = used[1] * share
    averaged = _averaged(node, (mean, variance), (used[0], unbiased))
  y = (wide - used[0]) * (lax.rsqrt(used[1] + epsilon) * scale) + offset
  y = _as_given(node, y).astype(x.dtype)
  outputs = (y, *averaged, *used, used[1])
  return outputs[: _NUM_BATCH_NORM_OUTPUTS.get(node.op, 5)]


def _averaged(node, old, new):
  """Returns the next averages of means and variances."""
  factor = 1.0
  if node.has('exponential_avg_factor'):
    factor = node.number('exponential_avg_factor')
  if factor == 1:
    return new
  return tuple((1 - factor) * o + factor * n for o, n in zip(old, new))


@lowerings.lowers(
    'FusedBatchNormGrad', 'FusedBatchNormGradV2', 'FusedBatchNormGradV3'
)
def batch_norm_grad(node, grad, x, scale, mean, variance, *unused, size=None):
  """Returns the gradients by x, scale and offset, and two unused outputs."""
  del unused
  wide, given = (
      _channels_last(node, value).astype(scale.dtype) for value in (x, grad)
  )
  epsilon = np.asarray(node.number('epsilon'), scale.dtype)

  def norm(x, scale, offset):
    used = mean, variance
    if node.boolean('is_training'):
      *used, _ = _moments(x, size)
    return (x - used[0]) * (lax.rsqrt(used[1] + epsilon) * scale) + offset

  _, pull_back = jax.vjp(norm, wide, scale, jnp.zeros_like(scale))
  by_x, by_scale, by_offset = pull_back(given)
  none = jnp.zeros([0], scale.dtype)
  by_x = _as_given(node, by_x).astype(x.dtype)
  return by_x, by_scale, by_offset, none, none


def _nearest_places(node, size, num_outputs):
  """Returns which entry of an axis each entry of the resized axis copies."""
  # In float32, as the rounding decides.
  outputs, half = np.arange(num_outputs, dtype=np.float32), np.float32(0.5)
  if node.boolean('align_corners') and num_outputs > 1:
    scale = np.float32(size - 1) / np.float32(num_outputs - 1)
    places = np.floor(outputs * scale + half)
  else:
    shift = half if node.boolean('half_pixel_centers') else np.float32(0)
    scale = np.float32(size) / np.float32(num_outputs)
    places = np.floor((outputs + shift) * scale)
  return np.minimum(places.astype(np.int32), size - 1)


def _resize(node, x, sizes):
  for axis, num_outputs in zip((1, 2), sizes):
    places = _nearest_places(node, x.shape[axis], num_outputs)
    x = jnp.take(x, places, axis)
  return x


@lowerings.lowers('ResizeNearestNeighbor')
def _resize_nearest(node, x, sizes):
  return _resize(node, x, lowerings.as_shape(sizes))


@lowerings.lowers('ResizeNearestNeighborGrad')
def _resize_nearest_grad(node, grad, sizes):
  shape = (grad.shape[0], *lowerings.as_shape(sizes), grad.shape[-1])
  x = jnp.zeros(shape, grad.dtype)
  return jax.vjp(lambda x: _resize(node, x, grad.shape[1:3]), x)[1](grad)[0]

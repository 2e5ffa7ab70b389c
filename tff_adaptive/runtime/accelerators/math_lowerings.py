# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops of arithmetic, comparisons, reductions and products, in JAX."""

from collections.abc import Sequence
import functools
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from tff_adaptive.runtime.accelerators import list_lowerings
from tff_adaptive.runtime.accelerators import lowerings

_PRECISION = lax.Precision.HIGHEST


def _of_jax(function):
  """Returns the lowering of a function of arrays that JAX alone has."""
  return lambda node, *inputs: function(*inputs)


def _of_numpy(name):
  """Returns the lowering of a function of NumPy and JAX."""
  return lambda node, *inputs: getattr(lowerings.numpy_for(*inputs), name)(
      *inputs
  )


_OF_NUMPY = {
    'Abs': 'abs',
    'Acos': 'arccos',
    'Acosh': 'arccosh',
    'Add': 'add',
    'AddV2': 'add',
    'Asin': 'arcsin',
    'Asinh': 'arcsinh',
    'Atan': 'arctan',
    'Atan2': 'arctan2',
    'Atanh': 'arctanh',
    'BitwiseAnd': 'bitwise_and',
    'BitwiseOr': 'bitwise_or',
    'BitwiseXor': 'bitwise_xor',
    'Ceil': 'ceil',
    'Cos': 'cos',
    'Cosh': 'cosh',
    'Equal': 'equal',
    'Exp': 'exp',
    'Expm1': 'expm1',
    'Floor': 'floor',
    'FloorMod': 'remainder',
    'Greater': 'greater',
    'GreaterEqual': 'greater_equal',
    'Invert': 'invert',
    'IsFinite': 'isfinite',
    'IsInf': 'isinf',
    'IsNan': 'isnan',
    'LeftShift': 'left_shift',
    'Less': 'less',
    'LessEqual': 'less_equal',
    'Log': 'log',
    'Log1p': 'log1p',
    'LogicalAnd': 'logical_and',
    'LogicalNot': 'logical_not',
    'LogicalOr': 'logical_or',
    'Maximum': 'maximum',
    'Minimum': 'minimum',
    'Mul': 'multiply',
    'Neg': 'negative',
    'NotEqual': 'not_equal',
    'Pow': 'power',
    'RightShift': 'right_shift',
    'Rint': 'rint',
    'Round': 'rint',
    'Sign': 'sign',
    'Sin': 'sin',
    'Sinh': 'sinh',
    'Sqrt': 'sqrt',
    'Square': 'square',
    'Sub': 'subtract',
    'Tan': 'tan',
    'Tanh': 'tanh',
    'Mod': 'fmod',
    'TruncateMod': 'fmod',
}
lowerings.register_all(_OF_NUMPY, _of_numpy)


def _add(x, y):
  if isinstance(x, list_lowerings.TensorList):
    return x.plus(y)
  return jnp.add(x, y)


def _elu(x):
  return jnp.where(x > 0, x, jnp.expm1(x))


# The constants of Klambauer et al., 2017, as TensorFlow rounds them.
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


def _selu(x):
  return jnp.asarray(_SELU_SCALE, x.dtype) * jnp.where(
      x > 0, x, jnp.asarray(_SELU_ALPHA, x.dtype) * jnp.expm1(x)
  )


def _selu_grad(grad, output):
  slope = output + jnp.asarray(_SELU_SCALE * _SELU_ALPHA, output.dtype)
  return grad * jnp.where(
      output < 0, slope, jnp.asarray(_SELU_SCALE, output.dtype)
  )


def _zero_where(is_zero, value):
  """Returns the value, 0 where the condition holds whatever the value."""
  return jnp.where(is_zero, jnp.zeros_like(value), value)


def _div_no_nan(x, y):
  safe = jnp.where(y == 0, jnp.ones_like(y), y)
  return _zero_where(y == 0, x / safe)


# A gradient of zero stays zero where the slope is infinite, as in TensorFlow.
def _reciprocal_grad(output, grad):
  return _zero_where(grad == 0, -grad * output * output)


_OF_JAX = {
    'ClipByValue': lambda x, low, high: jnp.maximum(jnp.minimum(x, high), low),
    'Digamma': jax.scipy.special.digamma,
    'DivNoNan': _div_no_nan,
    'Elu': _elu,
    'EluGrad': lambda grad, output: jnp.where(
        output < 0, grad * (output + 1), grad
    ),
    'Erf': lax.erf,
    'Erfc': lax.erfc,
    'Erfinv': lax.erf_inv,
    'Inv': lambda x: 1 / x,
    'InvGrad': _reciprocal_grad,
    'Lgamma': lax.lgamma,
    'MulNoNan': lambda x, y: _zero_where(y == 0, x * y),
    'Ndtri': jax.scipy.special.ndtri,
    'Reciprocal': lambda x: 1 / x,
    'ReciprocalGrad': _reciprocal_grad,
    'Relu': lambda x: jnp.maximum(x, jnp.zeros([], x.dtype)),
    'ReluGrad': lambda grad, x: jnp.where(x > 0, grad, 0),
    'Relu6': lambda x: jnp.clip(x, 0, 6),
    'Relu6Grad': lambda grad, x: jnp.where((x > 0) & (x < 6), grad, 0),
    'Rsqrt': lax.rsqrt,
    'RsqrtGrad': lambda output, grad: _zero_where(
        grad == 0, -0.5 * grad * output**3
    ),
    'Selu': _selu,
    'SeluGrad': _selu_grad,
    'Sigmoid': jax.nn.sigmoid,
    'SigmoidGrad': lambda output, grad: grad * output * (1 - output),
    'Softplus': jax.nn.softplus,
    'SoftplusGrad': lambda grad, x: grad * jax.nn.sigmoid(x),
    'Softsign': jax.nn.soft_sign,
    'SoftsignGrad': lambda grad, x: grad / (1 + jnp.abs(x)) ** 2,
    'SqrtGrad': lambda output, grad: _zero_where(
        grad == 0, 0.5 * grad / output
    ),
    'SquaredDifference': lambda x, y: (x - y) * (x - y),
    'TanhGrad': lambda output, grad: grad * (1 - output * output),
    'Xdivy': lambda x, y: _zero_where(x == 0, x / y),
    'Xlog1py': lambda x, y: _zero_where(x == 0, x * jnp.log1p(y)),
    'Xlogy': lambda x, y: _zero_where(x == 0, x * jnp.log(y)),
}
lowerings.register_all(_OF_JAX, _of_jax)
lowerings.register_all(
    {
        'AddN': lambda *values: functools.reduce(_add, values),
        'L2Loss': lambda x: jnp.sum(x * x) / 2,
        'LogSoftmax': lambda x: jax.nn.log_softmax(x, -1),
        'Softmax': lambda x: jax.nn.softmax(x, -1),
    },
    _of_jax,
)

# The ops that treat each entry alike.
ELEMENTWISE = frozenset({*_OF_NUMPY, *_OF_JAX})


@lowerings.lowers('RealDiv', 'Div', 'TruncateDiv')
def _divide(node, x, y):
  if np.issubdtype(x.dtype, np.integer):
    return lax.div(*jnp.broadcast_arrays(x, y))
  module = lowerings.numpy_for(x, y)
  quotient = module.divide(x, y)
  return module.trunc(quotient) if node.op == 'TruncateDiv' else quotient


@lowerings.lowers('FloorDiv')
def _floor_divide(node, x, y):
  del node  # Unused.
  module = lowerings.numpy_for(x, y)
  if jnp.issubdtype(x.dtype, jnp.floating):
    # NumPy's corrects the rounding of the quotient.
    return module.floor(module.divide(x, y))
  return module.floor_divide(x, y)


@lowerings.lowers('LeakyRelu')
def _leaky_relu(node, x):
  return jnp.where(x > 0, x, x * jnp.asarray(node.number('alpha'), x.dtype))


@lowerings.lowers('LeakyReluGrad')
def _leaky_relu_grad(node, grad, x):
  alpha = jnp.asarray(node.number('alpha'), x.dtype)
  return jnp.where(x > 0, grad, grad * alpha)


@lowerings.lowers('Cast')
def _cast(node, x):
  dtype = node.dtype('DstT')
  if lowerings.is_known(x):
    return np.asarray(x).astype(dtype)
  if np.issubdtype(x.dtype, np.inexact) and np.issubdtype(dtype, np.integer):
    x = jnp.trunc(x)
  return x.astype(dtype)


@lowerings.lowers('ApproximateEqual')
def _approximate_equal(node, x, y):
  return jnp.abs(x - y) < node.number('tolerance')


def _reduce(name):
  def lowering(node, x, axes):
    # NumPy rounds each partial sum of bfloat16.
    module = jnp if x.dtype == jnp.bfloat16 else lowerings.numpy_for(x)
    chosen = lowerings.as_axes(axes, np.ndim(x))
    options = {} if name in ('all', 'any', 'max', 'min') else {'dtype': x.dtype}
    return getattr(module, name)(
        x, axis=chosen, keepdims=node.boolean('keep_dims'), **options
    )

  return lowering


lowerings.register_all(
    {
        'All': 'all',
        'Any': 'any',
        'Max': 'max',
        'Min': 'min',
        'Prod': 'prod',
        'Sum': 'sum',
    },
    _reduce,
)


@lowerings.lowers('Mean')
def _mean(node, x, axes):
  chosen = lowerings.as_axes(axes, np.ndim(x))
  count = int(np.prod([x.shape[axis] for axis in chosen], dtype=np.int64))
  return mean(node, x, chosen, count)


def _dtype_of_total(dtype: Any) -> Any:
  """Returns the dtype in which TensorFlow adds entries up for their mean."""
  if dtype == jnp.bfloat16:
    return jnp.float32
  return {'i': jnp.int64, 'u': jnp.uint64}.get(np.dtype(dtype).kind, dtype)


def mean(node: lowerings.Node, x: Any, axes: Sequence[int], count: Any) -> Any:
  """Returns the sum along axes divided by a number of entries.

  Args:
    node: The op.
    x: The array.
    axes: The axes.
    count: The number of entries.
  """
  dtype = _dtype_of_total(x.dtype)
  total = jnp.sum(x, axes, dtype, keepdims=node.boolean('keep_dims'))
  count = jnp.broadcast_to(jnp.asarray(count).astype(dtype), total.shape)
  return lax.div(total, count).astype(x.dtype)


@lowerings.lowers('EuclideanNorm')
def _euclidean_norm(node, x, axes):
  chosen = lowerings.as_axes(axes, np.ndim(x))
  total = jnp.sum(x * x, axis=chosen, keepdims=node.boolean('keep_dims'))
  return jnp.sqrt(total).astype(x.dtype)


def _arg_reduce(find, worst):
  def lowering(node, x, axis):
    if jnp.issubdtype(x.dtype, jnp.floating):
      # JAX would find what is no number, TensorFlow does not.
      x = jnp.where(jnp.isnan(x), jnp.asarray(worst, x.dtype), x)
    return find(x, int(axis)).astype(node.dtype('output_type'))

  return lowering


lowerings.register_all(
    {'ArgMax': (jnp.argmax, -np.inf), 'ArgMin': (jnp.argmin, np.inf)},
    lambda names: _arg_reduce(*names),
)


def _cumulate(name, neutral):
  def lowering(node, x, axis):
    axis = int(lowerings.as_known(axis, 'an axis')) % np.ndim(x)
    is_reverse = node.boolean('reverse')
    found = getattr(lax, name)(x, axis=axis, reverse=is_reverse)
    if not node.boolean('exclusive'):
      return found
    # Moved by one place, behind the neutral number.
    first = jnp.full_like(lax.slice_in_dim(x, 0, 1, axis=axis), neutral)
    end = x.shape[axis]
    if is_reverse:
      return lax.concatenate(
          [lax.slice_in_dim(found, 1, end, axis=axis), first], axis
      )
    return lax.concatenate(
        [first, lax.slice_in_dim(found, 0, end - 1, axis=axis)], axis
    )

  return lowering


lowerings.register_all(
    {'Cumsum': ('cumsum', 0), 'Cumprod': ('cumprod', 1)},
    lambda names: _cumulate(*names),
)


@lowerings.lowers('MatMul')
def _matmul(node, a, b):
  a = jnp.swapaxes(a, 0, 1) if node.boolean('transpose_a') else a
  b = jnp.swapaxes(b, 0, 1) if node.boolean('transpose_b') else b
  return jnp.matmul(a, b, precision=_PRECISION)


def _adjoint(x: Any) -> Any:
  return jnp.conj(jnp.swapaxes(x, -1, -2))


@lowerings.lowers('BatchMatMul', 'BatchMatMulV2', 'BatchMatMulV3')
def _batch_matmul(node, x, y):
  x = _adjoint(x) if node.boolean('adj_x') else x
  y = _adjoint(y) if node.boolean('adj_y') else y
  dtype = node.dtype('Tout') if node.has('Tout') else None
  return jnp.matmul(x, y, precision=_PRECISION, preferred_element_type=dtype)


@lowerings.lowers('Einsum')
def _einsum(node, *inputs):
  return jnp.einsum(node.text('equation'), *inputs, precision=_PRECISION)


@lowerings.lowers('Qr')
def _qr(node, x):
  return tuple(
      jnp.linalg.qr(
          x, 'complete' if node.boolean('full_matrices') else 'reduced'
      )
  )


@lowerings.lowers('MatrixInverse')
def _inverse(node, x):
  return jnp.linalg.inv(_adjoint(x) if node.boolean('adjoint') else x)


@lowerings.lowers('SelfAdjointEigV2')
def _eigenvectors(node, x):
  """Signs of vectors may differ from TensorFlow's."""
  values, vectors = jnp.linalg.eigh(x, symmetrize_input=False)
  return values, vectors if node.boolean('compute_v') else values[..., :0]


@lowerings.lowers('Svd')
def _singular_values(node, x):
  """Signs of vectors may differ from TensorFlow's."""
  if not node.boolean('compute_uv'):
    values = jnp.linalg.svd(x, compute_uv=False)
    return values, values[..., :0], values[..., :0]
  left, values, right = jnp.linalg.svd(x, node.boolean('full_matrices'))
  return values, left, jnp.swapaxes(right, -1, -2)

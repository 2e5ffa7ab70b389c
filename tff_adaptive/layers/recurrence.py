# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The recurrence of an LSTM, compiled by XLA."""

from typing import NamedTuple, Optional

import tensorflow as tf

_NUM_PADDING = 16


class _Kept(NamedTuple):
  """The values of a step that the gradient needs.

  Attributes:
    in_forget: The input and forget gates, [..., batch, 2 units].
    candidate: The candidate cell values, [..., batch, units].
    output: The output gate, [..., batch, units].
    old_cell: The cell state before the step, [..., batch, units].
    tanh_cell: The tanh of the new cell state, [..., batch, units].
  """

  in_forget: tf.Tensor
  candidate: tf.Tensor
  output: tf.Tensor
  old_cell: tf.Tensor
  tanh_cell: tf.Tensor


def _padding(num_columns: int) -> int:
  """Returns the number of zero columns that avoid cache conflicts.

  Rows that are a multiple of 1 KB long share few sets of a CPU's cache:
  products with such matrices take up to twice the time.
  """
  return _NUM_PADDING if num_columns % 256 == 0 else 0


def _pad(matrix: tf.Tensor) -> tf.Tensor:
  """Appends columns of zeros, see `_padding`."""
  paddings = [[0, 0]] * matrix.shape.rank
  paddings[-1] = [0, _padding(matrix.shape[-1])]
  return tf.pad(matrix, paddings)


def _select(
    mask: Optional[tf.Tensor], there: tf.Tensor, absent: tf.Tensor
) -> tf.Tensor:
  """Returns `there` for the examples in the mask, `absent` for the others."""
  return there if mask is None else tf.where(mask, there, absent)


def _array(like: tf.Tensor) -> tf.TensorArray:
  """Returns an array with one entry for each step of `like`."""
  return tf.TensorArray(like.dtype, tf.shape(like)[0])


@tf.function(jit_compile=True)
def _run(projected, recurrent_kernel, hidden, cell, mask):
  """Runs all steps.

  Args:
    projected: The inputs times the kernel, plus the bias, [time, batch, 4 u];
      padded, like all tensors that hold the four gates, see `_padding`.
    recurrent_kernel: [u, 4 u].
    hidden: The initial output, [batch, u].
    cell: The initial cell state, [batch, u].
    mask: The steps that exist, [time, batch, 1], or None for all.

  Returns:
    The outputs, [time, batch, u], the last cell state, and `_Kept`.
  """
  units = recurrent_kernel.shape[0]
  sizes = [2 * units, units, units, _padding(4 * units)]

  def advance(step, hidden, cell, outputs, kept):
    sums = projected[step] + tf.matmul(hidden, recurrent_kernel)
    in_forget, candidate, output, _ = tf.split(sums, sizes, axis=1)
    in_forget, output = tf.sigmoid(in_forget), tf.sigmoid(output)
    candidate = tf.tanh(candidate)
    i, f = tf.split(in_forget, 2, axis=1)
    new_cell = f * cell + i * candidate
    tanh_cell = tf.tanh(new_cell)
    m = None if mask is None else mask[step]
    new_hidden = _select(m, output * tanh_cell, hidden)
    of_step = _Kept(in_forget, candidate, output, cell, tanh_cell)
    kept = tf.nest.map_structure(lambda a, x: a.write(step, x), kept, of_step)
    outputs = outputs.write(step, new_hidden)
    return step + 1, new_hidden, _select(m, new_cell, cell), outputs, kept

  # Without `maximum_iterations`: XLA would not know the number of steps, and a
  # GPU would wait for the CPU after each of them.
  _, _, cell, outputs, kept = tf.while_loop(
      lambda step, *_: step < tf.shape(projected)[0],
      advance,
      (
          0,
          hidden,
          cell,
          _array(projected),
          _Kept(*(_array(projected) for _ in _Kept._fields)),
      ),
      parallel_iterations=1,
  )
  kept = tf.nest.map_structure(lambda array: array.stack(), kept)
  return outputs.stack(), cell, kept


@tf.function(jit_compile=True)
def _run_back(d_outputs, d_cell, kept, transposed_kernel, mask):
  """Backpropagates the gradient through all steps.

  Args:
    d_outputs: The gradient of the outputs of `_run`.
    d_cell: The gradient of the last cell state.
    kept: The `_Kept` of `_run`.
    transposed_kernel: The transposed recurrent kernel, [4 u, u], padded.
    mask: See `_run`.

  Returns:
    The gradients of `projected`, `hidden` and `cell` of `_run`.
  """
  i, f = tf.split(kept.in_forget, 2, axis=2)
  g, o, tanh_cell = kept.candidate, kept.output, kept.tanh_cell
  # The factors of the gradients, for all steps at once: from the output to the
  # cell, and from cell and output to the four gates' sums.
  to_cell = o * (1 - tf.square(tanh_cell))
  to_sums = tf.concat(
      [
          g * i * (1 - i),
          kept.old_cell * f * (1 - f),
          i * (1 - tf.square(g)),
          tanh_cell * o * (1 - o),
      ],
      axis=2,
  )

  def go_back(step, d_hidden, d_cell, d_projected):
    m = None if mask is None else mask[step]
    nothing = tf.zeros_like(d_cell)
    d_hidden += d_outputs[step]
    d_new_hidden = _select(m, d_hidden, nothing)
    d_new_cell = _select(m, d_cell, nothing) + d_new_hidden * to_cell[step]
    d_sums = _pad(
        to_sums[step]
        * tf.concat([d_new_cell, d_new_cell, d_new_cell, d_new_hidden], axis=1)
    )
    d_old_hidden = tf.matmul(d_sums, transposed_kernel)[:, : d_cell.shape[1]]
    d_old_cell = d_new_cell * f[step]
    if m is not None:
      # A skipped step passes the gradient through unchanged.
      d_old_hidden += tf.where(m, nothing, d_hidden)
      d_old_cell += tf.where(m, nothing, d_cell)
    return step - 1, d_old_hidden, d_old_cell, d_projected.write(step, d_sums)

  num_steps = tf.shape(d_outputs)[0]
  _, d_hidden, d_cell, d_projected = tf.while_loop(
      lambda step, *_: step >= 0,
      go_back,
      (num_steps - 1, tf.zeros_like(d_cell), d_cell, _array(d_outputs)),
      parallel_iterations=1,
  )
  return d_projected.stack(), d_hidden, d_cell


def _flat(tensor: tf.Tensor) -> tf.Tensor:
  """Reshapes [time, batch, size] to [time * batch, size]."""
  return tf.reshape(tensor, [-1, tensor.shape[-1]])


def lstm(
    inputs: tf.Tensor,
    hidden: tf.Tensor,
    cell: tf.Tensor,
    weights: tuple[tf.Tensor, tf.Tensor, tf.Tensor],
    mask: Optional[tf.Tensor] = None,
) -> tuple[tf.Tensor, tf.Tensor]:
  """Runs an LSTM with tanh and sigmoid activations over sequences.

  Args:
    inputs: [time, batch, size].
    hidden: The initial output, [batch, units].
    cell: The initial cell state, [batch, units].
    weights: The kernel, [size, 4 units], the recurrent kernel,
      [units, 4 units], and the bias, [4 units], in Keras' order of gates.
    mask: The steps that exist, boolean, [time, batch, 1]; None for all. Other
      steps leave output and state unchanged.

  Returns:
    The outputs, [time, batch, units], and the last cell state.
  """

  @tf.custom_gradient
  def run(*arguments):
    # In eager mode, a tape would otherwise record the ops in here, too.
    inputs, hidden, cell, *weights = map(tf.stop_gradient, arguments)
    kernel, recurrent_kernel, bias = map(_pad, weights)
    projected = tf.reshape(
        tf.matmul(_flat(inputs), kernel) + bias,
        tf.concat([tf.shape(inputs)[:2], tf.shape(bias)], axis=0),
    )
    outputs, last_cell, kept = _run(
        projected, recurrent_kernel, hidden, cell, mask
    )

    def run_back(d_outputs, d_last_cell):
      d_projected, d_hidden, d_cell = _run_back(
          d_outputs,
          d_last_cell,
          kept,
          _pad(tf.transpose(recurrent_kernel)),
          mask,
      )
      d_sums = _flat(d_projected)
      old_hidden = tf.concat([hidden[tf.newaxis], outputs[:-1]], axis=0)
      d_inputs = tf.matmul(d_sums, kernel, transpose_b=True)
      d_weights = (
          tf.matmul(_flat(inputs), d_sums, transpose_a=True),
          tf.matmul(_flat(old_hidden), d_sums, transpose_a=True),
          tf.reduce_sum(d_sums, axis=0),
      )
      return (
          tf.reshape(d_inputs, tf.shape(inputs)),
          d_hidden,
          d_cell,
          *(d_weight[..., : 4 * cell.shape[1]] for d_weight in d_weights),
      )

    return (outputs, last_cell), run_back

  outputs, last_cell = run(inputs, hidden, cell, *weights)
  # The loop does not know the number of steps statically.
  outputs.set_shape([*inputs.shape[:2], *cell.shape[1:]])
  return outputs, last_cell

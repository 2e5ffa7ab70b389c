# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Faster Keras layers, with the same numbers as Keras' own.

A dense layer on bags of words that skips absent words, and an LSTM whose
recurrence is compiled by XLA.
"""

from typing import Any, NamedTuple, Optional

import tensorflow as tf

_Initializer = Any


@tf.keras.utils.register_keras_serializable('tff_adaptive')
class BagOfWordsDense(tf.keras.layers.Layer):
  """A dense layer on word frequencies that takes word ids.

  A text of 20 words is a vector of 10,000 frequencies, nearly all of them zero.
  `tf.keras.layers.Dense` multiplies the zeros; this layer takes word ids,
  gathers their rows of the kernel and averages them. Its outputs equal those of
  `Dense` on `to_frequencies(words)`, up to rounding. The gradient of the kernel
  is a `tf.IndexedSlices` of those rows, which
  `tff_adaptive.optimizers.build_sgd` without momentum applies without making it
  dense.

  Ids without a row (padding, words out of the vocabulary) are ignored, as in
  TFF's `baselines.stackoverflow.create_tag_prediction_task`.

  Input shape: [batch, length] of any length, an integer dtype.
  Output shape: [batch, units].

  Attributes:
    kernel: The weights, [vocabulary_size, units], as in `Dense`.
    bias: The bias, [units], or None.

  Example:

    >>> layer = BagOfWordsDense(units=500, vocabulary_size=10_000)
    >>> layer(tf.constant([[3, 17, 3], [5, -1, -1]])).shape
    TensorShape([2, 500])
  """

  def __init__(
      self,
      units: int,
      vocabulary_size: int,
      use_bias: bool = True,
      kernel_initializer: _Initializer = 'glorot_uniform',
      bias_initializer: _Initializer = 'zeros',
      **kwargs: Any,
  ):
    """Initializes the layer.

    Args:
      units: The number of outputs, positive.
      vocabulary_size: The number of words with a row of weights, positive.
      use_bias: Whether to add a bias. Defaults to True.
      kernel_initializer: See `tf.keras.layers.Dense`.
      bias_initializer: See `tf.keras.layers.Dense`.
      **kwargs: See `tf.keras.layers.Layer`.

    Raises:
      ValueError: If a number is not positive.
    """
    super().__init__(**kwargs)
    for name, value in (('units', units), ('vocabulary_size', vocabulary_size)):
      if value < 1:
        raise ValueError(f'`{name}` must be positive, found {value}.')
    self.units = units
    self.vocabulary_size = vocabulary_size
    self.use_bias = use_bias
    self.kernel_initializer = tf.keras.initializers.get(kernel_initializer)
    self.bias_initializer = tf.keras.initializers.get(bias_initializer)

  def build(self, input_shape: tf.TensorShape):
    self.kernel = self.add_weight(
        'kernel',
        [self.vocabulary_size, self.units],
        initializer=self.kernel_initializer,
    )
    self.bias: Optional[tf.Variable] = None
    if self.use_bias:
      self.bias = self.add_weight(
          'bias', [self.units], initializer=self.bias_initializer
      )
    super().build(input_shape)

  def call(self, words: tf.Tensor) -> tf.Tensor:
    if not words.dtype.is_integer:
      raise TypeError(
          '`BagOfWordsDense` takes word ids of an integer dtype, found '
          f'{words.dtype.name}; for frequencies use '
          '`tf.keras.layers.Dense`.'
      )
    shares = _shares(words, self.vocabulary_size, self.compute_dtype)
    rows = tf.gather(self.kernel, _rows(words, self.vocabulary_size))
    outputs = tf.reduce_sum(rows * shares[..., tf.newaxis], axis=1)
    return outputs if self.bias is None else outputs + self.bias

  def compute_output_shape(self, input_shape: Any) -> tf.TensorShape:
    return tf.TensorShape([input_shape[0], self.units])

  def get_config(self) -> dict[str, Any]:
    return {
        **super().get_config(),
        'units': self.units,
        'vocabulary_size': self.vocabulary_size,
        'use_bias': self.use_bias,
        'kernel_initializer': tf.keras.initializers.serialize(
            self.kernel_initializer
        ),
        'bias_initializer': tf.keras.initializers.serialize(
            self.bias_initializer
        ),
    }


def _is_known(words: tf.Tensor, vocabulary_size: int) -> tf.Tensor:
  return (words >= 0) & (words < vocabulary_size)


def _rows(words: tf.Tensor, vocabulary_size: int) -> tf.Tensor:
  """Returns the rows to gather: 0, with a share of zero, for unknown words."""
  return tf.where(_is_known(words, vocabulary_size), words, 0)


def _shares(
    words: tf.Tensor, vocabulary_size: int, dtype: Any = tf.float32
) -> tf.Tensor:
  """Returns each word's share: 1 / the text's known words, or 0 if unknown."""
  counts = tf.cast(_is_known(words, vocabulary_size), dtype)
  return tf.math.divide_no_nan(
      counts, tf.reduce_sum(counts, axis=1, keepdims=True)
  )


def to_frequencies(words: tf.Tensor, vocabulary_size: int) -> tf.Tensor:
  """Converts word ids to the frequencies that a dense layer takes.

  Args:
    words: Word ids, [batch, length], see `BagOfWordsDense`.
    vocabulary_size: The number of words.

  Returns:
    A float32 tensor, [batch, vocabulary_size]: each word's count divided by the
    number of known words in the text; zeros for a text without any.
  """
  shares = _shares(words, vocabulary_size)
  texts = tf.broadcast_to(
      tf.range(tf.shape(words)[0])[:, tf.newaxis], tf.shape(words)
  )
  rows = tf.cast(_rows(words, vocabulary_size), tf.int32)
  return tf.scatter_nd(
      tf.stack([texts, rows], axis=2),
      shares,
      [tf.shape(words)[0], vocabulary_size],
  )


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


@tf.keras.utils.register_keras_serializable('tff_adaptive')
class LSTM(tf.keras.layers.LSTM):
  """`tf.keras.layers.LSTM` with a faster implementation.

  Arguments, weights, results (up to rounding), checkpoints and configurations
  are those of `tf.keras.layers.LSTM`. A local step of two layers of 256 units
  takes a fraction of the time, on a CPU and, because functional models never
  use Keras' cuDNN kernel, on a GPU; and a functional model runs on TFF's
  native runtime, where Keras' layer fails on a placeholder without a value.

  Keras' own implementation runs where the fast one does not apply: activations
  other than tanh and sigmoid, no bias, dropout while training, `stateful`,
  `go_backwards`, `time_major`, `unroll` and half precision; and for masked
  inputs with an initial state, or with zeros at masked steps, which
  `tf.keras.layers.Bidirectional` asks for.

  XLA compiles the recurrence once for each batch size.

  Example:

    >>> layer = LSTM(256, return_sequences=True)
    >>> layer(tf.zeros([4, 80, 8])).shape
    TensorShape([4, 80, 256])

  References:
    Hochreiter and Schmidhuber, Long Short-Term Memory, Neural Computation 1997;
    with forget gates: Gers et al., Learning to Forget, Neural Computation 2000.
  """

  def call(
      self,
      inputs: Any,
      mask: Optional[tf.Tensor] = None,
      training: Any = None,
      initial_state: Any = None,
  ) -> Any:
    # Keras puts zeros where the fast recurrence repeats its last output.
    has_zeros = mask is not None and (
        initial_state is not None or self.zero_output_for_mask
    )
    if has_zeros or not self._is_fast(inputs, training):
      return super().call(inputs, mask, training, initial_state)
    if initial_state is None:
      initial_state = self.get_initial_state(inputs)
    hidden, cell = initial_state
    if mask is not None:
      mask = tf.transpose(mask)[..., tf.newaxis]
    weights = (self.cell.kernel, self.cell.recurrent_kernel, self.cell.bias)
    outputs, cell = lstm(
        tf.transpose(inputs, [1, 0, 2]),
        hidden,
        cell,
        tuple(map(tf.convert_to_tensor, weights)),
        mask,
    )
    hidden = outputs[-1]
    result = (
        tf.transpose(outputs, [1, 0, 2]) if self.return_sequences else hidden
    )
    return [result, hidden, cell] if self.return_state else result

  def build_from_config(self, config: dict[str, Any]) -> None:
    # Read from a file it is a list, which Keras would take for several inputs.
    self.build(tf.TensorShape(config['input_shape']))

  def _is_fast(self, inputs: Any, training: Any) -> bool:
    """Returns whether the fast recurrence supports the layer's settings."""
    has_dropout = bool(self.dropout or self.recurrent_dropout)
    return (
        isinstance(inputs, tf.Tensor)
        and inputs.dtype in (tf.float32, tf.float64)
        and self.activation is tf.keras.activations.tanh
        and self.recurrent_activation is tf.keras.activations.sigmoid
        and self.use_bias
        and not (has_dropout and training is not False)
        and not (self.stateful or self.go_backwards or self.time_major)
        and not self.unroll
    )

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The models of the workloads in JAX, as functions of a dict of weights."""

from federation import Federation
import jax
from jax import lax
from jax import nn
import jax.numpy as jnp

_glorot = nn.initializers.glorot_uniform()


def build_model(federation: Federation):
  """Returns a model.

  Args:
    federation: What is to be trained.

  Returns:
    The initial weights, and a function of (weights, x, y, key) to the loss.
  """
  init, apply = {
      'logistic': (lambda keys: _dense(keys[0], 784, 10), _apply_dense),
      'word_tags': (lambda keys: _dense(keys[0], 10_000, 500), _apply_words),
      'cnn': (lambda keys: _init_cnn(keys, 28, 1, 62), _apply_cnn),
      'color_cnn': (lambda keys: _init_cnn(keys, 32, 3, 10), _apply_cnn),
      'lstm': (_init_lstms, _apply_lstms),
  }[federation.model]

  def loss(weights, x, y, key):
    logits = apply(weights, x, key)
    if jnp.issubdtype(y.dtype, jnp.floating):
      return jnp.mean(nn.softplus(logits) - logits * y)
    log_probabilities = nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(log_probabilities, y[..., None], -1))

  return init(jax.random.split(jax.random.PRNGKey(0), 4)), loss


def _dense(key, num_inputs, num_outputs):
  return {
      'kernel': _glorot(key, (num_inputs, num_outputs)),
      'bias': jnp.zeros(num_outputs),
  }


def _apply_dense(weights, x, key=None):
  del key  # Unused.
  return x @ weights['kernel'] + weights['bias']


def _apply_words(weights, words, key):
  del key  # Unused.
  return weights['kernel'][words].mean(1) + weights['bias']


def _init_cnn(keys, size, channels, num_classes):
  pooled = (size - 4) // 2
  return {
      'first': _dense(keys[0], 9 * channels, 32),
      'second': _dense(keys[1], 9 * 32, 64),
      'hidden': _dense(keys[2], pooled * pooled * 64, 128),
      'logits': _dense(keys[3], 128, num_classes),
  }


def _apply_cnn(weights, x, key):
  keys = jax.random.split(key)
  x = nn.relu(_convolve(weights['first'], x))
  x = nn.relu(_convolve(weights['second'], x))
  examples, height, width, channels = x.shape
  x = x.reshape(examples, height // 2, 2, width // 2, 2, channels).max((2, 4))
  x = _drop(keys[0], x, 0.25).reshape(examples, -1)
  x = _drop(keys[1], nn.relu(_apply_dense(weights['hidden'], x)), 0.5)
  return _apply_dense(weights['logits'], x)


def _convolve(weights, x):
  """Multiplies patches of 3x3: XLA's own convolution is slow in CPU loops."""
  height, width = x.shape[1] - 2, x.shape[2] - 2
  patches = jnp.concatenate(
      [
          x[:, row : row + height, column : column + width]
          for row in range(3)
          for column in range(3)
      ],
      axis=-1,
  )
  return _apply_dense(weights, patches)


def _drop(key, x, rate):
  return jnp.where(
      jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0
  )


def _init_lstms(keys):
  def init_lstm(key, size):
    keys = jax.random.split(key)
    return {
        'input': _dense(keys[0], size, 1024),
        'state': _glorot(keys[1], (256, 1024)),
    }

  return {
      'embedding': jax.random.normal(keys[0], (90, 8)),
      'first': init_lstm(keys[1], 8),
      'second': init_lstm(keys[2], 256),
      'logits': _dense(keys[3], 256, 90),
  }


def _apply_lstms(weights, tokens, key):
  del key  # Unused.
  x = weights['embedding'][tokens.T]
  x = _lstm(weights['second'], _lstm(weights['first'], x))
  return jnp.swapaxes(_apply_dense(weights['logits'], x), 0, 1)


def _lstm(weights, x):
  """Runs an LSTM over x, [time, batch, features]."""

  def step(carried, from_input):
    hidden, cell = carried
    gates = from_input + hidden @ weights['state']
    in_, forget, new, out = jnp.split(gates, 4, -1)
    cell = nn.sigmoid(forget) * cell + nn.sigmoid(in_) * jnp.tanh(new)
    hidden = nn.sigmoid(out) * jnp.tanh(cell)
    return (hidden, cell), hidden

  zeros = jnp.zeros((x.shape[1], 256))
  return lax.scan(step, (zeros, zeros), _apply_dense(weights['input'], x))[1]

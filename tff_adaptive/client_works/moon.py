# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""MOON's loss term: representations near those of the global model."""

from typing import Any

import tensorflow as tf

from tff_adaptive.client_works import loss_term
from tff_adaptive.client_works import model_adapter
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vectors

# The smallest product of two norms that a cosine divides by.
_SMALLEST_NORMS = 1e-8


def _cosines(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
  """The cosine between the rows of two matrices, one a row."""
  squares = tf.reduce_sum(tf.square(a), -1) * tf.reduce_sum(tf.square(b), -1)
  # The root of the larger: it has a gradient where a row is zero, too.
  norms = tf.sqrt(tf.maximum(squares, _SMALLEST_NORMS**2))
  return tf.reduce_sum(a * b, -1) / norms


class _Moon(loss_term.PreviousModelLossTerm):
  """MOON's contrastive term, see `build_moon`."""

  def __init__(
      self,
      representation_fn: model_adapter.RepresentationFn,
      mu: float,
      temperature: float,
  ):
    if not callable(representation_fn):
      raise TypeError(
          'MOON `representation_fn` must be a function of (weights, batch), '
          f'found {type(representation_fn)}.'
      )
    optimizer.check_rate('mu', mu, 'MOON')
    optimizer.check_positive('temperature', temperature, 'MOON')
    self._representation_fn = representation_fn
    self._mu = mu
    self._temperature = temperature

  def __call__(self, weights, received, batch, *, previous_model):
    local, from_global, from_previous = (
        self._represent(point, batch)
        for point in (weights, received, previous_model)
    )
    to_global = _cosines(local, tf.stop_gradient(from_global))
    to_previous = _cosines(local, tf.stop_gradient(from_previous))
    terms = tf.math.softplus((to_previous - to_global) / self._temperature)
    return self._mu * tf.reduce_mean(terms)

  def _represent(self, weights: model_adapter.Weights, batch: Any) -> tf.Tensor:
    """The representations of a batch's examples, one a row."""
    represented = self._representation_fn(weights, batch)
    size = tf.shape(represented)[0]
    # Not -1 for the second axis: an empty batch does not tell it.
    width = tf.reduce_prod(tf.shape(represented)[1:])
    # In half precision the smallest product of norms would be 0.
    represented = tf.cast(represented, vectors.step_dtype(represented))
    return tf.reshape(represented, [size, width])


def build_moon(
    representation_fn: model_adapter.RepresentationFn,
    mu: float = 1.0,
    temperature: float = 0.5,
) -> loss_term.PreviousModelLossTerm:
  """Builds the loss term of MOON, for any client optimizer.

  ```
  F(x; B) = f(x; B) + mu * mean over B of softplus((s_p - s_g) / temperature)
  s_g = cos(z(x), z(x_t)),  s_p = cos(z(x), z(x_prev))
  cos(a, b) = <a, b> / max(|a| |b|, 1e-8)
  ```

  with z the representation of an example, x_t the received model, and x_prev
  the model that the client's last participation ended with; both count as
  constants. In its first participation x_prev is x_t: the term is mu log 2 and
  has no gradient.

  Nothing more travels than without it, but a client keeps a model until it
  takes part again; in a simulation a store does, by the client's id.

  Args:
    representation_fn: Maps (trainable weights, batch) to the representations of
      the batch's examples, [batch size, ...], as a model in use has them:
      without dropout. The weights are a flat tuple of tensors in the model's
      order. See `build_keras_representation` for the input of a Keras model's
      last layer, or of any other.
    mu: The strength of the term, not negative. Default 1.0, as MOON's and
      Delta-SGD's published comparisons run it.
    temperature: Above zero. Default 0.5, of the same comparisons.

  Returns:
    A loss term for `tff_adaptive.algorithms.build_fed_opt`.

  Raises:
    TypeError: If `representation_fn` is no function, or an argument no number.
    ValueError: If `mu` or `temperature` is out of its range.

  Example:

    >>> term = build_moon(lambda weights, batch: batch * weights[0], mu=1.0)
    >>> x = (tf.constant([[1.0, 2.0]]),)
    >>> loss = term(x, x, tf.ones([3, 2]), previous_model=x)
    >>> round(float(loss), 4)  # log 2
    0.6931

  References:
    Li, He, Song, Model-Contrastive Federated Learning, CVPR 2021,
    https://arxiv.org/abs/2103.16257, equations (3) and (4). Deviation: MOON's
    own code has a projection head on top of z; Delta-SGD's comparison has none.
  """
  return _Moon(representation_fn, mu, temperature)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Terms added to the loss of each local batch: FedProx and MOON."""

import abc
from collections.abc import Callable
from typing import Any, Optional, Union

import tensorflow as tf

from tff_adaptive import _autograph
from tff_adaptive import ranges
from tff_adaptive.client_works import local_models
from tff_adaptive.models import forward as forward_lib
from tff_adaptive.models import keras_checks
from tff_adaptive.models import keras_classes
from tff_adaptive.models import keras_versions
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import vectors

# Maps (trainable weights, received weights, batch) to a scalar.
PlainLossTerm = Callable[
    [local_models.Weights, local_models.Weights, Any], tf.Tensor
]


class PreviousModelLossTerm(abc.ABC):
  """A loss term that also sees the client's model of its last participation.

  The client work then keeps the final model of each client until the client
  participates again; see `tff_adaptive.simulation.ClientStateStore`.
  """

  @abc.abstractmethod
  def __call__(
      self,
      weights: local_models.Weights,
      received: local_models.Weights,
      batch: Any,
      *,
      previous_model: local_models.Weights,
  ) -> tf.Tensor:
    """Returns the term.

    Args:
      weights: The trainable weights, a flat tuple of tensors.
      received: The weights received in this round.
      batch: The batch of the step.
      previous_model: The client's final weights of its last participation;
        `received` in its first one.

    Returns:
      A scalar.
    """


LossTerm = Union[PlainLossTerm, PreviousModelLossTerm]


def check(loss_term: Any) -> None:
  """Raises a TypeError unless a value is a loss term or None."""
  name = getattr(loss_term, '__name__', '')
  if callable(loss_term) and name.startswith('build_'):
    raise TypeError(
        f'`loss_term` must be a loss term, found the function `{name}`. Call '
        f'it: `{name}(...)`.'
    )
  if loss_term is not None and not callable(loss_term):
    raise TypeError(
        '`loss_term` must be a function of (weights, received weights, batch) '
        f'or a `PreviousModelLossTerm`, found {type(loss_term).__name__}.'
    )


class _Proximal:
  """FedProx's term, see `build_fedprox`.

  Attributes:
    proximal_mu: Its strength.
  """

  def __init__(self, mu: float):
    self.proximal_mu = mu

  def __call__(self, weights, received, batch):
    del batch  # Unused.
    # A sum of squares in half precision overflows early.
    dtype = vectors.step_dtype(weights)
    squares = [
        tf.reduce_sum(tf.square(tf.cast(w - r, dtype)))
        for w, r in zip(weights, received)
    ]
    return 0.5 * self.proximal_mu * tf.add_n(squares)


@arguments.checked
def build_fedprox(mu: ranges.NotNegative = 0.01) -> PlainLossTerm:
  """Builds the loss term of FedProx, for any client optimizer.

  ```
  F(x; B) = f(x; B) + mu / 2 * |x - x_t|^2
  ```

  with x_t the model that the client received. The gradient of the term is
  `mu * (x - x_t)`, zero at the first local step. TFF's own
  `tff.learning.algorithms.build_weighted_fed_prox` adds `mu * (x_t - x)` in
  release 0.87, which pushes clients away from the received model.

  Args:
    mu: The strength of the proximal term. Default 0.01, as in Delta-SGD's
      published comparison.

  Returns:
    A loss term for `tff_adaptive.algorithms.build_fed_opt`.

  Raises:
    TypeError: If `mu` is not a number.
    ValueError: If `mu` is negative or not finite.

  Example:

    >>> term = build_fedprox(mu=2.0)
    >>> float(term((tf.constant([3.0]),), (tf.constant([1.0]),), None))
    4.0

  References:
    Li et al., Federated Optimization in Heterogeneous Networks, MLSys 2020,
    https://arxiv.org/abs/1812.06127, equation (2).
  """
  return _Proximal(mu)


# The smallest product of two norms that a cosine divides by.
_SMALLEST_NORMS = 1e-8


def _cosines(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
  """Returns the cosines between the rows of two matrices."""
  squares = tf.reduce_sum(tf.square(a), -1) * tf.reduce_sum(tf.square(b), -1)
  # The maximum is under the root, so that a zero row has a gradient.
  norms = tf.sqrt(tf.maximum(squares, _SMALLEST_NORMS**2))
  return tf.reduce_sum(a * b, -1) / norms


class _Moon(PreviousModelLossTerm):
  """MOON's contrastive term, see `build_moon`."""

  def __init__(
      self,
      representation_fn: local_models.RepresentationFn,
      mu: float,
      temperature: float,
  ):
    if not callable(representation_fn):
      raise TypeError(
          'MOON `representation_fn` must be a function of (weights, batch), '
          f'found {type(representation_fn)}.'
      )
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

  def _represent(self, weights: local_models.Weights, batch: Any) -> tf.Tensor:
    """Returns the representations of a batch's examples, one per row."""
    represented = _autograph.call(self._representation_fn, weights, batch)
    size = tf.shape(represented)[0]
    # An empty batch does not determine -1 as the second axis.
    width = tf.reduce_prod(tf.shape(represented)[1:])
    # In half precision `_SMALLEST_NORMS` would be 0.
    represented = tf.cast(represented, vectors.step_dtype(represented))
    return tf.reshape(represented, [size, width])


@arguments.checked
def build_moon(
    representation_fn: local_models.RepresentationFn,
    mu: ranges.NotNegative = 1.0,
    temperature: ranges.Positive = 0.5,
) -> PreviousModelLossTerm:
  """Builds the loss term of MOON, for any client optimizer.

  ```
  F(x; B) = f(x; B) + mu * mean over B of softplus((s_p - s_g) / temperature)
  s_g = cos(z(x), z(x_t)),  s_p = cos(z(x), z(x_prev))
  cos(a, b) = <a, b> / max(|a| |b|, 1e-8)
  ```

  with z the representation of an example, x_t the received model, and x_prev
  the client's final model of its last participation; both are constants. In the
  first participation x_prev is x_t, so the term is mu log 2 and has no
  gradient.

  The term adds no communication, but a client keeps a model until it
  participates again; in a simulation it is in the client state store.

  Args:
    representation_fn: Maps (trainable weights, batch) to the representations of
      the batch's examples, [batch size, ...], without dropout. The weights are
      a flat tuple of tensors in the model's order. See
      `build_keras_representation` for the output of a Keras layer.
    mu: The strength of the term. Default 1.0, as in MOON's and Delta-SGD's
      published comparisons.
    temperature: Divides the difference of similarities. Default 0.5, as in the
      same comparisons.

  Returns:
    A loss term for `tff_adaptive.algorithms.build_fed_opt`.

  Raises:
    TypeError: If `representation_fn` is not callable, or another argument is
      not a number.
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
    paper and code add a projection head to z; Delta-SGD's comparison has none.
  """
  return _Moon(representation_fn, mu, temperature)


def build_keras_representation(
    keras_model: Any, input_spec: Any, layer: Optional[str] = None
) -> local_models.RepresentationFn:
  """Builds a function from a Keras model's weights to representations.

  Args:
    keras_model: The model that the functional model, or the factory of variable
      models, was made from: a sequential or functional one of Keras 3 or 2.
    input_spec: The structure of `tf.TensorSpec`s of a batch, as in
      `tff_adaptive.models.from_keras`.
    layer: The name of the layer whose output is the representation. Default
      `None`: the input of the last layer.

  Returns:
    A function of (trainable weights, batch) for `build_moon`.

  Raises:
    ValueError: If the model has no input or no such layer, or the layers up to
      it have no trainable weights, or have non-trainable ones, as batch
      normalization does.

  Example:

    >>> keras_model = tf.keras.Sequential([
    ...     tf.keras.layers.InputLayer([2]),
    ...     tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])
    >>> spec = (tf.TensorSpec([None, 2]), tf.TensorSpec([None, 1]))
    >>> represent = build_keras_representation(keras_model, spec)
    >>> weights = tuple(tf.ones(w.shape) for w in keras_model.weights)
    >>> represent(weights, (tf.ones([5, 2]), tf.ones([5, 1]))).shape
    TensorShape([5, 3])
  """
  if not getattr(keras_model, 'inputs', None):
    raise ValueError(
        'The layers of the Keras model are not connected: start it with '
        'an `Input`, or use a functional model.'
    )
  if layer is None:
    output = keras_model.layers[-1].input
  else:
    output = keras_model.get_layer(layer).output
  keras = keras_versions.find(keras_model)
  part = keras.model_class(keras_model.inputs, output)
  if part.non_trainable_weights:
    name = keras_checks.name_of(part.non_trainable_weights[0])
    raise ValueError(
        'A representation must depend on trainable weights only, but the '
        f'layers before it have non-trainable ones: {name}. Use an earlier '
        'layer, or a model without batch normalization.'
    )
  if not part.trainable_weights:
    raise ValueError(
        'No layer up to the representation has trainable weights, so training '
        'cannot change it: choose a later `layer`, one of '
        f'{[layer.name for layer in keras_model.layers]}.'
    )
  places = {
      id(v): place for place, v in enumerate(keras_model.trainable_weights)
  }
  used = [places[id(variable)] for variable in part.trainable_weights]
  features, _ = local_models.features_and_labels(input_spec)
  with keras_classes.kept_usable(), keras_checks.named_state(part):
    forward = forward_lib.Forward(keras, part, features)

  def represent(weights, batch):
    x, _ = local_models.features_and_labels(batch)
    weights = ([weights[place] for place in used], [])
    return forward(weights, x, training=False).outputs

  return represent

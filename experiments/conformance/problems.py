# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models of small problems: least squares, softmax regression, a tiny MLP.

The models are plain functions of a flat vector x of weights, as in the files of
reference numbers, with x cut into tensors.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff


def _quadratic(weights, x):
  return tf.linalg.matvec(x, weights[0])


def _softmax(weights, x):
  return tf.matmul(x, weights[0]) + weights[1]


def _mlp_hidden(weights, x):
  return tf.tanh(tf.matmul(x, weights[0]) + weights[1])


def _mlp(weights, x):
  return tf.matmul(_mlp_hidden(weights, x), weights[2]) + weights[3]


def _half_squared_error(output, label, sample_weight=None):
  del sample_weight  # Unused.
  return 0.5 * tf.reduce_mean(tf.square(output - label))


def _cross_entropy(output, label, sample_weight=None):
  del sample_weight  # Unused.
  return tf.reduce_mean(
      tf.nn.sparse_softmax_cross_entropy_with_logits(label, output)
  )


# Name to (prediction, loss, label dtype, weight shapes in the order of x).
_PROBLEMS: dict[str, tuple[Any, Any, Any, list[tuple[int, ...]]]] = {
    'quadratic': (_quadratic, _half_squared_error, np.float32, [(4,)]),
    'softmax': (_softmax, _cross_entropy, np.int32, [(5, 3), (3,)]),
    'mlp': (_mlp, _cross_entropy, np.int32, [(5, 4), (4,), (4, 3), (3,)]),
}


def create_functional_model(
    problem: Mapping[str, Any],
) -> tff.learning.models.FunctionalModel:
  """Creates the model of a problem, with the problem's initial weights.

  Args:
    problem: An entry of `problems` in a file of reference numbers: a mapping
      with `name` (quadratic, softmax or mlp), `x0` (the flat initial weights)
      and `clients`.

  Returns:
    A float32 `tff.learning.models.FunctionalModel` without metrics.

  Raises:
    ValueError: If the name is unknown, or the length of `x0` is not the number
      of weights.
  """
  if problem['name'] not in _PROBLEMS:
    raise ValueError(
        f'Unknown problem {problem["name"]!r}; the known ones are '
        f'{sorted(_PROBLEMS)}.'
    )
  predict, loss, label_dtype, shapes = _PROBLEMS[problem['name']]
  x0 = np.asarray(problem['x0'], np.float32)
  sizes = [int(np.prod(shape)) for shape in shapes]
  if x0.shape != (sum(sizes),):
    raise ValueError(
        f'The problem {problem["name"]!r} has {sum(sizes)} weights, found an '
        f'`x0` of shape {x0.shape}.'
    )
  parts = np.split(x0, np.cumsum(sizes)[:-1])
  weights = tuple(part.reshape(shape) for part, shape in zip(parts, shapes))
  num_features = shapes[0][0]

  @tf.function
  def predict_on_batch(model_weights, x, training=True):
    del training  # These models do not depend on it.
    return predict(model_weights[0], x)

  return tff.learning.models.FunctionalModel(
      initial_weights=(weights, ()),
      predict_on_batch_fn=predict_on_batch,
      loss_fn=tf.function(loss),
      input_spec=collections.OrderedDict(
          x=tf.TensorSpec([None, num_features], tf.float32),
          y=tf.TensorSpec([None], label_dtype),
      ),
  )


def create_representation_fn(
    problem: Mapping[str, Any],
) -> Optional[Callable[[Any, Any], tf.Tensor]]:
  """Creates a problem's function from weights and a batch to representations.

  Returns `None` for a model without hidden layer; weights are a flat tuple.
  """
  if problem['name'] != 'mlp':
    return None
  return lambda weights, batch: _mlp_hidden(weights, batch['x'])


def create_client_batches(
    problem: Mapping[str, Any], batch_size: int, num_epochs: int
) -> list[tf.data.Dataset]:
  """Creates the clients of a problem, as datasets of batches.

  Args:
    problem: See `create_functional_model`.
    batch_size: The number of examples per batch; the last may be short.
    num_epochs: The number of passes over a client's batches, in order.

  Returns:
    A dataset per client, of ordered dictionaries of `x` (float32) and `y`.
  """
  label_dtype = _PROBLEMS[problem['name']][2]
  clients = []
  for client in problem['clients']:
    examples = collections.OrderedDict(
        x=np.asarray(client['X'], np.float32),
        y=np.asarray(client['y'], label_dtype),
    )
    dataset = tf.data.Dataset.from_tensor_slices(examples)
    clients.append(dataset.batch(batch_size).repeat(num_epochs))
  return clients


def flatten_weights(weights: Sequence[np.ndarray]) -> np.ndarray:
  """Returns a model's trainable weights as the flat vector x."""
  return np.concatenate([np.ravel(w) for w in weights])

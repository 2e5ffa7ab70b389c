# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Derivatives of a loss with respect to the learning rates of rounds."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.client_works import model_adapter
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import values
from tff_adaptive.tuning import differentiation

_RATE_KEY = tff.learning.optimizers.LEARNING_RATE_KEY
# The parts of a process that have a rate, by the name of the rate.
PARTS = {
    'client_learning_rate': 'client_work',
    'server_learning_rate': 'finalizer',
}

# Maps model weights and any further arguments to a scalar.
LossFn = Callable[..., tf.Tensor]


class Hypergradient(NamedTuple):
  """A loss after some rounds, and its derivatives.

  Attributes:
    loss: The loss.
    client_learning_rate: Its derivative by the client learning rate; None if
      the client optimizer has none.
    server_learning_rate: The same of the server.
  """

  loss: float
  client_learning_rate: Optional[float]
  server_learning_rate: Optional[float]


def _find_rates(hparams_type: tff.Type) -> dict[str, int]:
  """Returns the number of the leaf that is the rate, by the name of a part.

  Raises:
    ValueError: If a rate is an integer, which has no derivative.
  """
  places: dict[str, int] = {}
  number = 0
  for part, fields in tff.structure.iter_elements(hparams_type):
    for name, field in tff.structure.iter_elements(fields):
      if name == _RATE_KEY:
        if tf.as_dtype(field.dtype).is_integer:
          raise ValueError(
              f'The learning rate of the {part} is an integer, which cannot be '
              'tuned: give a float, such as 1.0.'
          )
        places[part] = number
      number += len(values.leaf_types(field))
  return places


def _check_keeps_no_client_state(process: Any) -> None:
  clients_type = process.next.type_signature.parameter[1].member
  if isinstance(clients_type, tff.StructType) and cohort_lib.STATE_KEY in (
      name for name, _ in tff.structure.iter_elements(clients_type)
  ):
    raise computations.UnsupportedComputationError(
        'cannot differentiate the round: its clients keep state across rounds, '
        'which no gradient passes through; take a client optimizer and a loss '
        'term without state'
    )


def build_model_loss(model: model_adapter.Model) -> LossFn:
  """Builds the loss of a model on a batch, for `hypergradient`.

  Args:
    model: A `tff.learning.models.FunctionalModel`.

  Returns:
    A function from `tff.learning.models.ModelWeights` and a batch to the mean
    loss, without dropout, also of a loss that is a sum over a batch.

  Raises:
    TypeError: If `model` is not a model.
    UnsupportedComputationError: If the loss cannot be differentiated, as that
      of a `tff.learning.models.VariableModel`.
  """
  adapter = model_adapter.build_model_adapter(model)

  @tff.tensorflow.computation(adapter.weights_type, adapter.element_type)
  def evaluate(weights, batch):
    local_model = adapter.build_local_model()
    local_model.start(weights)
    trainable = tuple(tf.nest.flatten(weights.trainable))
    return local_model.evaluate(trainable, batch).mean_loss

  run = differentiation.build_function(evaluate)
  flatten = values.build_flatten(evaluate.type_signature.parameter)

  def loss(weights, batch):
    leaves = map(tf.convert_to_tensor, flatten((weights, batch)))
    return run(*leaves)[0]

  return loss


def hypergradient(
    process: tff.learning.templates.LearningProcess, loss_fn: LossFn
) -> Callable[..., Hypergradient]:
  """Differentiates a loss after k rounds by the learning rates of the rounds.

  A round maps the state s_t, with the model x_t, and the rates a (clients) and
  b (server) to the next state, s_{t+1} = R_t(s_t, a, b). Every round has the
  same rates. Then, by the chain rule from the last round to the first:

  ```
  u_k     = dL(x_k) / ds_k
  u_t     = (dR_t / ds_t)^T u_{t+1}                          (t = k-1, ..., 0)
  dL / da = sum over t of (dR_t / da)^T u_{t+1}              (likewise by b)
  ```

  TensorFlow differentiates the graph of the round: the clients' steps, the
  aggregation and the server's step. The states and the clients' messages of all
  k rounds are kept in memory; each client is trained once more when its
  gradient is taken. A call takes several times as long as the k rounds. It runs
  in this process, whatever context is installed. No federated system can
  compute it, as it takes second derivatives of all clients; it is for
  simulation.

  Choices that are not continuous (a client is rejected, an update is clipped)
  are held as they are, and roots have the derivative 0 at 0. What
  `tf.stop_gradient` holds back from the clients' gradients is differentiated.

  Args:
    process: A learning process with a learning rate among its hyperparameters,
      as of `build_fed_opt` with a functional model. Weights of float64 give
      derivatives that agree with finite differences to many digits.
    loss_fn: A function from `tff.learning.models.ModelWeights` of tensors, and
      the arguments that the returned function is called with, to a scalar that
      TensorFlow differentiates, such as `build_model_loss(model)`.

  Returns:
    A function of a state, a sequence of k cohorts or lists of clients'
    datasets, and arguments for `loss_fn`, to a `Hypergradient`. The state stays
    as it is. The first call builds the graph of the clients' work.

  Raises:
    ValueError: If the process has no learning rate in its state, or an integer.
    UnsupportedComputationError: If the round cannot be compiled or
      differentiated: the model is a `VariableModel` or has `tf.custom_gradient`
      ops, an op has no derivative, clients keep state across rounds, or their
      data are not batches of rows.

  Example:

    ```python
    find = tuning.hypergradient(process, tuning.build_model_loss(model))
    found = find(state, [cohort], batch)
    found.server_learning_rate  # Above 0: a smaller rate lowers the loss.
    ```

  References:
    Maclaurin, Duvenaud, Adams, Gradient-based Hyperparameter Optimization
    through Reversible Learning, ICML 2015, https://arxiv.org/abs/1502.03492;
    states are kept here, not reversed. Baydin et al., Online Learning Rate
    Adaptation with Hypergradient Descent, ICLR 2018,
    https://arxiv.org/abs/1703.04782, is the case of one step; FedHyper
    (`optimizers.build_fedhyper_global`) approximates that of one round.
  """
  return _Differentiator(process, loss_fn)


class _Differentiator:
  """The result of `hypergradient`."""

  def __init__(self, process: Any, loss_fn: LossFn):
    hparams_type = process.get_hparams.type_signature.result
    self._places = _find_rates(hparams_type)
    if not self._places:
      raise ValueError(
          'The process has no learning rate in its state: its hyperparameters '
          f'are {hparams_type}. Take optimizers whose `get_hparams` has '
          '`learning_rate`, such as `optimizers.build_sgd(0.1)`.'
      )
    _check_keeps_no_client_state(process)
    self._loss_fn = loss_fn
    self._round = differentiation.DifferentiableRound(process.next)
    self._get_hparams = differentiation.build_function(process.get_hparams)
    self._set_hparams = differentiation.build_function(process.set_hparams)
    get_weights = process.get_model_weights
    self._get_weights = differentiation.build_function(get_weights)
    self._pack_weights = values.build_pack(get_weights.type_signature.result)

  def __call__(
      self, state: Any, cohorts: Sequence[Any], *arguments: Any
  ) -> Hypergradient:
    initial = self._round.flatten_state(state)
    hparams = self._get_hparams(*initial)

    def set_hparams(*hparams):
      return self._set_hparams(*initial, *hparams)

    leaves, pull_backs = set_hparams(*hparams), []
    for round_num, cohort in enumerate(cohorts):
      leaves, pull_back = self._round(leaves, cohort, round_num)
      pull_backs.append(pull_back)

    loss, upstream = self._differentiate_loss(leaves, arguments)
    for pull_back in reversed(pull_backs):
      upstream = pull_back(upstream)
    found = differentiation.pull_back(set_hparams, hparams, upstream)
    rates = {name: self._rate(found, part) for name, part in PARTS.items()}
    return Hypergradient(loss, **rates)

  def _differentiate_loss(
      self, leaves: Sequence[tf.Tensor], arguments: Sequence[Any]
  ) -> tuple[float, differentiation.Gradients]:
    """Returns the loss of a state and its derivatives by the leaves."""

    def loss(*leaves):
      weights = self._pack_weights(iter(self._get_weights(*leaves)))
      return [self._loss_fn(weights, *arguments)]

    (value,) = loss(*leaves)
    one = tf.ones_like(value)
    return float(value), differentiation.pull_back(loss, leaves, [one])

  def _rate(
      self, found: differentiation.Gradients, part: str
  ) -> Optional[float]:
    """Returns the derivative by the rate of a part, None without a rate."""
    place = self._places.get(part)
    derivative = None if place is None else found[place]
    return None if derivative is None else float(derivative)

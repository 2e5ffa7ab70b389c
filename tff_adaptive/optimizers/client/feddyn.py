# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedDyn: dual variables that correct the drift of clients."""

import collections
from collections.abc import Mapping
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import client_reports
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import server_optimizer as server_optimizer_lib
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_DUAL_KEY = 'dual'
# h_i + y - x_t, the dual plus this round's steps so far.
OFFSET_KEY = 'offset'
_MEAN_DUAL_KEY = 'mean_dual'
_ALPHA_SCALE_KEY = 'alpha_scale'
# The names of a report and of a part of a survey.
_COUNT = 'num_clients'
_COUNT_EXAMPLES = 'num_examples'


class _MeanDualStep(server_optimizer_lib.ServerOptimizer):
  """Another server optimizer, along the mean update plus the mean dual.

  Its state is that of the other one, and `mean_dual`, the mean of the duals of
  all clients.
  """

  def __init__(self, inner: Any, num_clients: int, owner: str):
    """Initializes the optimizer.

    Args:
      inner: The server optimizer that takes the step, with a mapping as state.
      num_clients: The number of all clients, sampled or not.
      owner: The name of the clients' rule, for messages.

    Raises:
      TypeError: If `inner` is not an optimizer, or its state is not a mapping.
      ValueError: If it is a rule of clients.
    """
    self._inner = server_optimizer_lib.to_server_optimizer(inner)
    self._num_clients = num_clients
    self.client_reports = {
        **self._inner.client_reports,
        _COUNT: client_reports.NUM_CLIENTS,
    }
    state = inner.initialize(tf.TensorSpec([], tf.float32))
    if not isinstance(state, Mapping):
      raise TypeError(
          f'With {owner}, the server optimizer must have a mapping as state, '
          f'found a {type(state).__name__} of {optimizer.name_of(inner)}.'
      )

  def initialize(self, specs):
    return collections.OrderedDict(
        self._inner.initialize(specs),
        **{_MEAN_DUAL_KEY: vectors.fill_moments(specs)},
    )

  def check_client(self, client_optimizer):
    self._inner.check_client(client_optimizer)

  def client_update(self, end):
    return _autograph.call(self._inner.client_update, end)

  def client_rate_scale(self, state):
    return _autograph.call(self._inner.client_rate_scale, _without_dual(state))

  def _next_mean_dual(self, state: Any, gradients: Any, reports: Any) -> Any:
    # The duals of the participants have grown by their updates.
    share = reports[_COUNT] / self._num_clients
    return tf.nest.map_structure(
        lambda h, g: h - tf.cast(share, h.dtype) * tf.cast(g, h.dtype),
        state[_MEAN_DUAL_KEY],
        gradients,
    )

  def next(self, state, weights, gradients, *, reports=None):
    server_optimizer_lib.check_reports(reports, self)
    mean_dual = self._next_mean_dual(state, gradients, reports)
    gradients = tf.nest.map_structure(
        lambda g, h: g - tf.cast(h, g.dtype), gradients, mean_dual
    )
    inner, moved = _autograph.call(
        self._inner.next,
        _without_dual(state),
        weights,
        gradients,
        reports=reports,
    )
    return collections.OrderedDict(inner, **{_MEAN_DUAL_KEY: mean_dual}), moved

  def after_rejection(self, state, gradients, reports):
    # The clients keep their new duals even if the server rejects the step, so
    # their mean follows them.
    mean_dual = self._next_mean_dual(state, gradients, reports)
    is_finite = vectors.all_finite(mean_dual)
    inner = _autograph.call(
        self._inner.after_rejection, _without_dual(state), gradients, reports
    )
    held = vectors.choose(is_finite, mean_dual, state[_MEAN_DUAL_KEY])
    return collections.OrderedDict(inner, **{_MEAN_DUAL_KEY: held})

  def report(self, state):
    return _autograph.call(self._inner.report, _without_dual(state))

  def get_hparams(self, state):
    return self._inner.get_hparams(_without_dual(state))

  def set_hparams(self, state, hparams):
    inner = self._inner.set_hparams(_without_dual(state), hparams)
    return collections.OrderedDict(
        inner, **{_MEAN_DUAL_KEY: state[_MEAN_DUAL_KEY]}
    )


def _without_dual(state: Mapping[str, Any]) -> Any:
  """Returns the state of the other server optimizer."""
  return collections.OrderedDict(
      (name, part) for name, part in state.items() if name != _MEAN_DUAL_KEY
  )


class DualOptimizer(
    vector_optimizer.VectorOptimizer, federated_optimizer.FederatedOptimizer
):
  """A rule whose clients keep a dual variable, the sum of their updates."""

  moment_keys = (OFFSET_KEY,)
  step_size_key = 'learning_rate'

  def __init__(self, num_clients: int, hparams: Any):
    """Initializes the optimizer.

    Args:
      num_clients: The number of all clients, sampled or not.
      hparams: The hyperparameters by name.

    Raises:
      TypeError: If a hyperparameter is not a number, or `num_clients` is not an
        integer.
      ValueError: If one is out of its range.
    """
    super().__init__(hparams)
    self._num_clients = num_clients

  def initialize_kept(self, specs):
    return collections.OrderedDict([(_DUAL_KEY, vectors.fill_moments(specs))])

  def start_round(self, state, shared, kept, round_num):
    del shared, round_num  # Unused.
    return collections.OrderedDict(state, **{OFFSET_KEY: kept[_DUAL_KEY]})

  def finish_round(self, state):
    kept = collections.OrderedDict([(_DUAL_KEY, state[OFFSET_KEY])])
    return collections.OrderedDict(), kept

  def add_mean_dual(
      self,
      server_optimizer: tff.learning.optimizers.Optimizer,
      client_weighting: tff.learning.ClientWeighting,
  ) -> tff.learning.optimizers.Optimizer:
    """Returns a server optimizer that also steps along the mean dual."""
    if client_weighting != tff.learning.ClientWeighting.UNIFORM:
      raise ValueError(
          f'{self.name} sums the updates of all clients with equal weights: '
          'pass `client_weighting=tff.learning.ClientWeighting.UNIFORM`.'
      )
    return _MeanDualStep(server_optimizer, self._num_clients, self.name)

  def move(self, state: Any, x: Any, direction: Any, rate: tf.Tensor) -> Any:
    """Returns the changed entries of the state, and x, after a step."""
    changed = {OFFSET_KEY: vectors.descend(state[OFFSET_KEY], direction, rate)}
    return changed, vectors.descend(x, direction, rate)


class _FedDyn(DualOptimizer):
  """FedDyn, see `build_feddyn`."""

  name = 'FedDyn'
  client_weighting = tff.learning.ClientWeighting.UNIFORM

  def __init__(
      self, num_clients: int, hparams: Any, mean_num_examples: Optional[float]
  ):
    super().__init__(num_clients, hparams)
    self._mean_num_examples = mean_num_examples

  def at_server(self, server_optimizer, client_weighting):
    return self.add_mean_dual(server_optimizer, client_weighting)

  def survey(self, data):
    found = collections.OrderedDict()
    if self._mean_num_examples is not None:
      found[_COUNT_EXAMPLES] = data.num_examples()
    return found

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict([(_ALPHA_SCALE_KEY, tf.ones([], dtype))])

  def start_round(self, state, shared, kept, round_num):
    state = super().start_round(state, shared, kept, round_num)
    if self._mean_num_examples is not None:
      scale = tf.math.divide_no_nan(
          self._mean_num_examples, shared[_COUNT_EXAMPLES]
      )
      state[_ALPHA_SCALE_KEY] = tf.cast(scale, state[_ALPHA_SCALE_KEY].dtype)
    return state

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    alpha = hparams['alpha'] * state[_ALPHA_SCALE_KEY]
    direction = vectors.combine(1.0, g, alpha, state[OFFSET_KEY])
    return self.move(state, x, direction, hparams['learning_rate'])


@arguments.checked
def build_feddyn(
    num_clients: ranges.Count,
    learning_rate: ranges.NotNegative = 0.1,
    alpha: ranges.NotNegative = 0.01,
    mean_num_examples: Optional[ranges.Positive] = None,
) -> federated_optimizer.FederatedOptimizer:
  """Builds FedDyn, which regularizes clients and server dynamically.

  With h_i the sum of the past updates of client i, 0 at first, x_t the received
  model and D the mean update of the round:

  ```
  y       = y - learning_rate * (g(y) + alpha * (y - x_t + h_i))   (local steps)
  h_i     = h_i + delta_i                                 (clients of the round)
  x_{t+1} = x_t + D + 1 / num_clients * sum over all clients of h_i
  ```

  The paper's local gradients are -alpha h_i. The client keeps h_i; in a
  simulation it is in the client state store. A client that is not sampled, or
  not healthy, keeps its h_i unchanged. The server holds the mean of all h_i,
  and any server rule takes its step along D plus that mean. In the first round
  clients train as in FedProx, and the server moves by 2 D if all participate,
  so that a small alpha does not give FedAvg. Clients must have equal weights,
  which is the default of `build_fed_opt` with this rule.

  Args:
    num_clients: The number of all clients, sampled or not.
    learning_rate: The step size. Default 0.1, as in the paper's experiments.
    alpha: The strength of the regularizer. Default 0.01, as in the paper's
      experiments.
    mean_num_examples: The mean number of examples of a client in a round, over
      all epochs (with two epochs, twice that of its data). If given, the alpha
      of client i is alpha times this, divided by its own number, as in the
      published code. Default `None`.

  Returns:
    A `FederatedOptimizer` with the hyperparameters `learning_rate` and `alpha`.
    It keeps `dual`, h_i, with the structure of the weights, in float32 or
    float64; the state of the server's rule has `mean_dual`.

  Example:

    >>> rule = build_feddyn(num_clients=10, learning_rate=0.5, alpha=1.0)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> x = one = tf.constant(1.0)
    >>> for _ in range(2):  # The gradient is 1; the second step is 1 - 0.5.
    ...   state, x = rule.next(state, x, one, value=one)
    >>> _, kept = rule.finish_round(state)
    >>> float(x), float(kept['dual'])
    (0.25, -0.75)

  References:
    Acar, Zhao, Navarro, Mattina, Whatmough, Saligrama, Federated Learning Based
    on Dynamic Regularization, ICLR 2021, https://arxiv.org/abs/2111.04263,
    Algorithm 1.
  """
  hparams = dict(learning_rate=learning_rate, alpha=alpha)
  return _FedDyn(num_clients, hparams, mean_num_examples)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedDyn: dual variables that correct the drift of clients."""

import collections
from typing import Any, Optional

import tensorflow as tf

from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_DUAL_KEY = 'dual'
# h_i + y - x_t, the dual plus this round's steps so far.
OFFSET_KEY = 'offset'
_MEAN_DUAL_KEY = 'mean_dual'
_ALPHA_SCALE_KEY = 'alpha_scale'


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
    optimizer.check_count('num_clients', num_clients, self.name)
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

  def initialize_correction(self, specs):
    return collections.OrderedDict(
        [(_MEAN_DUAL_KEY, vectors.fill_moments(specs))]
    )

  def correct_change(self, held, change, num_clients):
    share = num_clients / self._num_clients
    # The duals of the participants have grown by their updates.
    mean_dual = tf.nest.map_structure(
        lambda h, d: h + tf.cast(share, h.dtype) * tf.cast(d, h.dtype),
        held[_MEAN_DUAL_KEY],
        change,
    )
    corrected = tf.nest.map_structure(
        lambda d, h: d + tf.cast(h, d.dtype), change, mean_dual
    )
    return collections.OrderedDict([(_MEAN_DUAL_KEY, mean_dual)]), corrected

  def move(self, state: Any, x: Any, direction: Any, rate: tf.Tensor) -> Any:
    """Returns the changed entries of the state, and x, after a step."""
    changed = {OFFSET_KEY: vectors.descend(state[OFFSET_KEY], direction, rate)}
    return changed, vectors.descend(x, direction, rate)


class _FedDyn(DualOptimizer):
  """FedDyn, see `build_feddyn`."""

  name = 'FedDyn'
  corrects_server = True

  def __init__(
      self, num_clients: int, hparams: Any, mean_num_examples: Optional[float]
  ):
    super().__init__(num_clients, hparams)
    self._mean_num_examples = mean_num_examples
    if mean_num_examples is not None:
      optimizer.check_positive(
          'mean_num_examples', mean_num_examples, self.name
      )
      self.surveys = (federated_optimizer.Survey.NUM_EXAMPLES,)

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict([(_ALPHA_SCALE_KEY, tf.ones([], dtype))])

  def start_round(self, state, shared, kept, round_num):
    state = super().start_round(state, shared, kept, round_num)
    if self._mean_num_examples is not None:
      num_examples = shared[federated_optimizer.Survey.NUM_EXAMPLES.value]
      scale = tf.math.divide_no_nan(self._mean_num_examples, num_examples)
      state[_ALPHA_SCALE_KEY] = tf.cast(scale, state[_ALPHA_SCALE_KEY].dtype)
    return state

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    alpha = hparams['alpha'] * state[_ALPHA_SCALE_KEY]
    direction = vectors.combine(1.0, g, alpha, state[OFFSET_KEY])
    return self.move(state, x, direction, hparams['learning_rate'])


def build_feddyn(
    num_clients: int,
    learning_rate: float = 0.1,
    alpha: float = 0.01,
    mean_num_examples: Optional[float] = None,
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
  so that a small alpha does not give FedAvg. Clients must have equal weights.

  Args:
    num_clients: The number of all clients, sampled or not, positive.
    learning_rate: The step size, not negative. Default 0.1, as in the paper's
      experiments.
    alpha: The strength of the regularizer, not negative. Default 0.01, as in
      the paper's experiments.
    mean_num_examples: The mean number of examples of a client in a round, over
      all epochs (with two epochs, twice that of its data), above zero. If
      given, the alpha of client i is alpha times this, divided by its own
      number, as in the published code. Default `None`.

  Returns:
    A `FederatedOptimizer` with the hyperparameters `learning_rate` and `alpha`.
    It keeps `dual`, h_i, with the structure of the weights, in float32 or
    float64; the state of the server's rule has `mean_dual`.

  Raises:
    TypeError: If `num_clients` is not an integer, or another argument is not a
      number.
    ValueError: If an argument is out of its range.

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

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
"""Differential privacy of all that the clients of a round send.

DP-FedAvg of McMahan et al., Learning Differentially Private Recurrent Language
Models, ICLR 2018, https://arxiv.org/abs/1710.06963.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
import math
import numbers
from typing import Any, Optional

import attrs
import tensorflow_federated as tff

CHANGE = 'change'

_DPFactory = tff.aggregators.DifferentiallyPrivateFactory


def _check_number(
    name: str, value: Any, is_valid: Callable[[Any], bool], expected: str
) -> None:
  if not isinstance(value, numbers.Real) or isinstance(value, bool):
    raise TypeError(f'`{name}` must be a number, found {value!r}.')
  if not (math.isfinite(value) and is_valid(value)):
    raise ValueError(f'`{name}` must be {expected}, found {value}.')


def _check_not_negative(name: str, value: Any) -> None:
  _check_number(name, value, lambda v: v >= 0, 'at least 0')


def _check_positive(name: str, value: Any) -> None:
  _check_number(name, value, lambda v: v > 0, 'above 0')


@attrs.frozen(kw_only=True)
class AdaptiveClipping:
  """Clipping to a quantile of the clients' norms, estimated with noise.

  In every round, with C the bound, v_i what client i sends, m the expected
  number of clients in a round and N(0, s^2) normal noise:

  ```
  b = 1/2 + (sum_i ([|v_i| <= C] - 1/2) + N(0, count_stddev^2)) / m
  C = C * exp(-learning_rate * (b - target_quantile))
  ```

  The noisy count is paid for by more noise on the sum of the v_i, see
  `DifferentialPrivacy`.

  Attributes:
    target_quantile: The share of clients that are not to be clipped, in [0, 1].
      Default 0.5, the median, the paper's.
    learning_rate: How fast the bound moves, not negative. Default 0.2, the
      paper's.
    count_stddev: The standard deviation of the noise on the count, positive.
      Default `None`: a twentieth of the expected number of clients in a round,
      the paper's.

  Raises:
    TypeError: If an attribute is not a number.
    ValueError: If an attribute is out of its range.

  References:
    Andrew, Thakkar, McMahan, Ramaswamy, Differentially Private Learning with
    Adaptive Clipping, NeurIPS 2021, https://arxiv.org/abs/1905.03871, Algorithm
    1, in TFF's implementation.
  """

  target_quantile: float = 0.5
  learning_rate: float = 0.2
  count_stddev: Optional[float] = None

  def __attrs_post_init__(self):
    _check_number(
        'target_quantile',
        self.target_quantile,
        lambda v: 0 <= v <= 1,
        'from 0 to 1',
    )
    _check_not_negative('learning_rate', self.learning_rate)
    if self.count_stddev is not None:
      _check_positive('count_stddev', self.count_stddev)


@attrs.frozen(kw_only=True)
class DifferentialPrivacy:
  """How the clients of a round are hidden in what is made of their messages.

  Everything that a client sends for the model, the change of its weights and
  each payload beside it, is a vector v of its own. Each is clipped to its bound
  C, summed, noised and divided by the number of clients that a round is
  expected to have, whoever came and whoever was rejected (these send zeros):

  ```
  v_i  = v_i * min(1, C / |v_i|)
  mean = (sum_i v_i + N(0, (z C)^2 I)) / clients_per_round
  ```

  k such sums over the same clients, with noise multipliers z_1, ..., z_k, are
  together as private as one with (sum_j z_j^-2)^(-1/2): scaled to unit noise,
  what a client adds to all of them is a vector of norm (sum_j z_j^-2)^(1/2) at
  most. `noise_multiplier` is that of all k together, and each has
  `noise_multiplier` * sqrt(k). With adaptive clipping a vector comes with the
  noisy count of those that were not clipped, to which a client adds 1/2 at
  most; the multiplier of the vector is then (z_j^-2 - (2
  count_stddev)^-2)^(-1/2), so that both together have z_j.

  Attributes:
    noise_multiplier: The standard deviation of the noise of a round over the
      bound, of all vectors together; not negative. 0 clips and adds no noise.
    clients_per_round: The expected number of clients in a round, an integer
      above 0: exactly that of a fixed-size cohort, the mean of Poisson
      sampling.
    clip_norm: The bound of the change of the model, over all trainable weights;
      with `adaptive_clipping` where it starts. Above 0. Default 0.1, where
      TFF's adaptive clipping starts.
    payload_clip_norms: The bounds of payloads by name, see `build_fed_opt` for
      what is sent; with `adaptive_clipping` one that is missing starts at
      `clip_norm`. Default: none.
    adaptive_clipping: How bounds follow the clients' norms. Default `None`:
      they are fixed.

  Raises:
    TypeError: If an attribute has not the documented type.
    ValueError: If a number is out of its range.

  Example:

    ```python
    from tff_adaptive import algorithms
    from tff_adaptive import privacy

    process = algorithms.build_fedcada(
        model,
        privacy=privacy.DifferentialPrivacy(
            noise_multiplier=1.0,
            clients_per_round=100,
            clip_norm=0.5,
            payload_clip_norms={'first_moment': 0.5, 'second_moment': 0.1},
        ),
    )
    ```

  References:
    McMahan et al., Learning Differentially Private Recurrent Language Models,
    ICLR 2018, https://arxiv.org/abs/1710.06963, Algorithm 1 with uniform
    weights and the estimator with a fixed denominator, f_f.
    McMahan et al., A General Approach to Adding Differential Privacy to
    Iterative Training Procedures, 2018, https://arxiv.org/abs/1812.06210,
    section 4: several vectors with bounds of their own.
    Andrew et al., Differentially Private Learning with Adaptive Clipping,
    NeurIPS 2021, https://arxiv.org/abs/1905.03871, Theorem 1.
  """

  noise_multiplier: float
  clients_per_round: int
  clip_norm: float = 0.1
  payload_clip_norms: Mapping[str, float] = attrs.field(factory=dict)
  adaptive_clipping: Optional[AdaptiveClipping] = None

  def __attrs_post_init__(self):
    _check_not_negative('noise_multiplier', self.noise_multiplier)
    size = self.clients_per_round
    if isinstance(size, bool) or not isinstance(size, numbers.Integral):
      raise TypeError(
          f'`clients_per_round` must be an integer, found {size!r}.'
      )
    _check_positive('clients_per_round', size)
    if not isinstance(self.payload_clip_norms, Mapping):
      raise TypeError(
          '`payload_clip_norms` must map names to bounds, found '
          f'{self.payload_clip_norms!r}.'
      )
    bounds = {'clip_norm': self.clip_norm}
    for name, bound in self.payload_clip_norms.items():
      bounds[f'payload_clip_norms[{name!r}]'] = bound
    for name, bound in bounds.items():
      _check_positive(name, bound)

  def build_aggregators(self, payloads: Sequence[str] = ()) -> tuple[
      tff.aggregators.UnweightedAggregationFactory,
      dict[str, tff.aggregators.UnweightedAggregationFactory],
  ]:
    """Builds what aggregates the change of the model, and each payload.

    Args:
      payloads: The names of what clients send besides the change; by default
        nothing.

    Returns:
      The factory for the change and, by name, those for the payloads:
      `model_aggregator` and `payload_aggregators` of `build_fed_opt`.

    Raises:
      ValueError: If a bound is missing, one is given for what no client sends,
        or the noise does not allow for adaptive clipping.
    """
    bounds = {CHANGE: self.clip_norm, **self._payload_bounds(payloads)}
    multiplier = self.noise_multiplier * math.sqrt(len(bounds))
    factories = {
        name: self._build_aggregator(multiplier, bound)
        for name, bound in bounds.items()
    }
    return factories.pop(CHANGE), factories

  def _payload_bounds(self, payloads: Collection[str]) -> dict[str, float]:
    """The bound of each payload, or the start of it."""
    given = dict(self.payload_clip_norms)
    unknown = [name for name in given if name not in payloads]
    if unknown:
      raise ValueError(
          f'`payload_clip_norms` has a bound for {unknown[0]!r}, which no '
          'client sends; besides the change of the model clients send '
          f'{sorted(payloads) or "nothing"}.'
      )
    missing = [name for name in payloads if name not in given]
    if missing and self.adaptive_clipping is None:
      raise ValueError(
          f'Besides the change of the model clients send {missing}, which '
          'differential privacy has to clip, too: give each a bound in '
          '`payload_clip_norms`, or use `adaptive_clipping`.'
      )
    return {name: given.get(name, self.clip_norm) for name in payloads}

  def _build_aggregator(
      self, multiplier: float, bound: float
  ) -> tff.aggregators.UnweightedAggregationFactory:
    """The aggregator of one vector."""
    size = float(self.clients_per_round)
    adaptive = self.adaptive_clipping
    if adaptive is None:
      return _DPFactory.gaussian_fixed(multiplier, size, float(bound))
    stddev = adaptive.count_stddev
    if stddev is None and multiplier > 0:
      stddev = size / 20
    if stddev is not None and multiplier >= 2 * stddev:
      raise ValueError(
          'Adaptive clipping needs a `count_stddev` above half of the noise '
          f'multiplier of a vector, {multiplier / 2:.3g}, found {stddev:.3g}, '
          'by default a twentieth of `clients_per_round`: give a larger one, '
          'more clients per round or less noise.'
      )
    return _DPFactory.gaussian_adaptive(
        multiplier,
        size,
        initial_l2_norm_clip=float(bound),
        target_unclipped_quantile=float(adaptive.target_quantile),
        learning_rate=float(adaptive.learning_rate),
        clipped_count_stddev=None if stddev is None else float(stddev),
    )


def get_clip_norms(state: Any) -> dict[str, float]:
  """Returns the bounds to which the next round clips, of adaptive clipping.

  Args:
    state: The `LearningAlgorithmState` of a process with `DifferentialPrivacy`.

  Returns:
    The bounds by name, that of the change of the model under 'change'; those of
    fixed clipping are not in the state.

  Example:

    >>> adaptive = DifferentialPrivacy(
    ...     noise_multiplier=1.0, clients_per_round=100, clip_norm=0.5,
    ...     adaptive_clipping=AdaptiveClipping())
    >>> process = algorithms.build_fed_opt(
    ...     model, optimizers.build_sgd(0.1), privacy=adaptive,
    ...     client_weighting=tff.learning.ClientWeighting.UNIFORM)
    >>> get_clip_norms(process.initialize())
    {'change': 0.5}
  """
  found: dict[str, float] = {}
  _collect_clip_norms(CHANGE, state.aggregator, found)
  _collect_clip_norms('client_work', state.client_work, found)
  return found


def _collect_clip_norms(name: str, part: Any, found: dict[str, float]) -> None:
  """Finds the states of aggregators by the names that they are under."""
  if isinstance(part, Mapping):
    for key, value in part.items():
      _collect_clip_norms(key, value, found)
    return
  query: Any = getattr(part, 'query_state', None)
  query = getattr(query, 'numerator_state', None)
  if hasattr(query, 'quantile_estimator_state'):
    found[name] = float(query.sum_state.l2_norm_clip)

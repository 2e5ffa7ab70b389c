# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Differential privacy of everything that the clients of a round send.

DP-FedAvg of McMahan et al., Learning Differentially Private Recurrent Language
Models, ICLR 2018, https://arxiv.org/abs/1710.06963, extended to payloads
besides the model update.
"""

from collections.abc import Collection, Mapping, Sequence
import math
from typing import Any, Optional

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.aggregators import weighting
from tff_adaptive.optimizers import arguments

CHANGE = 'change'

_DPFactory = tff.aggregators.DifferentiallyPrivateFactory
# The squares of a million million such numbers have a finite sum in float32.
_LARGEST = 1e13


class _BoundedFactory(tff.aggregators.UnweightedAggregationFactory):
  """Bounds each number of a vector before an aggregator clips its norm.

  Otherwise the norm of large finite numbers is infinite, and clipped they are
  NaN: one client would spoil the sum of all.
  """

  def __init__(self, inner: tff.aggregators.UnweightedAggregationFactory):
    self._inner = inner

  def create(self, value_type: Any) -> tff.templates.AggregationProcess:
    inner = self._inner.create(value_type)

    @tff.tensorflow.computation(value_type)
    def bound(value):
      return tf.nest.map_structure(
          lambda x: tf.clip_by_value(x, -_LARGEST, _LARGEST), value
      )

    @tff.federated_computation(
        inner.initialize.type_signature.result,
        tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, value):
      return inner.next(state, tff.federated_map(bound, value))

    return tff.templates.AggregationProcess(inner.initialize, next_fn)


@attrs.frozen(kw_only=True)
class AdaptiveClipping:
  """Clipping to a quantile of the clients' norms, estimated with noise.

  In every round, with C the bound, v_i the vector of client i, m the expected
  number of clients in a round and N(0, s^2) normal noise:

  ```
  b = 1/2 + (sum_i ([|v_i| <= C] - 1/2) + N(0, count_stddev^2)) / m
  C = C * exp(-learning_rate * (b - target_quantile))
  ```

  To pay for the noisy count, the sum of the v_i gets more noise, see
  `DifferentialPrivacy`.

  Attributes:
    target_quantile: The share of clients that should not be clipped, in [0, 1].
      Default 0.5, the median, as in the paper.
    learning_rate: The step size of the bound, not negative. Default 0.2, as in
      the paper.
    count_stddev: The standard deviation of the noise on the count, positive.
      Default `None`: a twentieth of the expected number of clients in a round,
      as in the paper; 0 without noise.

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
    owner = 'Adaptive clipping'
    arguments.check(
        'target_quantile', self.target_quantile, owner, ranges.ClosedShare
    )
    arguments.check(
        'learning_rate', self.learning_rate, owner, ranges.NotNegative
    )
    if self.count_stddev is not None:
      arguments.check('count_stddev', self.count_stddev, owner, ranges.Positive)


@attrs.frozen(kw_only=True)
class DifferentialPrivacy:
  """Client-level differential privacy by clipping and Gaussian noise.

  The model update and each payload that a client sends is a separate vector v.
  Each is clipped to its bound C, summed, noised and divided by the expected
  number of clients in a round, however many participate or are rejected (the
  latter send zeros):

  ```
  v_i  = v_i * min(1, C / |v_i|)
  mean = (sum_i v_i + N(0, (z C)^2 I)) / clients_per_round
  ```

  k such sums over the same clients, with noise multipliers z_1, ..., z_k, are
  together as private as one with (sum_j z_j^-2)^(-1/2): scaled to unit noise, a
  client's contribution to all of them is a vector of norm at most
  (sum_j z_j^-2)^(1/2). `noise_multiplier` is that of all k together, and each
  sum has `noise_multiplier` * sqrt(k). Adaptive clipping also releases, for
  each vector, the noisy count of clients that were not clipped, to which a
  client contributes at most 1/2. The multiplier of the vector is then
  (z_j^-2 - (2 count_stddev)^-2)^(-1/2), so that both together have z_j.

  Attributes:
    noise_multiplier: The standard deviation of a round's noise relative to the
      bound, for all vectors together; not negative. 0 clips without noise.
    clients_per_round: The expected number of clients in a round, an integer
      above 0: the size of a fixed-size cohort, or the mean of Poisson sampling.
    clip_norm: The bound of the model update, over all trainable weights, above
      0; with `adaptive_clipping` the initial bound. Default 0.1, as in TFF's
      adaptive clipping.
    payload_clip_norms: The bounds of payloads by name, see `build_fed_opt`.
      With `adaptive_clipping` a missing one starts at `clip_norm`. Empty by
      default.
    adaptive_clipping: The adaptation of bounds to the clients' norms. Default
      `None`: fixed bounds.

  Raises:
    TypeError: If an attribute does not have the documented type.
    ValueError: If a number is out of its range.

  Example:

    ```python
    from tff_adaptive import algorithms
    from tff_adaptive import optimizers
    from tff_adaptive import privacy

    process = algorithms.build_fed_opt(
        model,
        optimizers.build_fedcada_adam(),
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
    owner = 'Differential privacy'
    arguments.check(
        'noise_multiplier', self.noise_multiplier, owner, ranges.NotNegative
    )
    arguments.check(
        'clients_per_round', self.clients_per_round, owner, ranges.Count
    )
    if not isinstance(self.payload_clip_norms, Mapping):
      raise TypeError(
          '`payload_clip_norms` must map names to bounds, found '
          f'{self.payload_clip_norms!r}.'
      )
    if not isinstance(self.adaptive_clipping, (AdaptiveClipping, type(None))):
      raise TypeError(
          '`adaptive_clipping` must be an `AdaptiveClipping` or None, found '
          f'{self.adaptive_clipping!r}.'
      )
    bounds = {'clip_norm': self.clip_norm}
    for name, bound in self.payload_clip_norms.items():
      bounds[f'payload_clip_norms[{name!r}]'] = bound
    for name, bound in bounds.items():
      arguments.check(name, bound, owner, ranges.Positive)

  def build_aggregators(self, payloads: Sequence[str] = ()) -> tuple[
      tff.aggregators.UnweightedAggregationFactory,
      dict[str, tff.aggregators.UnweightedAggregationFactory],
  ]:
    """Builds the aggregators of the model update and of each payload.

    Args:
      payloads: The names of what clients send besides the update; none by
        default.

    Returns:
      The factory for the update and, by name, those for the payloads:
      `model_aggregator` and `payload_aggregators` of `build_fed_opt`.

    Raises:
      ValueError: If a bound is missing, one is given for a payload that no
        client sends, or the noise is too large for adaptive clipping.
    """
    bounds = {CHANGE: self.clip_norm, **self._payload_bounds(payloads)}
    multiplier = self.noise_multiplier * math.sqrt(len(bounds))
    factories = {
        name: _BoundedFactory(self._build_aggregator(multiplier, bound))
        for name, bound in bounds.items()
    }
    return factories.pop(CHANGE), factories

  def _payload_bounds(self, payloads: Collection[str]) -> dict[str, float]:
    """Returns the bound of each payload, or its initial value."""
    given = dict(self.payload_clip_norms)
    weighting.check_names(given, payloads, '`payload_clip_norms`')
    missing = [name for name in payloads if name not in given]
    if missing and self.adaptive_clipping is None:
      raise ValueError(
          f'Besides the model update, clients send {missing}, which '
          'differential privacy must clip, too: give each a bound in '
          '`payload_clip_norms`, or use `adaptive_clipping`.'
      )
    return {name: given.get(name, self.clip_norm) for name in payloads}

  def _build_aggregator(
      self, multiplier: float, bound: float
  ) -> tff.aggregators.UnweightedAggregationFactory:
    """Builds the aggregator of one vector."""
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
          f'multiplier of a vector, {multiplier / 2:.3g}, found {stddev:.3g} '
          '(by default a twentieth of `clients_per_round`): increase either, '
          'or reduce the noise.'
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
  """Returns the bounds of the next round, with adaptive clipping.

  Args:
    state: The `LearningAlgorithmState` of a process with `DifferentialPrivacy`.

  Returns:
    The bounds by name, that of the model update under 'change'. Fixed bounds
    are not in the state.

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
  """Collects the clip norms of all DP aggregators in a state, by name."""
  if isinstance(part, Mapping):
    for key, value in part.items():
      _collect_clip_norms(key, value, found)
    return
  query: Any = getattr(part, 'query_state', None)
  query = getattr(query, 'numerator_state', None)
  if hasattr(query, 'quantile_estimator_state'):
    found[name] = float(query.sum_state.l2_norm_clip)


# A field in the state of `tff.aggregators.DifferentiallyPrivateFactory`.
_DP_EVENT = 'dp_event'
# A field in the state of those that divide by the number of clients.
_NUMERATOR = 'numerator_state'

_Aggregators = tuple[
    Optional[weighting.Aggregator], Mapping[str, weighting.Aggregator]
]


def choose_aggregators(
    privacy: Optional[DifferentialPrivacy],
    model_aggregator: Optional[weighting.Aggregator],
    payload_aggregators: Mapping[str, weighting.Aggregator],
    *,
    payloads: Mapping[str, str],
    trainable_type: Any,
    weighs_examples: bool,
) -> _Aggregators:
  """Chooses the aggregators of the model update and of each payload.

  Args:
    privacy: See `build_fed_opt`.
    model_aggregator: See `build_fed_opt`.
    payload_aggregators: See `build_fed_opt`.
    payloads: How what clients send besides the update is reduced, by name, see
      `tff_adaptive.optimizers.Report`.
    trainable_type: The type of the update.
    weighs_examples: Whether clients are weighted by their examples.

  Returns:
    The aggregators of `privacy` if given, else the other arguments.

  Raises:
    TypeError: If `privacy` is not a `DifferentialPrivacy`, or the model has
      dtypes that TFF does not support with it.
    ValueError: If a payload would not be private, `privacy` is combined with
      other aggregators or with weights by examples, or an aggregator is given
      for a payload that no client sends, or one that returns a private mean for
      a sum.
  """
  weighting.check_names(payload_aggregators, payloads, '`payload_aggregators`')
  if privacy is None:
    _check_payloads_are_covered(
        model_aggregator,
        [name for name in payloads if name not in payload_aggregators],
        trainable_type,
        weighs_examples,
    )
    _check_no_private_mean_of_a_sum(payloads, payload_aggregators)
    return model_aggregator, payload_aggregators
  if not isinstance(privacy, DifferentialPrivacy):
    raise TypeError(
        '`privacy` must be a `tff_adaptive.privacy.DifferentialPrivacy`, found '
        f'{type(privacy)}.'
    )
  if model_aggregator is not None or payload_aggregators:
    raise ValueError(
        '`privacy` provides the aggregators of everything that clients send: '
        'leave out `model_aggregator` and `payload_aggregators`.'
    )
  if weighs_examples:
    raise ValueError(
        'Differential privacy must bound the contribution of a client, which '
        'weights by examples do not: pass '
        '`client_weighting=tff.learning.ClientWeighting.UNIFORM`.'
    )
  _check_dtypes(trainable_type)
  _check_no_maximum(payloads)
  return privacy.build_aggregators(list(payloads))


def _check_dtypes(trainable_type: Any) -> None:
  specs = tf.nest.flatten(tff.types.type_to_tf_tensor_specs(trainable_type))
  for spec in specs:
    if spec.dtype != tf.float32:
      raise TypeError(
          'Differential privacy supports float32 only, found trainable weights '
          f'of dtype {spec.dtype.name}: keep them in float32.'
      )


def _check_no_maximum(payloads: Mapping[str, str]) -> None:
  """Raises if clients report a maximum, which is not a sum."""
  for name, reduction in payloads.items():
    if reduction == 'max':
      raise ValueError(
          f'The report {name!r} is a maximum, not a sum, so noise '
          'cannot make it private: use a server rule that needs no maximum.'
      )


def _check_no_private_mean_of_a_sum(
    payloads: Mapping[str, str],
    aggregators: Mapping[str, weighting.Aggregator],
) -> None:
  """Raises if an aggregator returns a private mean where a sum is reported."""
  scalar_type = tff.TensorType(np.float32)
  for name, aggregator in aggregators.items():
    if payloads[name] != 'sum':
      continue
    what = f'The aggregator of {name!r}'
    process = weighting.to_weighted(aggregator, False, what).create(
        scalar_type, scalar_type
    )
    state_type = process.initialize.type_signature.result.member
    if _has_field(state_type, _DP_EVENT) and _has_field(state_type, _NUMERATOR):
      raise ValueError(
          f'{what} is differentially private and returns a mean, but the '
          'report is a sum: use `privacy`, which multiplies the mean by the '
          'number of clients, or an aggregator that returns a sum.'
      )


def _check_payloads_are_covered(
    model_aggregator: Optional[weighting.Aggregator],
    in_clear: Sequence[str],
    trainable_type: Any,
    weighs_examples: bool,
) -> None:
  """Raises if the model update is private, but a payload is not."""
  if model_aggregator is None or not in_clear:
    return
  process = weighting.to_weighted(
      model_aggregator, weighs_examples, '`model_aggregator`'
  ).create(trainable_type, tff.TensorType(np.float32))
  if is_private(process.initialize.type_signature.result.member):
    raise ValueError(
        '`model_aggregator` is differentially private, but clients would send '
        f'{list(in_clear)} in the clear: use `privacy` instead, or give them '
        'aggregators in `payload_aggregators`.'
    )


def is_private(state_type: tff.Type) -> bool:
  """Returns whether the state of a process is that of TFF's private sums."""
  return _has_field(state_type, _DP_EVENT)


def _has_field(state_type: tff.Type, name: str) -> bool:
  """Returns whether a type has a field of a name, at any depth."""
  if not isinstance(state_type, tff.StructType):
    return False
  return any(
      field == name or _has_field(member, name)
      for field, member in tff.structure.iter_elements(state_type)
  )

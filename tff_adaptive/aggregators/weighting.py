# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weighted aggregation, also in rounds of total weight zero."""

from collections.abc import Collection, Mapping
from typing import Any, Optional, Union

import tensorflow as tf
import tensorflow_federated as tff

Aggregator = Union[
    tff.aggregators.WeightedAggregationFactory,
    tff.aggregators.UnweightedAggregationFactory,
]


def to_weighted(
    aggregator: Optional[Aggregator], weighs_examples: bool, argument: str
) -> tff.aggregators.WeightedAggregationFactory:
  """Returns a weighted factory for an aggregator given by the user.

  Args:
    aggregator: A weighted or an unweighted factory; `None` for the mean.
    weighs_examples: Whether clients are weighted by their examples.
    argument: The name of the argument, for messages.

  Returns:
    A weighted factory; an unweighted one is wrapped and ignores the weights.

  Raises:
    TypeError: If `aggregator` is not an aggregation factory.
    ValueError: If an unweighted factory would ignore numbers of examples.
  """
  if aggregator is None:
    return tff.aggregators.MeanFactory()
  if isinstance(aggregator, tff.aggregators.WeightedAggregationFactory):
    return aggregator
  if not isinstance(aggregator, tff.aggregators.UnweightedAggregationFactory):
    raise TypeError(
        f'{argument} must be a `tff.aggregators` factory, found '
        f'{type(aggregator)}.'
    )
  if weighs_examples:
    raise ValueError(
        f'{argument} is unweighted ({type(aggregator).__name__}) and would '
        'ignore the number of examples: pass '
        '`client_weighting=tff.learning.ClientWeighting.UNIFORM`, or a weighted'
        ' aggregator.'
    )
  return tff.aggregators.as_weighted_aggregator(aggregator)


def check_names(given: Any, sent: Collection[str], argument: str) -> None:
  """Raises if something is given for payloads that no client sends.

  Args:
    given: Aggregators or other options by name.
    sent: The names of what clients send besides the model update.
    argument: The name of the argument, for messages.

  Raises:
    TypeError: If `given` is not a mapping.
    ValueError: If a name is unknown.
  """
  if not isinstance(given, Mapping):
    raise TypeError(
        f'{argument} must map names to aggregators, found {type(given)}.'
    )
  unknown = [name for name in given if name not in sent]
  if unknown:
    raise ValueError(
        f'{argument} has an entry for {unknown[0]!r}, which no client sends; '
        'besides the model update, clients send '
        f'{sorted(sent) or "nothing"}.'
    )


class WidenedFactory(tff.aggregators.WeightedAggregationFactory):
  """Wraps an aggregator so that it sees float16 values as float32.

  A mean in float16 is wrong: the total weight and the weighted sums overflow
  above 65,504, and small values vanish in sums that have only 11 bits. The
  result is in the dtype of the values. Values without float16 are not touched.
  """

  def __init__(self, inner: tff.aggregators.WeightedAggregationFactory):
    """Initializes the factory.

    Args:
      inner: The aggregator to wrap.
    """
    self._inner = inner

  def create(
      self, value_type: Any, weight_type: Any
  ) -> tff.templates.AggregationProcess:
    """Creates the process, see `tff.aggregators.WeightedAggregationFactory`.

    Args:
      value_type: The `tff.Type` of a client's value.
      weight_type: The `tff.Type` of a client's weight, a scalar.

    Returns:
      A process with the state and measurements of the inner aggregator.
    """
    specs = tf.nest.flatten(tff.types.type_to_tf_tensor_specs(value_type))
    dtypes = [spec.dtype for spec in specs]
    if tf.float16 not in dtypes:
      return self._inner.create(value_type, weight_type)

    def cast(structure, new_dtypes):
      leaves = map(tf.cast, tf.nest.flatten(structure), new_dtypes)
      return tf.nest.pack_sequence_as(structure, list(leaves))

    @tff.tensorflow.computation(value_type)
    def widen(value):
      return cast(value, [tf.float32 if d == tf.float16 else d for d in dtypes])

    inner = self._inner.create(widen.type_signature.result, weight_type)

    @tff.tensorflow.computation(inner.next.type_signature.result.result.member)
    def narrow(result):
      return cast(result, dtypes)

    @tff.federated_computation(
        inner.initialize.type_signature.result,
        tff.FederatedType(value_type, tff.CLIENTS),
        tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      output = inner.next(state, tff.federated_map(widen, value), weight)
      return tff.templates.MeasuredProcessOutput(
          output.state,
          tff.federated_map(narrow, output.result),
          output.measurements,
      )

    return tff.templates.AggregationProcess(inner.initialize, next_fn)


class HealthyRoundsFactory(tff.aggregators.WeightedAggregationFactory):
  """Wraps an aggregator so that a round of total weight zero changes nothing.

  In such a round the state of the inner aggregator does not change, and the
  result is NaN, which the finalizer rejects. (TFF's mean is NaN anyway, by 0 /
  0, but zeroing, clipping and compression would adapt to the zeros that
  rejected clients send.) The total weight is summed in the clear.
  """

  def __init__(self, inner: tff.aggregators.WeightedAggregationFactory):
    """Initializes the factory.

    Args:
      inner: The aggregator to wrap.

    Raises:
      TypeError: If `inner` is not a weighted aggregation factory.
    """
    if not isinstance(inner, tff.aggregators.WeightedAggregationFactory):
      raise TypeError(
          '`inner` must be a `tff.aggregators.WeightedAggregationFactory`, '
          f'found {type(inner).__name__}. Pass an unweighted one as '
          '`tff.aggregators.as_weighted_aggregator(...)`.'
      )
    self._inner = inner

  def create(
      self, value_type: Any, weight_type: Any
  ) -> tff.templates.AggregationProcess:
    """Creates the process, see `tff.aggregators.WeightedAggregationFactory`.

    Args:
      value_type: The `tff.Type` of a client's value.
      weight_type: The `tff.Type` of a client's weight, a scalar.

    Returns:
      A process with the state and measurements of the inner aggregator.
    """
    inner = self._inner.create(value_type, weight_type)
    state_type = inner.initialize.type_signature.result.member
    result_type = inner.next.type_signature.result.result.member

    @tff.tensorflow.computation(weight_type, state_type, state_type)
    @tf.function
    def select_state(total, old, new):
      # A nested structure without leaves has nothing to select.
      return tf.nest.map_structure(
          lambda o, n: tf.where(total > 0, n, o), old, new
      )

    @tff.tensorflow.computation(weight_type, result_type)
    def select_result(total, result):
      return tf.nest.map_structure(
          lambda r: tf.where(total > 0, r, tf.cast(float('nan'), r.dtype)),
          result,
      )

    @tff.federated_computation(
        inner.initialize.type_signature.result,
        tff.FederatedType(value_type, tff.CLIENTS),
        tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      output = inner.next(state, value, weight)
      total = tff.federated_sum(weight)
      return tff.templates.MeasuredProcessOutput(
          tff.federated_map(select_state, (total, state, output.state)),
          tff.federated_map(select_result, (total, output.result)),
          output.measurements,
      )

    return tff.templates.AggregationProcess(inner.initialize, next_fn)

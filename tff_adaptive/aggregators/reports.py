# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Aggregation of what clients report besides their model updates."""

import collections
from collections.abc import Callable, Mapping
import functools
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import weighting

_OrderedDict = collections.OrderedDict


def _accumulate(
    value: Any,
    zero: tff.Computation,
    accumulate: tff.Computation,
    merge: tff.Computation,
) -> Any:
  """Returns a `tff.federated_aggregate` whose result is its accumulator."""

  @tff.tensorflow.computation(merge.type_signature.result)
  def report(accumulated):
    return accumulated

  return tff.federated_aggregate(value, zero(), accumulate, merge, report)


class NamedFactory(tff.aggregators.WeightedAggregationFactory):
  """Aggregates each part of an ordered dictionary with its own factory.

  State and measurements are ordered dictionaries with the same names.
  """

  def __init__(
      self,
      factories: Mapping[str, tff.aggregators.WeightedAggregationFactory],
  ):
    """Initializes the factory.

    Args:
      factories: The factories by the names of the parts, in their order.
    """
    self._factories = _OrderedDict(factories)

  def create(
      self, value_type: Any, weight_type: Any
  ) -> tff.templates.AggregationProcess:
    processes = _OrderedDict(
        (name, factory.create(value_type[name], weight_type))
        for name, factory in self._factories.items()
    )

    def zip_parts(parts):
      return tff.federated_zip(_OrderedDict(parts))

    @tff.federated_computation
    def initialize():
      return zip_parts((n, p.initialize()) for n, p in processes.items())

    @tff.federated_computation(
        initialize.type_signature.result,
        tff.FederatedType(value_type, tff.CLIENTS),
        tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      outputs = _OrderedDict(
          (name, process.next(state[name], value[name], weight))
          for name, process in processes.items()
      )
      return tff.templates.MeasuredProcessOutput(
          *(
              zip_parts((n, getattr(o, part)) for n, o in outputs.items())
              for part in ('state', 'result', 'measurements')
          )
      )

    return tff.templates.AggregationProcess(initialize, next_fn)


def _build_stateless(
    value_type: Any, weight_type: Any, aggregate: Callable[[Any, Any], Any]
) -> tff.templates.AggregationProcess:
  """Builds a process without a state from a function of values and weights."""

  @tff.federated_computation
  def initialize():
    return tff.federated_value((), tff.SERVER)

  @tff.federated_computation(
      initialize.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
  )
  def next_fn(state, value, weight):
    return tff.templates.MeasuredProcessOutput(
        state, aggregate(value, weight), tff.federated_value((), tff.SERVER)
    )

  return tff.templates.AggregationProcess(initialize, next_fn)


class MaximumFactory(tff.aggregators.WeightedAggregationFactory):
  """Takes the largest value of the clients with a weight above zero.

  A maximum is not a sum, so neither secure summation nor noise can protect it.
  Without such a client, it is the smallest number of its dtype.
  """

  def create(
      self, value_type: Any, weight_type: Any
  ) -> tff.templates.AggregationProcess:
    dtype = tf.as_dtype(value_type.dtype)

    @tff.tensorflow.computation(value_type, weight_type)
    def select(value, weight):
      return tf.where(weight > 0, value, dtype.min)

    def largest(value, weight):
      return tff.federated_max(tff.federated_map(select, (value, weight)))

    return _build_stateless(value_type, weight_type, largest)


class _CountFactory(tff.aggregators.WeightedAggregationFactory):
  """Counts the clients with a weight above zero, whatever their values."""

  def create(
      self, value_type: Any, weight_type: Any
  ) -> tff.templates.AggregationProcess:
    dtype = tf.as_dtype(value_type.dtype)

    @tff.tensorflow.computation(weight_type)
    def count(weight):
      return tf.cast(weight > 0, dtype)

    def total(value, weight):
      del value  # Unused.
      return tff.federated_sum(tff.federated_map(count, weight))

    return _build_stateless(value_type, weight_type, total)


class _ConstantFactory(tff.aggregators.WeightedAggregationFactory):
  """Returns a constant, whatever the values of the clients."""

  def __init__(self, constant: float):
    self._constant = constant

  def create(
      self, value_type: Any, weight_type: Any
  ) -> tff.templates.AggregationProcess:
    dtype = tf.as_dtype(value_type.dtype)

    @tff.tensorflow.computation
    def constant():
      return tf.constant(self._constant, dtype)

    def result(value, weight):
      del value, weight  # Unused.
      return tff.federated_eval(constant, tff.SERVER)

    return _build_stateless(value_type, weight_type, result)


class _TotalFactory(tff.aggregators.WeightedAggregationFactory):
  """Multiplies a mean by the number of clients."""

  def __init__(
      self,
      mean: tff.aggregators.WeightedAggregationFactory,
      num_clients: int,
  ):
    self._mean = mean
    self._num_clients = num_clients

  def create(
      self, value_type: Any, weight_type: Any
  ) -> tff.templates.AggregationProcess:
    mean = self._mean.create(value_type, weight_type)

    @tff.tensorflow.computation(value_type)
    def multiply(value):
      return value * tf.cast(self._num_clients, value.dtype)

    @tff.federated_computation(
        mean.initialize.type_signature.result,
        tff.FederatedType(value_type, tff.CLIENTS),
        tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      output = mean.next(state, value, weight)
      return tff.templates.MeasuredProcessOutput(
          output.state,
          tff.federated_map(multiply, output.result),
          output.measurements,
      )

    return tff.templates.AggregationProcess(mean.initialize, next_fn)


_REDUCERS = _OrderedDict(sum=tf.add, min=tf.minimum, max=tf.maximum)


def _neutral(reduction: str, spec: tf.TensorSpec) -> tf.Tensor:
  """Returns the neutral element of a reduction, for a spec."""
  dtype = spec.dtype
  value = {
      'sum': 0,
      'min': float('inf') if dtype.is_floating else dtype.max,
      'max': -float('inf') if dtype.is_floating else dtype.min,
  }[reduction]
  return tf.constant(value, dtype)


def aggregate_statistics(client_statistics: Any) -> Any:
  """Reduces scalars at clients to scalars at the server.

  Call it within a `federated_computation`.

  Args:
    client_statistics: A value placed at clients: an ordered dictionary from
      'sum', 'min' and 'max', in this order, to ordered dictionaries from names
      to scalars, which are reduced accordingly.

  Returns:
    The same structure, placed at the server. Without clients, sums are 0,
    minima are infinite, or the largest integer, and maxima the opposite.

  Raises:
    ValueError: If the outer keys are not those three.
  """
  value_type = client_statistics.type_signature.member
  names = [name for name, _ in tff.structure.iter_elements(value_type)]
  if names != list(_REDUCERS):
    raise ValueError(
        f'Statistics must have the keys {list(_REDUCERS)}, found {names}.'
    )

  specs = tff.types.type_to_tf_tensor_specs(value_type)

  @tff.tensorflow.computation
  def zero():
    return _OrderedDict(
        (key, tf.nest.map_structure(functools.partial(_neutral, key), part))
        for key, part in specs.items()
    )

  @tff.tensorflow.computation(value_type, value_type)
  def reduce(left, right):
    return _OrderedDict(
        (key, tf.nest.map_structure(reducer, left[key], right[key]))
        for key, reducer in _REDUCERS.items()
    )

  return _accumulate(client_statistics, zero, reduce, reduce)


def _check_rows(spec: tf.TensorSpec, value_type: tff.Type) -> None:
  """Raises unless a tensor consists of rows of a known shape."""
  if not (spec.shape.rank and spec.shape[1:].is_fully_defined()):
    raise TypeError(
        'A tensor to be stacked must have rows along its first axis and '
        f'otherwise a known shape, found {spec.shape} in {value_type}. Add an '
        'axis with `tensor[tf.newaxis]`.'
    )


def stack_at_server(value: Any, keep: Optional[Any] = None) -> Any:
  """Concatenates the rows of all clients at the server.

  Call it within a `federated_computation`. A client without a report has no
  rows, or has rows and a false `keep`; the latter gives all clients the same
  shapes, so that they may run at once. Each client's rows stay together.
  Clients come in the order of the argument, in the compiled runtime (with or
  without Ray) and in TFF's native one, whichever client finishes first.

  Args:
    value: A value placed at clients: a structure of tensors of any dtype, whose
      first axis counts rows. Its size may be unknown, and 0.
    keep: A boolean placed at clients: whether to keep the client's rows. By
      default all are kept.

  Returns:
    The same structure, placed at the server, every tensor of shape [rows of all
    clients, ...]; without clients there are 0 rows.

  Raises:
    TypeError: If a tensor is a scalar, or has an unknown axis besides its
      first.

  Example:

    >>> rows_type = tff.TensorType(np.float32, [None, 2])
    >>> @tff.federated_computation(tff.FederatedType(rows_type, tff.CLIENTS))
    ... def stack(rows):
    ...   return stack_at_server(rows)
    >>> reports = [np.ones([size, 2], np.float32) for size in (1, 0, 3)]
    >>> with runtime.NativeContext():
    ...   rows = stack(reports)
    >>> rows.shape
    (4, 2)
  """
  value_type = value.type_signature.member
  specs = tff.types.type_to_tf_tensor_specs(value_type)
  for spec in tf.nest.flatten(specs):
    _check_rows(spec, value_type)
  stacked_type = tff.types.tensorflow_to_type(
      tf.nest.map_structure(
          lambda spec: tf.TensorSpec([None, *spec.shape[1:]], spec.dtype), specs
      )
  )

  @tff.tensorflow.computation
  def zero():
    return tf.nest.map_structure(
        lambda spec: tf.zeros([0, *spec.shape[1:]], spec.dtype), specs
    )

  def concatenate(left, right):
    return tf.nest.map_structure(
        lambda *rows: tf.concat(rows, axis=0), left, right
    )

  def concatenate_kept(left, right):
    rows, keep = right
    # Sliced, not multiplied: dropped rows may be NaN.
    kept = tf.nest.map_structure(
        lambda leaf: leaf[: tf.where(keep, tf.shape(leaf)[0], 0)], rows
    )
    return concatenate(left, kept)

  add = concatenate
  if keep is not None:
    value, add = tff.federated_zip((value, keep)), concatenate_kept
  reported_type = value.type_signature.member
  accumulate = tff.tensorflow.computation(add, stacked_type, reported_type)
  merge = tff.tensorflow.computation(concatenate, stacked_type, stacked_type)
  return _accumulate(value, zero, accumulate, merge)


def build_reports_factory(
    reductions: Mapping[str, str],
    aggregators: Mapping[str, weighting.Aggregator],
    weighs_examples: bool,
    num_expected_clients: Optional[int] = None,
) -> NamedFactory:
  """Builds the aggregation of clients' reports.

  Args:
    reductions: The `reduction` of each `tff_adaptive.optimizers.Report`, by its
      name.
    aggregators: Aggregation factories by the names of reports. By default a
      report is reduced in the clear.
    weighs_examples: Whether clients are weighted by their examples.
    num_expected_clients: Under differential privacy, the expected number of
      clients in a round; `aggregators` then have means for all but counts.
      Default `None`: no privacy.

  Returns:
    The factory for ordered dictionaries of scalars by the reports' names.

  Raises:
    TypeError: If an aggregator is not an aggregation factory.
    ValueError: If an aggregator is given for a maximum, a weighted one for a
      sum, or one for a mean is unweighted while clients are weighted by their
      examples.

  Example:

    >>> factory = build_reports_factory(
    ...     {'squared_norm': 'mean'}, {}, weighs_examples=True)
    >>> isinstance(factory, tff.aggregators.WeightedAggregationFactory)
    True
  """
  build: Mapping[str, Callable[[Any, str], Any]] = {
      'mean': lambda given, what: weighting.to_weighted(
          given, weighs_examples, what
      ),
      'sum': functools.partial(_build_sum, num_expected_clients),
      'max': _build_maximum,
      'count': lambda *_: (
          _CountFactory()
          if num_expected_clients is None
          else _ConstantFactory(num_expected_clients)
      ),
  }
  return NamedFactory(
      _OrderedDict(
          (
              name,
              build[reduction](
                  aggregators.get(name), f'The aggregator of {name!r}'
              ),
          )
          for name, reduction in reductions.items()
      )
  )


def _build_sum(
    num_expected_clients: Optional[int],
    given: Optional[weighting.Aggregator],
    what: str,
) -> tff.aggregators.WeightedAggregationFactory:
  """Returns the aggregation of a sum over healthy clients."""
  if num_expected_clients is not None:
    mean = weighting.to_weighted(given, False, what)
    return _TotalFactory(mean, num_expected_clients)
  if isinstance(given, tff.aggregators.WeightedAggregationFactory):
    raise ValueError(
        f'{what}, a sum, must be an unweighted aggregation factory, found '
        f'{type(given).__name__}.'
    )
  # Clients that are not healthy send zeros.
  return weighting.to_weighted(
      given or tff.aggregators.SumFactory(), False, what
  )


def _build_maximum(
    given: Optional[weighting.Aggregator], what: str
) -> tff.aggregators.WeightedAggregationFactory:
  if given is not None:
    raise ValueError(
        f'{what} is a {type(given).__name__}, but the report is a maximum, not '
        'a sum, so that no aggregator can protect it. Remove its aggregator, '
        'or use a server rule that needs no maximum.'
    )
  return MaximumFactory()

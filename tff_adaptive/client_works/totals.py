# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Totals over a client's local steps, and the metrics of a round."""

import collections
from collections.abc import Callable, Mapping, Sequence
import enum
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive.client_works import local_models
from tff_adaptive.optimizers import client_reports
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import vectors


class Rejection(enum.IntEnum):
  """The reason why a client is rejected, if it is.

  Attributes:
    NONE: The client is healthy.
    NO_EXAMPLE: The client has no examples.
    NOT_FINITE: A result of the training is NaN or infinite.
    TOO_LARGE: The norm of the update exceeds the limit.
  """

  NONE = 0
  NO_EXAMPLE = 1
  NOT_FINITE = 2
  TOO_LARGE = 3


def judge_client(
    num_examples: tf.Tensor,
    is_finite: tf.Tensor,
    update: local_models.Weights,
    max_update_norm: Optional[float],
) -> tf.Tensor:
  """Returns whether and why a client is rejected, in the current graph.

  Args:
    num_examples: The number of examples seen.
    is_finite: Whether all results of the training are finite.
    update: The model update, a tuple of tensors.
    max_update_norm: The largest norm of a healthy client's update, or `None`.

  Returns:
    A value of `Rejection`, an int64 scalar.
  """

  def choose(condition, rejection, otherwise):
    return tf.where(condition, tf.constant(rejection, tf.int64), otherwise)

  verdict = tf.constant(Rejection.NONE, tf.int64)
  if max_update_norm is not None:
    # Not in half precision, where sums of squares overflow early.
    norm = vectors.norm(update, vectors.step_dtype(update))
    is_large = norm > tf.cast(max_update_norm, norm.dtype)
    verdict = choose(is_large, Rejection.TOO_LARGE, verdict)
  verdict = choose(~is_finite, Rejection.NOT_FINITE, verdict)
  return choose(num_examples <= 0, Rejection.NO_EXAMPLE, verdict)


_OrderedDict = collections.OrderedDict

Scalars = collections.OrderedDict[str, tf.Tensor]
Reports = Mapping[str, client_reports.Report]


class Step(NamedTuple):
  """The results of one local step.

  Attributes:
    evaluation: The evaluation of the batch at the weights before the step.
    received: The received weights.
    loss_at: See `LocalStep`.
    num_gradient_evaluations: The gradient evaluations of the step, an int64
      scalar; 0 for a batch that the optimizer skips.
    report: The optimizer's report of the step, names to float32 scalars.
  """

  evaluation: local_models.Evaluation
  received: local_models.Weights
  loss_at: Optional[Callable[[local_models.Weights], tf.Tensor]]
  num_gradient_evaluations: tf.Tensor
  report: Scalars


class Totals(NamedTuple):
  """Totals over local steps.

  Attributes:
    num_steps: The number of steps, without skipped batches.
    num_examples: The number of examples, over all epochs.
    num_gradient_evaluations: The number of gradient evaluations.
    loss: The sum of each batch's mean loss times its number of examples.
    report_sum: The sums of the optimizer's reports, by name.
    report_min: Their minima.
    report_max: Their maxima.
    gathered: What the reports have gathered, by name.
    trace: The loss and the optimizer's report of every step, [num_steps] each;
      empty unless asked for.
  """

  num_steps: tf.Tensor
  num_examples: tf.Tensor
  num_gradient_evaluations: tf.Tensor
  loss: tf.Tensor
  report_sum: Scalars
  report_min: Scalars
  report_max: Scalars
  gathered: Scalars
  trace: Scalars


def split_report(
    optimizer: tff.learning.optimizers.Optimizer, state: Any
) -> tuple[tf.Tensor, Scalars]:
  """Returns the gradient evaluations of the last step and its other reports."""
  report = optimizer_lib.step_report(optimizer, state)
  evaluations = report.pop(optimizer_lib.GRADIENT_EVALUATIONS_KEY, 1.0)
  return tf.cast(evaluations, tf.int64), report


def initial_totals(
    report_names: Sequence[str],
    reports: Reports,
    trace_steps: bool,
) -> Totals:
  """Returns the totals before the first step.

  Args:
    report_names: The names of the optimizer's reports.
    reports: The reports that the server rule needs.
    trace_steps: Whether to record every step.
  """
  zero = tf.zeros([], tf.int64)

  def fill(value):
    return _OrderedDict((name, tf.constant(value)) for name in report_names)

  def empty():
    # No static length: a loop over an iterator rejects a tensor that grows.
    return tf.compat.v1.placeholder_with_default(tf.zeros([0]), [None])

  infinity = float('inf')
  traced = ('loss', *report_names) if trace_steps else ()
  return Totals(
      num_steps=zero,
      num_examples=zero,
      num_gradient_evaluations=zero,
      loss=tf.zeros([]),
      report_sum=fill(0.0),
      report_min=fill(infinity),
      report_max=fill(-infinity),
      gathered=_OrderedDict(
          (name, tf.zeros([]))
          for name, report in reports.items()
          if report.on_step is not None
      ),
      trace=_OrderedDict((name, empty()) for name in traced),
  )


class _StepReport(dict[str, tf.Tensor]):
  """What a client optimizer reports of a step."""

  def __missing__(self, name: str):
    raise ValueError(
        f'A report of clients reads {name!r} of each step, but the client '
        f'optimizer reports {list(self)} alone: use another one, or another '
        'server rule.'
    )


def _gather(
    gathered: Scalars, step: Step, reports: Reports, counts: tf.Tensor
) -> Scalars:
  """Returns what reports have gathered after a step, if it counts."""
  loss_at = step.loss_at
  local_step = client_reports.LocalStep(
      tf.cast(step.evaluation.loss, tf.float32),
      _StepReport(step.report),
      step.received,
      loss_at and (lambda point: tf.cast(loss_at(point), tf.float32)),
  )

  def add(name, before):
    after = _autograph.call(reports[name].on_step, before, local_step)
    return tf.where(counts, tf.cast(after, tf.float32), before)

  return _OrderedDict((name, add(name, t)) for name, t in gathered.items())


def add_step(totals: Totals, step: Step, reports: Reports) -> Totals:
  """Returns the totals after one more step."""

  def merge(reduce_fn, accumulated, values):
    return _OrderedDict(
        (name, reduce_fn(before, values[name]))
        for name, before in accumulated.items()
    )

  evaluation = step.evaluation
  num_examples = evaluation.num_examples
  loss = tf.cast(evaluation.loss, tf.float32)
  counts = tf.minimum(step.num_gradient_evaluations, 1)

  # A skipped batch, with no evaluation, has no extrema.
  def add_extremum(reduce_fn):
    return lambda before, value: tf.where(
        counts > 0, reduce_fn(before, value), before
    )

  traced = _OrderedDict(step.report, loss=loss)
  return Totals(
      num_steps=totals.num_steps + counts,
      num_examples=totals.num_examples + num_examples,
      num_gradient_evaluations=(
          totals.num_gradient_evaluations + step.num_gradient_evaluations
      ),
      loss=totals.loss
      + tf.cast(evaluation.mean_loss, tf.float32)
      * tf.cast(num_examples, tf.float32),
      report_sum=merge(tf.add, totals.report_sum, step.report),
      report_min=merge(
          add_extremum(tf.minimum), totals.report_min, step.report
      ),
      report_max=merge(
          add_extremum(tf.maximum), totals.report_max, step.report
      ),
      gathered=_gather(totals.gathered, step, reports, counts > 0),
      trace=merge(
          lambda before, value: tf.concat([before, value[tf.newaxis]], 0),
          totals.trace,
          traced,
      ),
  )


def add_survey(totals: Totals) -> Totals:
  """Returns the totals with one more gradient of each batch."""
  return totals._replace(
      num_gradient_evaluations=(
          totals.num_gradient_evaluations + totals.num_steps
      )
  )


def finish_reports(
    totals: Totals, reports: Reports, end: client_reports.ClientRoundEnd
) -> Scalars:
  """Returns the reports of a client.

  Args:
    totals: The totals after the last step.
    reports: The reports that the server rule needs.
    end: The end of the client's round; nothing is gathered.

  Returns:
    A float32 scalar for each report's name, meaningless for a client without
    steps.

  Raises:
    ValueError: If a report is not one number.
  """

  def finish(name, report):
    own_end = end._replace(gathered=totals.gathered.get(name))
    value = _autograph.call(report.at_end, own_end)
    if value is None or np.ndim(value):
      raise ValueError(
          f'`at_end` of the report {name!r} must return one number, found '
          f'{value}: reduce it, such as by `tf.reduce_sum`.'
      )
    return tf.cast(value, tf.float32)

  return _OrderedDict(
      (name, finish(name, report)) for name, report in reports.items()
  )


def to_statistics(
    totals: Totals, is_healthy: tf.Tensor
) -> '_OrderedDict[str, Scalars]':
  """Returns a client's totals, neutral for an unhealthy client.

  Args:
    totals: The totals after the last step.
    is_healthy: Whether the client is healthy, a boolean scalar.

  Returns:
    The argument of `tff_adaptive.aggregators.aggregate_statistics`.
  """

  def keep(values, neutral):
    return _OrderedDict(
        (name, tf.where(is_healthy, value, tf.cast(neutral, value.dtype)))
        for name, value in values.items()
    )

  sums = _OrderedDict(
      num_healthy=tf.ones([], tf.int64),
      num_examples=totals.num_examples,
      num_steps=totals.num_steps,
      num_gradient_evaluations=totals.num_gradient_evaluations,
      loss=totals.loss,
      **totals.report_sum,
  )
  return _OrderedDict(
      sum=_OrderedDict(keep(sums, 0), num_clients=tf.ones([], tf.int64)),
      min=keep(totals.report_min, float('inf')),
      max=keep(totals.report_max, -float('inf')),
  )


def measure_clients(
    aggregated: Any, bytes_down: int, bytes_up: int
) -> '_OrderedDict[str, tf.Tensor]':
  """Returns the round's metrics from the aggregated statistics of its clients.

  Args:
    aggregated: The result of `tff_adaptive.aggregators.aggregate_statistics`.
    bytes_down: The number of bytes that a client receives.
    bytes_up: The number of bytes that a client sends.

  Returns:
    The metrics `clients` of `build_local_training_client_work`.
  """
  sums = aggregated['sum']
  examples, steps = (
      tf.cast(sums[key], tf.float32) for key in ('num_examples', 'num_steps')
  )
  measured = _OrderedDict(
      loss=sums['loss'] / examples,
      num_clients=sums['num_clients'],
      num_rejected=sums['num_clients'] - sums['num_healthy'],
      num_examples=sums['num_examples'],
      num_steps=sums['num_steps'],
      num_gradient_evaluations=sums['num_gradient_evaluations'],
  )
  nothing = tf.constant(float('nan'))
  for name in aggregated['min']:
    measured[f'{name}_mean'] = sums[name] / steps
    for key in ('min', 'max'):
      value = aggregated[key][name]
      measured[f'{name}_{key}'] = tf.where(steps > 0.0, value, nothing)
  measured['bytes_down'] = sums['num_clients'] * bytes_down
  measured['bytes_up'] = sums['num_clients'] * bytes_up
  return measured

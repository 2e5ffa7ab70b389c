# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a server rule asks clients to report, as functions of their rounds."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Optional

import attrs
import tensorflow as tf

from tff_adaptive.optimizers import vectors

_REDUCTIONS = ('mean', 'sum', 'max', 'count')


class LocalStep(NamedTuple):
  """A local step, for a report.

  Attributes:
    loss: The loss of the batch before the step, loss terms included; float32.
    report: What the client optimizer reports of the step, float32 scalars by
      name. With a learning rate or a step size, it has `step_size`.
    received: The trainable weights that the client received, a tuple.
    loss_at: Maps weights like `received` to the loss of the same batch there,
      with the same dropout mask; float32. It has a gradient. `None` unless a
      report `evaluates_again`.
  """

  loss: tf.Tensor
  report: Mapping[str, tf.Tensor]
  received: Any
  loss_at: Optional[Callable[[Any], tf.Tensor]]


class ClientRoundEnd(NamedTuple):
  """The end of a client's round, for a report.

  Attributes:
    received: The trainable weights that the client received, a tuple.
    trained: Those that it trained, a tuple.
    update: What it sends of them, `received` minus `trained` unless the client
      optimizer sends another update.
    num_steps: The number of local steps, at least 1; float32.
    gathered: What `on_step` returned for the last local step; `None` without.
    optimizer_state: The state of the client optimizer.
    loss_term: The loss term, or `None`.
    mean_loss: Maps weights like `received` to the mean loss of all examples of
      the client there, with the weights of classes, without loss term and
      dropout, in one more pass over the data; float32.
  """

  received: Any
  trained: Any
  update: Any
  num_steps: tf.Tensor
  gathered: Optional[tf.Tensor]
  optimizer_state: Any
  loss_term: Any
  mean_loss: Callable[[Any], tf.Tensor]


def _nothing(end: ClientRoundEnd) -> tf.Tensor:
  del end  # Unused.
  return tf.ones([])


@attrs.frozen
class Report:
  """A scalar that each client of a round reports to a server rule.

  Attributes:
    at_end: Maps the end of a client's round to the scalar, which is sent as
      float32. A client whose scalar is not finite is rejected.
    on_step: Maps what was gathered so far, 0.0 at first, and a local step to
      what is gathered after it, float32 scalars. Batches that the client
      optimizer skips are left out. `None`, the default, gathers nothing.
    reduction: How the scalars of healthy clients are combined: `'mean'`, the
      default, with the weights of the model updates; `'sum'`; `'max'`, which is
      no sum, so that it cannot be private; or `'count'`, the number of healthy
      clients, whatever their scalars. Under differential privacy, a sum is a
      private mean times the expected number of clients, which is also the
      count.
    evaluates_again: Whether `on_step` calls `loss_at`. Default False.

  Example:

    >>> mean_loss = Report(
    ...     at_end=lambda end: end.gathered / end.num_steps,
    ...     on_step=lambda total, step: total + step.loss)
  """

  at_end: Callable[[ClientRoundEnd], tf.Tensor] = _nothing
  on_step: Optional[Callable[[tf.Tensor, LocalStep], tf.Tensor]] = None
  reduction: Literal['mean', 'sum', 'max', 'count'] = attrs.field(
      default='mean', validator=attrs.validators.in_(_REDUCTIONS)
  )
  evaluates_again: bool = False


# The number of healthy clients of the round.
NUM_CLIENTS = Report(reduction='count')


def squared_norm(end: ClientRoundEnd) -> tf.Tensor:
  """Returns the squared norm of a client's update, over all its weights."""
  return tf.square(vectors.norm(end.update, vectors.step_dtype(end.update)))

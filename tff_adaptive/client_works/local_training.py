# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The local training loop of a client, from the received model to its update.

One loop serves every client rule, both kinds of models and every loss term. A
rule that needs more than the gradient implements a superset of TFF's optimizer
protocol, `tff_adaptive.optimizers.ExtraArgsOptimizer` or
`tff_adaptive.optimizers.FederatedOptimizer`.
"""

import collections
from collections.abc import Callable, Mapping
import functools
from typing import Any, NamedTuple, Optional

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive import _random_ops
from tff_adaptive import ranges
from tff_adaptive.client_works import data_passes
from tff_adaptive.client_works import local_models
from tff_adaptive.client_works import loss_terms
from tff_adaptive.client_works import totals as totals_lib
from tff_adaptive.models import moved_weights
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import client_reports
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import vectors

_OrderedDict = collections.OrderedDict


@attrs.frozen
class GradientOptions:
  """Clipping by global norm, followed by weight decay; neither by default.

  ```
  g = g * min(1, clip_norm / |g|)                   (|g| over all weights)
  g = g + weight_decay * x
  ```

  These are PyTorch's `clip_grad_norm_`, except for the 1e-6 that it adds to the
  norm, and the `weight_decay` of its SGD. Neither is part of the reported loss.

  Attributes:
    clip_norm: The largest global norm, above zero, or `None`: no clipping.
    weight_decay: The factor of the weights, not negative.
  """

  clip_norm: Optional[float] = None
  weight_decay: float = 0.0

  def __attrs_post_init__(self):
    if self.clip_norm is not None:
      arguments.check('clip_norm', self.clip_norm, 'Gradient', ranges.Positive)
    arguments.check(
        'weight_decay', self.weight_decay, 'Gradient', ranges.NotNegative
    )

  def apply(self, weights: Any, gradients: Any) -> Any:
    """Returns the gradients that the optimizer sees.

    Args:
      weights: A structure of tensors.
      gradients: A structure like it; `None` stays `None`.

    Returns:
      A structure of gradients, dense ones if there is something to apply.
    """
    if self.clip_norm is None and not self.weight_decay:
      return gradients
    gradients = tff.learning.optimizers.handle_indexed_slices_gradients(
        gradients
    )
    scale = self._clip_scale(gradients)

    def adjust(w, g):
      if g is None:
        return None
      if scale is not None:
        g = g * tf.cast(scale, g.dtype)
      if self.weight_decay:
        g = g + tf.cast(self.weight_decay, w.dtype) * w
      return g

    return tf.nest.map_structure(adjust, weights, gradients)

  def _clip_scale(self, gradients: Any) -> Optional[tf.Tensor]:
    if self.clip_norm is None:
      return None
    present = [g for g in tf.nest.flatten(gradients) if g is not None]
    dtype = vectors.step_dtype(present)
    norm = vectors.norm(present, dtype)
    clip_norm = tf.cast(self.clip_norm, dtype)
    # The maximum is never zero, and a NaN stays NaN.
    return clip_norm / tf.maximum(norm, clip_norm)


_OPTIMIZER_KEY = 'optimizer'
_PREVIOUS_MODEL_KEY = 'previous_model'


class RoundStart(NamedTuple):
  """The inputs of a client's round besides the model.

  Attributes:
    shared: The parts that the server sends for a `FederatedOptimizer`.
    kept: The parts that the client holds: under `'optimizer'` those of a
      `FederatedOptimizer`, under `'previous_model'` its final trainable weights
      of the last participation, a tuple of tensors, and under
      `'batch_statistics'` the weights that it keeps of layers that move some,
      another one.
    round_num: See `FederatedOptimizer.start_round`.
    num_gradients: The number of gradients of each batch that were evaluated
      before, in a survey that is averaged.
  """

  shared: Any = _OrderedDict()
  kept: Any = _OrderedDict()
  round_num: Any = 0
  num_gradients: int = 0


def _describe(parts: Mapping[str, Any]) -> dict[str, list[str]]:
  """Returns dtype and shape of the tensors of each part."""
  return {
      name: [
          f'{tensor.dtype.name}{tensor.shape}'
          for tensor in map(tf.convert_to_tensor, tf.nest.flatten(part))
      ]
      for name, part in parts.items()
  }


class LocalResult(NamedTuple):
  """The result of a client's training.

  Attributes:
    update: The received minus the trained weights, a tuple of tensors; zeros
      for an unhealthy client, as are `sent`, `reports` and `moved_update`.
    moved_update: The same of the moved weights that clients send or keep, see
      `tff_adaptive.models.from_keras`.
    num_examples: The number of examples seen, over all epochs; an int64 scalar,
      0 for an unhealthy client.
    sent: The parts that the client sends for a `FederatedOptimizer`.
    kept: The parts that the client keeps, like `RoundStart.kept`.
    reports: The reports, by name.
    statistics: Scalars about the training, in the form of
      `tff_adaptive.aggregators.aggregate_statistics`.
    trace: Names to one number per step, if asked for.
    metrics: The model's unfinalized metrics.
    rejection: A value of `Rejection`, int64.
    is_healthy: Whether `rejection` is `Rejection.NONE`.
  """

  update: local_models.Weights
  moved_update: local_models.Weights
  num_examples: tf.Tensor
  sent: Any
  kept: Any
  reports: totals_lib.Scalars
  statistics: Any
  trace: totals_lib.Scalars
  metrics: Any
  rejection: tf.Tensor
  is_healthy: tf.Tensor


class _LoopState(NamedTuple):
  """The state that a local step updates."""

  weights: local_models.Weights
  moved: local_models.Weights
  optimizer_state: Any
  metrics: Any
  totals: totals_lib.Totals


def _subtract(
    received: local_models.Weights, trained: local_models.Weights
) -> local_models.Weights:
  return tuple(r - t for r, t in zip(received, trained))


def _specs(weights: local_models.Weights) -> tuple[tf.TensorSpec, ...]:
  return tuple(tf.TensorSpec(w.shape, w.dtype) for w in weights)


@attrs.frozen(eq=False)
class LocalTraining:
  """The training of one client, without its model.

  A client is unhealthy if it has no examples, if its update, loss, reports,
  sent or kept parts are not finite, or if its update is too large. Its update
  and counts are then zero, its metrics are empty, and it enters no minimum or
  maximum.

  Attributes:
    optimizer: A plain TFF optimizer, an `ExtraArgsOptimizer` or a
      `FederatedOptimizer`; every call makes a new state.
    loss_term: A term that is added to the loss of each batch, or `None`.
    gradient_options: Clipping and weight decay of the gradients.
    loop_implementation: See `tff.learning.LoopImplementation`.
    reports: The reports that the server rule needs, by name.
    client_update: See `ServerOptimizer.client_update`; `None` for none.
    trace_steps: Whether to record every step.
    max_update_norm: The largest norm of a healthy client's update, or `None`.
  """

  optimizer: tff.learning.optimizers.Optimizer
  loss_term: Optional[loss_terms.LossTerm] = None
  gradient_options: GradientOptions = GradientOptions()
  loop_implementation: tff.learning.LoopImplementation = (
      tff.learning.LoopImplementation.DATASET_REDUCE
  )
  reports: totals_lib.Reports = attrs.field(factory=dict)
  client_update: Optional[Callable[[client_reports.ClientRoundEnd], Any]] = None
  trace_steps: bool = False
  max_update_norm: Optional[float] = None

  def __call__(
      self,
      model: local_models.LocalModel,
      weights: tff.learning.models.ModelWeights,
      hparams: Any,
      dataset: tf.data.Dataset,
      start: RoundStart = RoundStart(),
  ) -> LocalResult:
    """Trains, in the current graph.

    Args:
      model: The model, in the current graph.
      weights: The received weights.
      hparams: The hyperparameters of the optimizer.
      dataset: The batches.
      start: The other inputs of the round.

    Returns:
      The result of the training.
    """
    moved = model.moved_weights
    if own := start.kept.get(moved_weights.BATCH_STATISTICS):
      weights = moved.put_kept(weights, own)
    received = tuple(tf.nest.flatten(weights.trainable))
    run_loop = self._build_loop()
    num_gradients = start.num_gradients
    if not getattr(self.optimizer, 'averages_surveys', False):
      found, data = self.survey(model, weights, dataset, start)
      start = start._replace(shared=_OrderedDict(start.shared, **found))
      num_gradients = data.num_gradients
    optimizer_state = self._start_optimizer(received, hparams, start)
    _, report = totals_lib.split_report(self.optimizer, optimizer_state)
    received_moved = moved.take(weights.non_trainable)
    initial = _LoopState(
        received,
        received_moved,
        optimizer_state,
        model.start(weights),
        totals_lib.initial_totals(list(report), self.reports, self.trace_steps),
    )
    step = functools.partial(
        self._step, model, self._batch_term(received, start), received
    )
    final = run_loop(step, dataset, lambda: initial)
    if num_gradients:
      final = final._replace(totals=totals_lib.add_survey(final.totals))
    trained = optimizer_lib.final_weights(
        self.optimizer, final.optimizer_state, final.weights
    )
    mean_loss = functools.partial(
        data_passes.mean_loss,
        model.with_moved(final.moved),
        run_loop=run_loop,
        dataset=dataset,
    )
    return self._finish(
        model, (received, received_moved), trained, mean_loss, final
    )

  def initial_kept(
      self,
      received: local_models.Weights,
      kept_weights: local_models.Weights = (),
  ) -> Any:
    """Returns the parts that a client holds in its first participation.

    Args:
      received: The trainable weights that it receives.
      kept_weights: Those that it receives of the weights that it will keep.

    Returns:
      An ordered dictionary like `RoundStart.kept`, empty if nothing is kept.
    """
    kept: _OrderedDict[str, Any] = _OrderedDict()
    if isinstance(self.optimizer, federated_optimizer.FederatedOptimizer):
      part = self.optimizer.initialize_kept(_specs(received))
      if part:
        kept[_OPTIMIZER_KEY] = part
    if isinstance(self.loss_term, loss_terms.PreviousModelLossTerm):
      kept[_PREVIOUS_MODEL_KEY] = received
    if kept_weights:
      kept[moved_weights.BATCH_STATISTICS] = kept_weights
    return kept

  def _build_loop(self) -> data_passes.RunLoop:
    run_loop = tff.learning.loop_builder.build_training_loop(
        loop_implementation=self.loop_implementation
    )
    # TFF's loop over an iterator is Python's.
    return functools.partial(_autograph.call, run_loop)

  def survey(
      self,
      model: local_models.LocalModel,
      weights: tff.learning.models.ModelWeights,
      dataset: tf.data.Dataset,
      start: RoundStart = RoundStart(),
  ) -> tuple[_OrderedDict[str, Any], data_passes.DataSurvey]:
    """Returns what the optimizer needs to know of the data, and the look."""
    received = tuple(tf.nest.flatten(weights.trainable))
    data = data_passes.DataSurvey(
        model,
        weights,
        self._build_loop(),
        dataset,
        self._batch_term(received, start),
        self.gradient_options.apply,
    )
    found: _OrderedDict[str, Any] = _OrderedDict()
    if isinstance(self.optimizer, federated_optimizer.FederatedOptimizer):
      found = _autograph.call(self.optimizer.survey, data)
    return found, data

  def _batch_term(
      self, received: local_models.Weights, start: RoundStart
  ) -> Optional[local_models.BatchLossTerm]:
    """Returns the loss term of this round."""
    term: Any = self.loss_term
    if term is None:
      return None
    options = {}
    if isinstance(term, loss_terms.PreviousModelLossTerm):
      options['previous_model'] = start.kept[_PREVIOUS_MODEL_KEY]
    return lambda point, batch: _autograph.call(
        term, point, received, batch, **options
    )

  def _step(
      self,
      model: local_models.LocalModel,
      loss_term: Optional[local_models.BatchLossTerm],
      received: local_models.Weights,
      state: _LoopState,
      batch: Any,
  ) -> _LoopState:
    """Takes a local step."""
    model = model.with_moved(state.moved)
    evaluate, again = self._build_evaluations(model, loss_term, batch)
    evaluation = evaluate(state.weights)

    def value_and_grad(point):
      repeated = again(point)
      gradients = self.gradient_options.apply(point, repeated.gradients)
      return repeated.loss, gradients

    extra_args = {}
    if optimizer_lib.takes_extra_args(self.optimizer):
      evaluates_again = self.optimizer.evaluates_again
      extra_args['value'] = evaluation.loss
      extra_args['value_and_grad_fn'] = (
          value_and_grad if evaluates_again else None
      )
    before = state.optimizer_state, state.weights
    after = _autograph.call(
        self.optimizer.next,
        *before,
        self.gradient_options.apply(state.weights, evaluation.gradients),
        **extra_args,
    )
    optimizer_state, weights = optimizer_lib.check_step(
        after, *before, self.optimizer
    )
    taken = totals_lib.Step(
        evaluation,
        received,
        again and (lambda x: model.differentiable_loss(x, again(x))),
        *totals_lib.split_report(self.optimizer, optimizer_state),
    )
    return _LoopState(
        weights,
        evaluation.moved,
        optimizer_state,
        model.update_metrics(state.metrics, batch, evaluation),
        totals_lib.add_step(state.totals, taken, self.reports),
    )

  def _build_evaluations(self, model, loss_term, batch) -> tuple[Any, Any]:
    """Returns the evaluation that updates metrics, and one that does not."""
    repeats = optimizer_lib.evaluates_again(self.optimizer)
    repeats |= any(r.evaluates_again for r in self.reports.values())
    if not repeats:
      return lambda point: model.value_and_grad(point, batch, loss_term), None
    # All evaluations of a step use the same random numbers.
    seed = _random_ops.draw_seed()

    def build(value_and_grad):
      return lambda point: _random_ops.call_with_seed(
          value_and_grad, seed, point, batch, loss_term
      )

    return build(model.value_and_grad), build(model.value_and_grad_again)

  def _start_optimizer(
      self, received: local_models.Weights, hparams: Any, start: RoundStart
  ) -> Any:
    """Returns the optimizer's state before the first step."""
    state = _autograph.call(self.optimizer.initialize, _specs(received))
    state = _autograph.call(self.optimizer.set_hparams, state, hparams)
    if isinstance(self.optimizer, federated_optimizer.FederatedOptimizer):
      state = _autograph.call(
          self.optimizer.start_round,
          state,
          start.shared,
          start.kept.get(_OPTIMIZER_KEY, _OrderedDict()),
          tf.convert_to_tensor(start.round_num, tf.int32),
      )
    return tf.nest.map_structure(tf.convert_to_tensor, state)

  def _finish_optimizer(
      self, update: local_models.Weights, state: Any, specs: Any
  ) -> tuple[Any, _OrderedDict[str, Any], _OrderedDict[str, Any]]:
    """Returns the update and payloads to send, and what the client keeps."""
    if not isinstance(self.optimizer, federated_optimizer.FederatedOptimizer):
      return update, _OrderedDict(), _OrderedDict()
    update = _autograph.call(self.optimizer.sent_update, state, update)
    sent, kept = tf.nest.map_structure(
        tf.convert_to_tensor,
        _autograph.call(self.optimizer.finish_round, state),
    )
    declared = self.optimizer.initialize_kept(specs)
    if _describe(kept) != _describe(declared):
      raise ValueError(
          f'{optimizer_lib.name_of(self.optimizer)} keeps {_describe(kept)} by '
          f'`finish_round`, but {_describe(declared)} by `initialize_kept`: '
          'let both return the same names, shapes and types.'
      )
    return update, sent, _OrderedDict({_OPTIMIZER_KEY: kept} if kept else {})

  def _finish(
      self,
      model: local_models.LocalModel,
      start: tuple[local_models.Weights, local_models.Weights],
      trained: local_models.Weights,
      mean_loss: Callable[[local_models.Weights], tf.Tensor],
      final: _LoopState,
  ) -> LocalResult:
    """Returns the result of the training, zeros for an unhealthy client."""
    totals = final.totals
    received, received_moved = start
    moved = model.moved_weights
    change = moved.drop_kept(_subtract(received, trained))
    moved_update = _subtract(received_moved, final.moved)
    update, sent, kept = self._finish_optimizer(
        change, final.optimizer_state, _specs(received)
    )
    # The optimizer may have added what the client keeps.
    update = moved.drop_kept(update)
    end = client_reports.ClientRoundEnd(
        received,
        trained,
        update,
        tf.maximum(tf.cast(totals.num_steps, tf.float32), 1.0),
        None,
        final.optimizer_state,
        self.loss_term,
        mean_loss,
    )
    if self.client_update is not None:
      update = moved.drop_kept(_autograph.call(self.client_update, end))
      end = end._replace(update=update)
    if isinstance(self.loss_term, loss_terms.PreviousModelLossTerm):
      kept[_PREVIOUS_MODEL_KEY] = trained
    if moved.is_local:
      kept[moved_weights.BATCH_STATISTICS] = moved.to_kept(final.moved, trained)
    reports = totals_lib.finish_reports(totals, self.reports, end)
    is_finite = vectors.all_finite(
        (
            *(update, moved_update, totals.loss, totals.report_sum),
            *(sent, kept, reports),
        )
    )
    rejection = totals_lib.judge_client(
        totals.num_examples, is_finite, change, self.max_update_norm
    )
    is_healthy = tf.equal(rejection, totals_lib.Rejection.NONE)
    # Selected, not multiplied by zero: 0 * NaN is NaN.
    parts = (update, moved_update, sent, reports)
    leaves = tf.nest.flatten(parts)
    leaves = tf.cond(
        is_healthy, lambda: leaves, lambda: [tf.zeros_like(t) for t in leaves]
    )
    update, moved_update, sent, reports = tf.nest.pack_sequence_as(
        parts, leaves
    )
    return LocalResult(
        update,
        moved_update,
        tf.where(is_healthy, totals.num_examples, 0),
        sent,
        kept,
        reports,
        totals_lib.to_statistics(totals, is_healthy),
        totals.trace,
        model.report_metrics(final.metrics, is_healthy),
        rejection,
        is_healthy,
    )

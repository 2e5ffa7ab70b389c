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
"""One local step: one batch, one step of the client's optimizer."""

from typing import Any, Optional

import attrs
import tensorflow_federated as tff

from tff_adaptive import _stateless_random
from tff_adaptive.client_works import gradients as gradients_lib
from tff_adaptive.client_works import model_adapter
from tff_adaptive.client_works import totals as totals_lib
from tff_adaptive.optimizers import optimizer as optimizer_lib


@attrs.frozen(eq=False)
class LocalStep:
  """What a client does with each batch.

  Attributes:
    model: The model, in the graph of the client's work.
    optimizer: A plain TFF optimizer or an `ExtraArgsOptimizer`.
    loss_term: A term that is added to the loss, or `None`.
    gradient_options: What happens to a gradient before the optimizer sees it.
    received: The weights at which each batch's loss is also taken, or `None`.
  """

  model: model_adapter.LocalModel
  optimizer: tff.learning.optimizers.Optimizer
  loss_term: Optional[model_adapter.BatchLossTerm]
  gradient_options: gradients_lib.GradientOptions
  received: Optional[model_adapter.Weights]

  def __call__(
      self, weights: model_adapter.Weights, optimizer_state: Any, batch: Any
  ) -> tuple[model_adapter.Weights, Any, totals_lib.Step]:
    """Takes the step.

    Args:
      weights: The weights before the step.
      optimizer_state: The optimizer's state before the step.
      batch: The batch.

    Returns:
      The weights and the state after the step, and what it tells.
    """
    evaluate, again = self._build_evaluations(batch)
    evaluation = evaluate(weights)
    extra_args = {}
    if optimizer_lib.takes_extra_args(self.optimizer):
      extra_args['value'] = evaluation.loss
      extra_args['value_and_grad_fn'] = None
      if self.optimizer.evaluates_again:

        def value_and_grad(point):
          repeated = again(point)
          return repeated.loss, self.gradient_options.apply(
              point, repeated.gradients
          )

        extra_args['value_and_grad_fn'] = value_and_grad
    new_state, new_weights = self.optimizer.next(
        optimizer_state,
        weights,
        self.gradient_options.apply(weights, evaluation.gradients),
        **extra_args,
    )
    received_loss = None
    if self.received is not None:
      received_loss = again(self.received).loss
    step = totals_lib.Step(
        evaluation,
        received_loss,
        *totals_lib.split_report(self.optimizer, new_state),
    )
    return new_weights, new_state, step

  def _build_evaluations(self, batch: Any):
    """The evaluation of the batch that counts, and those that do not."""
    repeats = self.received is not None or (
        optimizer_lib.takes_extra_args(self.optimizer)
        and self.optimizer.evaluates_again
    )
    model, loss_term = self.model, self.loss_term
    if not repeats:
      return lambda point: model.value_and_grad(point, batch, loss_term), None
    # Every evaluation of a step sees the same random numbers.
    seed = _stateless_random.draw_seed()

    def build(value_and_grad):
      return lambda point: _stateless_random.call_with_seed(
          value_and_grad, seed, point, batch, loss_term
      )

    return build(model.value_and_grad), build(model.value_and_grad_again)

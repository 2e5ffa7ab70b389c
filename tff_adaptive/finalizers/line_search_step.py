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
"""The server step of FedLi-LS, from the clients' line searches."""

import collections
from collections.abc import Sequence
from typing import Any, Union

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import reports as reports_lib
from tff_adaptive.finalizers import reports_optimizer
from tff_adaptive.optimizers import sgd
from tff_adaptive.optimizers import vectors

MAX = 'max'
UNIT = 'unit'

_STEP_SIZE_KEY = 'server_step_size'

State = collections.OrderedDict[str, Any]


class _LargestStep(reports_optimizer.ReportsOptimizer):
  """The step is the largest of the clients' last ones."""

  @property
  def client_reports(self) -> Sequence[reports_lib.ClientReport]:
    return (reports_lib.ClientReport.LAST_STEP_SIZE,)

  def initialize(self, specs: Any) -> State:
    return collections.OrderedDict(
        [(_STEP_SIZE_KEY, tf.ones([], vectors.step_dtype(specs)))]
    )

  def step(self, state, weights, gradients, reports):
    del state  # It is nothing but the last step.
    step_size = tf.cast(reports['last_step_size'], vectors.step_dtype(weights))
    new_state = collections.OrderedDict([(_STEP_SIZE_KEY, step_size)])
    return new_state, vectors.descend(weights, gradients, step_size)

  def report(self, state):
    return collections.OrderedDict(state)

  def get_hparams(self, state):
    del state  # There is nothing to tune.
    return collections.OrderedDict()

  def set_hparams(self, state, hparams):
    del hparams  # There are none.
    return state


def parse_scale(text: str) -> Union[str, float]:
  """Reads a scale from the text of a flag.

  Args:
    text: What `build_line_search_step` takes, such as 'max' or '0.5'.

  Returns:
    The number, or the text itself where it is none.

  Example:

    >>> parse_scale('unit'), parse_scale('0.5')
    ('unit', 0.5)
  """
  try:
    return float(text)
  except ValueError:
    return text


def build_line_search_step(
    scale: Union[str, float] = MAX,
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedLi-LS.

  With D the weighted mean of the clients' changes:

  ```
  x_{t+1} = x_t + eta_s * D
  eta_s   = max over the round's clients of the step size accepted at their last
            local step            (`'max'`, for objectives that are not convex)
            1                     (`'unit'`, for convex ones)
            a constant            (a number)
  ```

  Args:
    scale: `'max'`, the default, `'unit'`, or a number that is not negative. For
      `'max'` each client reports one more number, `last_step_size`, which is
      sent in the clear: a maximum is no sum, so that no secure or private
      aggregator can be put on it, and a private mean of the changes alone makes
      no private model.

  Returns:
    For `'max'` a `ReportsOptimizer` without hyperparameters, which goes with
    client optimizers that have a step size; its state is an ordered dictionary
    of `server_step_size`, the last eta_s, which is also a metric of the round.
    Else `tff_adaptive.optimizers.build_fedavg` with the step.

  Raises:
    ValueError: If `scale` is neither of the three.

  Example:

    >>> rule = build_line_search_step('max')
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = rule.next(state, tf.constant(0.0), tf.constant(-2.0),
    ...                  reports={'last_step_size': tf.constant(0.5)})
    >>> float(x)
    1.0

  References:
    Towards Hyper-parameter-free Federated
    Learning, 2024, https://arxiv.org/abs/2408.17145v1, section 3,
    StepSizeSync. The published code never takes this step; the paper is
    followed.
  """
  if scale == MAX:
    return _LargestStep()
  if scale == UNIT:
    return sgd.build_fedavg(1.0)
  if isinstance(scale, str):
    raise ValueError(
        f"`scale` must be '{MAX}', '{UNIT}' or a number, found {scale!r}."
    )
  return sgd.build_fedavg(scale)

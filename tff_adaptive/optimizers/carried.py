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
"""Any optimizer as one whose state the server carries from round to round."""

import collections
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib

# Of the dtypes that aggregators average, the one that holds every step count.
_NUMBER_DTYPE = tf.float64


def _to_shared(part: Any) -> Any:
  """A part of the state as aggregators take it: in floating point."""

  def convert(value):
    tensor = tf.convert_to_tensor(value)
    if tensor.dtype.is_floating:
      return tensor
    return tf.cast(tensor, _NUMBER_DTYPE)

  return tf.nest.map_structure(convert, part)


def _from_shared(shared: Any, like: Any) -> Any:
  """A part of the state from what was shared, with the dtypes of another."""
  return tf.nest.map_structure(
      lambda value, old: tf.cast(value, tf.convert_to_tensor(old).dtype),
      shared,
      like,
  )


class CarriedOptimizer(federated_optimizer.FederatedOptimizer):
  """An optimizer that goes on in a round where the last one ended.

  Its steps are those of another optimizer. What it shares is the state of that
  one, under its own names, without the hyperparameters, which the client work
  has. Counts and switches are shared as float64.
  """

  averages_uniformly = True

  def __init__(self, optimizer: tff.learning.optimizers.Optimizer):
    """Initializes the optimizer.

    Args:
      optimizer: What takes the steps, a `tff.learning.optimizers.Optimizer` or
        an `ExtraArgsOptimizer` whose state is a mapping.

    Raises:
      TypeError: If its state is no mapping.
    """
    self._optimizer = optimizer
    state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    if not isinstance(state, Mapping):
      raise TypeError(
          'The state of an optimizer must map names to its parts to be carried '
          f'from round to round, found a {type(state).__name__} of '
          f'{type(optimizer).__name__}.'
      )
    self._hparam_names = frozenset(optimizer.get_hparams(state))

  @property
  def evaluates_again(self) -> bool:
    return (
        optimizer_lib.takes_extra_args(self._optimizer)
        and self._optimizer.evaluates_again
    )

  def initialize(self, specs):
    return self._optimizer.initialize(specs)

  def get_hparams(self, state):
    return self._optimizer.get_hparams(state)

  def set_hparams(self, state, hparams):
    return self._optimizer.set_hparams(state, hparams)

  def next(
      self, state, weights, gradients, *, value=None, value_and_grad_fn=None
  ):
    if not optimizer_lib.takes_extra_args(self._optimizer):
      return self._optimizer.next(state, weights, gradients)
    return self._optimizer.next(
        state,
        weights,
        gradients,
        value=value,
        value_and_grad_fn=value_and_grad_fn,
    )

  def report(self, state):
    return optimizer_lib.step_report(self._optimizer, state)

  def initialize_shared(self, specs):
    return self._share(self._optimizer.initialize(specs))

  def start_round(self, state, shared, kept, round_num):
    del kept, round_num  # Unused.
    carried = {
        name: _from_shared(part, state[name]) for name, part in shared.items()
    }
    # Where hyperparameters are not on top of the state, they were carried, too.
    return self._optimizer.set_hparams(
        collections.OrderedDict(state, **carried), self.get_hparams(state)
    )

  def finish_round(self, state):
    return self._share(state), collections.OrderedDict()

  def _share(self, state: Mapping[str, Any]) -> federated_optimizer.Parts:
    return collections.OrderedDict(
        (name, _to_shared(part))
        for name, part in state.items()
        if name not in self._hparam_names
    )

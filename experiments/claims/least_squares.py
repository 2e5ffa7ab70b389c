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
"""The small federated problem of the checks: two clients that disagree."""

from typing import Any, NamedTuple


class Client(NamedTuple):
  """A client with the loss curvature / 2 * (x - center)^2.

  Attributes:
    curvature: The second derivative.
    center: The minimizer.
  """

  curvature: float
  center: float

  def loss(self, x: float) -> float:
    """Returns the loss at a weight."""
    return 0.5 * self.curvature * (x - self.center) ** 2


CLIENTS = (Client(10.0, 1.0), Client(1.0, -1.0))
# Of the mean of the losses.
MINIMIZER = 9 / 11
NUM_LOCAL_STEPS = 5
LEARNING_RATE = 0.05

_SGD = {'name': 'sgd', 'lr': LEARNING_RATE}
_MEAN = {'name': 'sgd', 'lr': 1.0}


def fedavg(**changed: Any) -> dict[str, Any]:
  """Returns the configuration of FedAvg with SGD, with parts changed.

  Args:
    **changed: 'client', 'server' or 'loss', each with its 'name' and keys, as
      in a file of reference numbers.

  Returns:
    The configuration of a process.
  """
  return {'client': _SGD, 'server': _MEAN, **changed}

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
"""A workbench whose measurements are made up, to see checks go either way."""

import types

import numpy as np

from experiments.audit import quadratics


def create(**measurements):
  """Returns a workbench with these functions in the place of its own."""
  return types.SimpleNamespace(**measurements)


def path(points, step_sizes=None, **states):
  """Returns what a few local steps gave.

  Args:
    points: The weights, [steps + 1, size].
    step_sizes: Of each step; by default 0.1.
    **states: The states after the steps, by name.
  """
  points = np.asarray(points, np.float64)
  if step_sizes is None:
    step_sizes = np.full(len(points) - 1, 0.1)
  return types.SimpleNamespace(
      points=points, step_sizes=np.asarray(step_sizes), states=states
  )


def still(rule, batches, start, **arguments):
  """Steps that do not move, in the place of `Workbench.steps`."""
  del rule, arguments
  return path(np.tile(0.0 * np.asarray(start), [len(batches.slopes) + 1, 1]))


def away(rule, batches, start, **arguments):
  """Steps that go away from the minimum, in the place of `Workbench.steps`."""
  del rule, arguments
  scales = 1.0 + np.arange(len(batches.slopes) + 1)
  return path(scales[:, np.newaxis] * np.asarray(start))


def training(points=(0.0, 0.0), keeps_state=False, **clients):
  """Returns what a few rounds gave.

  Args:
    points: The first weight before each round, and the last one.
    keeps_state: Whether clients keep state.
    **clients: What they have cost.
  """
  costs = {'bytes_up': 40, 'bytes_down': 40, 'num_gradient_evaluations': 10}
  return types.SimpleNamespace(
      points=list(points), keeps_state=keeps_state, clients={**costs, **clients}
  )


def is_fedavg(config):
  """Returns whether a process is FedAvg with SGD."""
  return config == quadratics.fedavg()

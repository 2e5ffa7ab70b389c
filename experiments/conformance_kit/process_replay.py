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
"""Replays a run with a learning process of TFF."""

import numpy as np
import tensorflow_federated as tff

from experiments.conformance_kit import adapters
from tasks import golden_problems


def replay_process(
    process: tff.learning.templates.LearningProcess, run: adapters.GoldenRun
) -> list[np.ndarray]:
  """Trains a process whose clients bring batches and nothing else.

  Args:
    process: The process of the run's configuration.
    run: The run.

  Returns:
    The flat trainable weights after each round.
  """
  batches = golden_problems.create_client_batches(
      run.problem, run.configuration['batch_size'], run.configuration['epochs']
  )
  state = process.initialize()
  iterates = []
  for cohort in run.cohorts:
    state = process.next(state, [batches[client] for client in cohort]).state
    weights = process.get_model_weights(state)
    iterates.append(golden_problems.flatten_weights(weights.trainable))
  return iterates

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
"""Draws how alike the states are that the clients of a run keep."""

import itertools
import pathlib
from typing import Optional

import numpy as np

from experiments import command_line
from experiments import registry
from experiments.trace import retraining
from tff_adaptive import analysis

_PICTURE = 'cka.png'
_MAX_CLIENTS = 100


def draw(
    path: pathlib.Path,
    round_num: int,
    *,
    from_start: bool,
    data_dir: Optional[str],
):
  """Draws the linear CKA of what every two clients keep after a round.

  All kernels of a state count by their entries, those of the first and of the
  second moment alike. Of more than a hundred clients the first hundred are
  drawn.

  Args:
    path: The folder of the run; the picture is `plots/cka.png` in it.
    round_num: The number of the round, counted from 1.
    from_start: Whether to train from the first round on where no checkpoint is
      early enough.
    data_dir: The folder of the data sets, for a task that reads one.

  Raises:
    UserError: If the folder is not that of a run, its clients keep nothing, the
      run has no such round or no checkpoint before it, or the data cannot be
      trained on.
    EnvironmentalError: If a file could not be read or written.

  References:
    Zhou et al., FedCAda: Adaptive Client-Side Optimization for Accelerated and
    Stable Federated Learning, 2024, https://arxiv.org/abs/2405.11811, Figure 2.
  """
  with retraining.open_run(path, round_num, data_dir) as (run, replay):
    if not replay.keeps_states:
      raise command_line.UserError(
          f'the clients of {path} keep nothing across rounds that --cka could '
          'compare; train with --algorithm=fedcada and '
          '--fedcada_adam_carry_state, for example'
      )
    replay.train_until(round_num, from_start)
    states = dict(itertools.islice(replay.kept_states(), _MAX_CLIENTS))
    similarities = analysis.pairwise_moments_cka(list(states.values()))
    picture = run.directory.plots / _PICTURE
    task = run.choices[registry.TASK].row.name
    analysis.plot_similarity(
        similarities,
        list(states),
        picture,
        f'{task}: CKA of what clients keep, round {round_num}',
    )
  pairs = similarities[np.triu_indices(len(states), k=1)]
  if len(pairs):
    print(
        f'round {round_num}: linear CKA of {len(states)} clients, mean of the '
        f'pairs {np.mean(pairs):.4f}, from {np.min(pairs):.4f} to '
        f'{np.max(pairs):.4f}'
    )
  print(f'picture: {picture}')

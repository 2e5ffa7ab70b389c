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
"""Reports what the rounds so far have cost in privacy."""

from collections.abc import Mapping

from tff_adaptive.privacy import accounting
from tff_adaptive.privacy import differential_privacy
from tff_adaptive.simulation.callbacks import callback

EPSILON_KEY = 'privacy/epsilon'
CLIP_NORM_KEY = 'privacy/clip_norm'


class PrivacySpent(callback.Callback):
  """Puts epsilon, and the bounds of adaptive clipping, into every round's row.

  `privacy/epsilon` is that of all rounds until then, at a fixed delta. With
  adaptive clipping `privacy/clip_norm` is the bound of the change of the model
  to which the next round clips, and `privacy/clip_norm_of_second_moment`, say,
  that of a payload.

  Example:
    >>> accountant = privacy.RoundAccountant(
    ...     noise_multiplier=1.0, num_clients=1000, clients_per_round=10,
    ...     sampling=privacy.CohortSampling.POISSON)
    >>> callback = PrivacySpent(accountant, delta=1e-5)
  """

  def __init__(self, accountant: accounting.RoundAccountant, delta: float):
    """Initializes the callback.

    Args:
      accountant: That of the run.
      delta: The delta of epsilon, in (0, 1).

    Raises:
      ValueError: If `delta` is out of its range.
    """
    self._accountant = accountant
    self._delta = delta
    accountant.get_epsilon(1, delta)

  def measure(self, round_end: callback.RoundEnd) -> Mapping[str, float]:
    row = {
        EPSILON_KEY: self._accountant.get_epsilon(
            round_end.round_num, self._delta
        )
    }
    bounds = differential_privacy.get_clip_norms(round_end.state)
    for name, bound in bounds.items():
      is_change = name == differential_privacy.CHANGE
      row[CLIP_NORM_KEY if is_change else f'{CLIP_NORM_KEY}_of_{name}'] = bound
    return row

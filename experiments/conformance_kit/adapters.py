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
"""What a framework implements to replay reference trajectories."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional, Protocol

# The keys of a configuration that every adapter replays, or that say nothing of
# how a run is trained: its cohorts say who takes part, and for how many rounds.
# Another key asks for something else; an adapter leaves the run out unless it
# has that.
COMMON_KEYS = (
    'name',
    'problem',
    'client',
    'server',
    'weighting',
    'batch_size',
    'epochs',
    'rounds',
    'participants',
)


class AdapterError(Exception):
  """An adapter did not do its part; the text is one sentence without a dot."""


class UnsupportedError(Exception):
  """A framework does not claim a run; the text says what it lacks."""


class GoldenRun(NamedTuple):
  """What an adapter is told of a run: everything but how it ends.

  Attributes:
    configuration: The entry `config` of the file: the names and
      hyperparameters of `client` and `server`, `weighting`, `batch_size`,
      `epochs`, and where they apply `loss`, `schedule` and `decay_every`.
    problem: The entry of `problems`: `name`, the flat initial weights `x0`, and
      `clients`, each with its examples `X` and labels `y`.
    cohorts: For each round, the indices of its clients, in their order.
  """

  configuration: Mapping[str, Any]
  problem: Mapping[str, Any]
  cohorts: Sequence[Sequence[int]]


class Adapter(Protocol):
  """A framework, seen from a file of reference numbers.

  Attributes:
    name: What the framework is called.
  """

  name: str

  def supports(self, configuration: Mapping[str, Any]) -> Optional[str]:
    """Returns why a run is left out, or `None` if it is to be replayed.

    What a framework offers under the name of the method is to be replayed, also
    where its formula is another: that is what the comparison is for.

    Args:
      configuration: See `GoldenRun`.
    """

  def replay(self, run: GoldenRun) -> Sequence[Sequence[float]]:
    """Trains a run.

    Args:
      run: A run that is supported.

    Returns:
      The flat vector of the global model's weights after each round.

    Raises:
      UnsupportedError: If it turns out only now that the run is to be left out.
      AdapterError: If there is no result, with the reason.
    """

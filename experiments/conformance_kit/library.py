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
"""The library itself, as an adapter: the model of an in-process one."""

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from experiments import golden_processes
from experiments.conformance_kit import adapters
from experiments.conformance_kit import process_replay
from tasks import golden_problems
from tff_adaptive.simulation import client_states


class Library:
  """The processes that `tff_adaptive` builds, see `adapters.Adapter`."""

  name = 'tff_adaptive'

  def supports(self, configuration: Mapping[str, Any]) -> Optional[str]:
    del configuration  # Whatever is not known is a failure.
    return None

  def replay(self, run: adapters.GoldenRun) -> Sequence[Any]:
    process = golden_processes.build_process(
        dict(run.configuration),
        golden_problems.create_functional_model(run.problem),
        golden_problems.create_representation_fn(run.problem),
        len(run.problem['clients']),
    )
    if client_states.get_state_spec(process) is not None:
      raise adapters.UnsupportedError(
          'its clients keep state, which a replay without --adapter has'
      )
    return process_replay.replay_process(process, run)

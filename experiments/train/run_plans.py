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
"""Where and how the clients of a run work, as its flags or its record say."""

from collections.abc import Mapping
from typing import Any, Optional

from experiments import hparams
from experiments import registry
from tff_adaptive import runtime
from tff_adaptive.runtime import scale_out

COMPILED = "compiled"
RAY = "ray"
_CHOOSE = {COMPILED: runtime.choose_plan, RAY: scale_out.choose_ray_plan}

_Choices = Mapping[str, hparams.Choice]


def keep_plan(
    choices: _Choices, recorded: Optional[Mapping[str, Any]]
) -> _Choices:
  """Returns the choices with the plan of a run that is resumed.

  Args:
    choices: The chosen rows.
    recorded: The hyperparameters of the run; None for a new one.

  Returns:
    The choices; what the flags left to us is what it was before.
  """
  choice = choices[registry.RUNTIME]
  kept = {
      name: (recorded or {})[name]
      for name, value in choice.hparams().items()
      if value == runtime.AUTO and name in (recorded or {})
  }
  return {**choices, registry.RUNTIME: choice.with_values(**kept)}


def choose_plan(choices: _Choices) -> _Choices:
  """Returns the choices with the device and the plan that suit the machine.

  They go into `hparams.json`, so that the run can be resumed with the same.

  Args:
    choices: The chosen rows.

  Returns:
    The choices; those that the flags made stay.
  """
  choice = choices[registry.RUNTIME]
  if choice.row.name not in _CHOOSE:
    return choices
  plan = _CHOOSE[choice.row.name](**choice.hparams())
  print(f"clients' work: {plan.device}, plan {plan.name}", flush=True)
  found = {"devices": plan.device, "plan": plan.name}
  left_to_us = {
      name: value
      for name, value in found.items()
      if choice.hparams()[name] == runtime.AUTO
  }
  chosen = choice.with_values(**left_to_us)
  return {**choices, registry.RUNTIME: chosen}


def reads_clients_here(choices: _Choices) -> bool:
  """Returns whether this process reads the data of clients, not workers."""
  return choices[registry.RUNTIME].row.name != RAY

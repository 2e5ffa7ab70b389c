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
"""The flags of a training run, defined from the registry.

No TensorFlow is imported here.
"""

import json
from typing import Any

from absl import flags

from experiments import flag_table
from experiments import registry
from experiments import settings

# The rows that are chosen where nothing is said; an algorithm may bring others.
DEFAULT_ROWS = {
    registry.TASK: 'digits',
    registry.ALGORITHM: 'fed_opt',
    registry.CLIENT_OPTIMIZER: 'delta_sgd',
    registry.SERVER_OPTIMIZER: 'fedavg',
    registry.LOSS_TERM: 'none',
    registry.CLIENT_SCHEDULE: 'constant',
    registry.SERVER_SCHEDULE: 'constant',
    registry.RUNTIME: 'compiled',
}

# A kind, one of its rows, and an argument of that.
_Use = tuple[str, registry.Row, registry.Argument]


def flags_of_rows() -> dict[str, list[_Use]]:
  """Returns the (kind, row, argument) of every row's arguments, by flag."""
  uses: dict[str, list[_Use]] = {}
  for kind, rows in registry.ROWS.items():
    for row in rows.values():
      for argument in row.arguments:
        uses.setdefault(row.flag_name(argument), []).append(
            (kind, row, argument)
        )
  return uses


def _show(value: Any) -> str:
  return value if isinstance(value, str) else json.dumps(value)


def _define_argument(name, uses, flag_values):
  """Defines the flag of an argument, which several rows may share."""
  # Of the rows that say the same, it is shown once.
  owners: dict[str, list[str]] = {}
  for _, row, argument in uses:
    text = f'{argument.help} Default {_show(argument.default)}.'
    owners.setdefault(text, []).append(row.name)
  texts = [f'{", ".join(names)}: {text}' for text, names in owners.items()]
  argument = uses[0][2]
  if argument.choices:
    flags.DEFINE_enum(
        name, None, argument.choices, ' '.join(texts), flag_values=flag_values
    )
    return
  define = {
      float: flags.DEFINE_float,
      int: flags.DEFINE_integer,
      bool: flags.DEFINE_boolean,
      str: flags.DEFINE_string,
  }[argument.type]
  define(name, None, ' '.join(texts), flag_values=flag_values)


def _kinds_of_parts() -> set[str]:
  """Returns the kinds of rows that an algorithm may bring."""
  algorithms = registry.ROWS[registry.ALGORITHM].values()
  return {part.kind for row in algorithms for part in row.parts}


def _define_choices(flag_values):
  """Defines the flags that choose rows, and those of their arguments."""
  kinds_of_parts = _kinds_of_parts()
  for kind, rows in registry.ROWS.items():
    text = f'The {kind.replace("_", " ")}: {", ".join(rows)}.'
    default = DEFAULT_ROWS[kind]
    if kind in kinds_of_parts:
      text += f" Default: the algorithm's; {default} where it has none."
      default = None
    flags.DEFINE_string(kind, default, text, flag_values=flag_values)
  for name, uses in flags_of_rows().items():
    _define_argument(name, uses, flag_values)


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines all flags of a training run.

  Args:
    flag_values: Where to define them.
  """
  _define_choices(flag_values)
  flag_table.define(settings.Settings, flag_values)

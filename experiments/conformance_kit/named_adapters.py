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
"""From the value of --adapter to an adapter."""

from typing import Optional

from experiments import registry
from experiments.conformance_kit import adapters
from experiments.conformance_kit import command_adapter

_COMMAND = 'command:'

# Name to the builder, which is imported when it is asked for.
_BUILDERS = {
    'stock_tff': 'experiments.conformance_kit.stock_tff:StockTff',
    'tff_adaptive': 'experiments.conformance_kit.library:Library',
}

HELP = (
    'Replays the runs in another framework and compares the weights: '
    f'{", ".join(sorted(_BUILDERS))}; {_COMMAND} and a command that reads a '
    'run as JSON and writes the weights after each round; or module:attribute, '
    'a function that returns an Adapter.'
)


def is_command(value: Optional[str]) -> bool:
  """Whether an adapter is a command, which needs no runtime of TFF.

  Args:
    value: See `create_adapter`; `None` is no adapter.

  Returns:
    Whether it begins with `command:`.
  """
  return value is not None and value.startswith(_COMMAND)


def create_adapter(value: str, timeout: float = 600.0) -> adapters.Adapter:
  """Creates the adapter that a flag asks for.

  Args:
    value: A name, `command:` and a command, or `module:attribute`, where what
      returns an `Adapter` is found.
    timeout: How many seconds a run of a command may take. Default 600.

  Returns:
    The adapter.

  Raises:
    ValueError: If there is no such adapter.
  """
  if is_command(value):
    command = value[len(_COMMAND) :]
    return command_adapter.CommandAdapter(command, timeout)
  if value not in _BUILDERS and ':' not in value:
    raise ValueError(
        f'unknown adapter {value!r}; the known ones are {sorted(_BUILDERS)}, '
        "'command:...' and 'module:attribute'"
    )
  reference = _BUILDERS.get(value, value)
  try:
    build = registry.resolve(reference)
  except (AttributeError, ImportError) as error:
    raise ValueError(
        f'the adapter {value!r} cannot be imported ({error}); give '
        'module:attribute, from a folder that is on PYTHONPATH'
    ) from error
  return build()

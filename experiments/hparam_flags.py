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

from experiments import callback_flags
from experiments import evaluation_flags
from experiments import fault_flags
from experiments import privacy_flags
from experiments import registry

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

_MODULES = (fault_flags, privacy_flags, evaluation_flags, callback_flags)

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


def _define_protocol(flag_values):
  """Defines the flags of rounds, cohorts and batches."""
  for name, default, text in (
      ('total_rounds', None, "Rounds of the run. Default: the task's."),
      ('clients_per_round', None, "Clients in a cohort. Default: the task's."),
      ('client_batch_size', None, "Examples in a batch. Default: the task's."),
      (
          'client_epochs',
          None,
          "Passes of a client over its data in a round. Default: the task's.",
      ),
      (
          'max_examples',
          None,
          'How many examples of a client count, the first ones in stored '
          "order. Default: the task's.",
      ),
      (
          'rounds_per_evaluation',
          5,
          'Evaluate as --evaluations says after every this many rounds, and '
          'after the last.',
      ),
      (
          'rounds_per_checkpoint',
          10,
          'Save after every this many rounds, and after the last.',
      ),
      (
          'checkpoints_to_keep',
          3,
          'How many of the newest checkpoints stay; they are of about the size '
          'of the model.',
      ),
  ):
    flags.DEFINE_integer(
        name, default, text, lower_bound=1, flag_values=flag_values
    )
  flags.DEFINE_integer(
      'seed',
      0,
      'Fixes initial weights, partition, sampling and shuffling.',
      lower_bound=0,
      # NumPy's own generator takes no larger one.
      upper_bound=2**32 - 1,
      flag_values=flag_values,
  )
  flags.DEFINE_string(
      'initial_weights',
      None,
      'Begin with the weights of this file: one of experiments.export, a '
      'checkpoint or best.npz of a run; or with those of the newest checkpoint '
      "in this folder of a run. Default: the task's own, from --seed.",
      flag_values=flag_values,
  )


def _define_clients(flag_values):
  """Defines the flags of who is trained on, and who or what is kept."""
  flags.DEFINE_integer(
      'num_clients',
      None,
      'Train on this many clients of the task, drawn by --seed. Default: all.',
      lower_bound=1,
      flag_values=flag_values,
  )
  flags.DEFINE_integer(
      'heldout_clients',
      None,
      'Keep this many clients, drawn by --seed, for testing only: their '
      "examples take the place of the task's test data. Default: none.",
      lower_bound=1,
      flag_values=flag_values,
  )
  flags.DEFINE_float(
      'heldout_fraction',
      None,
      "Keep this part of every client's examples for testing only, in place of "
      "the task's test data; with --heldout_clients central evaluation takes "
      'those. Default: none.',
      lower_bound=0.0,
      upper_bound=1.0,
      flag_values=flag_values,
  )


def _define_environment(flag_values):
  """Defines the flags of what a run uses and where it writes."""
  flags.DEFINE_enum(
      'bad_clients',
      'error',
      ['error', 'reject'],
      'What to do about clients that are empty or hold NaN: stop before '
      'training, or leave them out. Labels out of range always stop.',
      flag_values=flag_values,
  )
  flags.DEFINE_string(
      'data_dir',
      None,
      'The folder of the data sets; digits needs none.',
      flag_values=flag_values,
  )
  flags.DEFINE_boolean(
      'use_synthetic_data',
      False,
      'Train on made-up data in the format of the task, to try a command '
      'without a download; the metrics mean nothing.',
      flag_values=flag_values,
  )
  flags.DEFINE_integer(
      'client_states_memory_mb',
      1024,
      'MiB of memory for what clients keep across rounds (scaffold, moon); '
      'what does not fit is in files of the run.',
      lower_bound=0,
      flag_values=flag_values,
  )
  flags.DEFINE_string(
      'output_dir', 'runs', 'The folder of all runs.', flag_values=flag_values
  )
  flags.DEFINE_string(
      'experiment_name',
      None,
      'The folder of this run in --output_dir; a run that was interrupted goes '
      'on from there. Default: TASK.ALGORITHM.CLIENT.SERVER, and .LOSS_TERM if '
      'there is one.',
      flag_values=flag_values,
  )


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines all flags of a training run.

  Args:
    flag_values: Where to define them.
  """
  _define_choices(flag_values)
  _define_protocol(flag_values)
  _define_clients(flag_values)
  for module in _MODULES:
    module.define(flag_values)
    # So that --help shows its flags too.
    flags.adopt_module_key_flags(module, flag_values)
  _define_environment(flag_values)

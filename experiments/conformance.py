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
r"""Compares the library with reference trajectories.

For example:

  python -m experiments.conformance --goldens=goldens.json

prints a line a run, `name problem max_error tolerance ok` or `FAIL`, and in the
last line `N passed, M failed`. The exit code is 1 if any run failed, or asks
for what is not known.
"""

import sys

from absl import flags

from experiments import command_line
from experiments import registry


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags.

  Args:
    flag_values: Where to define them.
  """
  flags.DEFINE_string(
      'goldens',
      None,
      'The file of reference numbers.',
      required=True,
      flag_values=flag_values,
  )
  flags.DEFINE_enum(
      'runtime',
      'compiled',
      list(registry.RUNTIMES),
      'What executes the rounds.',
      flag_values=flag_values,
  )


def main():
  """Replays every run of the file and exits with 1 if one failed."""
  command_line.prepare_libraries()
  # TensorFlow takes seconds to import: not for --help and not for a typo.
  from experiments import replayer  # pylint: disable=import-outside-toplevel

  path = flags.FLAGS.goldens
  with command_line.errors_as(command_line.UserError, OSError, ValueError):
    runs, problems = replayer.read_goldens(path)
  num_passed = 0
  with registry.resolve(registry.RUNTIMES[flags.FLAGS.runtime])():
    for run in runs:
      result = replayer.replay(run, problems)
      num_passed += result.passed
      print(result, flush=True)
  print(f'{num_passed} passed, {len(runs) - num_passed} failed')
  sys.exit(int(num_passed < len(runs)))


if __name__ == '__main__':
  define()
  command_line.run(main)

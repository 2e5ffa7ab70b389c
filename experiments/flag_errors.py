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
"""What absl says of flags that it cannot parse, as sentences.

No TensorFlow is imported here.
"""

import re

from absl import flags

_MAX_SUGGESTIONS = 3
# How other programs call what ends so here.
_SHORT_NAMES = {
    'lr': 'learning_rate',
    'num_rounds': 'rounds',
    'num_epochs': 'epochs_per_round',
}

_IS_MISSING = re.compile(
    r'flag --(\w+)=None: Flag --\w+ must have a value other than None'
)
_IS_NO_INTEGER = re.compile(
    r'flag --(\w+)=(.*): invalid literal for int\(\) with base', re.DOTALL
)
_IS_NO_NUMBER = re.compile(
    r'flag --(\w+)=(.*): could not convert string to float', re.DOTALL
)
_IS_NO_BOOLEAN = re.compile(
    r'flag --(\w+)=(.*): .*Non-boolean argument to boolean flag', re.DOTALL
)
_KINDS = (
    (_IS_NO_INTEGER, 'an integer'),
    (_IS_NO_NUMBER, 'a number'),
    (_IS_NO_BOOLEAN, 'true or false'),
)


def describe(error: flags.Error, flag_values: flags.FlagValues) -> str:
  """Returns what is wrong with the flags, and what would be right.

  Args:
    error: What absl has raised.
    flag_values: The flags that it was to parse.

  Returns:
    A sentence; that of the error where there is no better one.
  """
  text = str(error)
  if isinstance(error, flags.UnrecognizedFlagError):
    suggestion = _suggestion(error, flag_values)
    # What absl suggests begins like the name that was given.
    return f'{text.partition(". Did")[0]}{suggestion}' if suggestion else text
  missing = _IS_MISSING.findall(text)
  if missing:
    names = ' and '.join(f'--{name}' for name in missing)
    verb = 'is' if len(missing) == 1 else 'are'
    return f'{names} {verb} missing, see --help'
  for pattern, kind in _KINDS:
    found = pattern.match(text)
    if found:
      name, value = found.groups()
      return f'--{name} must be {kind}, found {value!r}'
  return text


def _suggestion(
    error: flags.UnrecognizedFlagError, flag_values: flags.FlagValues
) -> str:
  """Returns the whole name of a flag of which only the end was given."""
  end = _SHORT_NAMES.get(error.flagname, error.flagname)
  names = [name for name in flag_values if name.endswith(f'_{end}')]
  nearest = sorted(names, key=lambda name: (len(name), name))
  if not nearest:
    return ''
  *others, last = (f'--{name}' for name in nearest[:_MAX_SUGGESTIONS])
  choice = f'{", ".join(others)} or {last}' if others else last
  return f'; did you mean {choice}?'

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
"""What is wrong with a flag, in one sentence."""

from collections.abc import Iterable
import difflib
import math
from typing import Union

from absl import flags


class HparamError(flags.Error):
  """A flag has a value that cannot be; the text is one sentence."""


# Rounds compute in float32, also with squares of numbers, and in int32.
_LARGEST = {float: 1e18, int: 2**31 - 1}


def check_size(flag: str, value: Union[int, float]):
  """Raises if a number is too large to compute with.

  Args:
    flag: The flag that has it as its value, or as a part of that.
    value: The number; NaN and infinity are others' matter.

  Raises:
    HparamError: If it is too large.
  """
  largest = _LARGEST[type(value)]
  if largest < abs(value) < math.inf:
    raise HparamError(f'--{flag} must be at most {largest}, found {value}')


def check_name(
    flag: str,
    name: str,
    names: Iterable[str],
    elsewhere: Iterable[str] = (),
):
  """Raises unless there is a name.

  Args:
    flag: The flag that has it as its value, or as one of its values.
    name: The name.
    names: Those that there are.
    elsewhere: Other flags that have this name among their values.

  Raises:
    HparamError: If it is not among them; names the other flags, or those that
      are most like it.
  """
  names = list(names)
  if name in names:
    return
  near = [f'--{other}={name}' for other in elsewhere]
  near = near or difflib.get_close_matches(name, names, cutoff=0.5)
  advice = (
      f'did you mean {" or ".join(near)}?'
      if near
      else f'there are {", ".join(names)}'
  )
  kind = flag.removesuffix('s').replace('_', ' ')
  raise HparamError(f'--{flag}={name} names no {kind}; {advice}')

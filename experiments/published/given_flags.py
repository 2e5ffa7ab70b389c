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
"""Flags with their origin: what a paper says, what we assume, what is lost."""

from collections.abc import Mapping, Sequence
import dataclasses
import enum
import functools
import pathlib
from typing import Any

_FLAGFILE = '--flagfile='
_COMMENTS = ('#', '//')


class Origin(str, enum.Enum):
  """Where the value of a hyperparameter comes from.

  Attributes:
    SPECIFIED: The paper, or the code that its authors published, says it.
    ASSUMED: Neither says it; the value is ours.
    LOST: They say that there was a value, and not which, or contradict each
      other; the value is ours.
  """

  SPECIFIED = 'specified'
  ASSUMED = 'assumed'
  LOST = 'lost'


@dataclasses.dataclass(frozen=True)
class GivenFlag:
  """A flag of a cell.

  Attributes:
    name: What stands between the dashes and the value: 'task', 'nokeep_best'.
    text: As on the command line: '--task=mnist'.
    origin: Where its value comes from.
    reason: What was said beside the origin in a flagfile; may be empty.
  """

  name: str
  text: str
  origin: Origin
  reason: str = ''


def _to_flag(text: str, origin: Origin, reason: str = '') -> GivenFlag:
  name = text.partition('=')[0].lstrip('-')
  return GivenFlag(name, text, origin, reason)


def read_flagfile(path: pathlib.Path) -> list[GivenFlag]:
  """Returns the flags of a flagfile with their origins.

  A comment that begins with 'specified', 'assumed' or 'lost' holds for the
  flags below it, up to the next one of these; before the first, flags are
  specified.

  Args:
    path: The flagfile; it includes no other.

  Returns:
    The flags in their order.

  Raises:
    OSError: If it cannot be read.

  Example:

    # specified: Section 5.1
    --client_batch_size=64
    # lost: the values of the grid
    --client_weight_decay=0.001
  """
  return list(_parse(path.read_text(encoding='utf-8')))


# The cells of a paper share flagfiles, and read them again and again.
@functools.lru_cache(maxsize=None)
def _parse(text: str) -> tuple[GivenFlag, ...]:
  found = []
  origin, reason = Origin.SPECIFIED, ''
  for line in text.splitlines():
    line = line.strip()
    if line.startswith(_COMMENTS):
      word, _, rest = line.lstrip('#/ ').partition(':')
      if word in list(Origin):
        origin, reason = Origin(word), rest.strip()
    elif line:
      found.append(_to_flag(line, origin, reason))
  return tuple(found)


def from_mapping(entry: Mapping[str, Any]) -> list[GivenFlag]:
  """Returns the flags that an entry of a data file gives.

  Args:
    entry: Has lists of flags by the names of origins; other keys are left
      alone.

  Returns:
    The flags in their order, each origin for itself.
  """
  return [
      _to_flag(str(text), origin)
      for origin in Origin
      for text in entry.get(origin.value) or ()
  ]


def expand(flags: Sequence[GivenFlag], root: pathlib.Path) -> list[GivenFlag]:
  """Returns flags with those of flagfiles in the place of the files.

  Args:
    flags: May have `--flagfile=PATH`.
    root: The folder that the paths are relative to.

  Returns:
    The flags, none of them a flagfile.

  Raises:
    OSError: If a flagfile cannot be read.
  """
  found = []
  for flag in flags:
    if flag.text.startswith(_FLAGFILE):
      found.extend(read_flagfile(root / flag.text[len(_FLAGFILE) :]))
    else:
      found.append(flag)
  return found

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
"""What all readers of the data files need: the files and their errors."""

from collections.abc import Mapping, Sequence
import functools
import pathlib
from typing import Any

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]


class PublishedError(ValueError):
  """A data file of a table is not as it should be."""


def load(path: pathlib.Path) -> Mapping[str, Any]:
  """Returns what a data file says."""
  return _parse(path.read_text(encoding='utf-8'))


# Tables share axes and runs, and so are read again and again.
_parse = functools.lru_cache(maxsize=None)(yaml.safe_load)


def check_keys(
    found: Mapping[str, Any],
    known: Sequence[str],
    place: str,
    needed: Sequence[str] = (),
):
  """Raises if a mapping has other keys than it can have, or lacks one."""
  for key in found:
    if key not in known:
      raise PublishedError(f'{place} takes {", ".join(known)}, found {key!r}')
  for key in needed:
    if key not in found:
      raise PublishedError(f'{place} needs {key!r}')


def check_choice(found: Any, known: Sequence[str], place: str):
  """Raises if a value is none of those that it can be."""
  if found not in known:
    raise PublishedError(
        f'{place} is one of {", ".join(known)}, found {found!r}'
    )


def find_sibling(path: pathlib.Path, name: str) -> pathlib.Path:
  """Returns the data file of another table of the same paper."""
  other = path.with_name(f'{name}.yaml')
  if not other.is_file():
    raise PublishedError(
        f'{path.parent.name}/{path.stem} is like {name!r}, and there is no '
        'such table'
    )
  return other

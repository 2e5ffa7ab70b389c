# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The names of methods in `--compare`: `[LABEL=][NAME][:FILE.flags]`."""

import pathlib
import re
from typing import NamedTuple, Optional

_SUFFIX = '.flags'
# The file that a sweep writes into its folder, which has the telling name.
_OF_SWEEPS = 'best'
# Paths of files may have '=', too.
_ENTRY = re.compile(r'(?:([^=:/]+)=)?(.*)', re.DOTALL)


class Entry(NamedTuple):
  """A method as `--compare` names it.

  Attributes:
    label: Its name in tables and legends; empty for the default one.
    name: The name of a method, or the place of a user's own rule; empty if the
      file says all.
    flagfile: The file with its flags, if any.
  """

  label: str
  name: str
  flagfile: Optional[pathlib.Path] = None

  @property
  def file_label(self) -> str:
    """The name of the file, or of the sweep that wrote it."""
    assert self.flagfile is not None
    stem, folder = self.flagfile.stem, self.flagfile.absolute().parent.name
    return folder if stem == _OF_SWEEPS and folder else stem


def read_entry(text: str) -> Entry:
  """Reads an entry of `--compare`.

  Example:

    >>> read_entry('FedAvg, tuned=fedavg:runs/rates/best.flags')[:2]
    ('FedAvg, tuned', 'fedavg')
  """
  match = _ENTRY.fullmatch(text.strip())
  assert match is not None
  label, rest = (match[1] or '').strip(), match[2].strip()
  if not rest.endswith(_SUFFIX):
    return Entry(label, rest)
  name, _, path = rest.rpartition(':')
  return Entry(label, name, pathlib.Path(path).expanduser())

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The flags of the papers by name, and `--preset=PAPER/NAME`, which gives them.

`experiments/presets/PAPER/flags.yaml` has a list under every name. An item has
flags under `specified`, `assumed` or `lost`, and the `reason` of this origin.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import enum
import functools
import pathlib
from typing import Any, TypeVar

from absl import flags as absl_flags
import attrs

from experiments import flag_table
from experiments import yaml_files

# For --help, the flag belongs to the caller of `define`.
absl_flags.disclaim_key_flags()

PRESETS = pathlib.Path(__file__).resolve().parent / 'presets'
FILE = 'flags.yaml'
_PRESET = 'preset'


class Origin(str, enum.Enum):
  """The origin of the value of a hyperparameter.

  Attributes:
    SPECIFIED: The paper or its authors' published code gives the value.
    ASSUMED: Neither mentions a value; the value is ours.
    LOST: They mention a value without giving it, or contradict each other; the
      value is ours.
  """

  SPECIFIED = 'specified'
  ASSUMED = 'assumed'
  LOST = 'lost'


@dataclasses.dataclass(frozen=True)
class GivenFlag:
  """A flag of a cell.

  Attributes:
    text: The text on a command line: '--task=mnist', '--nokeep_best'.
    origin: The origin of its value.
    reason: The reason for the origin in the file of a paper's flags.
  """

  text: str
  origin: Origin
  reason: str = ''

  @property
  def name(self) -> str:
    """The text between the dashes and the value: 'task', 'nokeep_best'."""
    return self.text.partition('=')[0].lstrip('-')

  @property
  def value(self) -> str:
    """The text after the equals sign."""
    return self.text.partition('=')[2]


_Flags = TypeVar('_Flags', bound='FlagsByOrigin')


@attrs.frozen(kw_only=True)
class FlagsByOrigin:
  """Flags in a data file, under the names of their origins.

  Attributes:
    specified: The flags whose values the paper or its code gives.
    assumed: Those whose values are ours.
    lost: Those whose values are lost.
  """

  specified: tuple[str, ...] = ()
  assumed: tuple[str, ...] = ()
  lost: tuple[str, ...] = ()

  @property
  def given(self) -> tuple[GivenFlag, ...]:
    """The flags, sorted by origin."""
    return tuple(
        GivenFlag(text, origin)
        for origin in Origin
        for text in getattr(self, origin.value)
    )

  def with_origin(self: _Flags, origin: str) -> _Flags:
    """Returns a copy with all flags under one origin."""
    texts: dict[str, Any] = {other.value: () for other in Origin}
    texts[origin] = tuple(flag.text for flag in self.given)
    return attrs.evolve(self, **texts)


@attrs.frozen(kw_only=True)
class _Item(FlagsByOrigin):
  """Flags of one reason."""

  reason: str

  @property
  def given(self) -> tuple[GivenFlag, ...]:
    return tuple(
        dataclasses.replace(flag, reason=self.reason) for flag in super().given
    )


@functools.lru_cache(maxsize=None)
def load(
    presets: pathlib.Path = PRESETS,
) -> Mapping[str, tuple[GivenFlag, ...]]:
  """Returns the flags of all papers by 'PAPER/NAME'.

  Args:
    presets: The folder of the papers' folders.

  Raises:
    DataFileError: If a file is invalid.
  """
  found = {}
  for path in sorted(presets.glob(f'*/{FILE}')):
    place = f'{path.parent.name}/{FILE}'
    raw = yaml_files.parse(path.read_text(encoding='utf-8'), place)
    named = yaml_files.structure(raw, dict[str, tuple[_Item, ...]], place)
    for name, items in named.items():
      found[f'{path.parent.name}/{name}'] = tuple(
          flag for item in items for flag in item.given
      )
  return found


def expand(
    flags: Iterable[GivenFlag], presets: pathlib.Path = PRESETS
) -> list[GivenFlag]:
  """Replaces each `--preset` by its flags.

  Args:
    flags: The flags.
    presets: The folder of the papers' folders.

  Raises:
    HparamError: If there is no such preset; suggests similar ones.
    DataFileError: If a file of presets is invalid.
  """
  found: list[GivenFlag] = []
  for flag in flags:
    if flag.name == _PRESET:
      known = load(presets)
      flag_table.check_name(_PRESET, flag.value, known)
      found += known[flag.value]
    else:
      found.append(flag)
  return found


class _PresetFlag(absl_flags.Flag):
  """Parses the flags of a preset where it stands on the command line.

  As a flagfile, it has no value of its own and is not present afterwards.
  """

  def __init__(self, flag_values: absl_flags.FlagValues):
    super().__init__(
        absl_flags.ArgumentParser(),
        None,
        _PRESET,
        None,
        f'PAPER/NAME: the flags under NAME in experiments/presets/PAPER/{FILE},'
        ' such as delta_sgd/sgdm. Later flags override them. It may be '
        'repeated.',
    )
    self._flag_values = flag_values

  def parse(self, argument: str) -> None:
    given = GivenFlag(f'--{_PRESET}={argument}', Origin.SPECIFIED)
    for flag in expand([given]):
      name, value = flag.name, flag.value
      if '=' not in flag.text:  # A boolean.
        value = 'true' if name in self._flag_values else 'false'
        name = name if value == 'true' else name.removeprefix('no')
      self._flag_values[name].parse(value)
      self._flag_values[name].using_default_value = False


def define(flag_values: absl_flags.FlagValues = absl_flags.FLAGS):
  """Defines `--preset`, which sets flags that are defined elsewhere.

  Args:
    flag_values: Where to define it.
  """
  absl_flags.DEFINE_flag(_PresetFlag(flag_values), flag_values)

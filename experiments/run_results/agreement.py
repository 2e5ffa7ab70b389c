# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Comparison of the hyperparameters of a run with those that flags request.

Published cells, sweep trials and time estimates find their runs by this check.
"""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import functools
import json
from typing import Any, NamedTuple, Optional

from experiments import hparams
from experiments import published
from experiments import registry
from experiments import settings as settings_lib

_EVALUATIONS = 'evaluations'
# Flags that a run needs only if they were requested. A run that stopped early
# has fewer rounds.
_ADDITIONS = frozenset(
    entry.name
    for entry in dataclasses.fields(settings_lib.Settings)
    if entry.metadata['is_addition']
)

# A run older than a flag is a run with any of these values: no step of
# Delta-SGD in the kept runs stood still.
_OLDER = {'delta_sgd_growth': ('always', 'if_moved')}

_Values = Mapping[str, Any]


class Difference(NamedTuple):
  """A hyperparameter in which a run differs from the request.

  Attributes:
    name: The name of the flag.
    found: The value in the run.
    wanted: The requested value.
  """

  name: str
  found: Any
  wanted: Any


@dataclasses.dataclass(frozen=True)
class WantedHparams:
  """The values that flags imply for the `hparams.json` of a run.

  Runtime, device and clients at once do not count: they say where a run is
  computed.

  Attributes:
    values: The effective values by flag, including defaults.
    defaults: The values if no flag is given, for runs older than a flag.
  """

  values: _Values
  defaults: _Values

  def find_differences(
      self, recorded: _Values, names: Optional[Collection[str]] = None
  ) -> list[Difference]:
    """Returns the differences between a run and the request.

    Args:
      recorded: The hyperparameters of the run.
      names: The hyperparameters to compare; None for all.
    """
    differences = []
    for name, wanted in self.values.items():
      if names is not None and name not in names:
        continue
      found = recorded.get(name)
      if found is None and wanted in _OLDER.get(name, ()):
        continue
      if found is None:
        found = self.defaults[name]
      if not _fits(name, found, wanted):
        differences.append(Difference(name, found, wanted))
    return differences


def _fits(name: str, found: Any, wanted: Any) -> bool:
  """Returns whether the value of a run satisfies the request."""
  if name == _EVALUATIONS:
    default = (settings_lib.CENTRAL,)
    return set(wanted or default) <= set(found or default)
  return found == wanted or (name in _ADDITIONS and not wanted)


def of_arguments(arguments: Sequence[str]) -> WantedHparams:
  """Returns the hyperparameters that a command line requests.

  Args:
    arguments: The flags of `experiments.train`.

  Returns:
    The hyperparameters.

  Raises:
    HparamError: If two flags conflict.
    absl.flags.Error: If a flag does not exist or has an invalid value.
  """
  choices, settings = published.parse_flags(arguments)
  protocol = choices[registry.TASK].row.definition.protocol
  values = {
      **{kind: choice.row.name for kind, choice in choices.items()},
      **published.argument_values(choices),
      **settings.hparams(),
  }
  unset = hparams.default_choices(
      {kind: choice.row for kind, choice in choices.items()}
  )
  algorithm = choices[registry.ALGORITHM].row
  defaults = {
      **_default_settings(),
      **hparams.DEFAULT_ROWS,
      **algorithm.part_names,
      **published.argument_values(unset),
  }
  del values[registry.RUNTIME]

  def complete(found: _Values) -> _Values:
    in_force = {
        name: (
            getattr(protocol, name, None)
            if found[name] is None
            else found[name]
        )
        for name in values
    }
    # As read back from a file.
    return json.loads(json.dumps(in_force))

  return WantedHparams(complete(values), complete(defaults))


@functools.lru_cache(maxsize=None)
def _default_settings() -> _Values:
  """Returns the default values of the flags that belong to no row."""
  _, settings = published.parse_flags([])
  return settings.hparams()


def of_cell(cell: published.Cell, seed: int) -> WantedHparams:
  """Returns the hyperparameters of the runs of a cell.

  Args:
    cell: The cell of a published table.
    seed: The seed of the run.

  Returns:
    The hyperparameters.

  Raises:
    HparamError: If two flags of the cell conflict.
    absl.flags.Error: If a flag does not exist or has an invalid value.
    OSError: If a file of flags cannot be read.
  """
  given = published.expand(cell.flags)
  return of_arguments(
      [*(flag.text for flag in given), '--data_dir=data', f'--seed={seed}']
  )

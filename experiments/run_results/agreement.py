# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The hyperparameters that flags ask for, compared with those of a run.

The cells of published tables, the trials of sweeps and the expected times of
runs all find their runs by this check.
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
# What adds to the files of a run and leaves its numbers as they are: it must be
# there if it was asked for, and may be there if not. A run that ended early is
# told by its rounds.
_ADDITIONS = (
    'early_stopping_patience',
    'evaluation_clients',
    'keep_best',
    'monitored_metric',
    'monitored_mode',
    'personalization_epochs',
    'weights_average_decay',
    'weights_average_rounds',
)

_Values = Mapping[str, Any]


class Difference(NamedTuple):
  """A hyperparameter in which a run is not what was asked for.

  Attributes:
    name: The name of its flag.
    found: The value of the run.
    wanted: The value that was asked for.
  """

  name: str
  found: Any
  wanted: Any


@dataclasses.dataclass(frozen=True)
class WantedHparams:
  """The values that `hparams.json` of a run with some flags must have.

  Runtime, device and plan, the place where a run is computed, do not count.

  Attributes:
    values: The values in force by flag, defaults filled in.
    defaults: Those of the same rows with no flag given: what a run has that was
      made before there was a flag.
  """

  values: _Values
  defaults: _Values

  def find_differences(
      self, recorded: _Values, names: Optional[Collection[str]] = None
  ) -> list[Difference]:
    """Returns in what a run is not what was asked for.

    Args:
      recorded: The hyperparameters of the run.
      names: Those that matter. Default: all.

    Returns:
      The differences; none if the run is one that was asked for.
    """
    differences = []
    for name, wanted in self.values.items():
      if names is not None and name not in names:
        continue
      found = recorded.get(name)
      if found is None:
        found = self.defaults[name]
      if not _fits(name, found, wanted):
        differences.append(Difference(name, found, wanted))
    return differences


def _fits(name: str, found: Any, wanted: Any) -> bool:
  """Returns whether the value of a run is what was asked for."""
  if name == _EVALUATIONS:
    default = (settings_lib.CENTRAL,)
    return set(wanted or default) <= set(found or default)
  return found == wanted or (name in _ADDITIONS and not wanted)


def of_arguments(arguments: Sequence[str]) -> WantedHparams:
  """Returns the hyperparameters that a command line asks for.

  Args:
    arguments: The flags of `experiments.train`.

  Returns:
    The hyperparameters. Those of the task's protocol are looked up in the task,
    which imports TensorFlow.

  Raises:
    HparamError: If two of the flags do not fit.
    absl.flags.Error: If there is no such flag, or not of this value.
  """
  choices, settings = published.parse_flags(arguments)
  task = choices[registry.TASK].row.task
  assert task is not None
  protocol = task.protocol
  values = {
      **{kind: choice.row.name for kind, choice in choices.items()},
      **published.argument_values(choices),
      **settings.hparams(),
  }
  unset = {
      kind: hparams.Choice(choice.row, {}) for kind, choice in choices.items()
  }
  algorithm = choices[registry.ALGORITHM].row
  defaults = {
      **_default_settings(),
      **hparams.DEFAULT_ROWS,
      **{part.kind: part.name for part in algorithm.parts},
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
    # As they look when they come back from a file.
    return json.loads(json.dumps(in_force))

  return WantedHparams(complete(values), complete(defaults))


@functools.lru_cache(maxsize=None)
def _default_settings() -> _Values:
  """Returns what a run says of the flags of no row if none is given."""
  _, settings = published.parse_flags([])
  return settings.hparams()


def of_cell(cell: published.Cell, seed: int) -> WantedHparams:
  """Returns the hyperparameters that the runs of a cell have.

  Args:
    cell: The cell of a published table.
    seed: The seed of the run.

  Returns:
    The hyperparameters.

  Raises:
    HparamError: If two flags of the cell do not fit.
    absl.flags.Error: If there is no such flag, or not of this value.
    OSError: If a flagfile cannot be read.
  """
  given = published.expand(cell.flags)
  return of_arguments(
      [*(flag.text for flag in given), '--data_dir=data', f'--seed={seed}']
  )

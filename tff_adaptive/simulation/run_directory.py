# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The folder of one run, and the check that it belongs to one configuration."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import json
import pathlib
import shutil
from typing import Any, Optional

from tff_adaptive import _files

_TOTAL_ROUNDS_KEY = 'total_rounds'
# What a run of the programs has in its folder before its first round.
_MADE_BEFORE_ROUNDS = frozenset(
    {
        *('hparams.json', 'environment.json', 'inputs.json'),
        *('checkpoints', 'client_states', 'plots', 'tensorboard'),
    }
)


class RunDirectoryError(Exception):
  """The folder of a run belongs to another configuration."""


def _show(value: Any) -> str:
  return 'nothing' if value is None else json.dumps(value)


def _check_same(
    path: pathlib.Path,
    found: Mapping[str, Any],
    given: Any,
    uses_total_rounds: Sequence[str],
):
  """Raises unless two configurations agree, except for more rounds."""
  # In the caller's order, in which causes come before effects.
  for name in dict.fromkeys([*given, *found]):
    old, new = found.get(name), given.get(name)
    may_grow = name == _TOTAL_ROUNDS_KEY and None not in (old, new)
    grows = may_grow and new >= old
    if old == new or (grows and not uses_total_rounds):
      continue
    reason = ''
    if grows:
      user = uses_total_rounds[0]
      reason = (
          f', and with {user}={_show(given.get(user))} the finished rounds '
          'would have been different'
      )
    raise RunDirectoryError(
        f'{path} holds a run with {name}={_show(old)}, but {name}='
        f'{_show(new)} was given{reason}; choose another experiment_name, or '
        'use the value of the run'
    )


class RunDirectory:
  """The folder `<output_dir>/<experiment_name>/` and its paths.

  Attributes:
    path: The folder of the run.
    hparams_json: All hyperparameters of the run, sorted by name.
    metrics_csv: One row per round.
    rejected_clients_csv: One row per rejected client and round, if there are
      any.
    tensorboard: The folder of TensorBoard's event files.
    checkpoints: The folder of the checkpoints.
    client_states: The folder of the states that clients keep across rounds, if
      any.
    plots: The folder of the figures.
    profile: The Chrome trace of a round, if there is one.

  Example:
    >>> directory = RunDirectory('runs', 'sgd')
    >>> with directory.locked():
    ...   with directory.opened({'seed': 1, 'total_rounds': 100}):
    ...     print(directory.metrics_csv)
    runs/sgd/metrics.csv
  """

  def __init__(self, output_dir: _files.PathLike, experiment_name: str):
    """Initializes the paths; nothing is written yet.

    Args:
      output_dir: The folder of all runs.
      experiment_name: The name of this run, one or more path components.
    """
    self.path = pathlib.Path(output_dir) / experiment_name
    self.hparams_json = self.path / 'hparams.json'
    self.metrics_csv = self.path / 'metrics.csv'
    self.rejected_clients_csv = self.path / 'rejected_clients.csv'
    self.tensorboard = self.path / 'tensorboard'
    self.checkpoints = self.path / 'checkpoints'
    self.client_states = self.path / 'client_states'
    self.plots = self.path / 'plots'
    self.profile = self.path / 'profile.json.gz'

  def _is_new(self, folder: pathlib.Path) -> bool:
    """Returns whether a folder contains no file of a run."""
    if folder.is_symlink() or not folder.is_dir():
      return not folder.exists()
    return all(
        path == self.path / _files.LOCK_NAME
        or _files.is_temporary(path, self.hparams_json)
        or self._is_new(path)
        for path in folder.iterdir()
    )

  def read_hparams(self) -> Optional[dict[str, Any]]:
    """Returns the hyperparameters of the run; None if there is no run.

    Raises:
      RunDirectoryError: If the folder holds anything other than a run.
    """
    if self.path.exists() and not self.path.is_dir():
      raise RunDirectoryError(f'{self.path} is a file, not the folder of a run')
    try:
      return json.loads(self.hparams_json.read_text(encoding='utf-8'))
    except FileNotFoundError:
      if not self._is_new(self.path):
        raise RunDirectoryError(
            f'{self.path} is not empty and has no hparams.json, so it is not '
            'the folder of a run; choose another experiment_name'
        ) from None
      return None
    except ValueError as error:
      raise RunDirectoryError(
          f'{self.hparams_json} is damaged ({error}); restore it or choose '
          'another folder'
      ) from error

  @contextlib.contextmanager
  def locked(self) -> Iterator[None]:
    """Prevents other processes from training in the folder.

    The lock ends with the block, or with the process.

    Yields:
      Nothing.

    Raises:
      RunDirectoryError: If another process trains in the folder; names it.
      OSError: If the folder cannot be written; names it.
    """
    if self.path.is_file():
      yield  # `check` rejects this.
      return
    try:
      with _files.locked(self.path):
        yield
    except _files.FolderInUseError as error:
      raise RunDirectoryError(str(error)) from error

  def check(
      self, hparams: Mapping[str, Any], uses_total_rounds: Sequence[str] = ()
  ):
    """Checks that the folder is new or belongs to these hyperparameters.

    Args:
      hparams: The hyperparameters of the run, by flag name; values must be
        JSON-serializable. The first difference, in this order, is reported.
      uses_total_rounds: The hyperparameters that make every round depend on
        `total_rounds`, such as a schedule with steps at fractions of it; with
        any, `total_rounds` must not change either. Defaults to none.

    Raises:
      RunDirectoryError: If the folder holds a run with other hyperparameters
        (a larger `total_rounds` is allowed, unless something uses it), or
        anything other than a run.
    """
    found = self.read_hparams()
    if found is None:
      return
    # Through JSON, so that tuples equal lists and 1 equals 1.0, as in the file.
    given = json.loads(json.dumps(dict(hparams)))
    _check_same(self.path, found, given, uses_total_rounds)

  def open(
      self, hparams: Mapping[str, Any], uses_total_rounds: Sequence[str] = ()
  ):
    """Checks the folder like `check`, then creates it and `hparams.json`.

    Temporary files of killed runs are removed. The arguments are those of
    `check`.

    Raises:
      RunDirectoryError: See `check`.
      OSError: If a file or folder cannot be written; names it.
    """
    self.check(hparams, uses_total_rounds)
    text = json.dumps(dict(hparams), indent=2, sort_keys=True) + '\n'
    data = text.encode()
    path = self.hparams_json
    # The first file of a run identifies it. Its time is the start of the run,
    # so a resume does not rewrite it.
    if not path.is_file() or path.read_bytes() != data:
      _files.write(path, data)
    for path in (self.tensorboard, self.checkpoints, self.plots):
      with _files.write_errors_of(path):
        path.mkdir(exist_ok=True)
    for path in (self.path, self.tensorboard, self.checkpoints, self.plots):
      _files.remove_temporaries(path)

  @contextlib.contextmanager
  def opened(
      self, hparams: Mapping[str, Any], uses_total_rounds: Sequence[str] = ()
  ) -> Iterator[None]:
    """Opens the folder like `open`, for a block that trains in it.

    A block that raises before a round is recorded leaves a new folder empty,
    unless it has other files than those of the programs: the next run there may
    have other hyperparameters. The arguments are those of `check`.

    Yields:
      Nothing.

    Raises:
      RunDirectoryError: See `check`.
      OSError: If a file or folder cannot be written; names it.
    """
    is_new = self.read_hparams() is None
    self.open(hparams, uses_total_rounds)
    try:
      yield
    except BaseException:
      # The folder may have gone meanwhile; the error says more than that.
      if is_new and self.checkpoints.is_dir() and not self._has_rounds():
        self._empty()
      raise

  def _has_rounds(self) -> bool:
    return self.metrics_csv.exists() or any(self.checkpoints.iterdir())

  def _empty(self):
    """Removes what programs make before a round, if there is nothing else."""
    made = [p for p in self.path.iterdir() if p.name != _files.LOCK_NAME]
    if {path.name for path in made} <= _MADE_BEFORE_ROUNDS:
      for path in made:
        if path.is_dir() and not path.is_symlink():
          shutil.rmtree(path, ignore_errors=True)
        else:
          path.unlink(missing_ok=True)

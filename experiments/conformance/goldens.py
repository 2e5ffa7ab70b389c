# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of reference trajectories, and the comparison of replays with them."""

from collections.abc import Callable, Mapping, Sequence
import json
from typing import Any, NamedTuple, Optional

import numpy as np

from experiments.conformance import adapters
from tff_adaptive import _files

# A float32 run may deviate by this much, or by this multiple of the error from
# rounding the reference itself to float32.
_TOLERANCE = 2e-5
_ROUNDING_FACTOR = 50.0


class Result(NamedTuple):
  """The result of comparing a run.

  Attributes:
    name: The name of the run.
    problem: The name of the problem.
    max_error: The largest absolute difference, relative for scalars above one;
      `None` if the run could not be replayed.
    tolerance: The largest difference that passes.
    reason: The reason why the run failed or was skipped, or an empty string.
    skipped: Whether the run was skipped.
  """

  name: str
  problem: str
  max_error: Optional[float]
  tolerance: float
  reason: str = ''
  skipped: bool = False

  @property
  def passed(self) -> bool:
    return self.max_error is not None and self.max_error <= self.tolerance

  def __str__(self) -> str:
    begin = f'{self.name} {self.problem}'
    if self.max_error is None:
      verdict = 'skipped' if self.skipped else 'FAIL'
      return f'{begin} - {self.tolerance:.2g} {verdict} ({self.reason})'
    verdict = 'ok' if self.passed else 'FAIL'
    return f'{begin} {self.max_error:.3g} {self.tolerance:.2g} {verdict}'


def judge(
    run: Mapping[str, Any],
    problems: Mapping[str, Any],
    find_error: Callable[[adapters.GoldenRun, Sequence[Any]], float],
) -> Result:
  """Replays a run and compares it.

  Args:
    run: An entry of `runs`: `config`, `float32_error` and `trajectory`, any of
      which may be missing.
    problems: The entries of `problems`, by name.
    find_error: Replays the run, and returns the largest difference from the
      trajectory.

  Returns:
    A `Result`. An `UnsupportedError` skips the run, and any other error fails
    it, with the error as the reason.
  """
  result = Result('?', '?', None, _TOLERANCE)
  try:
    config = run['config']
    name, problem = (str(config.get(key, '?')) for key in ('name', 'problem'))
    result = result._replace(name=name, problem=problem)
    if problem not in problems:
      raise adapters.AdapterError(f'unknown problem {problem!r}')
    tolerance = max(_TOLERANCE, _ROUNDING_FACTOR * run['float32_error'])
    result = result._replace(tolerance=tolerance)
    trajectory = run['trajectory']
    if not trajectory:  # An empty comparison would always pass.
      raise ValueError(
          'the trajectory in the file is empty, expected at least one round'
      )
    cohorts = [[c['id'] for c in entry['clients']] for entry in trajectory]
    golden_run = adapters.GoldenRun(config, problems[problem], cohorts)
    return result._replace(max_error=find_error(golden_run, trajectory))
  except adapters.UnsupportedError as error:
    return result._replace(reason=str(error), skipped=True)
  except adapters.AdapterError as error:
    return result._replace(reason=str(error))
  except Exception as error:  # pylint: disable=broad-exception-caught
    # File and adapter are third-party: one broken run must not hide the others.
    first_line = (str(error).splitlines() or [''])[0]
    return result._replace(reason=f'{type(error).__name__}: {first_line}')


def _compare(iterates: Any, trajectory: Sequence[Mapping[str, Any]]) -> float:
  """Returns the largest difference of the weights, NaN if any is NaN."""
  expected = np.asarray([entry['server']['x'] for entry in trajectory])
  if len(iterates) != len(expected):
    raise adapters.AdapterError(
        f'found {len(iterates)} iterates, expected {len(expected)}, one per '
        'round'
    )
  try:
    found = np.asarray(iterates, np.float64)
  except (TypeError, ValueError) as error:
    raise adapters.AdapterError(
        'the iterates must be flat lists of numbers of equal length: '
        f'{error}'
    ) from error
  if found.shape != expected.shape:
    raise adapters.AdapterError(
        f'found iterates of shape {found.shape}, expected {expected.shape} '
        '(rounds, weights)'
    )
  if not expected.size:
    raise adapters.AdapterError(
        'the reference has no weights, so nothing can be compared'
    )
  return float(np.max(np.abs(found - expected)))


def check(
    adapter: adapters.Adapter,
    run: Mapping[str, Any],
    problems: Mapping[str, Any],
) -> Result:
  """Replays a run in a framework and compares the weights of every round.

  Args:
    adapter: The framework.
    run: See `judge`.
    problems: The entries of `problems`, by name.

  Returns:
    A `Result`: skipped if the adapter does not support the run, failed with a
    reason if there are no weights to compare.
  """

  def find_error(golden_run, trajectory):
    reason = adapter.supports(golden_run.configuration)
    if reason is not None:
      raise adapters.UnsupportedError(reason)
    return _compare(adapter.replay(golden_run), trajectory)

  return judge(run, problems, find_error)


def read_goldens(path: _files.PathLike) -> tuple[list[Any], dict[str, Any]]:
  """Reads a file of reference trajectories.

  Args:
    path: A JSON file with `runs` and `problems`.

  Returns:
    The runs, and the problems by name.

  Raises:
    OSError: If the file cannot be read.
    ValueError: If the file is invalid.
  """
  with open(path, encoding='utf-8') as file:
    try:
      goldens = json.load(file)
    except ValueError as error:
      raise ValueError(f'{path} is not a JSON file: {error}') from error
  for key in ('problems', 'runs'):
    if not isinstance(goldens, dict) or key not in goldens:
      raise ValueError(
          f'{path} has no {key!r}; a file of reference trajectories has both '
          "'problems' and 'runs'"
      )
  runs = goldens['runs']
  if not isinstance(runs, list) or not runs:
    raise ValueError(f"{path} has no runs; list at least one under 'runs'")
  try:
    problems = {problem['name']: problem for problem in goldens['problems']}
  except (KeyError, TypeError) as error:
    raise ValueError(
        f"{path} must list objects with a 'name' under 'problems'"
    ) from error
  return runs, problems

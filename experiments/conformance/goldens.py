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
"""Files of reference numbers: their runs, their tolerances, the verdicts."""

from collections.abc import Mapping, Sequence
import json
import os
from typing import Any, NamedTuple, Optional, Union

# A float32 run may be off by this much, or by this many times what rounding the
# reference itself to float32 has cost.
_TOLERANCE = 2e-5
_ROUNDING_FACTOR = 50.0


class Result(NamedTuple):
  """How a run compares.

  Attributes:
    name: The run's name.
    problem: The problem's name.
    max_error: The largest absolute difference, `None` if it could not run;
      relative where a step size or the like is above one.
    tolerance: The largest difference that passes.
    reason: Why it could not run or was left out, or an empty string.
    skipped: Whether it was left out.
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


def begin_result(run: Mapping[str, Any]) -> Result:
  """The result of a run that has not run.

  Args:
    run: An entry of `runs`, which may lack anything.

  Returns:
    A `Result` with the run's names and the smallest tolerance.
  """
  config = run.get('config', {})
  name, problem = (str(config.get(key, '?')) for key in ('name', 'problem'))
  return Result(name, problem, None, _TOLERANCE)


def find_tolerance(run: Mapping[str, Any]) -> float:
  """The largest difference that passes.

  Args:
    run: An entry of `runs`.

  Returns:
    The tolerance.

  Raises:
    KeyError: If the run lacks `float32_error`.
  """
  return max(_TOLERANCE, _ROUNDING_FACTOR * run['float32_error'])


def find_trajectory(run: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
  """The reference, round by round.

  Args:
    run: An entry of `runs`.

  Returns:
    Its rounds; one at least, as nothing to compare with would always pass.

  Raises:
    KeyError: If the run lacks `trajectory`.
    ValueError: If it is empty.
  """
  if not run['trajectory']:
    raise ValueError(
        'the trajectory of the file is empty, expected one round or more'
    )
  return run['trajectory']


def read_goldens(
    path: Union[str, os.PathLike],
) -> tuple[list[Any], dict[str, Any]]:
  """Reads a file of reference numbers.

  Args:
    path: A JSON file with `runs` and `problems`.

  Returns:
    The runs, and the problems by name.

  Raises:
    OSError: If the file cannot be read.
    ValueError: If it is no such file.
  """
  with open(path, encoding='utf-8') as file:
    try:
      goldens = json.load(file)
    except ValueError as error:
      raise ValueError(f'{path} is not a JSON file: {error}') from error
  for key in ('problems', 'runs'):
    if key not in goldens:
      raise ValueError(
          f'{path} has no {key!r}; a file of reference numbers has both '
          "'problems' and 'runs'"
      )
  if not goldens['runs']:
    raise ValueError(f"{path} has no run; list one or more under 'runs'")
  problems = {problem['name']: problem for problem in goldens['problems']}
  return goldens['runs'], problems

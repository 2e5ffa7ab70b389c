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
"""Compares what an adapter replays with the reference."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.conformance import adapters
from experiments.conformance import goldens


def _compare(iterates: Any, trajectory: Sequence[Mapping[str, Any]]) -> float:
  """The largest difference of the weights over the rounds, NaN if any is."""
  expected = np.asarray([entry['server']['x'] for entry in trajectory])
  if len(iterates) != len(expected):
    raise adapters.AdapterError(
        f'found {len(iterates)} iterates, expected {len(expected)}: the '
        'weights after each round'
    )
  try:
    found = np.asarray(iterates, np.float64)
  except (TypeError, ValueError) as error:
    raise adapters.AdapterError(
        'found iterates that are not flat lists of numbers, all of one '
        f'length: {error}'
    ) from error
  if found.shape != expected.shape:
    raise adapters.AdapterError(
        f'found iterates of shape {found.shape}, expected {expected.shape}: '
        'rounds by weights'
    )
  if not expected.size:
    raise adapters.AdapterError(
        'the reference has no weights, so that nothing can be compared'
    )
  return float(np.max(np.abs(found - expected)))


def check(
    adapter: adapters.Adapter,
    run: Mapping[str, Any],
    problems: Mapping[str, Any],
) -> goldens.Result:
  """Replays a run in a framework and compares the weights of every round.

  Args:
    adapter: The framework.
    run: An entry of `runs`: `config`, `float32_error` and `trajectory`.
    problems: The entries of `problems`, by name.

  Returns:
    A `Result`: skipped if the adapter leaves the run out, failed with a reason
    if it has no weights to compare.
  """
  result = goldens.begin_result(run)
  try:
    configuration = run['config']
    trajectory = goldens.find_trajectory(run)
    if result.problem not in problems:
      raise adapters.AdapterError(f'unknown problem {result.problem!r}')
    result = result._replace(tolerance=goldens.find_tolerance(run))
    reason = adapter.supports(configuration)
    if reason is not None:
      raise adapters.UnsupportedError(reason)
    cohorts = [
        [client['id'] for client in entry['clients']] for entry in trajectory
    ]
    iterates = adapter.replay(
        adapters.GoldenRun(configuration, problems[result.problem], cohorts)
    )
    return result._replace(max_error=_compare(iterates, trajectory))
  except adapters.UnsupportedError as error:
    return result._replace(reason=str(error), skipped=True)
  except adapters.AdapterError as error:
    return result._replace(reason=str(error))
  except Exception as error:  # pylint: disable=broad-exception-caught
    # The adapter is somebody else's: one odd run must not hide the others.
    first_line = (str(error).splitlines() or [''])[0]
    return result._replace(reason=f'{type(error).__name__}: {first_line}')

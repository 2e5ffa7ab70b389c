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
"""Whose FedAdam is which formula: implementations against dialects."""

from collections.abc import Iterator
from typing import NamedTuple, Optional

import numpy as np

from experiments.conformance_kit import dialects
from experiments.conformance_kit import implementations

# D_t of six rounds: a weight that grows steadily, a small one that changes its
# sign, one that is quiet after a start, and one that no client changes.
CHANGES = (
    (0.30, 0.010, 0.2, 0.0),
    (0.25, -0.020, 0.1, 0.0),
    (0.35, 0.015, 0.0, 0.0),
    (0.30, -0.005, 0.0, 0.0),
    (0.20, 0.020, 0.0, 0.0),
    (0.25, -0.010, 0.0, 0.0),
)

# TFF computes the corrected rate in float32, also for weights in float64.
_TOLERANCE = 5e-6


class Verdict(NamedTuple):
  """How an implementation compares with a dialect.

  Attributes:
    first_round: The first round after which they differ, from 1, or `None`.
    difference: The largest absolute difference of a weight in any round.
  """

  first_round: Optional[int]
  difference: float

  def __str__(self) -> str:
    if self.first_round is None:
      return 'equal'
    return f'from round {self.first_round} by {self.difference:.1g}'


def compare(
    implementation: implementations.Implementation,
    dialect: dialects.Dialect,
    method: str,
) -> Verdict:
  """Runs both on the same changes.

  Args:
    implementation: Whose rule.
    dialect: The formula.
    method: One of `dialects.METHODS`.

  Returns:
    A `Verdict`.
  """
  found = implementations.iterate(implementation, method, CHANGES)
  expected = dialects.iterate(dialect, method, CHANGES)
  differences = np.max(np.abs(found - expected), axis=1)
  differs = ~(differences <= _TOLERANCE)  # Also where one is no number.
  first_round = int(np.argmax(differs)) + 1 if differs.any() else None
  return Verdict(first_round, float(np.max(differences)))


def _to_row(cells: list[str]) -> str:
  return f'| {" | ".join(cells)} |'


def _table(method: str) -> Iterator[str]:
  columns = dialects.DIALECTS[method]
  yield _to_row([method, *(column.name for column in columns), 'how', 'where'])
  yield _to_row(['---'] * (len(columns) + 3))
  for implementation in implementations.IMPLEMENTATIONS[method]:
    verdicts = [
        str(compare(implementation, column, method)) for column in columns
    ]
    how = 'run' if implementation.is_run else 'read'
    yield _to_row([implementation.name, *verdicts, how, implementation.source])


def to_markdown() -> str:
  """The matrix as Markdown: a table a method, a row an implementation.

  Returns:
    Text that ends with a line break. A cell says `equal`, or from which round
    on the weights differ, and by how much at most.
  """
  tables = ['\n'.join(_table(method)) for method in dialects.METHODS]
  return '\n\n'.join(tables) + '\n'

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
"""Verdicts from the numbers that the published tables print."""

from collections.abc import Sequence

from experiments import published
from experiments.claims import claim
from experiments.claims import workbench
from experiments.report import views


def lead(
    lab: workbench.Workbench, table_name: str, rows: Sequence[str]
) -> claim.Verdict:
  """Returns whether the best of some rows is first wherever a table prints it.

  Args:
    lab: The workbench.
    table_name: The table.
    rows: The rows.

  Returns:
    'holds' or 'fails', with the columns in which another row is first; 'not
    run' if the table prints no number of these rows.
  """
  table = lab.find_table(table_name)
  if table is None:
    return claim.missing_table(table_name)
  places = find_places(table, rows)
  if not places:
    return claim.Verdict(
        claim.Status.NOT_RUN,
        f'{table_name} prints no number of {" or ".join(rows)}.',
    )
  behind = [name for name, place in places.items() if place > 1]
  return claim.Verdict(
      claim.Status.FAILS if behind else claim.Status.HOLDS,
      f'First in {len(places) - len(behind)} of {len(places)} columns'
      + (f', behind in {"; ".join(behind)}.' if behind else '.'),
      places,
  )


def find_places(table: published.Table, rows: Sequence[str]) -> dict[str, int]:
  """Returns the place of the best of some rows, by group and column.

  Args:
    table: The table, whose printed numbers count.
    rows: The rows; where none of them has a number there is no place.

  Returns:
    The places, 1 for the best; ties share the better one.
  """
  standings = views.rank(
      {(c.group, c.row, c.column): c.published for c in table.cells},
      lower_is_better=views.lower_is_better(table),
  )
  places: dict[str, int] = {}
  for (group, row, column), standing in standings.items():
    if row in rows:
      name = place_name(group, column)
      places[name] = min(standing.place, places.get(name, standing.place))
  return places


def place_name(group: str, column: str) -> str:
  """Returns what a group and a column of a table are called together."""
  return ', '.join(name for name in (group, column) if name)

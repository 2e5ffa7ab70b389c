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
"""What the figures of published tables show, from the runs of their cells."""

from collections.abc import Callable, Sequence
from typing import Optional

import numpy as np

from experiments import published
from experiments.report import cell_results
from experiments.report import figures
from tff_adaptive import analysis

Results = Sequence[cell_results.CellResult]
Panels = dict[str, dict[str, analysis.BandCurve]]
_Series = tuple[Sequence[int], Sequence[float]]


def panels_by_group_and_column(
    results: Results,
    build: Callable[[cell_results.CellResult], Optional[analysis.BandCurve]],
) -> Panels:
  """Returns curves by row, by group and column."""
  panels: Panels = {}
  for result in results:
    cell = result.cell
    title = ', '.join(name for name in (cell.column, cell.group) if name)
    curve = build(result)
    if curve is not None:
      panels.setdefault(title, {})[cell.row] = curve
  return panels


def align(
    series: Sequence[tuple[Sequence[int], Sequence[float]]],
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the rounds that all seeds have, and their values by seed."""
  common = (
      set.intersection(*(set(rounds) for rounds, _ in series))
      if series
      else set()
  )
  values = [
      [value for round_num, value in zip(*one) if round_num in common]
      for one in series
  ]
  return np.array(sorted(common)), np.array(values, np.float64)


def band_over_seeds(
    series: Sequence[tuple[Sequence[int], Sequence[float]]],
    scale: float,
    band: str,
) -> Optional[analysis.BandCurve]:
  """Returns the mean over the seeds; None if nothing was measured."""
  rounds, values = align(series)
  if not len(rounds):
    return None
  return _to_band(rounds, scale * values, band)


def band_over_values(
    found: Sequence[tuple[float, Sequence[float]]], band: str
) -> analysis.BandCurve:
  """Returns the mean over the seeds at every place, however many there are."""
  bands = [
      _to_band(np.array([x]), np.array(values)[:, np.newaxis], band)
      for x, values in found
  ]
  return analysis.BandCurve(
      *(
          np.concatenate([getattr(one, name) for one in bands])
          for name in ('x', 'mean', 'low', 'high')
      )
  )


def _to_band(
    x: np.ndarray, values: np.ndarray, band: str
) -> analysis.BandCurve:
  """Returns the band of values of shape [seeds, places]."""
  mean = values.mean(axis=0)
  if band == figures.STD:
    std = values.std(axis=0, ddof=1) if len(values) > 1 else 0.0 * mean
    return analysis.BandCurve(x, mean, mean - std, mean + std)
  return analysis.BandCurve(x, mean, values.min(axis=0), values.max(axis=0))


def rate_grids(
    table: published.Table, results: Results
) -> dict[str, analysis.RateGrid]:
  """Returns the measured means of every group over both rates.

  Args:
    table: The table; its rows are client rates, its columns server rates.
    results: What was measured of its cells.

  Returns:
    The grids by group; without groups of which nothing was measured.
  """
  place = f'{table.paper}/{table.name}'
  axes = [
      figures.to_rates([entry.name for entry in axis], place)
      for axis in (table.rows, table.columns)
  ]
  client_rates, server_rates = map(sorted, axes)
  grids = {}
  for group in table.groups:
    values = np.full([len(client_rates), len(server_rates)], np.nan)
    diverged = np.zeros(values.shape, bool)
    for result in results:
      if result.cell.group == group.name and result.numbers:
        row = client_rates.index(float(result.cell.row))
        column = server_rates.index(float(result.cell.column))
        values[row, column] = result.mean
        diverged[row, column] = not np.isfinite(result.mean)
    grid = analysis.RateGrid(
        np.array(client_rates),
        np.array(server_rates),
        values,
        table.measure('', group.name).higher_is_better,
        diverged,
    )
    if not grid.is_empty():
      grids[group.name] = grid
  return grids

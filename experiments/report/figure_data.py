# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The data of the figures of published tables."""

from collections.abc import Sequence
import dataclasses
from typing import Optional

import numpy as np

from experiments import published
from experiments.report import cell_results
from experiments.report import figures
from tff_adaptive import analysis

Results = Sequence[cell_results.CellResult]
_Series = tuple[Sequence[int], Sequence[float]]


def align(series: Sequence[_Series]) -> tuple[np.ndarray, np.ndarray]:
  """Returns the rounds that all seeds have, and their values by seed."""
  values = [dict(zip(*one)) for one in series]
  common = sorted(set.intersection(*map(set, values))) if values else []
  return np.array(common), np.array(
      [[by_round[r] for r in common] for by_round in values], np.float64
  )


def band_over_seeds(
    series: Sequence[_Series], scale: float, band: str
) -> Optional[analysis.BandCurve]:
  """Returns the mean and band over the seeds; None if nothing was measured."""
  rounds, values = align(series)
  return to_band(rounds, scale * values.T, band) if len(rounds) else None


def to_band(
    xs: Sequence[float], samples: Sequence[Sequence[float]], band: str
) -> analysis.BandCurve:
  """Returns the mean and band over the seeds at every x."""
  found = [np.asarray(values, np.float64) for values in samples]
  mean = np.array([values.mean() for values in found])
  if band == figures.STD:
    # One seed has no deviation.
    std = [v.std(ddof=1) if len(v) > 1 else 0.0 * v[0] for v in found]
    low, high = mean - std, mean + std
  else:
    low = np.array([values.min() for values in found])
    high = np.array([values.max() for values in found])
  return analysis.BandCurve(np.asarray(xs), mean, low, high)


def losses(
    table: published.Table,
    results: Results,
    group: str,
    grid: analysis.RateGrid,
) -> np.ndarray:
  """Returns the validation losses of a grid, NaN where none was measured."""
  found = np.full(grid.values.shape, np.nan)
  for result in results:
    if result.cell.group == group and result.runs:
      row = list(grid.client_rates).index(float(result.cell.row))
      column = list(grid.server_rates).index(float(result.cell.column))
      found[row, column] = np.mean(
          [
              run.summarize('loss', table.estimate, higher_is_better=False)
              for run in result.runs.values()
          ]
      )
  return found


def without_useless_rates(
    grid: analysis.RateGrid, losses: np.ndarray, min_gain: float
) -> analysis.RateGrid:
  """Returns a grid without the client rates that did not train the model.

  Args:
    grid: The grid.
    losses: Its validation losses; NaN where a run diverged.
    min_gain: The fraction of the worst loss by which the best loss of a client
      rate must be lower.
  """
  finite = losses[np.isfinite(losses)]
  if not min_gain or not finite.size:
    return grid
  best = np.nanmin(np.where(np.isfinite(losses), losses, np.inf), axis=1)
  trains = best < (1.0 - min_gain) * finite.max()
  values = np.where(trains[:, np.newaxis], grid.values, np.nan)
  return dataclasses.replace(grid, values=values)


def rate_grids(
    table: published.Table, results: Results
) -> dict[str, analysis.RateGrid]:
  """Returns the measured means of each group over client and server rates.

  Args:
    table: The table; its rows are client rates, its columns server rates.
    results: The measurements of its cells.

  Returns:
    The grids by group, without groups that were not measured.
  """
  client_rates, server_rates = (
      sorted(figures.to_rates([entry.name for entry in axis], table.place))
      for axis in (table.rows, table.columns)
  )
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

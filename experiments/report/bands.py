# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Curves of runs with a band over their seeds."""

from collections.abc import Iterable, Sequence
from typing import Optional

import numpy as np
import pandas as pd

from experiments.report import figures
from experiments.run_results import run_folder
from tff_adaptive import analysis


def read_series(runs: Iterable[run_folder.Run], column: str) -> pd.DataFrame:
  """Returns a column of metrics.csv for the rounds that all runs have.

  Args:
    runs: The runs.
    column: The column.

  Returns:
    A row for each round, a column for each run; empty if nothing was measured.
  """
  found = [run.series(column) for run in runs]
  series = [pd.Series(values, rounds, float) for rounds, values in found]
  if not series:
    return pd.DataFrame()
  return pd.concat(series, axis=1, join='inner').sort_index()


def over_seeds(
    runs: Iterable[run_folder.Run],
    column: str,
    *,
    scale: float = 1.0,
    band: str = figures.RANGE,
) -> Optional[analysis.BandCurve]:
  """Returns a column by round, the mean and band over the runs.

  Args:
    runs: The runs.
    column: The column of metrics.csv.
    scale: The factor of its values.
    band: A key of `figures.BANDS`.

  Returns:
    The curve; None if nothing was measured.
  """
  values = scale * read_series(runs, column)
  if values.empty:
    return None
  return to_curve(list(values.index), values.to_numpy(), band)


def to_curve(
    xs: Sequence[float], samples: Sequence[Sequence[float]], band: str
) -> analysis.BandCurve:
  """Returns the mean and band over the samples at every x."""
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

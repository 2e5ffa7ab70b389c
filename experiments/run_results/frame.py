# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs as a table: a pandas frame of which a row is a run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from experiments.run_results import run_folder

# What every run costs.
COSTS = ('rounds_done', 'seconds_per_round', *run_folder.TOTALS)


def build(
    runs: Iterable[tuple[Mapping[str, Any], run_folder.Run]],
    labels: Sequence[str] = (),
) -> pd.DataFrame:
  """Returns runs as a frame.

  Args:
    runs: The runs, each with its labels, such as method, task and seed, and
      with numbers of the caller's.
    labels: The names of the labels, which a frame of no runs has, too.

  Returns:
    A row for each run, in order: its labels, `run`, the run itself, and the
    columns of `COSTS`.

  Example:

    >>> build([], labels=['method', 'seed']).columns[:3].tolist()
    ['method', 'seed', 'run']
  """
  rows = [
      {
          **found,
          'run': run,
          'rounds_done': run.rounds_done,
          'seconds_per_round': run.seconds_per_round,
          **{name: run.total(of) for name, of in run_folder.TOTALS.items()},
      }
      for found, run in runs
  ]
  return pd.DataFrame(rows, columns=None if rows else [*labels, 'run', *COSTS])

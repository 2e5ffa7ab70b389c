# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of runs that nobody has trained, for the tests of reports."""

from collections.abc import Mapping, Sequence
import csv
import json
import pathlib
from typing import Any, Optional

from experiments import published

_STEP_SIZES = ('mean', 'min', 'max')
# The beginning of every PNG file.
PNG = b'\x89PNG\r\n\x1a\n'


def build_table(
    *,
    num_seeds: int = 1,
    metric: str = 'accuracy',
    scale: float = 100.0,
    higher_is_better: bool = True,
    groups: Sequence[str] = ('',),
    rows: Sequence[str] = ('SGD', 'Delta-SGD'),
    columns: Sequence[str] = ('digits',),
    numbers: Optional[Mapping[tuple[str, str, str], float]] = None,
    figure: Optional[Mapping[str, Any]] = None,
) -> published.Table:
  """Returns a table on digits whose rows differ only in their names.

  `numbers` are the published ones by group, row and column; measured metrics
  are multiplied by `scale`.
  """
  flags = tuple(
      published.GivenFlag(text, origin)
      for text, origin in (
          ('--task=digits', published.Origin.SPECIFIED),
          ('--total_rounds=4', published.Origin.SPECIFIED),
          ('--client_batch_size=5', published.Origin.ASSUMED),
          ('--client_epochs=1', published.Origin.LOST),
          ('--rounds_per_evaluation=1', published.Origin.ASSUMED),
      )
  )
  keys = [(g, r, c) for g in groups for r in rows for c in columns]
  return published.Table(
      paper='paper',
      name='table_1',
      title='Made-up numbers.',
      source='no paper, Table 1',
      default_measure=published.Measure(metric, scale, higher_is_better),
      estimate='final',
      seeds=num_seeds,
      groups=tuple(map(published.Entry, groups)),
      rows=tuple(map(published.Entry, rows)),
      columns=tuple(map(published.Entry, columns)),
      cells=tuple(
          published.Cell(
              'paper', 'table_1', *key, flags, (numbers or {}).get(key)
          )
          for key in keys
      ),
      figure=figure,
  )


def write_run(
    path: pathlib.Path,
    values: Sequence[Any],
    *,
    metric: str = 'accuracy',
    step_size: Optional[float] = None,
    seconds: Sequence[float] = (0.5,),
    columns: Mapping[str, Any] = {},
    **hparams: Any,
):
  """Writes the folder of a run with one evaluation a round.

  The last of `seconds` is the time of all further rounds; `columns` add to each
  row of metrics.csv, or change it, and `hparams` likewise to hparams.json.
  """
  path.mkdir(parents=True, exist_ok=True)
  recorded = {
      'task': 'digits',
      'digits_model': 'cnn',
      'total_rounds': 4,
      'client_batch_size': 5,
      'client_epochs': 1,
      'rounds_per_evaluation': 1,
      'seed': 0,
      **hparams,
  }
  (path / 'hparams.json').write_text(json.dumps(recorded))
  rows = []
  for i, value in enumerate(values):
    row = {
        'round_num': i + 1,
        f'evaluation/{metric}': value,
        'clients/loss': 1.0 / (i + 1),
        'clients/num_gradient_evaluations': 10,
        'clients/bytes_down': 100,
        'clients/bytes_up': 50,
        'device': 'CPU:0',
        'seconds': seconds[min(i, len(seconds) - 1)],
        **columns,
    }
    if step_size is not None:
      for name, factor in zip(_STEP_SIZES, (1.0, 0.5, 2.0)):
        row[f'clients/step_size_{name}'] = step_size * factor
    rows.append(row)
  with open(path / 'metrics.csv', 'w', encoding='utf-8', newline='') as file:
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)


def write_cell(
    runs_dir: pathlib.Path,
    cell: published.Cell,
    values_by_seed: Sequence[Sequence[float]],
    **kwargs: Any,
):
  """Writes the runs of a cell: the metric by round, for seeds 0, 1, ..."""
  for seed, values in enumerate(values_by_seed):
    folder = runs_dir / cell.experiment_name / f'seed_{seed}'
    write_run(folder, values, **{'seed': seed, **kwargs})

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The finished runs behind docs/results as text: one CSV file a study.

A row is a run. An empty field is that of the row above, and `-` is no value, so
that `pandas.read_csv(path, dtype=str).ffill()` is the table. A column `--name`
has values of hparams.json. Numbers of a column of metrics.csv follow their
rounds: `2-6:2 .5 .6*2` is 0.5 in round 2, 0.6 in rounds 4 and 6. Those after
`float32` are the shortest texts of numbers of this type.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import datetime
import functools
import itertools
import json
import os
import pathlib
import shutil
from typing import Any

import numpy as np

from experiments import published
from experiments.leaderboard import board
from experiments.report import figures
from experiments.run_results import environments
from experiments.run_results import run_folder
from tff_adaptive import _files

LEADERBOARD = 'leaderboard'
_PLACE = ('run', 'started', 'ended', 'environments', 'picture')
_HPARAM = '--'
_NOTHING = '-'
_FLOAT32 = 'float32'
_PICTURE = pathlib.Path('plots/cka.png')
# Of every run: its length and its costs.
_COSTS = (
    run_folder.ROUND_NUM,
    run_folder.NUM_CLIENTS,
    *run_folder.TOTALS.values(),
)
# The evaluations of a trial whose mean is its score.
_NUM_EVALUATIONS = 10

# The texts of a run by column.
Row = Mapping[str, str]


def study_of(run: str) -> str:
  """Returns the study of a run: a table, a task of the leaderboard, a sweep.

  Args:
    run: The folder of the run, relative to that of all runs.

  Example:
    >>> study_of('fedli/table_1/fedavg/seed_0'), study_of('rates/a=1/seed_0')
    ('fedli/table_1', 'rates')
  """
  parts = run.split('/')
  return '/'.join(parts[: 2 if len(parts) > 3 else 1])


@functools.cache
def _columns_of_cells() -> Mapping[str, frozenset[str]]:
  """Returns the columns that tables and figures show, by experiment."""
  found: dict[str, frozenset[str]] = {}
  for table in published.load_tables():
    drawn = figures.columns_of(table)
    for cell in table.cells:
      measure = table.measure(cell.column, cell.group)
      columns = drawn | {run_folder.column_of(measure.metric)}
      name = cell.experiment_name
      found[name] = found.get(name, frozenset()) | columns
  return found


def _columns_of(name: str, run: run_folder.Run) -> Mapping[str, Any]:
  """Returns the rounds and numbers of a run that pages need, by column."""
  rules = board.load()
  of_task = rules.tasks.get(run.hparams.get('task', ''), board.OWN_TASK)
  default = {run_folder.column_of(of_task.metric)}
  wanted = _columns_of_cells().get(os.path.dirname(name), default)
  lengths = {}
  if name.startswith(f'{LEADERBOARD}/') and (
      run.hparams['seed'] == rules.protocol.tuning_seed
  ):
    # A trial has a score, and a loss by which it is chosen.
    lengths = dict.fromkeys(default, _NUM_EVALUATIONS)
    lengths['clients/loss'] = rules.protocol.selection_rounds
  found = {}
  for column in [*_COSTS, *sorted({*wanted, *lengths})]:
    rounds, values = run.series(column)
    if rounds:
      first = -lengths.get(column, len(rounds))
      found[column] = rounds[first:], values[first:]
  return found


def _format_rounds(rounds: Sequence[int]) -> str:
  """Returns ascending rounds as ranges: '2-6:2,7'."""
  ranges: list[list[int]] = []
  for number in rounds:
    last = ranges[-1] if ranges else []
    if len(last) == 1 or (last and number - last[-1] == last[1] - last[0]):
      last.append(number)
    else:
      ranges.append([number])
  return ','.join(
      f'{r[0]}-{r[-1]}:{r[1] - r[0]}' if len(r) > 1 else str(r[0])
      for r in ranges
  )


def _parse_rounds(text: str) -> Iterator[int]:
  for part in text.split(','):
    first, _, rest = part.partition('-')
    last, _, step = rest.partition(':')
    yield from range(int(first), int(last or first) + 1, int(step or 1))


def _to_text(value: float) -> str:
  """Returns the shortest text of exactly this number."""
  return repr(int(value) if value == int(value) else value)


def format_series(rounds: Sequence[int], values: Sequence[float]) -> str:
  """Returns numbers by round as text; see the example of the module."""
  texts = list(map(_to_text, values))
  words = [_format_rounds(rounds)]
  short = [str(np.float32(v)) for v in values]
  if len(''.join(short)) < len(''.join(texts)) and all(
      float(np.float32(text)) == value for text, value in zip(short, values)
  ):
    words.append(_FLOAT32)
    texts = short
  for text, same in itertools.groupby(texts):
    count = len(list(same))
    text = text[1:] if text.startswith('0.') else text
    words.append(f'{text}*{count}' if count > 1 else text)
  return ' '.join(words)


def parse_series(text: str) -> dict[int, float]:
  """Returns the numbers by round of a text of `format_series`.

  Args:
    text: The text.

  Example:
    >>> parse_series('2-6:2 .5 .6*2')
    {2: 0.5, 4: 0.6, 6: 0.6}
  """
  rounds, *words = text.split(' ')
  as_type: Callable[[str], Any] = float
  if words[0] == _FLOAT32:
    as_type = np.float32
    del words[0]
  values: list[float] = []
  for word in words:
    number, _, count = word.partition('*')
    values += [float(as_type(number))] * int(count or 1)
  return dict(zip(_parse_rounds(rounds), values, strict=True))


def to_row(
    run: run_folder.Run,
    runs_dir: pathlib.Path,
    pictures: Mapping[bytes, str],
) -> Row:
  """Returns the texts of a run by column.

  Args:
    run: The run.
    runs_dir: The folder of all runs.
    pictures: The pages' pictures by contents; those that runs plotted are kept.
  """
  name = run.path.relative_to(runs_dir).as_posix()
  row = {
      'run': name,
      'started': _format_time(run.started),
      'ended': _format_time(run.ended),
      'environments': json.dumps(environments.read(run.path)),
  }
  picture = run.path / _PICTURE
  if picture.is_file() and picture.read_bytes() in pictures:
    row['picture'] = pictures[picture.read_bytes()]
  for key, value in run.hparams.items():
    row[f'{_HPARAM}{key}'] = json.dumps(value)
  for column, series in _columns_of(name, run).items():
    row[column] = format_series(*series)
  return row


def _format_time(time: datetime.datetime) -> str:
  utc = time.astimezone(datetime.timezone.utc)
  return utc.isoformat(timespec='seconds')


def read(path: pathlib.Path) -> dict[str, Row]:
  """Returns the rows of a file by run; none if there is no file.

  Args:
    path: The file.
  """
  if not path.exists():
    return {}
  (_, header), *lines = _files.read_lines(path)
  above = dict.fromkeys(header, _NOTHING)
  found: dict[str, Row] = {}
  for _, fields in lines:
    above = {name: field or above[name] for name, field in zip(header, fields)}
    found[above['run']] = {n: t for n, t in above.items() if t != _NOTHING}
  return found


def write(path: pathlib.Path, rows: Mapping[str, Row]):
  """Writes the rows of a file, sorted by run.

  Args:
    path: The file.
    rows: The rows by run.
  """
  names = {name for row in rows.values() for name in row} - set(_PLACE)
  hparams = sorted(name for name in names if name.startswith(_HPARAM))
  others = [*_COSTS, *sorted(names.difference(hparams, _COSTS))]
  header = [*_PLACE, *hparams, *(name for name in others if name in names)]
  lines, above = [header], [''] * len(header)
  for _, row in sorted(rows.items()):
    texts = [row.get(name, _NOTHING) for name in header]
    lines.append(['' if a == b else b for a, b in zip(above, texts)])
    above = texts
  _files.write(path, _files.to_csv(lines))


def restore(row: Row, folder: pathlib.Path, pages_dir: pathlib.Path):
  """Writes the folder of a run: its settings, numbers, versions and picture.

  Args:
    row: The texts of the run.
    folder: The folder, which must be new.
    pages_dir: The folder of the pages with the picture.
  """
  folder.mkdir(parents=True)
  hparams = {
      name.removeprefix(_HPARAM): json.loads(text)
      for name, text in row.items()
      if name.startswith(_HPARAM)
  }
  series = {
      name: parse_series(text)
      for name, text in row.items()
      if name not in _PLACE and not name.startswith(_HPARAM)
  }
  lines = [
      [
          _to_text(values[number]) if number in values else ''
          for values in series.values()
      ]
      for number in series[run_folder.ROUND_NUM]
  ]
  files = {
      'hparams.json': json.dumps(hparams, indent=2).encode(),
      'environment.json': row['environments'].encode(),
      'metrics.csv': _files.to_csv([list(series), *lines]),
  }
  for name, data in files.items():
    time = 'ended' if name == 'metrics.csv' else 'started'
    seconds = datetime.datetime.fromisoformat(row[time]).timestamp()
    (folder / name).write_bytes(data)
    os.utime(folder / name, (seconds, seconds))
  if 'picture' in row:
    (folder / _PICTURE).parent.mkdir()
    shutil.copy(pages_dir / row['picture'], folder / _PICTURE)

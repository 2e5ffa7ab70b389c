# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the metrics of a run and summarizes a column by one number."""

from collections.abc import Iterable, Iterator, Sequence
import math
import re
import statistics
from typing import Optional

from tff_adaptive import _files

# Rounds, and the values in these rounds.
Series = tuple[Sequence[int], Sequence[float]]
_Columns = dict[str, tuple[list[int], list[float]]]
# The number of the line, the round, and the fields by column.
Row = tuple[int, int, dict[str, str]]

# The estimates of a run's result from its values over rounds.
LAST_10_EVALUATIONS = 'last_10_evaluations'
LAST_100_ROUNDS = 'last_100_rounds'
BEST = 'best'
FINAL = 'final'
ESTIMATES = (LAST_10_EVALUATIONS, LAST_100_ROUNDS, BEST, FINAL)

# Where no client trained, the model's metrics are those of no example: 0.
TRAIN = 'train/'
NUM_EXAMPLES = 'clients/num_examples'
# The count of TFF's form of a Keras model, also in TFF's own processes.
NUM_MODEL_EXAMPLES = f'{TRAIN}num_examples'

_ROUND_NUM = 'round_num'
_NUM_LAST_EVALUATIONS = 10
_NUM_LAST_ROUNDS = 100
# Above the relative error of a float32, as which metrics are measured.
_ROUNDING = 1e-7
_NUMBER = re.compile(
    r'[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|nan)'
)
_ROUND = re.compile('0|[1-9][0-9]{0,17}')


def read_columns(metrics_csv: _files.PathLike) -> _Columns:
  """Returns the rounds and values of each column of finite numbers.

  Args:
    metrics_csv: A file of `CSVMetricsWriter`, even while it is being written:
      an unterminated last line is skipped.

  Returns:
    The series by column; texts, empty fields and non-finite numbers are left
    out.

  Raises:
    OSError: If the file cannot be read.
    ValueError: If it is damaged, see `read_rows`, there is text among numbers,
      or a field has a line break; names the file and the line.

  Example:
    >>> with open('metrics.csv', 'w') as file:
    ...   _ = file.write('round_num,evaluation/accuracy\\n5,0.41\\n10,0.65\\n')
    >>> read_columns('metrics.csv')['evaluation/accuracy']
    ([5, 10], [0.41, 0.65])
  """
  return to_columns(metrics_csv, read_rows(metrics_csv))


def to_columns(metrics_csv: _files.PathLike, rows: Iterable[Row]) -> _Columns:
  """Returns the columns of the rows of a file; see `read_columns`."""
  columns: _Columns = {}
  words: dict[str, int] = {}
  for line_num, round_num, row in rows:
    if any('\n' in text or '\r' in text for text in row.values()):
      what = 'a field has a line break, so a quote may be missing'
      raise _damage(metrics_csv, line_num, what)
    for name, text in row.items():
      value = parse_number(text) if text else math.nan
      if value is None:
        words.setdefault(name, line_num)
      elif math.isfinite(value):
        rounds, values = columns.setdefault(name, ([], []))
        rounds.append(round_num)
        values.append(value)
  for name, line_num in words.items():
    if name in columns:
      raise _damage(metrics_csv, line_num, f'{name} is not a number')
  return columns


def parse_number(text: str) -> Optional[float]:
  """Returns a number as a writer writes it, also inf and nan; else None.

  Python itself also reads '1_0' as 10, and digits of other scripts.
  """
  return float(text) if _NUMBER.fullmatch(text) else None


def parse_round(text: str) -> Optional[int]:
  """Returns a round number as a writer writes it; else None."""
  return int(text) if _ROUND.fullmatch(text) else None


def read_rows(
    metrics_csv: _files.PathLike, *, may_repeat: bool = False
) -> Iterator[Row]:
  """Yields the complete rows, each with its line and its round.

  Args:
    metrics_csv: See `read_columns`.
    may_repeat: Whether a round may have several rows. Defaults to False.

  Yields:
    The number of the line, the round, and the fields by column.

  Raises:
    OSError: If the file cannot be read.
    ValueError: If a column is there twice; if the number of fields or the round
      is wrong, or a round does not come after the one before; names the file
      and the line.
  """
  names: list[str] = []
  newest = -1
  try:
    for line_num, fields in _files.read_lines(metrics_csv):
      if not names:
        names = fields
        twice = [name for name in names if names.count(name) > 1]
        if twice:
          what = f'the column {twice[0]!r} is there twice'
          raise _damage(metrics_csv, line_num, what)
        continue
      if len(fields) != len(names):
        what = f'{len(fields)} fields for {len(names)} columns'
        raise _damage(metrics_csv, line_num, what)
      row = dict(zip(names, fields))
      text = row.get(_ROUND_NUM, '')
      found = parse_round(text)
      if found is None:
        what = f'{_ROUND_NUM} must be an integer, found {text!r}'
        raise _damage(metrics_csv, line_num, what)
      if found < newest or (found == newest and not may_repeat):
        what = f'{_ROUND_NUM} {found} comes after {newest}'
        raise _damage(metrics_csv, line_num, what)
      newest = found
      yield line_num, newest, row
  except _files.DamagedCSVError as error:
    raise _damage(metrics_csv, error.line_num, str(error)) from error


def _damage(
    metrics_csv: _files.PathLike, line_num: int, what: str
) -> ValueError:
  return ValueError(
      f'{metrics_csv}, line {line_num} is damaged ({what}); restore the file, '
      'or train again'
  )


def summarize(
    series: Series, estimate: str, *, higher_is_better: bool = True
) -> float:
  """Returns the estimate of a run's result.

  Args:
    series: Rounds and values, see `read_columns`.
    estimate: 'last_10_evaluations', the mean of the last ten values;
      'last_100_rounds', the mean of the values in the last hundred rounds
      (Reddi et al., Section 5.3); 'best', which selects on the test data; or
      'final'.
    higher_is_better: Whether 'best' is the largest value. Defaults to True.

  Returns:
    The number, in the unit of the series.

  Raises:
    ValueError: If the estimate is unknown, or there are no values.

  Example:
    >>> summarize(([5, 10], [0.4, 0.6]), 'last_10_evaluations')
    0.5
  """
  rounds, values = series
  if not values:
    raise ValueError('nothing was measured, so the run has no result')
  if estimate == LAST_10_EVALUATIONS:
    return statistics.fmean(values[-_NUM_LAST_EVALUATIONS:])
  if estimate == LAST_100_ROUNDS:
    first = rounds[-1] - _NUM_LAST_ROUNDS
    return statistics.fmean(v for r, v in zip(rounds, values) if r > first)
  if estimate == BEST:
    return max(values) if higher_is_better else min(values)
  if estimate == FINAL:
    return values[-1]
  raise ValueError(
      f'`estimate` must be one of {", ".join(ESTIMATES)}, found {estimate!r}'
  )


def find_round(
    series: Series, target: float, *, higher_is_better: bool = True
) -> float:
  """Returns the first round that reaches a target, up to a float32's rounding.

  Args:
    series: Rounds and values, see `read_columns`.
    target: The value to reach.
    higher_is_better: Whether larger values are better. Defaults to True.

  Returns:
    The round number; infinity if the target was never reached.

  Example:
    >>> find_round(([5, 10], [0.4, 0.6]), 0.5)
    10
  """
  for round_num, value in zip(*series):
    is_equal = math.isclose(value, target, rel_tol=_ROUNDING)
    if is_equal or (value > target if higher_is_better else value < target):
      return round_num
  return math.inf

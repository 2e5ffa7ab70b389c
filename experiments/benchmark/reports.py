# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measurements as JSON lines and as tables; imports no TensorFlow."""

from collections.abc import Iterable, Mapping, Sequence
import json
from typing import Any

from experiments import formatting

# The measurement of one runtime or one peer: a line of a file.
Line = dict[str, Any]

_TIMES = ('sec_per_round_median', 'min', 'max', 'first_round')
_REQUIRED = ('peer', 'workload', *_TIMES, 'peak_rss_mb')
_HEADER = ['median', 'min', 'max', 'first', 'ratio', 's/client', 'RSS MB']
# Additional keys of comparisons of algorithms or tasks, and their headings.
_COSTS = {
    'explained_ratio': 'explained',
    'gradients_per_step': 'gradients',
    'trials_per_step': 'trials',
    'wait_share': 'waiting',
}


def append(path: str, lines: Iterable[Line]) -> None:
  """Appends lines to a JSON-lines file, creating it if missing.

  Args:
    path: The file.
    lines: The lines; if there are none, only checks that the file can be
      written.

  Raises:
    OSError: If the file cannot be written.
  """
  with open(path, 'a', encoding='utf-8') as file:
    file.writelines(json.dumps(line) + '\n' for line in lines)


def _parse(text: str, place: str) -> Line:
  """Parses a line of a peer."""
  try:
    line = json.loads(text)
  except json.JSONDecodeError as error:
    raise ValueError(f'{place} is not JSON: {error}') from error
  missing = [key for key in _REQUIRED if key not in line]
  if missing:
    raise ValueError(f'{place} lacks the key {missing[0]!r}')
  return line


def read(paths: Iterable[str]) -> list[Line]:
  """Reads the measurements of peers.

  Args:
    paths: JSON-lines files, one measurement per line. Lines that do not begin
      with a brace are skipped as other output of the peer.

  Returns:
    The measurements, in order.

  Raises:
    OSError: If a file cannot be read.
    ValueError: If a line is not JSON or lacks a key.
  """
  lines = []
  for path in paths:
    with open(path, encoding='utf-8', errors='replace') as file:
      lines += [
          _parse(text, f'{path}:{number}')
          for number, text in enumerate(file, start=1)
          if text.startswith('{')
      ]
  return lines


def _is_comparable(line: Mapping[str, Any], peer: Mapping[str, Any]) -> bool:
  """Returns whether a peer did the same work."""
  clients = line['clients_per_round']
  return (
      peer['workload'] in (line['workload'], line.get('peer_name'))
      and peer.get('clients_per_round', clients) == clients
  )


def _name(line: Mapping[str, Any]) -> str:
  """Returns the label of a peer's line."""
  parts = (line.get(key) for key in ('peer', 'runtime', 'variant'))
  return ' '.join(part for part in parts if part)


def _cells(line: Line, first: Line) -> list[str]:
  """Returns the numbers of a row."""
  median = line['sec_per_round_median']
  numbers = [line[key] for key in _TIMES]
  numbers.append(median / first['sec_per_round_median'])
  numbers.append(median / first['clients_per_round'])
  cells = [f'{n:.3g}' for n in numbers] + [f'{line["peak_rss_mb"]:.0f}']
  return cells + [f'{line[key]:.3g}' for key in _COSTS if key in line]


def format_table(lines: Sequence[Line], peers: Iterable[Line] = ()) -> str:
  """Formats a table of runtimes or algorithms, with comparable peers.

  Args:
    lines: One line each, all with the same workload and cohort size.
    peers: Lines of any workloads; only comparable ones are shown.

  Returns:
    The table. Times are in seconds; the ratio compares the median to that of
    the first line. For algorithms, it also has the ratio explained by their
    evaluations, and the gradients and trial step sizes per step.

  Example:

    >>> line = {
    ...     'workload': 'tiny_many', 'runtime': 'native', 'rounds': 10,
    ...     'variant': 'logistic functional', 'clients_per_round': 100,
    ...     'sec_per_round_median': 0.9, 'min': 0.8, 'max': 1.1,
    ...     'first_round': 3.0, 'peak_rss_mb': 900.0}
    >>> print(format_table([line]).splitlines()[2].split()[:5])
    ['native', 'logistic', 'functional', '0.9', '0.8']
  """
  first = lines[0]
  costs = [name for key, name in _COSTS.items() if key in first]
  rows = [['', *_HEADER, *costs]]
  rows += [
      [f'{line["runtime"]} {line["variant"]}', *_cells(line, first)]
      for line in lines
  ]
  rows += [
      [_name(peer), *_cells(peer, first)]
      for peer in peers
      if _is_comparable(first, peer)
  ]
  title = (
      f'{first["workload"]}: {first["clients_per_round"]} clients per round, '
      f'{first["rounds"]} timed rounds'
  )
  return f'{title}\n{formatting.align(rows, num_labels=1)}'

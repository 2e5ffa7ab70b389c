# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A second reader of CSV and JSON lines files, character by character.

It shares no code with the library, nor with the module `csv`. Its rows are
tuples of the client, y, the list x and t; `ERROR` are its errors.
"""

import json
import re

ERROR = (ValueError, KeyError, IndexError, RecursionError)

_INTEGER = re.compile(r'\s*([+-]?[0-9]+)(\.0*)?\s*')
_FLOAT = re.compile(
    r'\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf(inity)?)\s*',
    re.IGNORECASE,
)
_LINE_END = re.compile('\r\n|\r|\n')


def _integer(text):
  found = _INTEGER.fullmatch(text)
  if not found or not -(2**31) <= int(found[1]) < 2**31:
    raise ValueError(text)
  return int(found[1])


def _float(text):
  value = float(text)
  is_overflow = 'inf' in str(value) and 'inf' not in text.lower()
  if is_overflow or not _FLOAT.fullmatch(text):
    raise ValueError(text)
  return value


def split_csv(text):
  """Returns the rows of a CSV text as lists of cells, by RFC 4180."""
  rows, row, cell, state = [], [], '', 'start'

  def end_row():
    if row or state != 'start':
      rows.append([*row, cell])

  for place, char in enumerate(text):
    if char == '\n' and text[place - 1 : place] == '\r' and state != 'quoted':
      continue  # The second half of a line end.
    if state == 'quoted':
      if char == '"':
        state = 'closed'
      else:
        cell += char
    elif state == 'closed' and char == '"':
      cell, state = cell + '"', 'quoted'
    elif char == ',':
      row, cell, state = [*row, cell], '', 'start'
    elif char in '\r\n':
      end_row()
      row, cell, state = [], '', 'start'
    elif state == 'closed':
      raise ValueError(f'{char!r} follows a closing quote.')
    elif state == 'start' and char == '"':
      state = 'quoted'
    else:
      cell, state = cell + char, 'plain'
  if state == 'quoted':
    raise ValueError('A quote is open at the end.')
  end_row()
  return rows


def read_csv(text):
  """Returns the rows of a CSV text; raises one of `ERROR` if it is refused."""
  header, *rows = split_csv(text.removeprefix('\ufeff'))
  if len(set(header)) < len(header):
    raise ValueError('A column is there twice.')
  found = []
  for cells in rows:
    if (
        len(cells) != len(header)
        or cells == header
        or (cells[0].startswith('\ufeff') and header[0] != 't')
    ):
      raise ValueError('A row does not fit the header.')
    row = dict(zip(header, cells))
    if not row['client_id']:
      raise ValueError('A row has no client.')
    x = [_float(row['x_0']), _float(row['x_1'])]
    found.append((row['client_id'], _integer(row['y']), x, row['t']))
  if not found or 'x_2' in header:
    raise ValueError('There are no rows, or other shapes.')
  return found


def _distinct(pairs):
  if len({key for key, _ in pairs}) < len(pairs):
    raise ValueError('A key is there twice.')
  return dict(pairs)


def _is_integer(value):
  return isinstance(value, int) and not isinstance(value, bool)


def read_json_lines(text):
  """Returns the rows of a JSON lines text; see `read_csv`."""
  found = []
  for line in _LINE_END.split(text.removeprefix('\ufeff')):
    if not line.strip():
      continue
    row = json.loads(line, object_pairs_hook=_distinct)
    if not isinstance(row, dict):
      raise ValueError('A line is no object.')
    client, y, x, t = (row[name] for name in ('client_id', 'y', 'x', 't'))
    if not (_is_integer(client) or (isinstance(client, str) and client)):
      raise ValueError('A row has no client.')
    if isinstance(y, float) and y.is_integer():
      y = int(y)
    if not (_is_integer(y) and -(2**31) <= y < 2**31):
      raise ValueError('y is no integer of 32 bits.')
    if not isinstance(x, list) or len(x) != 2 or not isinstance(t, str):
      raise ValueError('x or t is of another form.')
    if not all(_is_integer(v) or isinstance(v, float) for v in x):
      raise ValueError('x has no numbers.')
    if 'inf' in str(x) and 'Infinity' not in line:
      raise ValueError('A number is too large.')
    client = str(client)
    (client + t).encode()
    found.append((client, y, list(map(float, x)), t))
  if not found:
    raise ValueError('There are no rows.')
  return found

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
"""Writes the verdicts of an audit as Markdown, HTML, CSV and JSON."""

import collections
from collections.abc import Iterator, Mapping, Sequence
import json
import math
import pathlib
from typing import Any

from experiments import audit
from experiments import pages
from experiments.run_results import environments
from experiments.run_results import run_folder

_COLUMNS = ('claim', 'verdict', 'statement', 'evidence', 'source', 'method')


def _rows(
    selected: Sequence[audit.Claim], verdicts: Mapping[str, audit.Verdict]
) -> Iterator[tuple[str, ...]]:
  """Yields what is told of each claim, in the order of `_COLUMNS`."""
  for claim in selected:
    verdict = verdicts[claim.name]
    yield (
        claim.name,
        verdict.status.value,
        claim.statement,
        verdict.evidence,
        claim.source,
        claim.method,
    )


def build_page(
    rows: Sequence[tuple[str, ...]],
    runs: Sequence[run_folder.Run],
    command: str,
) -> list[str]:
  """Returns the blocks of the page.

  Args:
    rows: What is told of each claim, in the order of the columns.
    runs: The runs on which claims were checked.
    command: What makes the page.

  Returns:
    A table of verdicts, a section for each claim, and how it was made.
  """
  counts = collections.Counter(verdict for _, verdict, *_ in rows)
  summary = ', '.join(f'{name} {count}' for name, count in counts.items())
  blocks: list[str] = [
      pages.paragraph(f'{len(rows)} claims: {summary}.'),
      pages.table(_COLUMNS[:3], [row[:3] for row in rows], num_labels=3),
      pages.paragraph(audit.RULE),
  ]
  for name, verdict, statement, evidence, source, method in rows:
    blocks += [
        pages.heading(name),
        pages.paragraph(f'{statement} ({source})'),
        pages.paragraph(f'How it is checked: {method}'),
        pages.paragraph(f'**{verdict}**: {evidence}'),
    ]
  blocks += pages.origin(runs, command)
  return [*blocks, pages.paragraph(_describe_process())]


def _describe_process() -> str:
  """Returns the versions of what is checked without runs."""
  found = environments.collect()
  return (
      'What is checked without runs was checked by the process that wrote this '
      'page: ' + ', '.join(f'{name} {value}' for name, value in found.items())
  ) + '.'


def _to_plain(value: Any) -> Any:
  """Returns a value that JSON has: words for what is no finite number."""
  if isinstance(value, Mapping):
    return {name: _to_plain(part) for name, part in value.items()}
  if isinstance(value, (list, tuple)):
    return [_to_plain(part) for part in value]
  if isinstance(value, float) and not math.isfinite(value):
    return str(value)
  return value


def to_json(
    selected: Sequence[audit.Claim], verdicts: Mapping[str, audit.Verdict]
) -> str:
  """Returns what is told of each claim, with the numbers, by its name.

  Args:
    selected: The claims that were checked.
    verdicts: What was found, by the name of the claim.

  Returns:
    The text of the file; 'inf', '-inf' and 'nan' are strings in it, since JSON
    has no such numbers.
  """
  rows = _rows(selected, verdicts)
  found = {
      row[0]: {
          **dict(zip(_COLUMNS[1:], row[1:])),
          'numbers': _to_plain(verdicts[row[0]].numbers),
      }
      for row in rows
  }
  return json.dumps(found, indent=2, allow_nan=False) + '\n'


def write(
    folder: pathlib.Path,
    selected: Sequence[audit.Claim],
    verdicts: Mapping[str, audit.Verdict],
    runs: Sequence[run_folder.Run],
    command: str,
):
  """Writes `audit.md`, `audit.html`, `audit.csv` and `audit.json`.

  Args:
    folder: Where; it is made.
    selected: The claims that were checked.
    verdicts: What was found, by the name of the claim.
    runs: The runs on which claims were checked.
    command: What makes the files.

  Raises:
    WriteError: If a file cannot be written.
  """
  rows = list(_rows(selected, verdicts))
  blocks = build_page(rows, runs, command)
  path = folder / 'claims'
  pages.write_page(path, 'The central claims of the papers', blocks)
  pages.write_csv(path.with_suffix('.csv'), _COLUMNS, rows)
  pages.write(path.with_suffix('.json'), to_json(selected, verdicts))

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
"""Writes the verdicts of an audit as Markdown, CSV and JSON."""

import collections
from collections.abc import Iterator, Mapping, Sequence
import csv
import io
import json
import pathlib

from experiments import claims
from experiments.reports import markdown
from experiments.reports import pages
from tff_adaptive import _atomic_files

_COLUMNS = ('claim', 'verdict', 'statement', 'evidence', 'source', 'method')


def _rows(
    selected: Sequence[claims.Claim], verdicts: Mapping[str, claims.Verdict]
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


def to_csv(rows: Sequence[tuple[str, ...]]) -> str:
  """Returns the rows as a CSV file."""
  file = io.StringIO()
  writer = csv.writer(file, lineterminator='\n')
  writer.writerow(_COLUMNS)
  writer.writerows(rows)
  return file.getvalue()


def build_page(rows: Sequence[tuple[str, ...]], command: str) -> pages.Page:
  """Returns the page: a table of verdicts, and a section for each claim."""
  counts = collections.Counter(verdict for _, verdict, *_ in rows)
  summary = ', '.join(f'{name} {count}' for name, count in counts.items())
  blocks: list[pages.Block] = [
      pages.Paragraph(f'{len(rows)} claims: {summary}. Made by:'),
      pages.Code(command),
      pages.Table(_COLUMNS[:3], [row[:3] for row in rows], num_labels=3),
  ]
  for name, verdict, statement, evidence, source, method in rows:
    blocks += [
        pages.Heading(name),
        pages.Paragraph(f'{statement} ({source})'),
        pages.Paragraph(f'How it is checked: {method}'),
        pages.Paragraph(f'**{verdict}**: {evidence}'),
    ]
  return pages.Page('The central claims of the papers', blocks)


def to_json(
    selected: Sequence[claims.Claim], verdicts: Mapping[str, claims.Verdict]
) -> str:
  """Returns what is told of each claim, with the numbers, by its name."""
  rows = _rows(selected, verdicts)
  found = {
      row[0]: {
          **dict(zip(_COLUMNS[1:], row[1:])),
          'numbers': verdicts[row[0]].numbers,
      }
      for row in rows
  }
  return json.dumps(found, indent=2) + '\n'


def write(
    folder: pathlib.Path,
    selected: Sequence[claims.Claim],
    verdicts: Mapping[str, claims.Verdict],
    command: str,
):
  """Writes `claims.md`, `claims.csv` and `claims.json`.

  Args:
    folder: Where; it is made.
    selected: The claims that were checked.
    verdicts: What was found, by the name of the claim.
    command: What makes the files.

  Raises:
    WriteError: If a file cannot be written.
  """
  rows = list(_rows(selected, verdicts))
  for name, text in (
      ('claims.md', markdown.render(build_page(rows, command))),
      ('claims.csv', to_csv(rows)),
      ('claims.json', to_json(selected, verdicts)),
  ):
    with _atomic_files.replacing(folder / name) as file:
      file.write(text.encode())

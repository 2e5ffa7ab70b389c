# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Checks the papers' central claims and prints a verdict on each.

For example:

  python -m tools.audit
  python -m tools.audit --claims=fedli.free_descent,delta_sgd.theorem

prints one line per claim, `name: verdict: evidence`, and writes `claims.md`,
`claims.csv` and `claims.json` to `--output_dir`. Some claims are
checked on small problems, in seconds; others on finished runs of published
cells in `--runs_dir`. If such runs are missing or damaged, the line gives the
command that makes them, or the problem.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import json
import math
import pathlib
import sys
from typing import Any

from absl import flags

from experiments import command_line
from experiments import flag_table
from experiments import folders
from experiments import formatting
from experiments import pages
from experiments import published
from experiments.run_results import environments
from experiments.run_results import run_folder
from tff_adaptive import _files
from tools import audit
from tools.audit import claim as claim_lib
from tools.audit import runs

# Errors of reading tables and runs. Any other error is a bug in a check or in
# the library, and must not look like missing data.
_READ_ERRORS = (
    OSError,
    flags.Error,
    published.PublishedError,
    run_folder.RunError,
)
_COLUMNS = (
    'claim',
    'verdict',
    'checked by',
    'statement',
    'evidence',
    'source',
    'method',
)
_Verdicts = Mapping[str, claim_lib.Verdict]


@dataclasses.dataclass
class _Flags:
  """The flags.

  Attributes:
    claims: Claims to check, or papers, which stand for all their claims; all by
      default. The claims are {claims}
    runs_dir: Folder of the runs: the --output_dir of experiments.train.
    output_dir: Folder for the verdicts; those of an earlier audit are
      overwritten.
  """

  claims: Sequence[str] = ()
  runs_dir: str = 'runs'
  output_dir: str = 'results'


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags."""
  flag_table.define(_Flags, flag_values, claims=', '.join(audit.CLAIMS))


def select(names: Sequence[str]) -> list[claim_lib.Claim]:
  """Returns the claims with the given names.

  Args:
    names: Names of claims or of papers; all claims if empty.

  Returns:
    The claims, in the order of `CLAIMS`.

  Raises:
    UserError: If a name is neither a claim nor a paper.
  """
  papers = {name.partition('.')[0] for name in audit.CLAIMS}
  for name in names:
    if name not in audit.CLAIMS and name not in papers:
      raise command_line.UserError(
          f'--claims names {name!r}, which is neither a claim nor a paper; the '
          f'papers are {", ".join(sorted(papers))}, and --help lists the claims'
      )
  return [
      claim
      for name, claim in audit.CLAIMS.items()
      if not names or name in names or name.partition('.')[0] in names
  ]


def check(
    claim: claim_lib.Claim, lab: claim_lib.Laboratory
) -> claim_lib.Verdict:
  """Checks a claim.

  Args:
    claim: The claim.
    lab: The laboratory.

  Returns:
    The verdict; 'not run' with the reason if a table or a run is damaged, so
    that the other claims are still checked.
  """
  try:
    return claim.check(lab)
  except _READ_ERRORS as error:
    return claim_lib.Verdict(
        claim_lib.Status.NOT_RUN, f'Cannot read its data: {error}.'
    )


def _to_row(claim: claim_lib.Claim, verdict: claim_lib.Verdict) -> list[str]:
  """Returns the cells of a claim's row, in the order of `_COLUMNS`."""
  return [
      claim.name,
      verdict.status.value,
      claim.basis.value,
      claim.statement,
      verdict.evidence,
      claim.source,
      claim.method,
  ]


def _summarize(rows: Sequence[Sequence[str]]) -> str:
  """Returns how many claims have which verdict, by the kind of evidence."""
  by_basis: dict[str, collections.Counter[str]] = {}
  for _, verdict, basis, *_ in rows:
    by_basis.setdefault(basis, collections.Counter())[verdict] += 1
  found = '; '.join(
      f'{sum(counts.values())} by {basis}: '
      + ', '.join(f'{count} {verdict}' for verdict, count in counts.items())
      for basis, counts in by_basis.items()
  )
  return f'Of {len(rows)} claims, {found}.'


def _build_blocks(
    rows: Sequence[Sequence[str]], found_runs: Sequence[run_folder.Run]
) -> Iterator[str]:
  """Yields a table of verdicts, one section per claim, and their origin."""
  yield pages.paragraph(_summarize(rows))
  yield pages.table(
      _COLUMNS[:4],
      [list(map(pages.Markup, row[:4])) for row in rows],
      num_labels=4,
  )
  yield pages.paragraph(runs.RULE)
  for name, verdict, basis, statement, evidence, source, method in rows:
    yield pages.heading(name)
    yield pages.paragraph(f'{statement} ({source})')
    yield pages.paragraph(f'Check, by {basis}: {method}')
    yield pages.paragraph(f'**{verdict}**: {evidence}')
  command = command_line.build_command('audit', sys.argv[1:], 'tools')
  yield from pages.origin(found_runs, command)
  versions = (f'{name} {v}' for name, v in environments.collect().items())
  yield pages.paragraph(
      'Claims that need no runs were checked by the process that wrote this '
      f'page: {", ".join(versions)}.'
  )


def _to_plain(value: Any) -> Any:
  """Returns a JSON value; non-finite numbers become strings."""
  if isinstance(value, Mapping):
    return {name: _to_plain(part) for name, part in value.items()}
  if isinstance(value, (list, tuple)):
    return [_to_plain(part) for part in value]
  if isinstance(value, float) and not math.isfinite(value):
    return str(value)
  return value


def _write(
    folder: pathlib.Path,
    verdicts: _Verdicts,
    found_runs: Sequence[run_folder.Run],
):
  """Writes `claims.md`, `claims.csv` and `claims.json`."""
  rows = [_to_row(audit.CLAIMS[name], v) for name, v in verdicts.items()]
  found = {
      row[0]: {
          **dict(zip(_COLUMNS[1:], row[1:])),
          'numbers': _to_plain(verdicts[row[0]].numbers),
      }
      for row in rows
  }
  path = folder / 'claims'
  pages.write_page(
      path,
      'The central claims of the papers',
      list(_build_blocks(rows, found_runs)),
  )
  formatting.write_csv(path.with_suffix('.csv'), _COLUMNS, rows)
  text = json.dumps(found, indent=2, allow_nan=False)
  _files.write(path.with_suffix('.json'), f'{text}\n')


def main(flag_values: flags.FlagValues = flags.FLAGS):
  """Checks the claims that the flags select.

  Args:
    flag_values: The parsed flags.
  """
  selected = select(flag_values['claims'].value)
  if flag_values['runs_dir'].present:  # The default may not exist.
    folders.check_runs_dir(flag_values.runs_dir)
  folders.check_output_dir(flag_values.output_dir)
  output_dir = pathlib.Path(flag_values.output_dir)
  command_line.prepare_libraries()
  # TensorFlow takes seconds to import, so --help and typos do without it.
  from tools.audit import laboratory  # pylint: disable=import-outside-toplevel

  lab = laboratory.Laboratory(pathlib.Path(flag_values.runs_dir))
  verdicts = {}
  for claim in selected:
    verdict = verdicts[claim.name] = check(claim, lab)
    print(
        f'{claim.name}: {verdict.status.value}: {verdict.evidence}', flush=True
    )
  with (
      command_line.errors_as(command_line.EnvironmentalError, OSError),
      folders.locked(output_dir),
  ):
    _write(output_dir, verdicts, lab.runs)


if __name__ == '__main__':
  define()
  command_line.run(main)

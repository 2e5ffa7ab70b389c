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
r"""Checks the central claims of the papers and says what became of them.

For example:

  python -m experiments.audit
  python -m experiments.audit --claims=fedli.free_descent,delta_sgd.theorem

prints a line a claim, `name: verdict: evidence`, and writes `audit.md`,
`audit.html`, `audit.csv` and `audit.json` to `--output_dir`. Some claims are
checked on small problems, in seconds; others on the finished runs of published
cells in `--runs_dir`, and these lines have the command that makes the runs if
there are none, or say what is wrong with them.
"""

import pathlib
import shlex
import sys

from absl import flags

from experiments import audit
from experiments import command_line
from experiments import folders
from experiments import published
from experiments.run_results import run_folder

# What reading tables and runs raises. Another error is a bug in a check or in
# the library, and must not look like data that are missing.
_READ_ERRORS = (
    OSError,
    flags.Error,
    published.PublishedError,
    run_folder.RunError,
)


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags.

  Args:
    flag_values: Where to define them.
  """
  flags.DEFINE_list(
      'claims',
      [],
      'The names of the claims to check, or of papers; by default all: '
      + ', '.join(audit.CLAIMS),
      flag_values=flag_values,
  )
  flags.DEFINE_string(
      'runs_dir',
      'runs',
      'The folder of all runs, the --output_dir of experiments.train.',
      flag_values=flag_values,
  )
  flags.DEFINE_string(
      'output_dir',
      'results',
      'Where the verdicts are written, in the place of those of an audit '
      'before.',
      flag_values=flag_values,
  )


def select(names: list[str]) -> list[audit.Claim]:
  """Returns the claims of some names, or all.

  Args:
    names: Names of claims or of papers; none for all claims.

  Returns:
    The claims in the order in which they are written.

  Raises:
    UserError: If there is no claim or paper of a name.
  """
  papers = {name.partition('.')[0] for name in audit.CLAIMS}
  for name in names:
    if name not in audit.CLAIMS and name not in papers:
      raise command_line.UserError(
          f'--claims has no claim or paper {name!r}; the papers are '
          f'{", ".join(sorted(papers))}, and --help lists the claims'
      )
  return [
      claim
      for name, claim in audit.CLAIMS.items()
      if not names or name in names or name.partition('.')[0] in names
  ]


def check(claim: audit.Claim, lab: audit.Workbench) -> audit.Verdict:
  """Checks a claim.

  Args:
    claim: The claim.
    lab: The workbench.

  Returns:
    The verdict; 'not run' with the reason if a table or a run is damaged, which
    leaves the other claims alone.
  """
  try:
    return claim.check(lab)
  except _READ_ERRORS as error:
    return audit.Verdict(
        audit.Status.NOT_RUN, f'What it needs cannot be read: {error}.'
    )


def main(flag_values: flags.FlagValues = flags.FLAGS):
  """Checks what the flags say.

  Args:
    flag_values: The parsed flags.
  """
  selected = select(flag_values['claims'].value)
  output_dir = pathlib.Path(flag_values.output_dir)
  with command_line.errors_as(command_line.EnvironmentalError, OSError):
    output_dir.mkdir(parents=True, exist_ok=True)
  command_line.prepare_libraries()
  lab = audit.Workbench(pathlib.Path(flag_values.runs_dir))
  verdicts = {}
  for claim in selected:
    verdict = verdicts[claim.name] = check(claim, lab)
    print(
        f'{claim.name}: {verdict.status.value}: {verdict.evidence}', flush=True
    )
  # TensorFlow takes seconds to import: not for --help and not for a typo.
  from experiments.audit import page  # pylint: disable=import-outside-toplevel

  with (
      command_line.errors_as(command_line.EnvironmentalError, OSError),
      folders.locked(output_dir),
  ):
    page.write(output_dir, selected, verdicts, lab.runs, _command())


def _command() -> str:
  return shlex.join(['python', '-m', 'experiments.audit', *sys.argv[1:]])


if __name__ == '__main__':
  define()
  command_line.run(main)

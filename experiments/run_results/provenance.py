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
"""What a page must say about how its numbers came about."""

from collections.abc import Sequence

from experiments import pages
from experiments.run_results import environments
from experiments.run_results import formatting
from experiments.run_results import run_folder

_DATE = '%Y-%m-%d'


def build_blocks(
    runs: Sequence[run_folder.Run], command: str
) -> list[pages.Block]:
  """Returns the blocks at the end of a page.

  Args:
    runs: The runs that count.
    command: What made the page.

  Returns:
    Versions, machine, seeds, dates, total time and the command.
  """
  rows = _describe_environments(runs)
  if runs:
    seeds = sorted({int(run.hparams.get('seed') or 0) for run in runs})
    first = min(run.started for run in runs).strftime(_DATE)
    last = max(run.ended for run in runs).strftime(_DATE)
    seconds = sum(run.seconds for run in runs)
    rows += [
        ['seeds', ', '.join(map(str, seeds))],
        ['runs', f'{len(runs)}, from {first} to {last}'],
        [
            'time of all rounds',
            f'{seconds:,.0f} s ({formatting.format_seconds(seconds)})',
        ],
    ]
  return [
      pages.Heading('How this page was made'),
      pages.Table(['what', 'value'], rows, num_labels=2),
      pages.Paragraph(
          'Versions and machine are those that the runs have recorded; dates '
          "are those of the runs' files."
      ),
      pages.Code(command),
  ]


def _describe_environments(
    runs: Sequence[run_folder.Run],
) -> list[list[str]]:
  """Returns a row for each version, with all of them that runs have used."""
  found = [found for run in runs for found in environments.read(run.path)]
  names = dict.fromkeys(name for environment in found for name in environment)
  return [
      [name, ', '.join(dict.fromkeys(str(e.get(name, '-')) for e in found))]
      for name in names
  ]

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
"""The section of the page about what not tuning costs."""

from collections.abc import Mapping, Sequence
from typing import Optional

from experiments import pages
from experiments.leaderboards import formats
from experiments.leaderboards import results as results_lib
from experiments.leaderboards import standings
from experiments.leaderboards import tuning_costs

_TRIALS_LEGEND = (
    'The expected test metric of the trial that is chosen among n of the '
    'trials, without replacement, in percent; exact over all subsets of the '
    'runs with the tuning seed. A trial that diverged is worth 0.'
)
_GAPS_LEGEND = (
    "What is lost against the method's own tuned runs, in points, paired by "
    'seed, with a 95 % t interval. Carried over are the values that were '
    'chosen on another task; flags of the task itself are its own.'
)


def build_blocks(results: results_lib.Results) -> list[pages.Block]:
  """Returns the section, as far as there are runs.

  Args:
    results: What was measured.

  Returns:
    For every task the expected scores after fewer trials, and the losses of
    defaults and of values of other tasks.
  """
  trials = _trials_table(results)
  gaps = _gaps_table(results)
  blocks: list[pages.Block] = []
  for legend, table in ((_TRIALS_LEGEND, trials), (_GAPS_LEGEND, gaps)):
    if table is not None:
      blocks += [pages.Paragraph(legend), table]
  return [pages.Heading('What not tuning costs'), *blocks] if blocks else []


def _trials_table(results: results_lib.Results) -> Optional[pages.Table]:
  rows = []
  for task, method in results.plan.pairs:
    trials = results.trial_scores(task, method)
    if trials is not None:
      expected = tuning_costs.expected_scores(trials)
      rows.append(
          [
              task,
              method,
              formats.format_score(trials[0].test),
              *map(formats.format_score, expected),
          ]
      )
  if not rows:
    return None
  count = max(map(len, rows)) - 3
  header = [
      'task',
      'method',
      'defaults',
      *(f'n = {i + 1}' for i in range(count)),
  ]
  # Methods with a choice of few values have fewer trials.
  rows = [row + [formats.NONE] * (len(header) - len(row)) for row in rows]
  return pages.Table(header, rows, num_labels=2)


def _gaps_table(results: results_lib.Results) -> Optional[pages.Table]:
  tasks = list(results.plan.board.tasks)
  rows = []
  for task in tasks:
    tuned = results.tuned(task)
    others = [results.defaults(task)]
    others += [
        {} if source == task else results.carried(task, source)
        for source in tasks
    ]
    for method, outcome in tuned.items():
      rows.append([task, method, *_gaps(method, outcome, others)])
  if not rows:
    return None
  header = ['task', 'method', 'tuned', 'defaults']
  if len(tasks) == 1:
    return pages.Table(header, [row[:4] for row in rows], num_labels=2)
  header += [f'tuned on {task}' for task in tasks]
  return pages.Table(header, rows, num_labels=2)


def _gaps(
    method: str,
    tuned: results_lib.Outcome,
    others: Sequence[Mapping[str, results_lib.Outcome]],
) -> list[str]:
  """Returns the tuned score, and what the others differ from it."""
  mean = sum(tuned.scores.values()) / len(tuned.scores)
  texts = [formats.format_score(mean)]
  for outcomes in others:
    other = outcomes.get(method)
    texts.append(
        formats.NONE
        if other is None
        else formats.format_interval(
            standings.compare(other.scores, tuned.scores)
        )
    )
  return texts

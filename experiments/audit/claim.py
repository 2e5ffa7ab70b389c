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
"""What a claim is, and what a check says of it."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import enum
import inspect
import math
from typing import Any

from experiments.audit import workbench
from experiments.run_results import seed_statistics


class Status(str, enum.Enum):
  """What a check found.

  Attributes:
    HOLDS: The claim is true wherever it was checked.
    FAILS: It is not.
    COUNTEREXAMPLE: It is meant for all cases, and there is one against it.
    NOT_TESTABLE: It needs runs that take a GPU, and there are none.
    NOT_RUN: It needs runs, or a table, that are not there yet or damaged.
    OPEN: The runs are there, and their seeds decide nothing.
  """

  HOLDS = 'holds'
  FAILS = 'fails'
  COUNTEREXAMPLE = 'counterexample'
  NOT_TESTABLE = 'not testable here'
  NOT_RUN = 'not run'
  OPEN = 'open'


@dataclasses.dataclass(frozen=True)
class Verdict:
  """What a check says.

  Attributes:
    status: What was found.
    evidence: Why, in a sentence or two with numbers; the command that makes the
      runs where they are missing.
    numbers: What was measured, by name; plain numbers, strings and mappings of
      these.
  """

  status: Status
  evidence: str
  numbers: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def missing_table(name: str) -> Verdict:
  """Returns the verdict where a published table is not among the presets."""
  return Verdict(
      Status.NOT_RUN,
      f'experiments/presets/{name}.yaml is not there, so that there are no '
      'cells to run.',
  )


# Measures, and says what it means.
Check = Callable[[workbench.Workbench], Verdict]


@dataclasses.dataclass(frozen=True)
class Claim:
  """A claim of a paper.

  Attributes:
    name: The paper's short name and its own: 'delta_sgd.theorem'.
    statement: The claim, in a sentence.
    source: Where it is made.
    method: How it is checked.
    check: Checks it.
  """

  name: str
  statement: str
  source: str
  method: str
  check: Check


class Paper:
  """The claims of a paper, collected from the functions that check them.

  Attributes:
    claims: The claims by name, in the order in which they are written.

  Example:

    >>> paper = Paper('fedopt', 'Reddi et al., ICLR 2021')
    >>> @paper.claim('Algorithm 2')
    ... def takes_no_step(lab):
    ...   '''FedAdam moves.
    ...
    ...   One step.
    ...   '''
    ...   return Verdict(Status.HOLDS, 'It moved by 0.1.')
    >>> paper.claims['fedopt.takes_no_step'].statement
    'FedAdam moves.'
  """

  def __init__(self, name: str, title: str):
    self._name = name
    self._title = title
    self.claims: dict[str, Claim] = {}

  def claim(self, place: str) -> Callable[[Check], Check]:
    """Returns a decorator of the function that checks a claim.

    The first paragraph of its docstring is the claim, the rest says how it is
    checked.

    Args:
      place: Where in the paper it is made.

    Returns:
      The decorator, which returns the function as it is.
    """

    def collect(check: Check) -> Check:
      statement, *method = (inspect.getdoc(check) or '').split('\n\n')
      name = f'{self._name}.{getattr(check, "__name__")}'
      self.claims[name] = Claim(
          name,
          ' '.join(statement.split()),
          f'{self._title}, {place}',
          ' '.join(' '.join(method).split()),
          check,
      )
      return check

    return collect


MARGIN = 0.5

# What a page is to say about the verdicts of this module.
RULE = (
    'Where a claim is about runs, a method is compared with every rival by the '
    '95 % t interval of the differences, paired by seed, over the seeds that '
    'it and all rivals have. It is as good if the whole interval is at or '
    f'above minus the margin, {MARGIN:g} points, and worse if all of it is '
    'below; it is ahead if the whole interval is above 0, and not ahead if '
    'none of it is. Everything else is **open**: the seeds decide nothing. '
    'One seed has no interval and so decides nothing, unless a run diverged; '
    'its numbers are given all the same. The rival that is shown is the one '
    'against which the method does worst. It is not chosen beforehand by its '
    'mean, which would take its luck on these seeds for skill: a claim holds '
    'if it is shown against every rival, and that needs no correction for '
    'their number. It fails if one rival speaks against it, and that is not '
    'corrected.'
)

Scores = dict[int, float]


@dataclasses.dataclass(frozen=True)
class Difference:
  """By how much one method is above another one.

  Attributes:
    interval: The mean over the seeds that both have, and its paired t interval.
    num_seeds: How many seeds there are.
  """

  interval: seed_statistics.Interval
  num_seeds: int

  def __str__(self) -> str:
    mean, low, high = self.interval
    if not math.isfinite(mean):
      return {math.inf: 'the other one', -math.inf: 'it'}.get(
          mean, 'each of them, in a seed of its own,'
      ) + ' diverged'
    if self.num_seeds == 1:
      return f'{mean:+.2f} (one seed, which decides nothing)'
    return (
        f'{mean:+.2f} [{low:+.2f}, {high:+.2f}] ({self.num_seeds} paired seeds)'
    )

  def to_numbers(self) -> dict[str, Any]:
    """Returns the numbers for a file; they may be infinite, or NaN."""
    mean, low, high = self.interval
    return {
        'difference': mean,
        'low': low,
        'high': high,
        'seeds': self.num_seeds,
    }


def compare(scores: Scores, others: Scores) -> Difference:
  """Compares two methods on the seeds that both have.

  Args:
    scores: The scores of one.
    others: Those of the other one.

  Returns:
    How far the first is ahead.

  Raises:
    ValueError: If they have no seed in common.
  """
  differences = seed_statistics.subtract(scores, others)
  if not differences:
    raise ValueError(
        f'no seed in common: there are {sorted(scores)} and {sorted(others)}'
    )
  return Difference(seed_statistics.t_interval(differences), len(differences))


def not_behind(difference: Difference) -> Status:
  """Returns whether a method is as good as another one.

  Args:
    difference: To the other one.

  Returns:
    'holds', 'fails', or 'open' where the seeds decide nothing.
  """
  return {
      seed_statistics.Answer.AS_GOOD: Status.HOLDS,
      seed_statistics.Answer.OPEN: Status.OPEN,
      seed_statistics.Answer.WORSE: Status.FAILS,
  }[seed_statistics.judge(difference.interval, MARGIN)]


def ahead(difference: Difference) -> Status:
  """Returns whether a method is better than another one.

  That is the same question from the other side, without a margin: whether the
  other one is worse.

  Args:
    difference: To the other one.

  Returns:
    'holds', 'fails', or 'open' where the seeds decide nothing.
  """
  mean, low, high = difference.interval
  of_other = seed_statistics.Interval(-mean, -high, -low)
  return {
      seed_statistics.Answer.WORSE: Status.HOLDS,
      seed_statistics.Answer.OPEN: Status.OPEN,
      seed_statistics.Answer.AS_GOOD: Status.FAILS,
  }[seed_statistics.judge(of_other, margin=0.0)]


# The worst first: what one comparison says, all of them together say.
FROM_WORST = (Status.FAILS, Status.OPEN, Status.HOLDS)


def unite(statuses: Sequence[Status]) -> Status:
  """Returns what several comparisons say together: the worst of them."""
  return min(statuses, key=FROM_WORST.index)

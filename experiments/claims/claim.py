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

from collections.abc import Callable, Mapping
import dataclasses
import enum
import inspect
from typing import Any

from experiments.claims import workbench


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

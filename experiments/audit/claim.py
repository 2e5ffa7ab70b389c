# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A claim of a paper, and the verdict of its check."""

from collections.abc import Callable, Mapping
import dataclasses
import enum
import inspect
from typing import Any, TYPE_CHECKING

if TYPE_CHECKING:  # It imports TensorFlow, which --help does without.
  from experiments.audit.laboratory import Laboratory
else:
  Laboratory = Any


class Status(str, enum.Enum):
  """The outcome of a check.

  Attributes:
    HOLDS: The claim is true wherever it was checked.
    FAILS: It is not.
    COUNTEREXAMPLE: It is meant for all cases, and there is one against it.
    NOT_TESTABLE: It needs runs that take a GPU, and there are none.
    NOT_RUN: Runs or a table that it needs are missing or damaged.
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
  """The outcome of a check, and why.

  Attributes:
    status: The outcome.
    evidence: Why, in a sentence or two with numbers; the command that makes the
      runs where they are missing.
    numbers: The measurements, by name; plain numbers, strings and mappings of
      these.
  """

  status: Status
  evidence: str
  numbers: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def decide(agrees: bool, evidence: str, numbers: Mapping[str, Any]) -> Verdict:
  """Returns 'holds' if the measurements agree with a claim, else 'fails'."""
  return Verdict(Status.HOLDS if agrees else Status.FAILS, evidence, numbers)


def decide_for_all(
    agrees: bool, evidence: str, numbers: Mapping[str, Any]
) -> Verdict:
  """Returns the verdict of a claim about all cases, which one case refutes."""
  status = Status.HOLDS if agrees else Status.COUNTEREXAMPLE
  return Verdict(status, evidence, numbers)


Check = Callable[[Laboratory], Verdict]


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

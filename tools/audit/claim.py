# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A claim of a paper, and the verdict of its check."""

from collections.abc import Callable, Mapping
import dataclasses
import enum
import inspect
from typing import Any, TYPE_CHECKING

if TYPE_CHECKING:  # It imports TensorFlow, which would slow down --help.
  from tools.audit.laboratory import Laboratory
else:
  Laboratory = Any


class Status(str, enum.Enum):
  """The outcome of a check.

  Attributes:
    HOLDS: The claim is true in every case checked.
    FAILS: The claim is false.
    COUNTEREXAMPLE: The claim is about all cases, and one case contradicts it.
    NOT_TESTABLE: The check needs GPU runs, which are missing.
    NOT_RUN: Runs or a table that the check needs are missing or damaged.
    OPEN: The runs are complete, but their seeds are inconclusive.
  """

  HOLDS = 'holds'
  FAILS = 'fails'
  COUNTEREXAMPLE = 'counterexample'
  NOT_TESTABLE = 'not testable here'
  NOT_RUN = 'not run'
  OPEN = 'open'


class Basis(str, enum.Enum):
  """The kind of evidence that a check uses.

  Attributes:
    SMALL: Arithmetic and small problems.
    PRINTED: The numbers that a paper prints.
    TRAINING: Runs of published cells, or of our versions of them.
  """

  SMALL = 'arithmetic and small problems'
  PRINTED = 'printed numbers'
  TRAINING = 'training'


@dataclasses.dataclass(frozen=True)
class Verdict:
  """The outcome of a check and its evidence.

  Attributes:
    status: The outcome.
    evidence: One or two sentences with numbers, and the command that makes any
      missing runs.
    numbers: The measurements by name: numbers, strings, and mappings of these.
  """

  status: Status
  evidence: str
  numbers: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def decide(agrees: bool, evidence: str, numbers: Mapping[str, Any]) -> Verdict:
  """Returns 'holds' if the measurements agree with the claim, else 'fails'."""
  return Verdict(Status.HOLDS if agrees else Status.FAILS, evidence, numbers)


def decide_for_all(
    agrees: bool, evidence: str, numbers: Mapping[str, Any]
) -> Verdict:
  """Returns the verdict on a claim that a single counterexample refutes."""
  status = Status.HOLDS if agrees else Status.COUNTEREXAMPLE
  return Verdict(status, evidence, numbers)


Check = Callable[[Laboratory], Verdict]


@dataclasses.dataclass(frozen=True)
class Claim:
  """A claim of a paper.

  Attributes:
    name: The paper's short name and the claim's: 'delta_sgd.theorem'.
    statement: The claim, in one sentence.
    source: The paper and the place in it.
    basis: The kind of evidence.
    method: The description of the check.
    check: The function that checks the claim.
  """

  name: str
  statement: str
  source: str
  basis: Basis
  method: str
  check: Check


class Paper:
  """The claims of a paper, collected from the functions that check them.

  Attributes:
    claims: The claims by name, in the order of their definition.

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

  def claim(
      self, place: str, basis: Basis = Basis.SMALL
  ) -> Callable[[Check], Check]:
    """Returns a decorator for a function that checks a claim.

    The first paragraph of its docstring states the claim; the rest describes
    the check.

    Args:
      place: The place of the claim in the paper.
      basis: The kind of evidence. Defaults to small problems.

    Returns:
      The decorator, which returns the function unchanged.
    """

    def collect(check: Check) -> Check:
      statement, *method = (inspect.getdoc(check) or '').split('\n\n')
      name = f'{self._name}.{getattr(check, "__name__")}'
      self.claims[name] = Claim(
          name,
          ' '.join(statement.split()),
          f'{self._title}, {place}',
          basis,
          ' '.join(' '.join(method).split()),
          check,
      )
      return check

    return collect

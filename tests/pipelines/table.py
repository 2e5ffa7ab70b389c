# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The page with the table of pipelines on both runtimes."""

from collections.abc import Iterable, Mapping
import datetime
import os
import statistics
from typing import Union

from experiments import pages
from experiments.run_results import environments
from tests.pipelines import measuring
from tests.pipelines import pipeline

TITLE = 'Pipelines that exist, on both runtimes'
_COMMAND = (
    '.venv/bin/python -m tests.pipelines --output=docs/results/pipelines.md'
)
_HEADER = (
    'pipeline',
    'path',
    'law',
    'largest difference',
    'CPU s, TFF',
    'CPU s, compiled',
    'ratio',
    'wall s, TFF',
    'wall s, compiled',
)
_INTRODUCTION = """\
Each row is a pipeline as people write it, in `tests/pipelines`: computations,
clients and `tf.data` as in TFF's tutorials and examples, in research code and
in scripts of users. The data are synthetic, in the shapes of the originals.

Both runtimes run in one process, in turns. The seconds are medians of five
samples of a round, without the rounds that compile: CPU seconds of the process
and of TFF's worker, and wall seconds. The ratio is that of the CPU seconds. The
*law* says how the results of the first {rounds} rounds have to agree, and
*largest difference* how they do; numbers are *equal* within 1e-5. The *path* is
that of `CompiledContext.path_of`."""

# The outcome of a pipeline: an error if it could not run.
Outcome = Union[measuring.Comparison, Exception]


def _row(name: str, outcome: Outcome) -> list[str]:
  """Returns the cells of a pipeline."""
  law = pipeline.PIPELINES[name].law.text
  if isinstance(outcome, Exception):
    text = (str(outcome).splitlines() or [''])[0]
    return [name, f'{type(outcome).__name__}: {text}', law, *[''] * 6]
  assert outcome.native is not None and outcome.compiled is not None
  return [
      name,
      outcome.path or '',
      law,
      f'{outcome.difference:.1e}',
      f'{outcome.native.cpu:.4f}',
      f'{outcome.compiled.cpu:.4f}',
      f'{outcome.ratio:.2f}',
      f'{outcome.native.wall:.4f}',
      f'{outcome.compiled.wall:.4f}',
  ]


def faults(name: str, outcome: Outcome) -> list[str]:
  """Returns in words where a pipeline is not as it should be."""
  if isinstance(outcome, Exception):
    return [f'it raised {type(outcome).__name__}']
  wanted = pipeline.PIPELINES[name]
  found = []
  if not outcome.difference <= wanted.law.limit:
    found.append(f'results differ by more than {wanted.law.limit:g}')
  if outcome.path != wanted.path:
    found.append(f'the path is not {wanted.path}')
  if outcome.ratio > wanted.max_ratio:
    cause = f' ({wanted.cause})' if wanted.cause else ''
    found.append(f'the ratio is above {wanted.max_ratio:g}{cause}')
  return found


def _machine() -> str:
  """Returns the versions and the machine as a sentence."""
  versions = environments.collect()
  packages = ', '.join(
      f'{name} {versions[name]}'
      for name in ('tff_adaptive', 'tensorflow-federated', 'tensorflow')
  )
  return (
      f'Measured on {datetime.date.today()} on {os.cpu_count()} CPU cores '
      f'({environments.processor()}), with {packages}.'
  )


def to_page(outcomes: Mapping[str, Outcome]) -> str:
  """Returns the page of the outcomes, by name of the pipeline."""
  ratios = [
      outcome.ratio
      for outcome in outcomes.values()
      if isinstance(outcome, measuring.Comparison)
  ]
  blocks = [
      _INTRODUCTION.format(rounds=measuring.NUM_ROUNDS),
      pages.code_block(_COMMAND),
      pages.paragraph(_machine()),
      pages.table(
          _HEADER, [_row(*item) for item in outcomes.items()], num_labels=3
      ),
  ]
  if ratios:
    blocks.append(
        f'The median of the {len(ratios)} ratios is '
        f'{statistics.median(ratios):.2f}, the largest {max(ratios):.2f}.'
    )
  wrong = [
      f'* {pages.text(name)}: {pages.text("; ".join(found))}.'
      for name, outcome in outcomes.items()
      if (found := faults(name, outcome))
  ]
  if wrong:
    blocks += [pages.heading('Not as they should be'), '\n'.join(wrong)]
  return pages.to_markdown(TITLE, blocks)


def measure(names: Iterable[str]) -> dict[str, Outcome]:
  """Measures pipelines; prints a line about each.

  Args:
    names: Keys of `PIPELINES`.

  Returns:
    The outcomes by name.
  """
  outcomes: dict[str, Outcome] = {}
  for name in names:
    try:
      outcomes[name] = measuring.compare(name, costs=True)
    except Exception as error:  # pylint: disable=broad-exception-caught
      outcomes[name] = error
    print(name, '; '.join(faults(name, outcomes[name])) or 'ok', flush=True)
  return outcomes

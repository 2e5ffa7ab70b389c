# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures the pipelines on both runtimes, and writes the page about them.

`python -m tests.pipelines --output=docs/results/pipelines.md` takes ten minutes
on two cores. `--only=TEXT` measures the pipelines whose names contain the text.
Exits with 1 if one of them is not as it should be.
"""

import argparse
from collections.abc import Sequence
import pathlib
import sys

from experiments import command_line


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--output', type=pathlib.Path, help='the page to write')
  parser.add_argument('--only', default='', help='a part of the names')
  return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
  """Measures the pipelines; returns 1 if one is not as it should be."""
  options = _parse(arguments)
  command_line.prepare_libraries()
  # pylint: disable=g-import-not-at-top
  from tests.pipelines import measuring
  from tests.pipelines import pipeline
  from tests.pipelines import table

  # pylint: enable=g-import-not-at-top
  names = [name for name in pipeline.PIPELINES if options.only in name]
  if not names:
    sys.exit(f'No pipeline has {options.only!r} in its name.')
  outcomes = table.measure(names)
  measuring.close()
  page = table.to_page(outcomes)
  print(page)
  if options.output:
    options.output.write_text(page, encoding='utf-8')
  command_line.free_default_context()
  return int(any(table.faults(*item) for item in outcomes.items()))


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))

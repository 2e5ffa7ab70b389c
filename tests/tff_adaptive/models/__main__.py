# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares the zoo of Keras models with `Model.fit`, and writes the page.

`python -m tests.tff_adaptive.models --output=docs/results/keras_models.md`
takes a quarter of an hour on two cores. `--only=TEXT` takes the models whose
names contain the text. Exits with 1 if a number differs by too much.
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
  """Compares the models; returns 1 if a number differs."""
  options = _parse(arguments)
  command_line.prepare_libraries()
  from tests.tff_adaptive.models import zoo_page  # pylint: disable=g-import-not-at-top

  found = zoo_page.measure(options.only)
  if not found:
    sys.exit(f'No model has {options.only!r} in its name.')
  page = zoo_page.to_page(found)
  print(page)
  if options.output:
    options.output.write_text(page, encoding='utf-8')
  command_line.free_default_context()
  return int(
      not all(
          zoo_page.is_close(name, max(row)) for (name, _), row in found.items()
      )
  )


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))

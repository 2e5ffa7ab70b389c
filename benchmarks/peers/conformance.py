# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which formula a framework computes under the name of a method.

    python -m benchmarks.peers.conformance --page=docs/conformance.md

runs the server rules of each framework, in an environment of its own, on the
same mean changes of the weights, compares the weights with each formula of
`server_formulas`, and writes the section `peer-formulas` of the page. It does
the same for FedProx and SCAFFOLD, with `client_formulas`, and the section
`peer-client-formulas`.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
import json
import pathlib
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers import __main__ as peers
from benchmarks.peers import client_formulas
from benchmarks.peers import server_formulas
from experiments import pages

_TORCH = peers.PEERS['pytorch'].packages
# The name, the environment and the packages of the frameworks that are run.
PEERS = {
    'optax': ('optax', 'jax', peers.PEERS['jax'].packages),
    'fedjax': ('FedJAX', 'fedjax', peers.PEERS['fedjax'].packages),
    'pytorch': ('PyTorch', 'torch', peers.PEERS['pytorch'].packages),
    'pfl': ('pfl-research, PyTorch', 'pfl', peers.PEERS['pfl'].packages),
    'nvflare': ('NVFlare, PyTorch', 'nvflare', ('nvflare==2.9.0', *_TORCH)),
    'fluke': ('fluke', 'fluke', ('fluke-fl==0.8.1', *_TORCH)),
    'fedlab': ('FedLab', 'fedlab', ('fedlab==1.3.0', *_TORCH)),
    # Without simulations, which need more packages.
    'flower': ('Flower', 'flower_server', ('flwr==1.41.0',)),
}


class Problem(NamedTuple):
  """What frameworks are asked to run.

  Attributes:
    section: The section of the page for it.
    formulas: The module of its formulas, with what is asked.
    peers: The keys of `PEERS` that run it.
  """

  section: str
  formulas: Any
  peers: Sequence[str]


# The problems, by the script that runs them.
PROBLEMS: Mapping[str, Problem] = {
    'server_rules': Problem(
        'peer-formulas',
        server_formulas,
        tuple(name for name in PEERS if name != 'fedlab'),
    ),
    'client_rules': Problem(
        'peer-client-formulas',
        client_formulas,
        ('pfl', 'nvflare', 'fluke', 'fedlab', 'fedjax'),
    ),
}


def describe(found: Any, expected: np.ndarray, tolerance: float) -> str:
  """Returns whether weights are those of a formula, or since when they are not.

  Args:
    found: The weights after each round.
    expected: Those of the formula.
    tolerance: The difference up to which they are equal.
  """
  apart = np.abs(np.asarray(found) - expected).max(axis=1)
  differs = ~(apart <= tolerance)  # NaN differs.
  if not differs.any():
    return 'equal'
  return f'from round {np.argmax(differs) + 1} by {apart.max():.1g}'


class Row(NamedTuple):
  """A row of a table.

  Attributes:
    framework: Its name and version.
    method: The name of the method.
    iterates: The weights after each round.
    how: 'run', or 'read'.
    source: The call, or the place in the source.
  """

  framework: str
  method: str
  iterates: Any
  how: str
  source: str


def run_peers(
    script: str,
    folder: pathlib.Path,
    names: Sequence[str],
    python: str = sys.executable,
) -> Iterator[Row]:
  """Yields the rows of frameworks, each run in its environment.

  Args:
    script: A key of `PROBLEMS`.
    folder: The folder of the environments.
    names: Keys of `PEERS`; one that cannot be installed or run is left out,
      with a message, and one that does not run the problem without a message.
    python: The Python that makes the environments.
  """
  problem = PROBLEMS[script]
  path = pathlib.Path(__file__).with_name(f'{script}.py')
  for name in names:
    if name not in problem.peers:
      continue
    label, environment, packages = PEERS[name]
    peer = peers.Peer(script, environment, packages, ())
    try:
      executable = peers.make_environment(folder, peer, python)
      result = subprocess.run(
          [executable, path, name],
          input=json.dumps(problem.formulas.describe_problem()),
          stdout=subprocess.PIPE,
          text=True,
          check=True,
      )
    except subprocess.CalledProcessError as error:
      print(f'{label} is left out: {error}', file=sys.stderr)
      continue
    reply = json.loads(result.stdout.splitlines()[-1])
    framework = f'{label} {reply["version"]}'
    for method, found in reply['methods'].items():
      for source, iterates in found:
        yield Row(framework, method, iterates, 'run', source)


def read_others(formulas: Any, rows: Sequence[Row]) -> Iterator[Row]:
  """Yields the rows of frameworks whose formula was read.

  Args:
    formulas: The module of the formulas.
    rows: The rows of those that were run.
  """
  run = {(row.method, row.framework.rpartition(' ')[0]) for row in rows}
  for method, found in formulas.READ.items():
    for name, source, formula in found:
      if (method, name) not in run:
        iterates = formulas.iterate(formula, method)
        yield Row(name, method, iterates, 'read', source)


def format_section(formulas: Any, rows: Sequence[Row]) -> str:
  """Returns one table a method.

  Args:
    formulas: The module of the formulas.
    rows: The rows.
  """
  tables = []
  for method, columns in formulas.FORMULAS.items():
    header = [method, *(formula.name for formula in columns), 'how', 'where']
    expected = [formulas.iterate(formula, method) for formula in columns]
    cells = [
        [
            row.framework,
            *(describe(row.iterates, x, formulas.TOLERANCE) for x in expected),
            row.how,
            row.source,
        ]
        for row in rows
        if row.method == method
    ]
    tables.append(pages.text_table(header, cells))
  return '\n'.join(tables)


def main() -> None:
  """Runs the frameworks, prints the tables, and writes them to a page."""
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  parser.add_argument('--peers', nargs='*', choices=PEERS, default=list(PEERS))
  parser.add_argument(
      '--environments', type=pathlib.Path, default=pathlib.Path('.venv-peers')
  )
  parser.add_argument(
      '--python',
      default=sys.executable,
      help='the Python that makes the environments; pfl-research and FedJAX '
      'need 3.12 or older (default: the one that runs this)',
  )
  parser.add_argument('--page', type=pathlib.Path, help='the page to write')
  options = parser.parse_args()
  if options.page is not None:
    for problem in PROBLEMS.values():
      peers.find_section(options.page, problem.section)
  # It takes seconds to import.
  from benchmarks.peers import here  # pylint: disable=import-outside-toplevel

  for script, problem in PROBLEMS.items():
    rows = [
        Row(framework, method, iterates, 'run', call)
        for framework, method, iterates, call in getattr(
            here, f'run_{script}'
        )()
    ]
    rows += run_peers(
        script, options.environments, options.peers, options.python
    )
    rows += read_others(problem.formulas, rows)
    section = format_section(problem.formulas, rows)
    print(section)
    if options.page is not None:
      peers.replace_section(options.page, problem.section, section)


if __name__ == '__main__':
  main()

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures `experiments.benchmark`'s workloads in other frameworks and ours.

    python -m benchmarks.peers --page=docs/benchmarks.md \\
      --json=docs/results/peers.jsonl

makes an environment for each framework in `.venv-peers`, trains each workload
with each of them and with ours in turns, and writes the section `peers` of the
page, which links to the file of all lines, `--json`. All train the
same data, with equal sizes of cohorts and batches and the same kinds of
optimizers; each measurement is a process of its own.
"""

import argparse
import collections
from collections.abc import Iterator, Sequence
import datetime
from importlib import metadata
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple

import numpy as np
import psutil

from benchmarks.peers import federation
from experiments import pages
from experiments.benchmark import reports
from experiments.benchmark import workloads
from experiments.run_results import environments
from tff_adaptive import _files

_FOLDER = pathlib.Path(__file__).parent
_OURS = 'tff_adaptive, compiled'
# The name of each runtime in the table.
_RUNTIMES = {
    'native': 'TFF, native',
    'compiled': _OURS,
    'xla': 'tff_adaptive, program of XLA',
}
_SECTION = 'peers'
_SEED = 0


class Peer(NamedTuple):
  """A framework.

  Attributes:
    script: The script of this folder that trains with it.
    environment: The name of its environment.
    packages: What pip installs there.
    variants: The ways of using it, of which the fastest counts.
    workloads: The workloads that it can train; all if empty.
  """

  script: str
  environment: str
  packages: tuple[str, ...]
  variants: tuple[str, ...]
  workloads: tuple[str, ...] = ()


_THREADS = tuple(dict.fromkeys(('1', '2', str(os.cpu_count()))))
_TORCH = ('torch==2.13.0', 'numpy')
PEERS = {
    'pytorch': Peer('pytorch_loop', 'torch', _TORCH, _THREADS),
    'pytorch_sparse': Peer(
        'pytorch_sparse', 'torch', _TORCH, _THREADS, ('so_logreg_words',)
    ),
    'pfl': Peer(
        'pfl_research', 'pfl', ('pfl[pytorch]==0.6.0', _TORCH[0]), _THREADS
    ),
    'jax': Peer(
        'jax_program', 'jax', ('jax==0.10.2', 'optax'), ('scan', 'vmap')
    ),
    # Its last release does not run with newer JAX.
    'fedjax': Peer(
        'fedjax_fed_avg',
        'fedjax',
        (
            'fedjax==0.0.17',
            'dm-haiku==0.0.12',
            'jax==0.4.25',
            'jaxlib==0.4.25',
            'numpy<2',
        ),
        ('jit',),
    ),
    'flower': Peer(
        'flower_simulation',
        'flower',
        ('flwr[simulation]==1.41.0', _TORCH[0]),
        ('Ray',),
    ),
}
WORKLOADS = (
    'tiny_many',
    'emnist_cnn',
    'shakespeare_lstm',
    'so_logreg_words',
    'pfl_cifar10',
)


def make_environment(
    folder: pathlib.Path, peer: Peer, python: str = sys.executable
) -> pathlib.Path:
  """Returns the Python of a peer's environment, which is made if need be.

  Args:
    folder: The folder of the environments.
    peer: The peer.
    python: The Python that makes it.
  """
  environment = folder / peer.environment
  done = environment / 'packages.txt'
  packages = ' '.join(peer.packages)
  if not done.exists() or done.read_text() != packages:
    print(f'Installing {packages} in {environment} ...', flush=True)
    subprocess.run([python, '-m', 'venv', environment], check=True)
    pip = [str(environment / 'bin/python'), '-m', 'pip', 'install', '-q']
    subprocess.run([*pip, *peer.packages], check=True)
    done.write_text(packages)
  return environment / 'bin/python'


def save_federation(name: str, num_rounds: int, path: str) -> None:
  """Writes the data and cohorts of a workload for the peers."""
  # It imports TensorFlow.
  from experiments.benchmark import models  # pylint: disable=import-outside-toplevel

  workload = workloads.WORKLOADS[name]
  source = models.build_clients(workload, _SEED)
  examples = [source.examples(client_id) for client_id in source.client_ids]
  rng = np.random.default_rng(_SEED)
  (clients_per_round,) = workload.clients_per_round
  federation.save(
      path,
      {
          'workload': name,
          'model': workload.model,
          'batch_size': workload.batch_size,
          'client_learning_rate': workload.client_learning_rate,
          'server_optimizer': workload.server_optimizer,
          'server_learning_rate': workload.server_learning_rate,
      },
      x=np.stack([client['x'] for client in examples]),
      y=np.stack([client['y'] for client in examples]),
      cohorts=np.stack(
          [
              rng.choice(workload.num_clients, clients_per_round, replace=False)
              for _ in range(num_rounds + federation.WARM_UP_ROUNDS)
          ]
      ),
  )


def _run(command: Sequence[Any], json_path: str) -> list[reports.Line]:
  """Runs a process, and reads the lines that it printed, with the load."""
  load_before = os.getloadavg()[0]
  with open(json_path, 'w', encoding='utf-8') as file:
    result = subprocess.run(
        list(map(str, command)),
        stdout=file,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
  lines = reports.read([json_path])
  if result.returncode or not lines:
    last = (result.stderr.splitlines() or [''])[-1]
    print(f'{" ".join(map(str, command))} failed: {last}', file=sys.stderr)
  loads = {'load_before': load_before, 'load_after': os.getloadavg()[0]}
  return [{**line, **loads} for line in lines]


def measure(
    name: str, peers: Sequence[str], options: argparse.Namespace
) -> Iterator[reports.Line]:
  """Yields the lines of a workload: ours and each peer's, in turns."""
  with tempfile.TemporaryDirectory() as folder:
    data, out = f'{folder}/federation.npz', f'{folder}/lines.jsonl'
    save_federation(name, options.rounds, data)
    for repetition in range(options.repetitions):
      # TFF's own runtime takes minutes, and is far from all others.
      runtimes = ','.join(list(_RUNTIMES)[repetition > 0 :])
      ours = f'{folder}/ours.jsonl'
      benchmark = [sys.executable, '-m', 'experiments.benchmark']
      benchmark += [f'--workload={name}', f'--runtimes={runtimes}']
      benchmark += [f'--rounds={options.rounds}', f'--json={ours}']
      subprocess.run(benchmark, check=True, stdout=subprocess.DEVNULL)
      for line in reports.read([ours]):
        version = line['version']
        if line['runtime'] == 'native':
          version = metadata.version('tensorflow-federated')
        peer_name = _RUNTIMES[line['runtime']]
        yield {**line, 'peer': peer_name, 'version': version}
      os.remove(ours)
      for peer in [PEERS[peer] for peer in peers]:
        if peer.workloads and name not in peer.workloads:
          continue
        python = make_environment(options.environments, peer)
        script = _FOLDER / f'{peer.script}.py'
        for variant in peer.variants:
          yield from _run([python, script, data, variant], out)


def best_times(lines: Sequence[reports.Line]) -> dict[tuple[str, str], float]:
  """Returns seconds a round by framework and workload.

  Args:
    lines: The lines of all measurements.

  Returns:
    The median over repetitions of the median rounds, of the fastest variant.
  """
  medians = collections.defaultdict(list)
  for line in lines:
    key = (line['peer'], line['workload'], line['variant'])
    medians[key].append(line['sec_per_round_median'])
  best: dict[tuple[str, str], float] = {}
  for (peer, workload, _), values in medians.items():
    seconds = statistics.median(values)
    best[peer, workload] = min(seconds, best.get((peer, workload), seconds))
  return best


def format_section(lines: Sequence[reports.Line]) -> str:
  """Returns the section of the page: who is ahead, and the table."""
  best = best_times(lines)
  names = list(dict.fromkeys(line['workload'] for line in lines))
  frameworks = list(dict.fromkeys(line['peer'] for line in lines))
  ahead = [
      f'{framework} on `{name}` ({best[framework, name]:.3g} s a round, '
      f'ours {best[_OURS, name]:.3g} s)'
      for name in names
      for framework in frameworks
      if framework not in _RUNTIMES.values()
      and best.get((framework, name), np.inf) < best[_OURS, name]
  ]
  verdict = (
      f'A peer is ahead: {"; ".join(ahead)}.' if ahead else 'No peer is ahead.'
  )
  rows = []
  for framework in frameworks:
    cells = []
    for name in names:
      seconds = best.get((framework, name))
      if seconds is None:
        cells.append('')
      else:
        ratio = seconds / best[_OURS, name]
        # 130, not 1.3e+02.
        cells.append(f'{seconds:.3g} ({float(f"{ratio:.2g}"):g})')
    rows.append([_label(framework, lines), *cells])
  table = pages.table(['framework', *map(pages.code, names)], rows)
  num_rounds = lines[0]['rounds']
  return (
      f'{verdict}\n\nSeconds a round, medians of {num_rounds} rounds after '
      f'{federation.WARM_UP_ROUNDS}, and in brackets the ratio to ours. '
      f'{_machine()}{_describe_load(lines)}\n\n{table}\n'
  )


def _label(framework: str, lines: Sequence[reports.Line]) -> str:
  version = next(line['version'] for line in lines if line['peer'] == framework)
  return f'{framework} {version}'


def _describe_load(lines: Sequence[reports.Line]) -> str:
  loads = [line['load_before'] for line in lines if 'load_before' in line]
  if not loads:
    return ''
  return f' The load average before a measurement was {max(loads):.1f} at most.'


def _machine() -> str:
  gigabytes = psutil.virtual_memory().total / 2**30
  return (
      f'Measured on {datetime.date.today()} on {psutil.cpu_count()} CPU cores '
      f'({environments.processor()}) with {gigabytes:.0f} GiB of memory.'
  )


def find_section(page: pathlib.Path, name: str) -> tuple[str, re.Match[str]]:
  """Finds the text between `<!-- begin NAME -->` and `<!-- end NAME -->`.

  Args:
    page: The page.
    name: The name of the section.

  Returns:
    The text of the page, and where the section is in it.

  Raises:
    ValueError: If the page has no such section.
  """
  text = page.read_text(encoding='utf-8')
  begin, end = (f'<!-- {word} {name} -->' for word in ('begin', 'end'))
  found = re.search(f'(?<={begin}\n).*?(?={end})', text, re.S)
  if found is None:
    raise ValueError(f'{page} has no section `{begin}`.')
  return text, found


def replace_section(page: pathlib.Path, name: str, section: str) -> None:
  """Writes a section of a page anew.

  Args:
    page: The page.
    name: The name of the section.
    section: The new text of the section.
  """
  text, found = find_section(page, name)
  text = text[: found.start()] + section + text[found.end() :]
  page.write_text(text, encoding='utf-8')


def write_section(page: pathlib.Path, section: str, json_path: str) -> None:
  """Writes the section `peers` of a page anew.

  Args:
    page: The page.
    section: The new text of the section.
    json_path: The file of all lines, to which a link after the text leads.
  """
  link = os.path.relpath(json_path, page.parent)
  section += f'\n[All measurements]({link}), one a line.\n'
  replace_section(page, _SECTION, section)


def main() -> None:
  """Measures what the command line asks for."""
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  parser.add_argument(
      '--workloads', nargs='+', choices=WORKLOADS, default=WORKLOADS
  )
  parser.add_argument('--peers', nargs='*', choices=PEERS, default=list(PEERS))
  parser.add_argument('--rounds', type=int, default=10)
  parser.add_argument('--repetitions', type=int, default=3)
  parser.add_argument(
      '--environments', type=pathlib.Path, default=pathlib.Path('.venv-peers')
  )
  parser.add_argument(
      '--json', default='runs/peers.jsonl', help='the file of all lines'
  )
  parser.add_argument('--page', type=pathlib.Path, help='the page to write')
  options = parser.parse_args()
  if options.page is not None:
    find_section(options.page, _SECTION)
  for name in options.peers:
    make_environment(options.environments, PEERS[name])
  lines = []
  # Only a complete measurement replaces an earlier one.
  with _files.replacing(options.json) as file:
    for name in options.workloads:
      for line in measure(name, options.peers, options):
        text = json.dumps(line)
        print(text, flush=True)
        file.write(f'{text}\n'.encode())
        lines.append(line)
  section = format_section(lines)
  print(section)
  if options.page is not None:
    write_section(options.page, section, options.json)


if __name__ == '__main__':
  main()

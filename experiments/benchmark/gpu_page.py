# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The page of the report, from the output of its parts."""

from collections.abc import Iterator, Mapping, Sequence
import datetime
import math
import re
import statistics
import sys
from typing import Optional

from experiments import command_line
from experiments import formatting
from experiments import markup
from experiments import pages
from experiments.benchmark import gpu_parts as parts_lib
from experiments.benchmark import reports
from experiments.run_results import environments
from tff_adaptive import _run_metrics

_NOTHING = '-'
_LINES_OF_LOG = 15
# By then, graphs are compiled.
_WARM_UP_ROUNDS = 2


def write(
    report: parts_lib.Report,
    parts: Sequence[parts_lib.Part],
    gpus: Optional[str],
):
  """Writes report.md.

  Args:
    report: The report.
    parts: The parts that have run.
    gpus: The GPUs; None for a dry run.

  Raises:
    OSError: If a file cannot be written.
  """
  blocks = [
      pages.paragraph(_summarize(report, parts, gpus)),
      *_show_machine(report),
      *_show_goldens(report),
      *_show_workloads(report, gpus is not None),
      *_show_protocols(report),
      *_show_failures(report, parts),
      pages.heading('How this page was made'),
      pages.code(command_line.build_command('benchmark', sys.argv[1:])),
  ]
  title = 'GPU report' if gpus else 'GPU report: dry run on the CPU'
  pages.write_page(report.folder / 'report', title, blocks)


def list_failed(
    report: parts_lib.Report, parts: Sequence[parts_lib.Part]
) -> list[str]:
  """Returns the names of the parts that failed.

  Args:
    report: The report.
    parts: The parts that have run.
  """
  return [part.name for part in parts if report.results[part.name]['error']]


def _summarize(
    report: parts_lib.Report,
    parts: Sequence[parts_lib.Part],
    gpus: Optional[str],
) -> str:
  """Returns what was measured, and how much of it failed."""
  seconds = sum(report.results[part.name]['seconds'] for part in parts)
  num_good = len(parts) - len(list_failed(report, parts))
  found = (
      f'TensorFlow sees {gpus}.'
      if gpus
      else 'No GPU found: a dry run on the CPU with few rounds; its times are '
      'of no use.'
  )
  return (
      f'{datetime.date.today()}: {num_good} of {len(parts)} parts succeeded '
      f'in {formatting.format_seconds(seconds)}. {found}'
  )


def _show_machine(report: parts_lib.Report) -> Iterator[str]:
  """Yields the versions, the doctor's findings and the driver's."""
  yield pages.heading('Machine')
  yield pages.table(
      ['item', 'value'],
      [[name, str(value)] for name, value in environments.collect().items()],
      num_labels=2,
  )
  for name in ('doctor', 'nvidia_smi'):
    if report.read(name):
      yield pages.code(report.read(name))


def _show_goldens(report: parts_lib.Report) -> Iterator[str]:
  """Yields the counts, and the trajectories that differ."""
  yield pages.heading('Reference trajectories')
  yield pages.paragraph(
      'A sample of `tests/goldens`, replayed without TensorFloat-32.'
  )
  rows, wrong = [], []
  for name in parts_lib.GOLDENS:
    lines = report.read(name).splitlines() or ['']
    is_whole = re.fullmatch(r'\d+ passed, \d+ failed', lines[-1])
    rows.append(
        [markup.code(f'{name}.json'), lines[-1] if is_whole else _NOTHING]
    )
    wrong += [line for line in lines if ' FAIL' in line]
  yield pages.table(['file', 'result'], rows, num_labels=2)
  if wrong:
    yield pages.code('\n'.join(wrong))


def _show_workloads(report: parts_lib.Report, has_gpu: bool) -> Iterator[str]:
  """Yields the tables of the seconds of a round, and of the first one."""
  setups = parts_lib.list_setups(has_gpu)
  lines: dict[tuple[str, int], dict[parts_lib.Setup, reports.Line]] = {}
  for workload in parts_lib.WORKLOADS:
    for setup in setups:
      path = report.path(parts_lib.name_of(workload, setup), '.jsonl')
      for line in reports.read([str(path)] if path.exists() else []):
        row = workload, line['clients_per_round']
        lines.setdefault(row, {})[setup] = line
  yield pages.heading('Workloads of experiments.benchmark')
  yield pages.paragraph(
      'Several clients at once have a CPU core each. `--help` of '
      '`experiments.benchmark` describes the workloads.'
  )
  for text, key in (
      ('Seconds a round, median:', 'sec_per_round_median'),
      ('Seconds of the first round, which compiles:', 'first_round'),
  ):
    yield pages.paragraph(text)
    yield pages.table(
        [
            'workload',
            'clients',
            *map(str, setups),
            *(['best CPU / best GPU'] if has_gpu else []),
        ],
        [
            [markup.code(workload), f'{clients:,}', *_cells(setups, found, key)]
            for (workload, clients), found in lines.items()
        ],
    )


def _cells(
    setups: Sequence[parts_lib.Setup],
    lines: Mapping[parts_lib.Setup, reports.Line],
    key: str,
) -> list[str]:
  """Returns a row of times, with the ratio of the devices if there are two."""
  best = dict.fromkeys((setup.device for setup in setups), math.inf)
  for setup, line in lines.items():
    best[setup.device] = min(best[setup.device], line[key])
  cells = [
      f'{lines[setup][key]:.3g}' if setup in lines else _NOTHING
      for setup in setups
  ]
  if len(best) == 2:
    is_known = max(best.values()) < math.inf
    ratio = _format_ratio(best['CPU'] / best['GPU']) if is_known else _NOTHING
    cells.append(ratio)
  return cells


def _format_ratio(ratio: float) -> str:
  """Formats a ratio with two digits or more, without an exponent."""
  return f'{ratio:.2g}' if ratio < 99.5 else f'{ratio:,.0f}'


def _show_protocols(report: parts_lib.Report) -> Iterator[str]:
  """Yields the table of the trainings."""
  yield pages.heading('Protocols of FLUTE and pfl-research')
  yield pages.paragraph(
      'Seconds a round are the median of the later rounds, without evaluation. '
      'The next column is that time for the rounds of the whole protocol, and '
      'the last one what `experiments/presets/simulators` cites.'
  )
  rows = []
  for name, published in parts_lib.read_published_times().items():
    cells = [_NOTHING] * 3
    seconds = _read_seconds(report, name)
    if seconds is not None:
      flags = (parts_lib.PROTOCOLS / f'{name}.flags').read_text('utf-8')
      total_rounds = re.findall(r'--total_rounds=(\d+)', flags)[-1]
      rest = re.search(r'not clients and server: ([\d.]+ %)', report.read(name))
      cells = [
          f'{seconds:.3g}',
          formatting.format_seconds(seconds * int(total_rounds)),
          rest[1] if rest else _NOTHING,
      ]
    rows.append([markup.code(name), *cells, published])
  yield pages.table(
      [
          'protocol',
          'seconds a round',
          'all rounds',
          'not clients and server',
          'published',
      ],
      rows,
  )


def _read_seconds(report: parts_lib.Report, name: str) -> Optional[float]:
  """Returns the median duration of the later rounds of a training."""
  path = report.path(name, '.csv')
  if report.results.get(name, {}).get('error') or not path.exists():
    return None
  _, seconds = _run_metrics.read_columns(path)['seconds']
  return statistics.median(seconds[_WARM_UP_ROUNDS:])


def _show_failures(
    report: parts_lib.Report, parts: Sequence[parts_lib.Part]
) -> Iterator[str]:
  """Yields the error, command and last lines of each part that failed."""
  failed = list_failed(report, parts)
  if failed:
    yield pages.heading('What failed')
  for name in failed:
    result = report.results[name]
    yield pages.paragraph(
        f'{markup.code(name)}: {markup.text(result["error"])}'
    )
    lines = report.read(name).splitlines()[-_LINES_OF_LOG:]
    yield pages.code('\n'.join([f'$ {result["command"]}', *lines]))

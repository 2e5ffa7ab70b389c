# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Lists the cells of the published tables, and reports measured results.

For example:

  python -m experiments.report --list --paper=delta_sgd

prints one line per cell: its published number, its command, and for each
hyperparameter whether the paper specifies it, we assume it, or it is lost;

  python -m experiments.report --table=delta_sgd/table_1 --runs_dir=runs \
    --output_dir=results

writes `results/delta_sgd/table_1.md`, `.csv` and its figure from the
runs in `--runs_dir`; and

  python -m experiments.report --runs=runs/a,runs/b --output_dir=comparison

compares any runs.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import functools
import pathlib
from typing import Literal, Optional

from absl import flags

from experiments import command_line
from experiments import flag_table
from experiments import folders
from experiments import published
from experiments.flag_table import field
from experiments.report import figures
from experiments.run_results import run_folder

# The flags that the command on a page repeats, besides its table.
_SHOWN_FLAGS = (
    *published.AXES,
    'runs',
    'names',
    'metric',
    'metric_mode',
    'runs_dir',
    'data_dir',
    'output_dir',
)
_COLUMNS = (
    'paper',
    'table',
    'row',
    'column',
    'published',
    'command',
    'hyperparameters',
)


@dataclasses.dataclass
class _Flags:
  """The flags, besides those that select parts of tables.

  Attributes:
    list: Print one tab-separated line per cell and exit.
    paper: A paper, for all its tables; may be repeated.
    table: A table, such as delta_sgd/table_1; may be repeated.
    runs: Compare these comma-separated folders, each of a run or of the seeds
      of a run. Put a name with commas in double quotes.
    names: The comma-separated names of --runs in the table and the legend.
      Default: their paths.
    metric: The evaluation metric of --runs, as in the column evaluation/METRIC
      of metrics.csv; a name with a slash is a column itself. Default: the first
      of accuracy, recall_at_5 and loss that all have.
    metric_mode: Whether the largest or the smallest value of --metric is the
      best. Default: what its name says; required if that does not tell.
    runs_dir: The --output_dir of the tables' runs.
    output_dir: Folder for the pages.
    data_dir: Folder of the data sets, to plot partitions without runs.
  """

  list: bool = False
  paper: Sequence[str] = field((), repeated=True)
  table: Sequence[str] = field((), repeated=True)
  runs: Sequence[str] = ()
  names: Sequence[str] = ()
  metric: Optional[str] = None
  metric_mode: Optional[Literal['max', 'min']] = None
  runs_dir: str = 'runs'
  output_dir: str = 'results'
  data_dir: Optional[str] = None


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags."""
  for table in (_Flags, published.AxisFlags):
    flag_table.define(table, flag_values)


def _check(flag_values: flags.FlagValues):
  """Raises unless the flags ask for exactly one thing."""
  of_tables = [
      name
      for name in ('list', 'paper', 'table', *published.AXES)
      if flag_values[name].value
  ]
  if flag_values.runs and of_tables:
    raise command_line.UserError(
        f'--runs cannot be combined with --{of_tables[0]}: drop one of them'
    )
  if flag_values.names and len(set(flag_values.names)) != len(flag_values.runs):
    raise command_line.UserError(
        '--names takes a different name for each of --runs, found '
        f'{len(flag_values.names)} for {len(flag_values.runs)}'
    )
  for name, needed in (('metric', 'runs'), ('metric_mode', 'metric')):
    if flag_values[name].value and not flag_values[needed].value:
      raise command_line.UserError(f'--{name} needs --{needed}')
  if not any(flag_values[n].value for n in ('list', 'table', 'paper', 'runs')):
    raise command_line.UserError(
        'nothing to report: give --list, --table, --paper or --runs'
    )


def _find_tables(flag_values: flags.FlagValues) -> list[published.Table]:
  """Returns the restricted tables, whose figure options are valid."""
  # Without a name, all of all papers.
  papers = flag_values.paper or ([] if flag_values.table else ['*'])
  tables = [table for name in papers for table in published.load_tables(name)]
  tables += map(published.find_table, flag_values.table)
  for table in tables:
    figures.read_options(table)
  return published.restrict(tables, flag_values)


def format_cells(tables: Sequence[published.Table]) -> Iterator[str]:
  r"""Yields a header and one tab-separated line per cell.

  Args:
    tables: The tables to list. A figure that shows the runs of a table has its
      own lines.

  Yields:
    Paper, table, group and row, column, published number or '-', the command of
    the first seed, and the hyperparameters by origin.

  Raises:
    HparamError: If two flags of a cell conflict.
    absl.flags.Error: If a flag does not exist.
    OSError: If a file of flags cannot be read.

  Example:

    >>> lines = format_cells([published.find_table('delta_sgd/table_1')])
    >>> next(lines).split('\t')[:3]
    ['paper', 'table', 'row']
    >>> next(lines).split('\t')[:5]
    ['delta_sgd', 'table_1', 'alpha = 1 / SGD', 'MNIST', '98.3']
  """
  yield '\t'.join(_COLUMNS)
  for table in tables:
    for cell in table.cells:
      fields = [
          table.paper,
          table.name,
          ' / '.join(filter(None, (cell.group, cell.row))),
          cell.column,
          '-' if cell.published is None else str(cell.published),
          published.build_command(cell),
          _format_hyperparameters(cell),
      ]
      yield '\t'.join(fields)


@functools.lru_cache(maxsize=None)  # Figures share the cells of tables.
def _format_hyperparameters(cell: published.Cell) -> str:
  """Returns the set ones by origin: 'specified: a=1 b=2; assumed: c=3'."""
  texts: dict[published.Origin, list[str]] = {o: [] for o in published.Origin}
  for found in published.hyperparameters(cell):
    if found.value is not None:
      texts[found.origin].append(f'{found.name}={found.value}')
  return '; '.join(
      f'{origin.value}: {" ".join(pairs)}'
      for origin, pairs in texts.items()
      if pairs
  )


def _command(
    flag_values: flags.FlagValues, table: Optional[published.Table] = None
) -> str:
  """Returns the command line with the given flags, for one table if any."""
  tables = [] if table is None else [f'--table={table.place}']
  given = command_line.given_flags(flag_values, _SHOWN_FLAGS)
  return command_line.build_command('report', [*tables, *given.values()])


def main(flag_values: flags.FlagValues = flags.FLAGS):
  """Lists cells, compares runs or reports tables, according to the flags.

  Args:
    flag_values: The parsed flags.
  """
  _check(flag_values)
  with command_line.errors_as(command_line.UserError, published.PublishedError):
    tables = [] if flag_values.runs else _find_tables(flag_values)
    if flag_values.list:
      for line in format_cells(tables):
        print(line)
      return
  folders.check_output_dir(flag_values.output_dir)
  if any(figures.needs_runs(table, flag_values.data_dir) for table in tables):
    folders.check_runs_dir(flag_values.runs_dir)
  command_line.prepare_libraries()
  # TensorFlow takes seconds to import, so --help, --list and typos do without.
  from experiments.report import comparison  # pylint: disable=import-outside-toplevel
  from experiments.report import page  # pylint: disable=import-outside-toplevel

  output_dir = pathlib.Path(flag_values.output_dir)
  with command_line.reporting(run_folder.RunError), folders.locked(output_dir):
    if flag_values.runs:
      comparison.write_comparison(
          flag_values.runs,
          output_dir,
          _command(flag_values),
          names=flag_values.names,
          metric=flag_values.metric,
          metric_mode=flag_values.metric_mode,
      )
    else:
      page.write_tables(
          tables,
          pathlib.Path(flag_values.runs_dir),
          output_dir,
          functools.partial(_command, flag_values),
          flag_values.data_dir,
      )


if __name__ == '__main__':
  define()
  command_line.run(main)

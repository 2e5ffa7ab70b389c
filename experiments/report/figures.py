# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The kinds of figures that a paper's data file can request."""

from collections.abc import Mapping, Sequence
import dataclasses
import math
from typing import Any, Optional, Union

import attrs

from experiments import published
from experiments import yaml_files

CURVES = 'curves'
HEAT_MAP = 'heat_map'
BEST_SERVER_RATE = 'best_server_rate'
STEP_SIZES = 'step_sizes'
FINAL_OVER = 'final_over'
ADJUSTMENTS = 'adjustments'
PARTITION = 'partition'
CKA = 'cka'

RANGE = 'range'
STD = 'std'
# The bands of a curve, and what captions say of them.
BANDS = {
    RANGE: 'from the lowest to the highest seed',
    STD: 'one standard deviation over the seeds to either side',
}

# In the order of the colors blue, red and green, as in the Delta-SGD paper.
STEP_SIZE_CURVES = {
    'growth_limit': 'second condition',
    'step_size': 'step size',
    'smoothness_limit': 'first condition',
}
_LABELS = ('x_label', 'y_label')
_AXES = (*_LABELS, 'log_x', 'log_y', 'y_min', 'y_max')


@dataclasses.dataclass(frozen=True)
class Kind:
  """A kind of figure.

  Attributes:
    caption: The end of the caption, with `{seeds}` and `{gain}` where they are
      told; of pictures that the runs plotted, its beginning.
    options: The options.
    shows_numbers: Whether it shows the numbers of cells, which may have been
      chosen on the test data.
    of_runs: Whether the runs themselves plotted the pictures.
  """

  caption: str
  options: Sequence[str] = ()
  shows_numbers: bool = False
  of_runs: bool = False


KINDS: Mapping[str, Kind] = {
    # One line per row, one panel per group, column and metric.
    CURVES: Kind(
        'by round, {seeds}.', options=(*_AXES, 'log_below', 'metric', 'band')
    ),
    # Rows are client rates, columns server rates; one panel per group.
    HEAT_MAP: Kind(
        'the best value of each panel is framed; a cross marks a diverged run, '
        'a dash a missing one.',
        options=_LABELS,
        shows_numbers=True,
    ),
    # One line per method, one panel per task; groups are named 'TASK METHOD'.
    BEST_SERVER_RATE: Kind(
        'the best server learning rate for each client learning rate; the axis '
        'spans the searched rates{gain}.',
        options=(*_LABELS, 'min_gain'),
        shows_numbers=True,
    ),
    # Both conditions of Delta-SGD's step and their minimum, one panel per cell.
    STEP_SIZES: Kind(
        'means over the local steps of all clients in a round, and over the '
        'seeds.',
        options=(*_AXES, 'last_round'),
    ),
    # One line per row over the columns; one panel per group, or as in `panels`.
    FINAL_OVER: Kind(
        '{seeds}.', options=(*_AXES, 'band', 'panels'), shows_numbers=True
    ),
    # FedCAda's divisors, one line per row; needs no runs.
    ADJUSTMENTS: Kind(
        'the divisor of the first moment by round.',
        options=(*_AXES, 'beta', 'last_round'),
    ),
    # One picture per cell, of the task's clients; needs data or runs.
    PARTITION: Kind('The partition', of_runs=True),
    CKA: Kind(
        "Similarity of the clients' moments, linear CKA",
        options=('part', 'clients'),
        of_runs=True,
    ),
}


@attrs.frozen
class Panel:
  """The cells of a panel: some columns, of a group if there are any."""

  columns: tuple[str, ...]
  group: str = ''


@attrs.frozen
class FigureOptions:
  """The options of a figure.

  Attributes:
    kind: A key of `KINDS`.
    x_label: The label of the x axis; by default that of the kind.
    y_label: The label of the y axis; by default the metric.
    log_x: Whether the x axis is logarithmic.
    log_y: Whether the y axis is logarithmic.
    log_below: The value, such as 100 percent, in the distance to which the y
      axis is logarithmic, so that curves differ where they come close to it.
    y_min: The lower limit of the y axis.
    y_max: The upper limit of the y axis.
    metric: The column of metrics.csv that curves show, such as 'clients/loss',
      or a list of columns, side by side; by default the table's metric.
    band: 'range', from the lowest to the highest seed, or 'std'.
    last_round: The last round shown; by default all rounds are.
    min_gain: The fraction of a method's worst loss on a task by which a client
      rate must lower the loss to be shown; by default all rates are.
    beta: The decay rate of the moment.
    part: The part of the clients' states to compare; by default all of it.
    clients: The maximal number of clients to compare.
    panels: The cells of each panel by title: a group and some columns, such as
      {group: alpha = 1, columns: [MNIST, FMNIST]}. All other cells are omitted.
  """

  kind: str
  x_label: str = ''
  y_label: str = ''
  log_x: bool = False
  log_y: bool = False
  log_below: Optional[float] = None
  y_min: Optional[float] = None
  y_max: Optional[float] = None
  metric: Union[str, tuple[str, ...]] = ''
  band: str = RANGE
  last_round: float = math.inf
  min_gain: float = 0.0
  beta: float = 0.9
  part: str = ''
  clients: int = 0
  panels: Optional[Mapping[str, Panel]] = None

  @property
  def metrics(self) -> Sequence[str]:
    """The metrics that curves show; an empty name is the table's metric."""
    return [self.metric] if isinstance(self.metric, str) else self.metric


# The options for a table that requests no figure.
DEFAULT = FigureOptions(CURVES)
# Percentages that come close to 100, where methods meet.
_PERCENT = 100.0
IN_PERCENT = FigureOptions(CURVES, log_below=_PERCENT)


def read_options(table: published.Table) -> FigureOptions:
  """Reads and checks the options of a table's figure.

  Args:
    table: The table; its `figure` is a mapping with the key 'kind' and any
      options of that kind.

  Returns:
    The options; `DEFAULT` or `IN_PERCENT` if the table requests no figure.

  Raises:
    PublishedError: If the kind or an option is unknown, an option has a wrong
      value, or rows or columns that must be numbers are not.

  Example:

    In a data file:

      figure: {kind: final_over, x_label: local epochs, y_min: 50}
  """
  if table.figure is None:
    scales = {
        table.measure(column.name, group.name).scale
        for column in table.columns
        for group in table.groups
    }
    return IN_PERCENT if scales == {_PERCENT} else DEFAULT
  place = f'{table.place}: figure'
  kind: Any = table.figure.get('kind')
  yaml_files.check_choice(kind, KINDS, f'{place}: kind')
  for name in table.figure.keys() - {'kind'}:
    if name not in KINDS[kind].options:
      raise published.PublishedError(
          f'{place} of kind {kind} takes the options '
          f'{", ".join(KINDS[kind].options)}, found {name!r}'
      )
  options = yaml_files.structure(table.figure, FigureOptions, place)
  yaml_files.check_choice(options.band, BANDS, f'{place}: band')
  if kind in (HEAT_MAP, BEST_SERVER_RATE):
    to_rates([entry.name for entry in table.rows], f'{place}: rows')
    to_rates([entry.name for entry in table.columns], f'{place}: columns')
  if kind == FINAL_OVER and options.log_x:
    to_rates([entry.name for entry in table.columns], f'{place}: columns')
  return options


def columns_of(table: published.Table) -> frozenset[str]:
  """Returns the columns of metrics.csv that a figure shows, besides a table's.

  Args:
    table: The table of the figure.
  """
  options = read_options(table)
  if options.kind == STEP_SIZES:
    return frozenset(f'clients/{name}_mean' for name in STEP_SIZE_CURVES)
  if options.kind == BEST_SERVER_RATE:
    return frozenset(['evaluation/loss'])
  return frozenset(filter(None, options.metrics))


def shows_numbers(table: published.Table) -> bool:
  """Returns whether the metrics of the cells are of interest."""
  kind = read_options(table).kind
  return kind == CURVES or KINDS[kind].shows_numbers


def needs_runs(table: published.Table, data_dir: Optional[str] = None) -> bool:
  """Returns whether the figure of a table needs runs."""
  kind = read_options(table).kind
  return kind != ADJUSTMENTS and not (
      kind == PARTITION and data_dir is not None
  )


def to_numbers(names: Sequence[str]) -> Optional[list[float]]:
  """Returns names as numbers; None unless all of them are."""
  try:
    return [float(name) for name in names]
  except ValueError:
    return None


def to_rates(names: Sequence[str], place: str) -> list[float]:
  """Returns names as learning rates.

  Args:
    names: The rates as text, such as '0.01' or '1e-2'.
    place: The place that an error names.

  Returns:
    The rates, in the same order.

  Raises:
    PublishedError: If one of them is not a number above 0.
  """
  rates = to_numbers(names)
  if rates is None or not all(0 < rate < math.inf for rate in rates):
    raise published.PublishedError(
        f'{place} must be numbers above 0, found {", ".join(names)}'
    )
  return rates

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The kinds of figures that a data file of a paper can ask for."""

from collections.abc import Mapping, Sequence
import dataclasses
import math
from typing import Any, Optional, Union

from experiments import published

CURVES = 'curves'
HEAT_MAP = 'heat_map'
BEST_SERVER_RATE = 'best_server_rate'
STEP_SIZES = 'step_sizes'
FINAL_OVER = 'final_over'
ADJUSTMENTS = 'adjustments'
PARTITION = 'partition'
CKA = 'cka'

# What a band shows: all runs, or their standard deviation around the mean.
RANGE = 'range'
STD = 'std'
_BANDS = (RANGE, STD)

_LABELS = ('x_label', 'y_label')
_SCALES = ('log_x', 'log_y')
_LIMITS = ('y_min', 'y_max')
_NUMBERS = (*_LIMITS, 'last_round', 'min_gain', 'beta', 'clients')
_COMMON = (*_LABELS, *_SCALES, *_LIMITS)

# The options of every kind, besides those of `_COMMON`.
KINDS: Mapping[str, Sequence[str]] = {
    # A line a row, a panel for every group and column, and for every metric.
    CURVES: ('metric', 'band'),
    # Rows are client rates, columns server rates, a panel a group.
    HEAT_MAP: (),
    # A line a method, a panel a task; groups are named 'TASK METHOD'.
    BEST_SERVER_RATE: ('min_gain',),
    # Both conditions of Delta-SGD's step and their minimum, a panel a cell.
    STEP_SIZES: ('last_round',),
    # A line a row, over the columns, a panel a group, or what `panels` says.
    FINAL_OVER: ('band', 'panels'),
    # FedCAda's denominators, a line a row; needs no runs.
    ADJUSTMENTS: ('beta', 'last_round'),
    # A picture a cell, of the task's clients; needs no runs, but data.
    PARTITION: (),
    # Pictures that runs have drawn of themselves.
    CKA: ('part', 'clients'),
}


@dataclasses.dataclass(frozen=True)
class FigureOptions:
  """The options of a figure.

  Attributes:
    kind: A name of `KINDS`.
    x_label: Below the panels; by default what the kind says.
    y_label: Beside the panels; by default the metric.
    log_x: Whether the horizontal axis is logarithmic.
    log_y: Whether the vertical axis is logarithmic.
    y_min: The lower end of the vertical axis.
    y_max: The upper end of the vertical axis.
    metric: The column of metrics.csv that curves show, such as 'clients/loss',
      or a list of them, side by side; by default the table's metric.
    band: 'range', from the lowest to the highest of the seeds, or 'std'.
    last_round: The last round that is shown; by default all are.
    min_gain: The part of the worst loss of a method on a task by which a client
      rate must lower the loss to be shown; by default all rates are.
    beta: The share of a moment that is kept.
    part: The part of the clients' states that is compared; by default all.
    clients: How many clients are compared at most.
    panels: The cells of each panel by its title: a group and some columns, such
      as {group: alpha = 1, columns: [MNIST, FMNIST]}. The table then has no
      others.
  """

  kind: str
  x_label: str = ''
  y_label: str = ''
  log_x: bool = False
  log_y: bool = False
  y_min: Optional[float] = None
  y_max: Optional[float] = None
  metric: Union[str, Sequence[str]] = ''
  band: str = RANGE
  last_round: float = math.inf
  min_gain: float = 0.0
  beta: float = 0.9
  part: str = ''
  clients: int = 0
  panels: Optional[Mapping[str, Mapping[str, Any]]] = None

  @property
  def metrics(self) -> Sequence[str]:
    """The metrics that curves show; an empty one is the table's."""
    return [self.metric] if isinstance(self.metric, str) else self.metric


# Of a table, which asks for no figure.
DEFAULT = FigureOptions(CURVES)


def read_options(table: published.Table) -> FigureOptions:
  """Returns how the figure of a table is drawn, checked.

  Args:
    table: The table; its `figure` is a mapping with the key 'kind' and options
      of that kind, all of which may be left out.

  Returns:
    The options; those of `DEFAULT` if the table asks for no figure.

  Raises:
    PublishedError: If there is no such kind, it has no such option or not of
      this value, or the rows or columns must be numbers and are not.

  Example:

    In a data file:

      figure: {kind: final_over, x_label: local epochs, y_min: 50}
  """
  if table.figure is None:
    return DEFAULT
  place = f'{table.place}: figure'
  options = dict(table.figure)
  kind = options.get('kind')
  if not isinstance(kind, str) or kind not in KINDS:
    raise published.PublishedError(
        f'{place}: kind is one of {", ".join(KINDS)}, found {kind!r}'
    )
  for name, value in options.items():
    if name != 'kind':
      _check_option(
          name, value, (*_COMMON, *KINDS[kind]), f'{place} of kind {kind}'
      )
  if kind in (HEAT_MAP, BEST_SERVER_RATE):
    to_rates([entry.name for entry in table.rows], f'{place}: rows')
    to_rates([entry.name for entry in table.columns], f'{place}: columns')
  if kind == FINAL_OVER and options.get('log_x'):
    to_rates([entry.name for entry in table.columns], f'{place}: columns')
  return FigureOptions(**options)


def _check_option(name: str, value: Any, known: Sequence[str], place: str):
  """Raises unless an option is one of a kind and has a value that fits."""
  if name not in known:
    raise published.PublishedError(
        f'{place} takes {", ".join(known)}, found {name!r}'
    )
  if name in _SCALES:
    fits, wanted = isinstance(value, bool), 'true or false'
  elif name in _NUMBERS:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    fits, wanted = is_number, 'a number'
  elif name == 'band':
    fits, wanted = value in _BANDS, ' or '.join(_BANDS)
  elif name == 'panels':
    fits = isinstance(value, dict) and all(
        isinstance(panel, dict) and set(panel) <= {'group', 'columns'}
        for panel in value.values()
    )
    wanted = 'titles with a group and columns'
  elif name == 'metric' and isinstance(value, list):
    fits, wanted = all(isinstance(v, str) for v in value), 'a text or texts'
  else:
    fits, wanted = isinstance(value, str), 'a text'
  if not fits:
    raise published.PublishedError(
        f'{place}: {name} is {wanted}, found {value!r}'
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
    names: As '0.01' or '1e-2'.
    place: What to name in an error.

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

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tables of the page on recommended hyperparameters.

They are built from the presets of the papers, the registry of flags and the
search ranges of the leaderboard.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import textwrap
from typing import Any, Optional

from experiments import pages
from experiments import published
from experiments import registry
from experiments.leaderboard import board

PAGE = 'docs/guide/recommended_hyperparameters.md'
_RATES = ('client_learning_rate', 'server_learning_rate')
# Flags of every cell that belong to no rule.
_OF_ALL = ('client_clip_norm', 'client_weight_decay')
_WEIGHTING = 'client_weighting'
_WIDTH = 100
_HEADINGS = ('method', 'client rate', 'server rate', 'epsilon', 'other')

_Values = Mapping[str, published.Hyperparameter]


def _values_of(cell: published.Cell) -> _Values:
  return {item.name: item for item in published.hyperparameters(cell)}


def _number(value: Any) -> str:
  """Formats a value for the page."""
  if isinstance(value, bool):
    return str(value).lower()
  if isinstance(value, int):
    return f'{value:,}'
  text = f'{value:.3g}' if isinstance(value, float) else f'{value}'
  return text.replace('e-0', 'e-')


def _show(item: Optional[published.Hyperparameter], name: str = '') -> str:
  """Formats a value, with its origin unless the paper specifies it."""
  if item is None or item.value is None:
    return ''
  text = f'{name} {_number(item.value)}'.strip()
  if item.origin == published.Origin.SPECIFIED:
    return text
  return f'{text} ({item.origin.value})'


def _epsilon_of(values: _Values) -> Optional[published.Hyperparameter]:
  """Returns the server's epsilon, or else the clients'."""
  for kind in (registry.SERVER_OPTIMIZER, registry.CLIENT_OPTIMIZER):
    found = values.get(f'{values[kind].value}_epsilon')
    if found is not None:
      return found
  return None


def _is_off(name: str, value: Any) -> bool:
  # An accumulator that starts at zero is not a switch that is off.
  return not value and not (value == 0 and name == 'initial_second_moment')


def _others_of(values: _Values) -> str:
  """Returns the other arguments of a rule, except those that are off."""
  shown = []
  epsilon = _epsilon_of(values)
  for kind in registry.RULES:
    rule = f'{values[kind].value}_'
    for flag, item in values.items():
      name = flag[len(rule) :]
      if flag.startswith(rule) and item is not epsilon:
        if not _is_off(name, item.value):
          shown.append(_show(item, name))
  shown.append(_show(values[_WEIGHTING], 'weights'))
  schedule = values[registry.CLIENT_SCHEDULE]
  if schedule.value != 'constant':
    shown.append(_show(schedule))
  return ', '.join(shown)


def _numbers_of(values: _Values) -> tuple[str, ...]:
  """Returns the cells of a row after its name; see `_HEADINGS`."""
  rates = [_show(values.get(name)) for name in _RATES]
  return (*rates, _show(_epsilon_of(values)), _others_of(values))


def _group(
    cells: Iterable[published.Cell],
    label: Callable[[published.Cell], str],
    key: Callable[[published.Cell], Any],
) -> dict[Any, list[str]]:
  """Returns the labels of the cells by key, in order."""
  groups: dict[Any, list[str]] = {}
  for cell in cells:
    labels = groups.setdefault(key(cell), [])
    if label(cell) not in labels:
      labels.append(label(cell))
  return groups


def rates_of(table_name: str) -> str:
  """Returns the rates of a table's methods.

  Args:
    table_name: The table, such as 'delta_sgd/table_1'.

  Returns:
    One row per method, or several with the names of the columns if the numbers
    differ between columns.
  """
  table = published.find_table(table_name)
  rows = []
  for method in table.rows:
    groups = _group(
        [cell for cell in table.cells if cell.row == method.name],
        lambda cell: cell.column,
        lambda cell: _numbers_of(_values_of(cell)),
    )
    for numbers, names in groups.items():
      where = _where(names, [column.name for column in table.columns])
      rows.append((f'{method.name}{where}', *numbers))
  return pages.text_table(_HEADINGS, rows)


def _where(names: Sequence[str], columns: Sequence[str]) -> str:
  """Returns the columns of a table as text; empty for all."""
  others = [column for column in columns if column not in names]
  if not others:
    return ''
  if len(others) < len(names):
    return f', except {", ".join(others)}'
  return f', {", ".join(names)}'


def rates_of_delta_sgd() -> str:
  """Returns the rates of Delta-SGD with other methods, one row per table."""
  rows = []
  for number in (4, 5, 6):
    table = published.find_table(f'delta_sgd/table_{number}')
    cell = next(cell for cell in table.cells if cell.row == 'Delta-SGD')
    rows.append((table.heading, *_numbers_of(_values_of(cell))))
  return pages.text_table(('source', *_HEADINGS[1:]), rows)


def rates_of_fedopt() -> str:
  """Returns the rates of a table whose methods are tuned for every task.

  Returns:
    One row per task and one column per method, with client rate, server rate
    and epsilon. The last row has the other arguments of each method, from its
    first cell.
  """
  table = published.find_table('fedopt/table_1')
  rows = []
  for column in table.columns:
    row = [column.name]
    for method in table.rows:
      values = _values_of(table.cell('', method.name, column.name))
      items = [values[name] for name in _RATES] + [_epsilon_of(values)]
      origins = {item.origin for item in items if item is not None}
      numbers = [_number(item.value) for item in items if item is not None]
      is_lost = published.Origin.LOST in origins
      row.append(', '.join(numbers) + ' (lost)' * is_lost)
    rows.append(row)
  firsts = [
      next(cell for cell in table.cells if cell.row == row.name)
      for row in table.rows
  ]
  rows.append(['other', *(_others_of(_values_of(cell)) for cell in firsts)])
  return pages.text_table(['task', *(row.name for row in table.rows)], rows)


def _protocol_of(cell: published.Cell) -> tuple[str, ...]:
  values = _values_of(cell)
  task = values[registry.TASK].value
  num_clients = values.get(f'{task}_num_clients') or values.get('num_clients')
  also = [
      _show(values[name], name.removeprefix('client_').replace('_', ' '))
      for name in _OF_ALL
      if values[name].value
  ]
  return (
      f'`{task}`',
      _show(num_clients) or 'all',
      _show(values['clients_per_round']),
      _show(values['client_batch_size']),
      _show(values['client_epochs']),
      _show(values['total_rounds']),
      ', '.join(also),
  )


def protocols_of(*table_names: str) -> str:
  """Returns the training protocols of the tables' columns.

  Args:
    *table_names: The tables, such as 'delta_sgd/table_1'.

  Returns:
    One row for all columns of a group with the same protocol.
  """
  rows = []
  for name in table_names:
    table = published.find_table(name)
    groups = _group(
        table.cells,
        lambda cell: cell.column,
        lambda cell: (_shown_group(cell), *_protocol_of(cell)),
    )
    for (group, *numbers), columns in groups.items():
      shown = ', '.join(columns) + (f'; {group}' if group else '')
      rows.append((table.heading, shown, *numbers))
  headings = (
      'source',
      'name there',
      '`--task`',
      'clients',
      'per round',
      'batch',
      'epochs',
      'rounds',
      'also',
  )
  return pages.text_table(headings, rows)


def _shown_group(cell: published.Cell) -> str:
  """Returns the group, unless it only names the partition."""
  return '' if cell.group.startswith('alpha') else cell.group


def commands_of(*places: tuple[str, str, str, str]) -> str:
  """Returns the commands of cells.

  Args:
    *places: The table, group, row and column of each cell.

  Returns:
    A code block for bash.
  """
  lines = []
  for name, *place in places:
    cell = published.find_table(name).cell(*place)
    command = published.build_command(cell)
    # Leaves room for the line continuation.
    lines += [' \\\n    '.join(_wrap(command)), '\n']
  return f'```bash\n{"".join(lines)}```\n'


def _wrap(command: str) -> list[str]:
  return textwrap.wrap(
      command, _WIDTH - 6, break_long_words=False, break_on_hyphens=False
  )


def defaults() -> str:
  """Returns the library's defaults and search ranges.

  Returns:
    One row per method of the leaderboard.
  """
  rows = []
  for method in board.load().methods.values():
    choices, _ = published.parse_flags(['--task=digits', *method.flags])
    values: dict[str, Any] = {}
    for kind in registry.RULES:
      values.update(choices[kind].hparams())
    server, client = (
        choices[kind].row.name
        for kind in (registry.SERVER_OPTIMIZER, registry.CLIENT_OPTIMIZER)
    )
    epsilon = values.get(f'{server}_epsilon', values.get(f'{client}_epsilon'))
    numbers = [*(values.get(name) for name in _RATES), epsilon]
    search = ', '.join(f'`{item.text}`' for item in method.search)
    shown = ('' if n is None else _number(n) for n in numbers)
    flags = ' '.join(f'`{flag}`' for flag in method.flags)
    rows.append((method.name, flags, *shown, search))
  headings = ('method', 'flags', *_HEADINGS[1:4], 'search')
  return pages.text_table(headings, rows)


SECTIONS: Mapping[str, Callable[[], str]] = {
    'defaults': defaults,
    'protocols': lambda: protocols_of(
        'fedopt/table_1',
        'delta_sgd/table_1',
        'delta_sgd/table_2',
        'fedcada/table_1',
        'fedli/table_1',
    ),
    'fedopt': rates_of_fedopt,
    'delta_sgd': lambda: rates_of('delta_sgd/table_1'),
    'delta_sgd_with': rates_of_delta_sgd,
    'fedcada': lambda: rates_of('fedcada/table_1'),
    'fedli': lambda: rates_of('fedli/table_1'),
    'commands': lambda: commands_of(
        ('fedopt/table_1', '', 'FedAdam', 'Shakespeare'),
        ('fedopt/table_1', '', 'FedAdam', 'EMNIST CR'),
        ('delta_sgd/table_1', 'alpha = 0.1', 'Delta-SGD', 'MNIST'),
        ('fedcada/table_1', 'cross-silo', 'FedCAda', 'FashionMNIST non-IID'),
        ('fedli/table_1', '', 'LS', 'FEMNIST'),
    ),
}

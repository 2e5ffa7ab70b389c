# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/tasks.md, read from the values of the tasks."""

from collections.abc import Callable, Mapping

from experiments import pages
from tasks import catalogue

PAGE = 'docs/tasks.md'
_HEADER = (
    '`--task`',
    'clients',
    'models (the first is the default)',
    'batch, epochs, clients per round, rounds',
)


def to_table() -> str:
  """Returns a table with one row per task."""
  rows = []
  for task in catalogue.TASKS.values():
    protocol = task.protocol
    numbers = (
        protocol.client_batch_size,
        protocol.client_epochs,
        protocol.clients_per_round,
        protocol.total_rounds,
    )
    told = ', '.join(f'{number:,}' for number in numbers)
    if protocol.max_examples is not None:
      told += f'; at most {protocol.max_examples:,} examples per client'
    models = ', '.join(f'`{name}`' for name in task.model_ids) or 'one'
    rows.append([f'`{task.name}`', task.summary, models, told])
  return pages.text_table(_HEADER, rows)


SECTIONS: Mapping[str, Callable[[], str]] = {'tasks': to_table}

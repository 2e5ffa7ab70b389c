# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The table of docs/tasks.md: what the value of each task says."""

from collections.abc import Callable, Mapping

from tasks import catalogue

PAGE = 'docs/tasks.md'
_HEADER = (
    '| `--task` | clients | models (the first is the default) | batch, epochs, '
    'clients a round, rounds |',
    '|---|---|---|---|',
)


def to_table() -> str:
  """Returns a row for each task."""
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
      told += f'; at most {protocol.max_examples:,} examples a client'
    models = ', '.join(f'`{name}`' for name in task.model_ids) or 'one'
    rows.append(f'| `{task.name}` | {task.summary} | {models} | {told} |')
  return '\n'.join([*_HEADER, *rows]) + '\n'


SECTIONS: Mapping[str, Callable[[], str]] = {'tasks': to_table}

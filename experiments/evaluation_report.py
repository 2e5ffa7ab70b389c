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
"""What the evaluations after a training found: a file, pictures, a table."""

from collections.abc import Iterator, Mapping
import json
import math
from typing import Any

import numpy as np

from experiments import evaluation_flags
from tff_adaptive.analysis import client_histogram
from tff_adaptive.simulation import client_evaluation
from tff_adaptive.simulation import run_directory

_FILE_NAME = 'evaluation.json'
# Columns of the table: numbers of a summary, and their headings.
_COLUMNS = {
    'mean': 'mean',
    'weighted_mean': 'by examples',
    'median': 'median',
    'worst_decile': 'worst 10 %',
}


def write(
    found: Mapping[str, Any],
    round_num: int,
    directory: run_directory.RunDirectory,
    title: str,
):
  """Writes `evaluation.json`, draws what clients have, and prints a table.

  Args:
    found: What `Evaluations.final` returned, by name.
    round_num: The round whose weights were evaluated.
    directory: The folder of the run.
    title: The title of the pictures.

  Raises:
    OSError: If a file cannot be written; names it.
  """
  path = directory.path / _FILE_NAME
  content: dict[str, Any] = {'round_num': round_num}
  content.update((name, _to_json(value)) for name, value in found.items())
  path.write_text(
      json.dumps(content, indent=2, allow_nan=False) + '\n', encoding='utf-8'
  )
  pictures = list(_draw(found, directory, title))
  for line in _to_table(found):
    print(line)
  print(f'evaluation: {path}')
  for picture in pictures:
    print(f'clients: {picture}')


def _to_json(value: Any) -> Any:
  """Returns what was found as JSON has it; what is not finite is null."""
  if isinstance(value, client_evaluation.ClientMetrics):
    rows = zip(value.num_examples.tolist(), *value.values.values())
    return {
        'num_clients': len(value.client_ids),
        'summary': _to_json(value.summarize()),
        'clients': {
            client_id: _to_json(dict(zip(('num_examples', *value.values), row)))
            for client_id, row in zip(value.client_ids, rows)
        },
    }
  if isinstance(value, client_evaluation.PersonalizedMetrics):
    return _to_json(value._asdict())
  if isinstance(value, Mapping):
    return {name: _to_json(part) for name, part in value.items()}
  if isinstance(value, int):
    return value
  return float(value) if math.isfinite(value) else None


def _draw(
    found: Mapping[str, Any],
    directory: run_directory.RunDirectory,
    title: str,
) -> Iterator[Any]:
  """Draws a histogram of every metric; yields the paths."""
  if evaluation_flags.PER_CLIENT in found:
    metrics = found[evaluation_flags.PER_CLIENT]
    yield from _draw_all(metrics, None, directory.plots / 'clients', title)
  if evaluation_flags.PERSONALIZED in found:
    before, metrics = found[evaluation_flags.PERSONALIZED]
    folder = directory.plots / 'personalized'
    yield from _draw_all(metrics, before, folder, f'{title}, fine-tuned')


def _draw_all(metrics, before, path, title):
  for name, values in metrics.values.items():
    # A model may have diverged, or a metric be undefined.
    if np.isfinite(values).any() and (
        before is None or np.isfinite(before.values[name]).any()
    ):
      picture = path.with_name(f'{path.name}_{name}.png')
      client_histogram.plot_client_histogram(
          metrics, name, picture, title, before=before
      )
      yield picture


def _to_table(found: Mapping[str, Any]) -> Iterator[str]:
  """Yields the lines of the table; none if there is nothing."""
  for data, metrics in found.get(evaluation_flags.CENTRAL, {}).items():
    numbers = ', '.join(f'{name} {v:.4g}' for name, v in metrics.items())
    yield f'central, {data}: {numbers}'
  by_clients = {}
  if evaluation_flags.PER_CLIENT in found:
    by_clients['per client'] = found[evaluation_flags.PER_CLIENT]
  if evaluation_flags.PERSONALIZED in found:
    before, after = found[evaluation_flags.PERSONALIZED]
    by_clients['before fine-tuning'] = before
    by_clients['after fine-tuning'] = after
  if not by_clients:
    return
  headings = ''.join(f'{heading:>12}' for heading in _COLUMNS.values())
  yield f'{"by client":<20}{"clients":>8}  {"metric":<16}{headings}'
  for name, metrics in by_clients.items():
    summary = metrics.summarize()
    for metric in metrics.values:
      numbers = ''.join(f'{summary[f"{metric}_{c}"]:>12.4g}' for c in _COLUMNS)
      count = len(metrics.client_ids)
      yield f'{name:<20}{count:>8,}  {metric:<16}{numbers}'

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the results of the evaluations after training."""

from collections.abc import Iterator, Mapping
import json
import math
from typing import Any

import numpy as np

from experiments import settings as settings_lib
from tff_adaptive import _files
from tff_adaptive import evaluation
from tff_adaptive.analysis import client_plots
from tff_adaptive.simulation import run_directory

_FILE_NAME = 'evaluation.json'
# The columns of the table: keys of a summary and their headings.
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
  """Writes `evaluation.json`, plots client histograms, and prints a table.

  Args:
    found: The results of `Evaluations.final` by name.
    round_num: The round whose weights were evaluated.
    directory: The folder of the run.
    title: The title of the pictures.

  Raises:
    OSError: If a file cannot be written; names the file.
  """
  path = directory.path / _FILE_NAME
  content: dict[str, Any] = {'round_num': round_num}
  content.update((name, _to_json(value)) for name, value in found.items())
  text = json.dumps(content, indent=2, allow_nan=False) + '\n'
  _files.write(path, text)
  pictures = list(_draw(found, directory, title))
  for line in _to_table(found):
    print(line)
  print(f'evaluation: {path}')
  for picture in pictures:
    print(f'clients: {picture}')


def _to_json(value: Any) -> Any:
  """Returns a result as JSON; non-finite numbers become null."""
  if isinstance(value, evaluation.ClientMetrics):
    rows = zip(value.num_examples.tolist(), *value.values.values())
    return {
        'num_clients': len(value.client_ids),
        'summary': _to_json(value.summarize()),
        'clients': {
            client_id: _to_json(dict(zip(('num_examples', *value.values), row)))
            for client_id, row in zip(value.client_ids, rows)
        },
    }
  if isinstance(value, evaluation.PersonalizedMetrics):
    return _to_json(value._asdict())
  if isinstance(value, Mapping):
    return {name: _to_json(part) for name, part in value.items()}
  if isinstance(value, int):
    return value
  return float(value) if math.isfinite(value) else None


def _draw(
    found: Mapping[str, Any], directory: run_directory.RunDirectory, title: str
) -> Iterator[Any]:
  """Plots a histogram of every metric; yields the paths."""
  if settings_lib.PER_CLIENT in found:
    metrics = found[settings_lib.PER_CLIENT]
    yield from _draw_all(metrics, None, directory.plots / 'clients', title)
  if settings_lib.PERSONALIZED in found:
    before, metrics = found[settings_lib.PERSONALIZED]
    folder = directory.plots / 'personalized'
    yield from _draw_all(metrics, before, folder, f'{title}, fine-tuned')


def _draw_all(metrics, before, path, title):
  for name, values in metrics.values.items():
    # The model may have diverged, or the metric may be undefined.
    if np.isfinite(values).any() and (
        before is None or np.isfinite(before.values[name]).any()
    ):
      picture = path.with_name(f'{path.name}_{name}.png')
      client_plots.plot_client_histogram(
          metrics, name, picture, title, before=before
      )
      yield picture


def _to_table(found: Mapping[str, Any]) -> Iterator[str]:
  """Yields the lines of the table, if any."""
  for data, metrics in found.get(settings_lib.CENTRAL, {}).items():
    numbers = ', '.join(f'{name} {v:.4g}' for name, v in metrics.items())
    yield f'central, {data}: {numbers}'
  by_clients = {}
  if settings_lib.PER_CLIENT in found:
    by_clients['per client'] = found[settings_lib.PER_CLIENT]
  if settings_lib.PERSONALIZED in found:
    before, after = found[settings_lib.PERSONALIZED]
    by_clients['before fine-tuning'] = before
    by_clients['after fine-tuning'] = after
  if not by_clients:
    return
  headings = ''.join(f'{heading:>12}' for heading in _COLUMNS.values())
  yield f'{"by client":<20}{"clients":>8}  {"metric":<16}{headings}'
  for name, metrics in by_clients.items():
    summary = metrics.summarize()
    for metric in metrics.values:
      values = (summary.get(f'{metric}_{column}') for column in _COLUMNS)
      numbers = ''.join(
          f'{"-" if value is None else format(value, ".4g"):>12}'
          for value in values
      )
      count = len(metrics.client_ids)
      yield f'{name:<20}{count:>8,}  {metric:<16}{numbers}'

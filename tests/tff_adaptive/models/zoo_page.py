# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The page with the differences between a federation of one and `Model.fit`."""

from collections.abc import Mapping
import datetime
import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments import pages
from tests.tff_adaptive.models import zoo_fits
from tests.tff_adaptive.models import zoo_testing
from tff_adaptive import runtime

_TOLERANCE = 1e-5
# TFF's worker, which is TensorFlow 2.14, rounds sums in bfloat16 differently.
_TOLERANCES = {'mixed_bfloat16': 1e-3}
TITLE = 'Keras models on both runtimes'
_COMMAND = (
    '.venv/bin/python -m tests.tff_adaptive.models '
    '--output=docs/results/keras_models.md'
)
_HEADER = ('model', 'Keras', 'compiled runtime', "TFF's runtime")
_INTRODUCTION = """\
Each row is a [Keras model](../models.md) of `tests/tff_adaptive/models`. One
client trains it in a round of two epochs with an uneven last batch, by SGD with
momentum, on the compiled runtime and on TFF's, and `Model.fit` does the same.
The numbers are the largest differences between all weights and training
metrics, relative where they are above 1. Weights that layers assign in training
are aggregated and compared, too. All have to be below 1e-5, in bfloat16 below
1e-3: TFF's worker, which is TensorFlow 2.14, rounds sums differently."""

Differences = Mapping[tuple[str, str], tuple[float, float]]


def is_close(name: str, difference: float) -> bool:
  """Returns whether a model's difference is small enough."""
  return difference < _TOLERANCES.get(name, _TOLERANCE)


def measure(part: str) -> Differences:
  """Returns the differences on both runtimes, by model and version of Keras.

  Args:
    part: A part of the names of the models to measure.
  """
  cells = [cell for cell in zoo_fits.CELLS if part in cell[0]]
  found = {}
  with runtime.NativeContext():
    for cell in cells:
      found[cell] = _measure_cell(*cell)
      print(*cell, found[cell], file=sys.stderr, flush=True)
      tf.keras.backend.clear_session()
  return found


def _measure_cell(name: str, version_name: str) -> tuple[float, float]:
  version = zoo_fits.VERSIONS[version_name]
  version.utils.set_random_seed(1)
  animal = zoo_testing.ZOO[name](version)
  mode = 'aggregate' if name in zoo_testing.MOVING else 'batch'
  dataset = zoo_fits.dataset(animal.sample(zoo_fits.NUM_EXAMPLES, seed=0))
  process = zoo_fits.build(zoo_fits.convert(animal, dataset, mode))

  def train():
    output = process.next(process.initialize(), [dataset])
    weights = process.get_model_weights(output.state)
    numbers = [*weights.trainable, output.metrics['client_work']['train']]
    return [*numbers, *weights.non_trainable] if mode != 'batch' else numbers

  on_native = train()
  with runtime.CompiledContext():
    on_compiled = train()
  metrics = zoo_fits.fit(version, animal, dataset)
  trainable, moved = zoo_fits.split_weights(animal.model)
  fitted = [*trainable, metrics, *(moved if mode != 'batch' else ())]
  return _difference(on_compiled, fitted), _difference(on_native, fitted)


def _difference(found: Any, wanted: Any) -> float:
  """Returns the largest difference, of equal names and places."""
  pairs = zip(map(_leaves, found), map(_leaves, wanted), strict=True)
  return max(
      float(np.max(np.abs(f - w) / np.maximum(1.0, np.abs(w)), initial=0.0))
      for ours, theirs in pairs
      for f, w in zip(ours, theirs, strict=True)
  )


def _leaves(value: Any) -> list[np.ndarray]:
  if isinstance(value, Mapping):
    return [np.asarray(value[name], np.float64) for name in sorted(value)]
  return [np.asarray(value, np.float64)]


def to_page(found: Differences) -> str:
  """Returns the page of the differences."""
  rows = [
      [name, version.replace('keras_', ''), f'{ours:.1e}', f'{tff:.1e}']
      for (name, version), (ours, tff) in found.items()
  ]
  largest = max(max(row) for row in found.values())
  blocks = [
      _INTRODUCTION,
      pages.code_block(_COMMAND),
      pages.paragraph(
          f'Measured on {datetime.date.today()} with TensorFlow '
          f'{tf.__version__}, Keras {keras.__version__} and TFF '
          f'{tff.__version__}.'
      ),
      pages.table(_HEADER, rows, num_labels=2),
      f'The largest difference of the {len(rows)} rows is {largest:.1e}.',
  ]
  return pages.to_markdown(TITLE, blocks)

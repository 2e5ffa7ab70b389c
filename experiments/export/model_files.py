# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exports the global model of a run to a file."""

from collections.abc import Iterator, Mapping
import contextlib
import json
import logging
import os
import pathlib
import shlex
import tempfile
from typing import Any
import zipfile

import tensorflow as tf
import tensorflow_federated as tff

from experiments import command_line
from experiments import hparams
from experiments import registry
from tff_adaptive.models import keras_checks
from tff_adaptive.models import keras_versions
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import kept_weights
from tff_adaptive.simulation import run_directory
from tff_adaptive.simulation import structures
from tff_adaptive.simulation import weights_files

_HOW_TO_LOAD = {
    'npz': 'np.load({0!r}), or train on with {2}',
    'keras': '{1}.models.load_model({0!r})',
    'saved_model': 'tf.saved_model.load({0!r})',
}
# Packages whose layers Keras finds by itself.
_OF_KERAS = ('builtins', 'keras', 'tensorflow', 'tf_keras')


def _build_keras_model(
    directory: run_directory.RunDirectory, recorded: Mapping[str, Any]
) -> Any:
  """Returns the model of a run, with initial weights."""
  try:
    choice = hparams.recorded_choice(registry.TASK, recorded)
    return choice.build_keras_model(seed=recorded['seed'])
  except (hparams.HparamError, KeyError) as error:
    raise command_line.UserError(
        f'{directory.hparams_json} describes a model unknown to this version '
        f'({error})'
    ) from error


def _new_average(
    directory: run_directory.RunDirectory, recorded: Mapping[str, Any]
) -> Any:
  """Returns a new callback of the kind that averaged the weights of a run."""
  decay = recorded.get('weights_average_decay')
  if decay is not None:
    return kept_weights.WeightsMovingAverage(decay)
  num_rounds = recorded.get('weights_average_rounds')
  if num_rounds is not None:
    return kept_weights.LastWeightsAverage(num_rounds)
  raise command_line.UserError(
      f'{directory.path} has no average of its weights: it was trained without '
      '--weights_average_decay or --weights_average_rounds'
  )


def _read_average(
    directory: run_directory.RunDirectory,
    recorded: Mapping[str, Any],
    template: tff.learning.models.ModelWeights,
) -> weights_files.StoredWeights:
  """Returns the average weights from the newest checkpoint of a run."""
  average = _new_average(directory, recorded)
  start = callbacks.TrainingStart(
      state=None, get_weights=lambda: template, get_evaluation=lambda: None
  )
  average.on_training_start(start)
  path, leaves = weights_files.read_newest_checkpoint(directory)
  # The path of its state depends on the callbacks before it.
  state = average.get_state()
  first_name = '/'.join(structures.flatten_with_path(state)[0][0])
  prefix = next(
      name[: -len(first_name)]
      for name in leaves
      if name.startswith('callbacks/') and name.endswith(f'/{first_name}')
  )
  average.set_state(
      structures.map_with_path(
          lambda leaf_path, _: leaves[prefix + '/'.join(leaf_path)][()], state
      )
  )
  arrays = structures.flatten_with_path(average.get_weights())
  return weights_files.StoredWeights(
      path, {'/'.join(leaf_path): array for leaf_path, array in arrays}
  )


def _read_weights(
    directory: run_directory.RunDirectory,
    checkpoint: str,
    recorded: Mapping[str, Any],
    template: tff.learning.models.ModelWeights,
) -> weights_files.StoredWeights:
  """Reads the weights that `checkpoint` names from the files of a run."""
  if checkpoint == 'latest':
    return weights_files.read_weights(directory.path)
  if checkpoint == 'average':
    return _read_average(directory, recorded, template)
  if checkpoint == 'best':
    path = kept_weights.BestCheckpoint(directory.checkpoints).path
    if not path.exists():
      reason = 'it was trained without --keep_best'
      if recorded.get('keep_best'):
        reason = f'no round had a number for {recorded["monitored_metric"]} yet'
      raise command_line.UserError(
          f'{directory.path} has no best checkpoint: {reason}'
      )
    return weights_files.read_weights(path)
  manager = checkpoints.CheckpointManager(directory.checkpoints)
  round_nums = manager.round_nums()
  if int(checkpoint) not in round_nums:
    raise command_line.UserError(
        f'{directory.path} has no checkpoint of round {checkpoint}; it has '
        f'checkpoints of rounds {", ".join(map(str, round_nums)) or "(none)"}'
    )
  return weights_files.read_weights(manager.path(int(checkpoint)))


@contextlib.contextmanager
def _making(output: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields a temporary path, moved to `output` atomically at the end."""
  output.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(
      prefix=f'.{output.name}.', dir=output.parent
  ) as folder:
    temporary = pathlib.Path(folder) / output.name
    yield temporary
    for path in (temporary, *temporary.rglob('*')):
      if path.is_file():
        with open(path, 'rb') as file:
          os.fsync(file.fileno())
    os.rename(temporary, output)


def _variables(model: Any) -> tff.learning.models.ModelWeights:
  """Returns the variables of a model of Keras 2 or Keras 3."""
  parts = keras_versions.split_weights(model)
  return tff.learning.models.ModelWeights(*map(tuple, parts))


def _write(
    model: Any,
    weights: tff.learning.models.ModelWeights,
    form: str,
    path: pathlib.Path,
):
  """Writes a model, or only its weights, in one of the formats."""
  variables = _variables(model)
  if form == 'npz':
    names = structures.map_with_path(
        lambda _, variable: keras_checks.name_of(variable), variables
    )
    weights_files.write_weights(path, weights, names)
    return
  tf.nest.map_structure(lambda v, value: v.assign(value), variables, weights)
  tf.get_logger().setLevel(logging.ERROR)  # The model was never compiled.
  if form == 'keras':
    model.save(path)
  elif isinstance(model, tf.keras.Model):
    model.save(path, save_format='tf')
  else:
    model.export(path, verbose=False)


def _own_modules(config: Any) -> set[str]:
  """Returns the modules of a `.keras` file's classes that are not Keras's."""
  if isinstance(config, list):
    return set().union(*map(_own_modules, config))
  if not isinstance(config, dict):
    return set()
  found = set().union(*map(_own_modules, config.values()))
  module = config.get('module')
  if 'class_name' in config and isinstance(module, str):
    if module.partition('.')[0] not in _OF_KERAS:
      found.add(module)
  return found


def _how_to_load(form: str, output: pathlib.Path, keras: str) -> str:
  """Returns the command that loads a file."""
  flag = shlex.quote(f'--initial_weights={output}')
  how = _HOW_TO_LOAD[form].format(str(output), keras, flag)
  if form != 'keras':
    return how
  with zipfile.ZipFile(output) as file:
    modules = sorted(_own_modules(json.loads(file.read('config.json'))))
  return f'import {", ".join(modules)}; {how}' if modules else how


def _size(path: pathlib.Path) -> str:
  """Returns the size of a file, or of all files in a folder, as text."""
  files = path.rglob('*') if path.is_dir() else [path]
  size = sum(file.stat().st_size for file in files if file.is_file())
  return f'{size / 1e6:.2f} MB' if size >= 1e6 else f'{size / 1e3:.1f} kB'


def export(run: pathlib.Path, checkpoint: str, form: str, output: pathlib.Path):
  """Writes the global model of a run and prints how to load it.

  Args:
    run: The folder of the run.
    checkpoint: 'latest', 'best', 'average' or the number of a round.
    form: 'npz', 'keras' or 'saved_model'.
    output: The file or folder to write, which must not exist.

  Raises:
    UserError: If the folder contains no run, or the weights are missing or
      damaged.
    EnvironmentalError: If a file cannot be read or written.
  """
  directory = run_directory.RunDirectory(run.parent, run.name)
  with (
      command_line.errors_as(
          command_line.EnvironmentalError, tf.errors.OpError
      ),
      command_line.reporting(
          FileNotFoundError,
          checkpoints.CheckpointError,
          run_directory.RunDirectoryError,
          weights_files.WeightsFileError,
      ),
  ):
    recorded = directory.read_hparams() or {}
    model = _build_keras_model(directory, recorded)
    template = tf.nest.map_structure(lambda v: v.numpy(), _variables(model))
    stored = _read_weights(directory, checkpoint, recorded, template)
    weights = stored.to_model_weights(template)
    with _making(output) as temporary:
      _write(model, weights, form, temporary)
  which = 'average in ' if checkpoint == 'average' else ''
  print(f'weights: {which}{stored.path}')
  keras = 'tf.keras' if isinstance(model, tf.keras.Model) else 'keras'
  print(f'{output} ({_size(output)}): {_how_to_load(form, output, keras)}')

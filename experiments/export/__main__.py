# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Writes the global model of a run to a file for other programs.

For example:

  python -m experiments.export --run=runs/demo --checkpoint=best \
    --format=keras --output=digits.keras

npz is a NumPy archive with one array per weight, which --initial_weights of
experiments.train accepts; keras is a file of `tf.keras.Model.save`; saved_model
is the folder of a SavedModel. The task's data is not needed.
"""

import dataclasses
import os
import pathlib

from absl import flags

from experiments import command_line
from experiments import flag_table
from experiments.flag_table import field

# The formats and their file suffixes.
_SUFFIXES = {'npz': '.npz', 'keras': '.keras', 'saved_model': ''}
_CHECKPOINTS = ('latest', 'best', 'average')


@dataclasses.dataclass
class _Flags:
  """The flags.

  Attributes:
    run: The folder of a run of experiments.train.
    checkpoint: The weights to export: latest, of the newest checkpoint; best,
      kept by --keep_best; average, of --weights_average_decay or
      --weights_average_rounds at the newest checkpoint; or the number of a
      round that has a checkpoint.
    output: The file or folder to write, which must not exist.
    format: The format to write.
  """

  run: str = field(required=True)
  checkpoint: str = 'latest'
  output: str = field(required=True)
  format: str = field('npz', enum_values=_SUFFIXES)


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags."""
  flag_table.define(_Flags, flag_values)


def _check(run: pathlib.Path, checkpoint: str, form: str, output: pathlib.Path):
  """Raises if the flags are invalid; the files are checked later."""
  command_line.check_run(run)
  if checkpoint not in _CHECKPOINTS and not checkpoint.isdecimal():
    raise command_line.UserError(
        f'--checkpoint takes {", ".join(_CHECKPOINTS)} or the number of a '
        f'round, found {checkpoint!r}'
    )
  if not output.name.endswith(_SUFFIXES[form]):
    raise command_line.UserError(
        f'--output must end in {_SUFFIXES[form]} with --format={form}, found '
        f'{output}'
    )
  if os.path.lexists(output):
    raise command_line.UserError(
        f'--output={output} already exists; remove it, or choose another name'
    )


def main(flag_values: flags.FlagValues = flags.FLAGS):
  """Exports the model that the flags name.

  Args:
    flag_values: The parsed flags.
  """
  run, output = pathlib.Path(flag_values.run), pathlib.Path(flag_values.output)
  _check(run, flag_values.checkpoint, flag_values.format, output)
  command_line.prepare_libraries()
  # TensorFlow takes seconds to import, so --help and typos do without it.
  from experiments.export import model_files  # pylint: disable=import-outside-toplevel

  model_files.export(run, flag_values.checkpoint, flag_values.format, output)


if __name__ == '__main__':
  define()
  command_line.run(main)

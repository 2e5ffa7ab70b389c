# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains one model by federated optimization, in simulation.

For example:

  python -m experiments.train --task=digits --client_optimizer=delta_sgd

The run is written to OUTPUT_DIR/EXPERIMENT_NAME: metrics.csv, a curve,
checkpoints, TensorBoard events and hparams.json. The same command continues an
interrupted run. --flagfile=FILE reads flags from a file, --preset=PAPER/NAME
those of a paper.

  python -m experiments.train --task=digits --compare=fedadam,delta_sgd,prodigy

trains several methods with the same seeds, and writes comparison.md, .csv,
.png and .pdf to OUTPUT_DIR/digits.compare.
"""

from absl import flags

from experiments import command_line
from experiments import folders
from experiments import hparams
from experiments.train import compare


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags.

  Args:
    flag_values: Where to define them.
  """
  for module in (hparams, compare):
    module.define(flag_values)
    flags.adopt_module_key_flags(module, flag_values)


define()
flags.declare_key_flag('flagfile')


def main():
  """Trains a run, or compares several, according to the flags."""
  if compare.is_chosen():
    compare.run()
    return
  choices = hparams.read_choices()
  settings = hparams.read_settings(choices)
  folders.check_of_runs(flags.FLAGS)
  hparams.check_data_files(flags.FLAGS.task, settings.data_dir)
  command_line.prepare_libraries()
  # TensorFlow takes seconds to import, so --help and typos do without it.
  from experiments.train import training_run  # pylint: disable=import-outside-toplevel

  training_run.set_threads(choices)
  print(training_run.describe(choices), flush=True)
  training_run.train(choices, settings)


if __name__ == '__main__':
  command_line.run(main, hparams.define_own)

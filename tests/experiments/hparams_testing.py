# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads flags of a training run, for the tests of what follows from them."""

from absl import flags

from experiments import hparams
from experiments import published

# Of a model that trains in no time.
SMALL = (
    '--digits_model=logistic',
    '--digits_num_clients=20',
    '--clients_per_round=3',
    '--client_epochs=1',
)


def parse(*arguments: str) -> flags.FlagValues:
  """Returns the parsed flags of `experiments.train`, several in a text."""
  values = flags.FlagValues()
  hparams.define(values)
  values(['train', *' '.join(arguments).split()])
  return values


def read(*arguments: str) -> tuple[dict[str, hparams.Choice], hparams.Settings]:
  """Returns the choices and the settings that flags make, several in a text."""
  return published.parse_flags(' '.join(arguments).split())


def read_settings(*arguments: str) -> hparams.Settings:
  """Returns the settings that flags make."""
  return read(*arguments)[1]


def find_error(*arguments: str) -> str:
  """Returns the message with which flags are refused, empty if they are not."""
  try:
    read(*arguments)
  except flags.Error as error:
    return str(error)
  return ''

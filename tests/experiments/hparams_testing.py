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
"""Reads flags of a training run, for the tests of what follows from them."""

from absl import flags

from experiments import hparams


def parse(*arguments: str) -> flags.FlagValues:
  """Returns the parsed flags of `experiments.train`."""
  values = flags.FlagValues()
  hparams.define(values)
  values(['train', *arguments])
  return values


def read(*arguments: str) -> tuple[dict[str, hparams.Choice], hparams.Settings]:
  """Returns the choices and the settings that flags make."""
  values = parse(*arguments)
  choices = hparams.read_choices(values)
  return choices, hparams.read_settings(choices, values)


def read_settings(*arguments: str) -> hparams.Settings:
  """Returns the settings that flags make."""
  return read(*arguments)[1]

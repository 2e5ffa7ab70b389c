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
"""The flags of a training run that make clients fail.

No TensorFlow is imported here.
"""

from collections.abc import Mapping
from typing import Any

from absl import flags

from experiments import hparam_errors
from experiments import registry

_FLAGS = ('drop_clients', 'straggler_fraction')


def define(flag_values: flags.FlagValues):
  """Defines the flags.

  Args:
    flag_values: Where to define them.
  """
  for name, text in (
      (
          'drop_clients',
          'Let each sampled client drop out of its round with this probability,'
          ' drawn by --seed. Default: none does.',
      ),
      (
          'straggler_fraction',
          'Let each client be a straggler with this probability, drawn by '
          '--seed: it finishes only some of its steps of the round, and these '
          'count. Default: none is.',
      ),
  ):
    flags.DEFINE_float(
        name,
        None,
        text,
        lower_bound=0.0,
        upper_bound=1.0,
        flag_values=flag_values,
    )


def complete(values: dict[str, Any], choices: Mapping[str, Any]):
  """Makes None of 0, which is the same, as in a run of before these flags.

  Args:
    values: The values of all flags that belong to no row.
    choices: What `hparams.read_choices` returned.

  Raises:
    HparamError: If a value is no probability, or the algorithm has no clients
      that could fail.
  """
  algorithm = choices[registry.ALGORITHM].row
  for flag in _FLAGS:
    probability = values[flag]
    if probability is None:
      continue
    # The bounds of a flag let NaN pass.
    if not 0.0 <= probability <= 1.0:
      raise hparam_errors.HparamError(
          f'--{flag} must be from 0 to 1, found {probability}'
      )
    if probability and algorithm.pools_clients:
      raise hparam_errors.HparamError(
          f'--{registry.ALGORITHM}={algorithm.name} pools the examples of all '
          f'clients, so that no client can fail, drop --{flag}'
      )
    values[flag] = probability or None

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
"""The optimizers of the clients, one name each."""

from experiments.registry import rows
from experiments.registry import signatures

_NAMES = (
    'sgd',
    'adam',
    'adagrad',
    'yogi',
    'delta_sgd',
    'sps',
    'sps_max',
    'sps_smooth',
    'armijo',
    'fedcada_adam',
    'fafed',
    'adaalter',
    'scaffold_sgd',
)
# What the binary knows.
_SUPPLIED = {'scaffold_sgd': ('num_clients',)}


def _row(name: str) -> rows.Row:
  builder, supplied = f'tff_adaptive.optimizers:build_{name}', _SUPPLIED.get(
      name, ()
  )
  return rows.Row(
      name,
      builder,
      signatures.to_arguments(
          builder,
          flags={'learning_rate': 'client_learning_rate'},
          supplied=supplied,
      ),
      supplied,
  )


CLIENT_OPTIMIZERS = tuple(map(_row, _NAMES))

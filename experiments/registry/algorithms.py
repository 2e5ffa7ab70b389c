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
"""The algorithms, with the rules that each comes with."""

import dataclasses

from experiments.registry import rows
from experiments.registry import signatures

_PACKAGE = 'tff_adaptive.algorithms'
_FLAGS = {
    'clip_norm': 'client_clip_norm',
    'weight_decay': 'client_weight_decay',
    'max_update_norm': 'max_client_update_norm',
}
_SUPPLIED = ('trace_steps',)
_CLIENT_WEIGHTING = rows.Argument(
    'client_weighting',
    str,
    'examples',
    'Whether a client counts by its examples or all count the same.',
    flag='client_weighting',
    choices=('examples', 'uniform'),
    references=(
        'tensorflow_federated:learning.ClientWeighting.NUM_EXAMPLES',
        'tensorflow_federated:learning.ClientWeighting.UNIFORM',
    ),
)


def _algorithm(
    name: str, *parts: rows.Part, client_weighting: str = 'examples'
) -> rows.Row:
  """The row of `build_fed_opt`, or of one that passes options on to it."""
  arguments, supplied = signatures.to_arguments(
      signatures.find(_PACKAGE, 'fed_opt'), supplied=_SUPPLIED, flags=_FLAGS
  )
  weighting = dataclasses.replace(_CLIENT_WEIGHTING, default=client_weighting)
  return rows.Row(
      name,
      f'{_PACKAGE}:build_{name}',
      (weighting, *arguments),
      tuple(other for other in supplied if other != weighting.name),
      parts=parts,
  )


def _centralized() -> rows.Row:
  builder = signatures.find(_PACKAGE, 'centralized')
  arguments, supplied = signatures.to_arguments(
      builder, supplied=_SUPPLIED, flags=_FLAGS
  )
  return rows.Row(
      builder.name, builder.reference, arguments, supplied, pools_clients=True
  )


ALGORITHMS = (
    _algorithm('fed_opt'),
    _algorithm(
        'fedcada',
        rows.Part(rows.CLIENT_OPTIMIZER, 'fedcada_adam'),
        client_weighting='uniform',
    ),
    _algorithm(
        'fedli_ls',
        rows.Part(rows.CLIENT_OPTIMIZER, 'armijo', is_fixed=False),
        rows.Part(rows.SERVER_OPTIMIZER, 'line_search_step'),
    ),
    _algorithm('fedli_lu', rows.Part(rows.SERVER_OPTIMIZER, 'frank_wolfe')),
    _algorithm(
        'scaffold',
        rows.Part(rows.CLIENT_OPTIMIZER, 'scaffold_sgd'),
        client_weighting='uniform',
    ),
    _algorithm(
        'fafed',
        rows.Part(rows.CLIENT_OPTIMIZER, 'fafed'),
        client_weighting='uniform',
    ),
    _algorithm(
        'adaalter',
        rows.Part(rows.CLIENT_OPTIMIZER, 'adaalter'),
        client_weighting='uniform',
    ),
    _centralized(),
)

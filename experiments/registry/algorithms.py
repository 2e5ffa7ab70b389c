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
"""The algorithms, and the terms that they can add to a local loss."""

from experiments.registry import kinds
from experiments.registry import rows
from experiments.registry import signatures

_GRADIENT_OPTIONS = (
    rows.Argument(
        'clip_norm',
        float,
        None,
        'The largest norm of a local gradient; unset, no clipping.',
        flag='client_clip_norm',
        minimum=0.0,
    ),
    rows.Argument(
        'weight_decay',
        float,
        0.0,
        'Times the weights, added to each local gradient.',
        flag='client_weight_decay',
        minimum=0.0,
    ),
)


def _algorithm(
    name: str, *parts: rows.Part, client_weighting: str = 'examples'
) -> rows.Row:
  """The row of an algorithm: `build_fed_opt`, or a builder on top of it."""
  return rows.Row(
      name,
      f'tff_adaptive.algorithms:build_{name}',
      (
          rows.Argument(
              'client_weighting',
              str,
              client_weighting,
              'Whether a client counts by its examples or all count the '
              'same.',
              flag='client_weighting',
              choices=('examples', 'uniform'),
              references=(
                  'tensorflow_federated:learning.ClientWeighting.NUM_EXAMPLES',
                  'tensorflow_federated:learning.ClientWeighting.UNIFORM',
              ),
          ),
          *_GRADIENT_OPTIONS,
          rows.Argument(
              'max_update_norm',
              float,
              None,
              "The largest norm of a client's change; clients beyond it are "
              'rejected. Unset, whatever is finite counts.',
              flag='max_client_update_norm',
              minimum=0.0,
          ),
      ),
      supplied=(
          'model',
          'client_optimizer',
          'server_optimizer',
          'model_aggregator',
          'payload_aggregators',
          'privacy',
          'metrics_aggregator',
          'loss_term',
          'client_schedule',
          'server_schedule',
          'loop_implementation',
          'trace_steps',
      ),
      parts=parts,
  )


ALGORITHMS = (
    _algorithm('fed_opt'),
    _algorithm(
        'fedcada',
        rows.Part(kinds.CLIENT_OPTIMIZER, 'fedcada_adam'),
        client_weighting='uniform',
    ),
    _algorithm(
        'fedli_ls',
        rows.Part(kinds.CLIENT_OPTIMIZER, 'armijo', is_fixed=False),
        rows.Part(kinds.SERVER_OPTIMIZER, 'line_search_step'),
    ),
    _algorithm('fedli_lu', rows.Part(kinds.SERVER_OPTIMIZER, 'frank_wolfe')),
    _algorithm(
        'scaffold',
        rows.Part(kinds.CLIENT_OPTIMIZER, 'scaffold_sgd'),
        client_weighting='uniform',
    ),
    _algorithm(
        'fafed',
        rows.Part(kinds.CLIENT_OPTIMIZER, 'fafed'),
        client_weighting='uniform',
    ),
    _algorithm(
        'adaalter',
        rows.Part(kinds.CLIENT_OPTIMIZER, 'adaalter'),
        client_weighting='uniform',
    ),
    rows.Row(
        'centralized',
        'tff_adaptive.algorithms:build_centralized',
        _GRADIENT_OPTIONS,
        supplied=(
            'model',
            'client_optimizer',
            'metrics_aggregator',
            'client_schedule',
            'loop_implementation',
            'trace_steps',
        ),
        pools_clients=True,
    ),
)


def _loss_term(name: str, *supplied: str) -> rows.Row:
  builder = f'tff_adaptive.client_works:build_{name}'
  arguments = signatures.to_arguments(builder, supplied=supplied)
  return rows.Row(name, builder, arguments, supplied)


LOSS_TERMS = (
    rows.Row('none', None),
    _loss_term('fedprox'),
    _loss_term('moon', 'representation_fn'),
)

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

from experiments.registry import rows

ALGORITHMS = (
    rows.Row(
        'fed_opt',
        'tff_adaptive.algorithms:build_fed_opt',
        (
            rows.Argument(
                'client_weighting',
                str,
                'examples',
                'Whether a client counts by its examples or all count the '
                'same.',
                flag='client_weighting',
                choices=('examples', 'uniform'),
                references=(
                    'tensorflow_federated:'
                    'learning.ClientWeighting.NUM_EXAMPLES',
                    'tensorflow_federated:learning.ClientWeighting.UNIFORM',
                ),
            ),
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
        ),
        supplied=(
            'model',
            'client_optimizer',
            'server_optimizer',
            'model_aggregator',
            'metrics_aggregator',
            'loss_term',
            'client_schedule',
            'server_schedule',
            'loop_implementation',
        ),
    ),
)

LOSS_TERMS = (
    rows.Row('none', None),
    rows.Row(
        'fedprox',
        'tff_adaptive.client_works:build_fedprox',
        (
            rows.Argument(
                'mu',
                float,
                0.01,
                'Strength of the pull to the received model.',
                minimum=0.0,
            ),
        ),
    ),
)

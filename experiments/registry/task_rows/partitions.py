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
"""Arguments of the tasks that split a central data set among clients."""

from experiments.registry import rows

SCHEMES = (
    'dirichlet_with_replacement',
    'dirichlet_without_replacement',
    'dirichlet_per_class',
    'shards',
    'iid',
)
ARGUMENTS = (
    rows.Argument(
        'num_clients',
        int,
        100,
        'How many clients there are.',
        minimum=1,
    ),
    rows.Argument(
        'alpha',
        float,
        0.1,
        "How alike the clients' labels are: the concentration of the Dirichlet "
        'partitions.',
        minimum=0.0,
    ),
    rows.Argument(
        'partition',
        str,
        'dirichlet_with_replacement',
        'How the training images are split.',
        choices=SCHEMES,
    ),
    rows.Argument(
        'examples_per_client',
        str,
        None,
        'Images of a client: 500, or drawn from a range: 100-500; unset, 500, '
        'or all where the partition divides all.',
    ),
    rows.Argument(
        'shards_per_client',
        int,
        2,
        'Of shards: how many a client gets.',
        minimum=1,
    ),
    rows.Argument(
        'min_size',
        int,
        1,
        'Of dirichlet_per_class: images that a client has at least.',
        minimum=0,
    ),
    rows.Argument(
        'cap',
        bool,
        False,
        'Of dirichlet_per_class: whether a client with its even part of the '
        'images gets nothing of further classes.',
    ),
)
DOWNLOAD = rows.Argument(
    'download',
    bool,
    False,
    'Whether the data are downloaded if --data_dir has none.',
    is_hparam=False,
)

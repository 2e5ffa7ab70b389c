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
"""The tasks that a binary can train."""

from experiments.registry import rows

_PARTITIONS = (
    'dirichlet_with_replacement',
    'dirichlet_without_replacement',
    'dirichlet_per_class',
    'shards',
    'iid',
)

TASKS = (
    rows.Row(
        'digits',
        'tasks.digits:create_digits_task',
        (
            rows.Argument(
                'num_clients',
                int,
                50,
                'How many clients share the training images.',
                minimum=1,
            ),
            rows.Argument(
                'alpha',
                float,
                0.3,
                "How alike the clients' labels are: the concentration of a "
                'Dirichlet distribution, inf for i.i.d.',
                minimum=0.0,
                may_be_infinite=True,
            ),
            rows.Argument(
                'model_id',
                str,
                'cnn',
                'The model to train.',
                flag='digits_model',
                choices=('cnn', 'logistic'),
                references=(
                    'tasks.digits:ModelID.CNN',
                    'tasks.digits:ModelID.LOGISTIC',
                ),
            ),
        ),
        supplied=('seed', 'protocol'),
        protocol='tasks.digits.digits_tasks:DEFAULT_PROTOCOL',
        keras_model='tasks.digits:build_keras_model',
    ),
    rows.Row(
        'mnist',
        'tasks.mnist:create_mnist_task',
        (
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
                "How alike the clients' labels are: the concentration of the "
                'Dirichlet partitions.',
                minimum=0.0,
            ),
            rows.Argument(
                'partition',
                str,
                'dirichlet_with_replacement',
                'How the training images are split.',
                choices=_PARTITIONS,
            ),
            rows.Argument(
                'examples_per_client',
                str,
                None,
                'Images of a client: 500, or drawn from a range: 100-500; '
                'unset, 500, or all where the partition divides all.',
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
                'Of dirichlet_per_class: whether a client with its even part '
                'of the images gets nothing of further classes.',
            ),
            rows.Argument(
                'model_id',
                str,
                'cnn',
                'The model to train.',
                flag='mnist_model',
                choices=('cnn', 'logistic'),
                references=(
                    'tasks.mnist:ModelID.CNN',
                    'tasks.mnist:ModelID.LOGISTIC',
                ),
            ),
            rows.Argument(
                'download',
                bool,
                False,
                'Whether the data are downloaded if --data_dir has none.',
                is_hparam=False,
            ),
        ),
        supplied=('data_dir', 'seed', 'protocol'),
        protocol='tasks.mnist.mnist_tasks:DEFAULT_PROTOCOL',
        keras_model='tasks.mnist:build_keras_model',
    ),
)

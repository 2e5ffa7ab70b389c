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
"""The tasks on federated EMNIST."""

from experiments.registry import rows

_ONLY_DIGITS = rows.Argument(
    'only_digits', bool, False, 'Whether there are digits alone, no letters.'
)
_MAX_BYTES_IN_MEMORY = rows.Argument(
    'max_bytes_in_memory',
    int,
    1 << 30,
    'Up to what size the clients of a split are held in memory, where rounds '
    'are fastest; larger ones are read when they are sampled.',
    minimum=0,
    is_hparam=False,
)
_SUPPLIED = ('data_dir', 'seed', 'protocol')

ROWS = (
    rows.Row(
        'emnist_cr',
        'tasks.emnist:create_emnist_cr_task',
        (
            _ONLY_DIGITS,
            rows.Argument(
                'model_id',
                str,
                'cnn_dropout',
                'The model to train.',
                flag='emnist_cr_model',
                choices=('cnn_dropout', 'cnn', '2nn'),
                references=(
                    'tasks.emnist:ModelID.CNN_DROPOUT',
                    'tasks.emnist:ModelID.CNN',
                    'tasks.emnist:ModelID.TWO_LAYER_DNN',
                ),
            ),
            _MAX_BYTES_IN_MEMORY,
        ),
        supplied=_SUPPLIED,
        protocol='tasks.emnist.emnist_cr_tasks:DEFAULT_PROTOCOL',
        keras_model='tasks.emnist:build_keras_model',
    ),
    rows.Row(
        'emnist_ae',
        'tasks.emnist:create_emnist_ae_task',
        (_ONLY_DIGITS, _MAX_BYTES_IN_MEMORY),
        supplied=_SUPPLIED,
        protocol='tasks.emnist.emnist_ae_tasks:DEFAULT_PROTOCOL',
        keras_model='tasks.emnist:build_autoencoder',
    ),
)

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
"""The task on Shakespeare's plays."""

from experiments.registry import rows

ROWS = (
    rows.Row(
        'shakespeare',
        'tasks.shakespeare:create_shakespeare_task',
        (
            rows.Argument(
                'model_id',
                str,
                'lstm',
                'The model to train.',
                flag='shakespeare_model',
                choices=('lstm', 'small_lstm'),
                references=(
                    'tasks.shakespeare:ModelID.LSTM',
                    'tasks.shakespeare:ModelID.SMALL_LSTM',
                ),
            ),
            rows.Argument(
                'sequence_length',
                int,
                80,
                'How many characters a sequence has.',
                minimum=1,
            ),
        ),
        supplied=('data_dir', 'seed', 'protocol'),
        protocol='tasks.shakespeare.shakespeare_tasks:DEFAULT_PROTOCOL',
        keras_model='tasks.shakespeare:build_keras_model',
    ),
)

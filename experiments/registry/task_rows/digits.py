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
"""The task on scikit-learn's handwritten digits."""

from experiments.registry import rows

ROWS = (
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
)

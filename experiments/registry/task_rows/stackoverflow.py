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
"""The tasks on Stack Overflow."""

from experiments.registry import rows

_VOCAB_SIZE = rows.Argument(
    'vocab_size',
    int,
    10_000,
    'How many words count, the most frequent ones.',
    minimum=1,
)
_TEST_ARGUMENTS = (
    rows.Argument(
        'test_split',
        str,
        'test',
        'What is tested on: later posts of the training users, or those of '
        'other users.',
        choices=('test', 'heldout'),
    ),
    rows.Argument(
        'num_test_examples',
        int,
        10_000,
        'How many examples are drawn to test on, and to validate.',
        minimum=1,
    ),
)

ROWS = (
    rows.Row(
        'stackoverflow_nwp',
        'tasks.stackoverflow:create_stackoverflow_nwp_task',
        (
            _VOCAB_SIZE,
            rows.Argument(
                'sequence_length',
                int,
                20,
                'How many words a sequence has.',
                minimum=1,
            ),
            *_TEST_ARGUMENTS,
            rows.Argument(
                'model_id',
                str,
                'lstm',
                'The model to train.',
                flag='stackoverflow_nwp_model',
                choices=('lstm',),
                references=('tasks.stackoverflow:WordModelID.LSTM',),
            ),
        ),
        supplied=('data_dir', 'seed', 'protocol'),
        protocol='tasks.stackoverflow.word_prediction_tasks:DEFAULT_PROTOCOL',
        keras_model=(
            'tasks.stackoverflow.word_prediction_models:build_keras_model'
        ),
    ),
    rows.Row(
        'stackoverflow_lr',
        'tasks.stackoverflow:create_stackoverflow_lr_task',
        (
            _VOCAB_SIZE,
            rows.Argument(
                'tag_vocab_size',
                int,
                500,
                'How many tags count, the most frequent ones.',
                minimum=5,
            ),
            rows.Argument(
                'max_words',
                int,
                1024,
                'Of words: how many words of an example count.',
                minimum=1,
            ),
            *_TEST_ARGUMENTS,
            rows.Argument(
                'model_id',
                str,
                'words',
                'The form of the model: of lists of words, or of their '
                'frequencies.',
                flag='stackoverflow_lr_model',
                choices=('words', 'logistic'),
                references=(
                    'tasks.stackoverflow:TagModelID.WORDS',
                    'tasks.stackoverflow:TagModelID.LOGISTIC',
                ),
            ),
        ),
        supplied=('data_dir', 'seed', 'protocol'),
        protocol='tasks.stackoverflow.tag_prediction_tasks:DEFAULT_PROTOCOL',
        keras_model=(
            'tasks.stackoverflow.tag_prediction_models:build_keras_model'
        ),
    ),
)

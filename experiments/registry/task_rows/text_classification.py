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
"""The tasks on texts, AG News and DBpedia."""

import dataclasses

from experiments.registry import rows
from experiments.registry.task_rows import partitions

_MODELS = ('cnn', 'transformer', 'distilbert')
_DEFAULTS = {'num_clients': 50, 'alpha': 1.0}


def _of_texts(argument: rows.Argument) -> rows.Argument:
  """Returns an argument of a partition of images as one of texts."""
  return dataclasses.replace(
      argument,
      default=_DEFAULTS.get(argument.name, argument.default),
      help=argument.help.replace('images', 'texts').replace('Images', 'Texts'),
  )


def _row(name: str) -> rows.Row:
  return rows.Row(
      name,
      f'tasks.{name}:create_{name}_task',
      (
          *map(_of_texts, partitions.ARGUMENTS),
          rows.Argument(
              'model_id',
              str,
              'cnn',
              'The model to train.',
              flag=f'{name}_model',
              choices=_MODELS,
              references=tuple(
                  f'tasks.{name}:ModelID.{model.upper()}' for model in _MODELS
              ),
          ),
          rows.Argument(
              'vocab_size',
              int,
              10_000,
              'How many tokens there are, the most frequent words.',
              minimum=4,
          ),
          rows.Argument(
              'max_length',
              int,
              128,
              'How many tokens of a text count.',
              minimum=1,
          ),
          rows.Argument(
              'pretrained_dir',
              str,
              None,
              'Of distilbert: a folder with its tokens and weights, in Hugging '
              "Face's layout; unset, random weights.",
          ),
      ),
      supplied=('data_dir', 'seed', 'protocol'),
      protocol=f'tasks.{name}.{name}_tasks:DEFAULT_PROTOCOL',
      keras_model=f'tasks.{name}:build_keras_model',
  )


ROWS = tuple(map(_row, ('ag_news', 'dbpedia')))

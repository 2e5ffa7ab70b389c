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
"""The tasks on CIFAR-10 and CIFAR-100."""

from experiments.registry import rows
from experiments.registry.task_rows import partitions

_MODELS = (
    'resnet18',
    'resnet50',
    'resnet18_v2',
    'resnet50_v2',
    'simple_cnn',
)


def _model_arguments(
    task: str, model_id: str, augmentation: str
) -> tuple[rows.Argument, ...]:
  """Returns what is chosen besides the clients."""
  return (
      rows.Argument(
          'model_id',
          str,
          model_id,
          'The model to train; v2 are those of the FedOpt experiments.',
          flag=f'{task}_model',
          choices=_MODELS,
          references=tuple(
              f'tasks.{task}:ModelID.{name.upper()}' for name in _MODELS
          ),
      ),
      rows.Argument(
          'norm',
          str,
          'group',
          'What resnet18 and resnet50 normalize by: groups of channels, or the '
          'statistics of each batch.',
          choices=('group', 'batch'),
      ),
      rows.Argument(
          'augmentation',
          str,
          augmentation,
          'Whose way to crop, flip and scale images; none scales alone.',
          choices=('fedopt', 'delta_sgd', 'none'),
      ),
      partitions.DOWNLOAD,
  )


def _row(name: str, arguments: tuple[rows.Argument, ...]) -> rows.Row:
  return rows.Row(
      name,
      f'tasks.{name}:create_{name}_task',
      arguments,
      supplied=('data_dir', 'seed', 'protocol'),
      protocol=f'tasks.{name}.{name}_tasks:DEFAULT_PROTOCOL',
      keras_model=f'tasks.{name}:build_keras_model',
  )


# The same but for what TFF's clients and Pachinko allocation make different.
_CIFAR100_PARTITION = (
    rows.Argument(
        'num_clients',
        int,
        None,
        "How many clients there are; unset, all of TFF's, or 500.",
        minimum=1,
    ),
    rows.Argument(
        'fine_alpha',
        float,
        10.0,
        'Of pachinko: the concentration of the classes in a coarse one.',
        minimum=0.0,
    ),
    rows.Argument(
        'partition',
        str,
        'tff',
        "How the training images are split; tff: TFF's clients, or pachinko "
        'where there is no file of them.',
        choices=('tff', *partitions.SCHEMES, 'pachinko'),
    ),
    rows.Argument(
        'examples_per_client',
        str,
        None,
        'Images of a client: 500, or drawn from a range: 100-500; unset, 100 '
        'for pachinko, all where the partition divides all, and else 500.',
    ),
)

ROWS = (
    _row(
        'cifar10',
        (
            *partitions.ARGUMENTS,
            *_model_arguments('cifar10', 'resnet18', 'delta_sgd'),
        ),
    ),
    _row(
        'cifar100',
        (
            *_CIFAR100_PARTITION,
            *(
                argument
                for argument in partitions.ARGUMENTS
                if argument.name
                not in {other.name for other in _CIFAR100_PARTITION}
            ),
            *_model_arguments('cifar100', 'resnet18_v2', 'fedopt'),
        ),
    ),
)

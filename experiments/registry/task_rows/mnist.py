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
"""The task on MNIST, and the row of tasks on data in its form."""

from experiments.registry import rows
from experiments.registry.task_rows import partitions


def image_row(name: str) -> rows.Row:
  """Returns the row of a task on gray images of ten classes."""
  return rows.Row(
      name,
      f'tasks.{name}:create_{name}_task',
      (
          *partitions.ARGUMENTS,
          rows.Argument(
              'model_id',
              str,
              'cnn',
              'The model to train.',
              flag=f'{name}_model',
              choices=('cnn', 'logistic', 'mlp'),
              references=(
                  f'tasks.{name}:ModelID.CNN',
                  f'tasks.{name}:ModelID.LOGISTIC',
                  f'tasks.{name}:ModelID.MLP',
              ),
          ),
          partitions.DOWNLOAD,
      ),
      supplied=('data_dir', 'seed', 'protocol'),
      protocol=f'tasks.{name}.{name}_tasks:DEFAULT_PROTOCOL',
      keras_model=f'tasks.{name}:build_keras_model',
  )


ROWS = (image_row('mnist'),)

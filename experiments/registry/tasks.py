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

from experiments.registry.task_rows import cifar
from experiments.registry.task_rows import digits
from experiments.registry.task_rows import emnist
from experiments.registry.task_rows import fashion_mnist
from experiments.registry.task_rows import mnist
from experiments.registry.task_rows import shakespeare
from experiments.registry.task_rows import stackoverflow
from experiments.registry.task_rows import text_classification

TASKS = (
    digits.ROWS
    + mnist.ROWS
    + fashion_mnist.ROWS
    + emnist.ROWS
    + cifar.ROWS
    + shakespeare.ROWS
    + stackoverflow.ROWS
    + text_classification.ROWS
)

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
"""Fashion-MNIST, split among clients as in the publications.

Its models are those of MNIST, in whose form the data set was made.
"""

from tasks.fashion_mnist.fashion_mnist_preprocessing import load_fashion_mnist
from tasks.fashion_mnist.fashion_mnist_tasks import create_fashion_mnist_task
from tasks.fashion_mnist.fashion_mnist_tasks import (
    create_fashion_mnist_task_from_data,
)
from tasks.mnist.mnist_models import build_functional_model
from tasks.mnist.mnist_models import build_keras_model
from tasks.mnist.mnist_models import build_variable_model_fn
from tasks.mnist.mnist_models import ModelID

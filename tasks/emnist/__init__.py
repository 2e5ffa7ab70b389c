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
"""Federated EMNIST: recognizing characters, and compressing their pictures."""

from tasks.emnist.emnist_ae_models import build_autoencoder
from tasks.emnist.emnist_ae_models import build_functional_autoencoder
from tasks.emnist.emnist_ae_models import build_variable_autoencoder_fn
from tasks.emnist.emnist_ae_tasks import create_emnist_ae_task
from tasks.emnist.emnist_ae_tasks import create_emnist_ae_task_from_data
from tasks.emnist.emnist_cr_tasks import create_emnist_cr_task
from tasks.emnist.emnist_cr_tasks import create_emnist_cr_task_from_data
from tasks.emnist.emnist_models import build_functional_model
from tasks.emnist.emnist_models import build_keras_model
from tasks.emnist.emnist_models import build_variable_model_fn
from tasks.emnist.emnist_models import ModelID
from tasks.emnist.emnist_preprocessing import load_emnist

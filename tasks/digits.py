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
"""scikit-learn's handwritten digits: a real task that needs no download."""

from tasks import clients
from tasks import definitions
from tasks.images import digits_data

# No paper trains on this data set. Clients hold 28 or 29 examples: three steps
# in an epoch. Delta-SGD passes 0.95 on the test images after 60 rounds.
DIGITS = definitions.ClassificationTask(
    name='digits',
    summary="50 of scikit-learn's digits",
    data=digits_data.Digits(),
    models={
        'cnn': 'tasks.images.digits_models:build_cnn',
        'logistic': 'tasks.images.digits_models:build_logistic',
    },
    clients=clients.DirichletClients(50, alpha=0.3),
    protocol=definitions.Protocol(
        client_batch_size=10,
        client_epochs=2,
        clients_per_round=10,
        total_rounds=100,
    ),
)

DEFAULT_PROTOCOL = DIGITS.protocol
build_functional_model = DIGITS.build_functional_model
build_keras_model = DIGITS.build_keras_model
build_variable_model_fn = DIGITS.build_variable_model_fn
create_digits_task = DIGITS.create
create_digits_task_from_data = DIGITS.create_from_data
load_digits = digits_data.load_digits

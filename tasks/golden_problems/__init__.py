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
"""The small problems that the algorithms' reference numbers are of."""

from tasks.golden_problems.golden_problems_models import create_client_batches
from tasks.golden_problems.golden_problems_models import create_functional_model
from tasks.golden_problems.golden_problems_models import (
    create_representation_fn,
)
from tasks.golden_problems.golden_problems_models import flatten_weights

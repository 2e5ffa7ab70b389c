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
"""Reference trajectories for other frameworks, and whose FedAdam is which.

An adapter replays the runs of a file of reference numbers in its own framework;
`check` compares. `dialects` are the formulas that go by one name. No TensorFlow
is imported here.
"""

from experiments.conformance.adapters import Adapter
from experiments.conformance.adapters import AdapterError
from experiments.conformance.adapters import CommandAdapter
from experiments.conformance.adapters import COMMON_KEYS
from experiments.conformance.adapters import create_adapter
from experiments.conformance.adapters import GoldenRun
from experiments.conformance.adapters import UnsupportedError
from experiments.conformance.goldens import check
from experiments.conformance.goldens import read_goldens
from experiments.conformance.goldens import Result

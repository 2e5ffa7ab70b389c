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
"""Federated algorithms: compositions that give TFF learning processes."""

from tff_adaptive.algorithms.fed_opt import build_fed_opt
from tff_adaptive.algorithms.presets import build_adaalter
from tff_adaptive.algorithms.presets import build_centralized
from tff_adaptive.algorithms.presets import build_fafed
from tff_adaptive.algorithms.presets import build_fedcada
from tff_adaptive.algorithms.presets import build_feddyn
from tff_adaptive.algorithms.presets import build_fedli_ls
from tff_adaptive.algorithms.presets import build_fedli_lu
from tff_adaptive.algorithms.presets import build_scaffold

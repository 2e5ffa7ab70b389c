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
"""Optimizers for clients and servers, one file a rule.

Each is a `tff.learning.optimizers.Optimizer` or its keyword superset,
`ExtraArgsOptimizer`, for rules that need the loss or another evaluation. Rates
that depend on the round are in `schedules`.
"""

from tff_adaptive.optimizers.adaalter import build_adaalter
from tff_adaptive.optimizers.adagrad import build_adagrad
from tff_adaptive.optimizers.adagrad import build_fedadagrad
from tff_adaptive.optimizers.adam import build_adam
from tff_adaptive.optimizers.adam import build_fedadam
from tff_adaptive.optimizers.adam import build_fedams
from tff_adaptive.optimizers.armijo import build_armijo
from tff_adaptive.optimizers.delta_sgd import build_delta_sgd
from tff_adaptive.optimizers.fafed import build_fafed
from tff_adaptive.optimizers.fedcada import build_fedcada_adam
from tff_adaptive.optimizers.federated_optimizer import FederatedOptimizer
from tff_adaptive.optimizers.optimizer import ExtraArgsOptimizer
from tff_adaptive.optimizers.scaffold import build_scaffold_sgd
from tff_adaptive.optimizers.sgd import build_fedavg
from tff_adaptive.optimizers.sgd import build_fedavgm
from tff_adaptive.optimizers.sgd import build_sgd
from tff_adaptive.optimizers.sps import build_sps
from tff_adaptive.optimizers.sps import build_sps_max
from tff_adaptive.optimizers.sps import build_sps_smooth
from tff_adaptive.optimizers.yogi import build_fedyogi
from tff_adaptive.optimizers.yogi import build_yogi

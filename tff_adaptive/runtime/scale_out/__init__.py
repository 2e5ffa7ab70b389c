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
"""Rounds on several machines, with Ray.

The driver prepares a round, workers sum up chunks of its cohort, the driver
merges the sums in their order and updates the state. Ray is needed for it:
`pip install tff_adaptive[ray]`.
"""

from tff_adaptive.runtime.scale_out.context import choose_ray_plan
from tff_adaptive.runtime.scale_out.context import ClusterError
from tff_adaptive.runtime.scale_out.context import create_ray_context
from tff_adaptive.runtime.scale_out.context import ray_context
from tff_adaptive.runtime.scale_out.context import RayContext
from tff_adaptive.runtime.scale_out.context import RoundCosts
from tff_adaptive.runtime.scale_out.context import set_ray_context

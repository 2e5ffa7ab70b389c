# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
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

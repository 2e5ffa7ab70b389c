# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs rounds on several machines, with Ray.

The driver prepares a round, workers sum chunks of its cohort, and the driver
merges the sums in order and updates the state. Needs Ray:
`pip install "ray>=2.40"`.
"""

from tff_adaptive.runtime.scale_out.clusters import ClusterError
from tff_adaptive.runtime.scale_out.context import choose_ray_plan
from tff_adaptive.runtime.scale_out.context import RayContext
from tff_adaptive.runtime.scale_out.messages import RoundCosts

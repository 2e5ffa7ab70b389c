# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Server rules that take the aggregated update, and the clients' reports."""

from tff_adaptive.finalizers.fedexp import build_fedexp
from tff_adaptive.finalizers.fedexprox import build_fedexprox_grads
from tff_adaptive.finalizers.fedexprox import build_fedexprox_stops
from tff_adaptive.finalizers.fedli import build_frank_wolfe
from tff_adaptive.finalizers.fedli import build_line_search_step
from tff_adaptive.finalizers.fednova import build_fednova
from tff_adaptive.finalizers.measured_update import (
    build_measured_update_finalizer,
)
from tff_adaptive.finalizers.measured_update import ReportsOptimizer

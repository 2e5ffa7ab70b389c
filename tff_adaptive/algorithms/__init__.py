# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Federated algorithms, composed into TFF learning processes."""

from tff_adaptive.algorithms.centralized import build_centralized
from tff_adaptive.algorithms.fed_opt import build_fed_opt
from tff_adaptive.algorithms.measured_update import (
    build_measured_update_finalizer,
)

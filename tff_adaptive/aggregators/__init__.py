# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Aggregation of what clients send besides their model updates."""

from tff_adaptive.aggregators.reports import aggregate_statistics
from tff_adaptive.aggregators.reports import stack_at_server
from tff_adaptive.aggregators.weighting import HealthyRoundsFactory

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Derivatives of rounds by learning rates, and rates that follow them."""

from tff_adaptive.tuning.hypergradients import build_model_loss
from tff_adaptive.tuning.hypergradients import Hypergradient
from tff_adaptive.tuning.hypergradients import hypergradient
from tff_adaptive.tuning.rate_tuning import build_rate_tuner

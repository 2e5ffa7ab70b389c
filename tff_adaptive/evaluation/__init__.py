# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Evaluates global weights: on a whole test set, per client, personalized."""

from tff_adaptive.evaluation.client_metrics import ClientMetrics
from tff_adaptive.evaluation.client_metrics import PersonalizedMetrics
from tff_adaptive.evaluation.evaluations import build_central_evaluation
from tff_adaptive.evaluation.evaluations import build_client_evaluation
from tff_adaptive.evaluation.evaluations import build_personalized_evaluation
from tff_adaptive.evaluation.evaluations import build_sampled_evaluation

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Differential privacy of clients: clipping, noise and accounting.

docs/privacy.md says what is protected and what is not.
"""

from tff_adaptive.privacy.accounting import CohortSampling
from tff_adaptive.privacy.accounting import default_delta
from tff_adaptive.privacy.accounting import RoundAccountant
from tff_adaptive.privacy.differential_privacy import AdaptiveClipping
from tff_adaptive.privacy.differential_privacy import DifferentialPrivacy
from tff_adaptive.privacy.differential_privacy import get_clip_norms

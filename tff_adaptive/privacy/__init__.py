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
"""Differential privacy of clients: clipping, noise, and what they cost.

What is protected, and what is not, is in docs/privacy.md.
"""

from tff_adaptive.privacy.accounting import CohortSampling
from tff_adaptive.privacy.accounting import default_delta
from tff_adaptive.privacy.accounting import RoundAccountant
from tff_adaptive.privacy.differential_privacy import AdaptiveClipping
from tff_adaptive.privacy.differential_privacy import DifferentialPrivacy
from tff_adaptive.privacy.differential_privacy import get_clip_norms

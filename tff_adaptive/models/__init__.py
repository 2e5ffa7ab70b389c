# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keras models, of Keras 3 and of Keras 2, as models of learning processes."""

from tff_adaptive.models.conversion import from_keras
from tff_adaptive.models.conversion import KerasFunctionalModel
from tff_adaptive.models.conversion import to_keras
from tff_adaptive.models.conversion import with_batch_statistics

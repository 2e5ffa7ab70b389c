# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Losses that Keras does not have.

Those here are for Keras 2; `tff_adaptive.losses.keras_3` has them for Keras 3.
"""

from tff_adaptive.losses.keras_2 import MulticlassHinge

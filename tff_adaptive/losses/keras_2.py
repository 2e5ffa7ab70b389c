# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The losses for Keras 2."""

import tensorflow as tf

from tff_adaptive.losses import multiclass_hinge


class MulticlassHinge(multiclass_hinge.MulticlassHinge, tf.keras.losses.Loss):
  """`tff_adaptive.losses.multiclass_hinge.MulticlassHinge` for Keras 2."""

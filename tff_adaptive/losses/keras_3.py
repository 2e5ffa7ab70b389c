# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The losses for Keras 3 with the backend of TensorFlow."""

import keras

from tff_adaptive.losses import multiclass_hinge


@keras.saving.register_keras_serializable('tff_adaptive')
class MulticlassHinge(multiclass_hinge.MulticlassHinge, keras.losses.Loss):
  """`tff_adaptive.losses.multiclass_hinge.MulticlassHinge` for Keras 3."""

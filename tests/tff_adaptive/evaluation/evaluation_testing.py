# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights of the linear classifier of `testing`, and its metrics by NumPy."""

import numpy as np
import tensorflow_federated as tff

from tests.tff_adaptive import testing


def weights(seed=1):
  generator = np.random.default_rng(seed)
  return tff.learning.models.ModelWeights(
      trainable=[
          generator.normal(
              size=(testing.NUM_FEATURES, testing.NUM_CLASSES)
          ).astype(np.float32),
          generator.normal(size=(testing.NUM_CLASSES,)).astype(np.float32),
      ],
      non_trainable=[],
  )


def expected(trainable, arrays):
  """Returns cross entropy and accuracy of all examples at once, in float64."""
  kernel, bias = (np.asarray(leaf, np.float64) for leaf in trainable)
  logits = arrays['x'] @ kernel + bias
  picked = logits[np.arange(len(logits)), arrays['y']]
  losses = np.log(np.exp(logits).sum(axis=1)) - picked
  return losses.mean(), (logits.argmax(axis=1) == arrays['y']).mean()

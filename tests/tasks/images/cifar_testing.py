# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small data in the formats of CIFAR."""

import numpy as np


def arrays(num_train, num_test, num_classes, shape=(32, 32, 3)):
  """Returns the arrays of an npz file, with all classes in turn."""
  generator = np.random.default_rng(1)

  def images(num_images):
    return generator.integers(0, 256, [num_images, *shape]).astype(np.uint8)

  return {
      'x_train': images(num_train),
      'y_train': (np.arange(num_train) % num_classes).astype(np.uint8),
      'x_test': images(num_test),
      'y_test': (np.arange(num_test) % num_classes).astype(np.uint8),
  }


def published(num_images, num_classes):
  """Returns examples as TFF and tensorflow-datasets publish them."""
  made = arrays(num_images, 0, num_classes)
  return {'image': made['x_train'], 'label': made['y_train'].astype(np.int32)}

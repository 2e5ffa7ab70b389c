# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the data and the models of the task on digits."""

from absl.testing import absltest
import numpy as np
from sklearn import datasets

from tasks.images import digits_data


class DigitsPreprocessingTest(absltest.TestCase):

  def test_examples_are_scaled_images_and_labels(self):
    for examples, size in zip(digits_data.load_digits(), (1438, 359)):
      self.assertEqual(list(examples), ['x', 'y'])
      self.assertEqual(examples['x'].shape, (size, 8, 8, 1))
      self.assertEqual(examples['x'].dtype, np.float32)
      self.assertEqual(examples['y'].shape, (size,))
      self.assertEqual(examples['y'].dtype, np.int32)
      self.assertEqual(examples['x'].min(), 0.0)
      self.assertEqual(examples['x'].max(), 1.0)

  def test_split_is_stratified(self):
    train, test = digits_data.load_digits()
    self.assertEqual(
        np.bincount(test['y']).tolist(),
        [36, 36, 35, 37, 36, 36, 36, 36, 35, 36],
    )
    self.assertEqual(
        np.bincount(train['y']).tolist(),
        [142, 146, 142, 146, 145, 146, 145, 143, 139, 144],
    )

  def test_split_holds_every_image_once_with_its_label(self):
    digits = datasets.load_digits()
    train, test = digits_data.load_digits()
    found = sorted(
        (image.tobytes(), int(label))
        for part in (train, test)
        for image, label in zip(part['x'], part['y'])
    )
    expected = sorted(
        ((image / 16.0).astype(np.float32).tobytes(), int(label))
        for image, label in zip(digits.images, digits.target)
    )
    self.assertEqual(found, expected)

  def test_split_is_fixed(self):
    _, test = digits_data.load_digits()
    self.assertEqual(test['y'][:10].tolist(), [8, 1, 2, 7, 3, 4, 7, 0, 9, 0])

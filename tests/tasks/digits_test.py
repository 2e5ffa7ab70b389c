# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the data and the models of the task on digits."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from sklearn import datasets

from tasks import digits
from tasks.images import digits_data

_IDS = ('cnn', 'logistic')


class DigitsModelsTest(parameterized.TestCase):

  @parameterized.parameters(('cnn', 23946), ('logistic', 650))
  def test_number_of_weights_and_shape_of_logits(self, model_id, num_weights):
    model = digits.DIGITS.build_keras_model(model_id, seed=1)
    self.assertEqual(model.count_params(), num_weights)
    self.assertEqual(model(np.zeros([3, 8, 8, 1], np.float32)).shape, (3, 10))

  @parameterized.parameters(*_IDS)
  def test_seeds_differ_and_no_two_kernels_share_numbers(self, model_id):
    first = digits.DIGITS.build_keras_model(model_id, seed=1).get_weights()
    other = digits.DIGITS.build_keras_model(model_id, seed=2).get_weights()
    kernels = [weight for weight in first if weight.ndim > 1]
    self.assertTrue(all(np.any(a != b) for a, b in zip(first[::2], other[::2])))
    scaled = [kernel.ravel()[:90] / np.abs(kernel).max() for kernel in kernels]
    for i, kernel in enumerate(scaled):
      for later in scaled[i + 1 :]:
        self.assertLess(abs(np.corrcoef(kernel, later)[0, 1]), 0.5)

  def test_literal_weights_so_that_no_release_changes_a_run(self):
    kernel = digits.DIGITS.build_keras_model('logistic', 1).get_weights()[0]
    np.testing.assert_allclose(kernel[0, 0], 0.020834327, rtol=1e-6)


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

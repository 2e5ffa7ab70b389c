# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `cifar_augmentation`."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tasks.images import cifar_augmentation

_STATISTICS = cifar_augmentation.ChannelStatistics(
    mean=(0.5, 0.25, 0.125), deviation=(0.5, 0.25, 2.0)
)
# These map the pixel value p to p - 1: black is -1.
_PIXEL_NUMBERS = cifar_augmentation.ChannelStatistics(
    mean=(1 / 255,) * 3, deviation=(1 / 255,) * 3
)


def _images(num_images, seed=1):
  generator = np.random.default_rng(seed)
  return generator.integers(0, 256, [num_images, 32, 32, 3]).astype(np.uint8)


def _examples(images):
  return {'x': images, 'y': np.arange(len(images), dtype=np.int32)}


def _inputs(images, augmentation, statistics=_STATISTICS, seed=None):
  generator = None if seed is None else np.random.default_rng(seed)
  return cifar_augmentation.to_model_inputs(
      _examples(images), augmentation, statistics, generator
  )['x']


def _numbered(num_images):
  """Returns images whose pixels hold their row and column, from 1."""
  image = np.ones([32, 32, 3], np.uint8)
  image[..., 0] = np.arange(1, 33)[:, np.newaxis]
  image[..., 1] = np.arange(1, 33)
  return np.stack([image] * num_images)


class CifarPreprocessingTest(parameterized.TestCase):

  def test_fedopt_evaluates_on_what_tff_evaluates_on(self):
    images = np.concatenate([_images(20), np.full([1, 32, 32, 3], 7, np.uint8)])
    dataset = tf.data.Dataset.from_tensor_slices(
        {'image': images, 'label': np.arange(21)}
    )
    baseline = tff.simulation.baselines.cifar100
    preprocessing = baseline.image_classification_preprocessing
    preprocess = preprocessing.create_preprocess_fn(
        tff.simulation.baselines.ClientSpec(
            num_epochs=1, batch_size=100, shuffle_buffer_size=1
        ),
        crop_shape=(24, 24, 3),
    )
    ((expected, _),) = preprocess(dataset)
    found = _inputs(images, 'fedopt')
    self.assertEqual(found.shape, (21, 24, 24, 3))
    self.assertEqual(found.dtype, expected.dtype)
    np.testing.assert_allclose(found, expected, atol=2e-6)

  def test_fedopt_trains_on_crops_that_tff_could_have_drawn(self):
    images = _images(30)
    for i, crop in enumerate(_inputs(images, 'fedopt', seed=1)):
      windows = np.lib.stride_tricks.sliding_window_view(
          images[i], (24, 24), axis=(0, 1)
      ).transpose(0, 1, 3, 4, 2)
      windows = windows.reshape(-1, 24, 24, 3)
      # TFF draws one of these crops, flips it or not, and standardizes it.
      candidates = np.concatenate([windows, windows[:, :, ::-1]])
      standardized = tf.image.per_image_standardization(candidates).numpy()
      distances = np.abs(standardized - crop).max(axis=(1, 2, 3))
      self.assertLess(distances.min(), 2e-6)

  def test_crops_and_flips_are_drawn_evenly(self):
    x = _inputs(_numbered(2000), 'delta_sgd', _PIXEL_NUMBERS, seed=1)
    rows, columns = np.rint(x[:, 16, 16, 0]), x[:, 16, :, 1]
    is_flipped = columns[:, 16] < columns[:, 15]
    self.assertBetween(is_flipped.mean(), 0.46, 0.54)
    _, counts = np.unique(rows, return_counts=True)
    self.assertLen(counts, 9)
    self.assertGreater(counts.min(), 170)
    self.assertBetween(np.corrcoef(rows, is_flipped)[0, 1], -0.1, 0.1)

  def test_delta_sgd_pads_with_black(self):
    x = np.rint(_inputs(_numbered(200), 'delta_sgd', _PIXEL_NUMBERS, seed=2))
    rows, columns = x[..., 0] + 1, x[..., 1] + 1
    is_black = columns == 0
    np.testing.assert_array_equal(is_black, rows == 0)
    np.testing.assert_array_equal(is_black, x[..., 2] == -1)
    for image, black in zip(rows, is_black):
      inside = image[~black.all(axis=1)].max(axis=1)
      np.testing.assert_array_equal(np.diff(inside), 1)
      self.assertLessEqual(black.all(axis=1).sum(), 4)
      self.assertLessEqual(black.all(axis=0).sum(), 4)
      self.assertEqual(
          black.sum(), 1024 - (~black).any(1).sum() * (~black).any(0).sum()
      )

  @parameterized.parameters('delta_sgd', 'none')
  def test_channels_are_scaled_by_the_statistics(self, augmentation):
    images = _images(5)
    expected = (images / 255 - [0.5, 0.25, 0.125]) / [0.5, 0.25, 2.0]
    x = _inputs(images, augmentation)
    self.assertEqual(x.dtype, np.float32)
    np.testing.assert_allclose(x, expected, atol=1e-6)

  def test_none_draws_nothing(self):
    images = _images(5)
    np.testing.assert_array_equal(
        _inputs(images, 'none', seed=1), _inputs(images, 'none')
    )

  @parameterized.parameters('delta_sgd', 'fedopt')
  def test_draws_follow_the_generator(self, augmentation):
    images = _images(5)
    first, again, other = (
        _inputs(images, augmentation, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    self.assertFalse(np.array_equal(first, other))

  def test_literal_crop_so_that_no_release_changes_a_run(self):
    x = _inputs(_numbered(3), 'delta_sgd', _PIXEL_NUMBERS, seed=1) + 1
    corners = np.rint(x[:, 16, 16, :2]).astype(int).tolist()
    self.assertEqual(corners, [[17, 21], [17, 12], [19, 13]])

  @parameterized.parameters(*cifar_augmentation.AUGMENTATIONS)
  def test_augmentation_declares_what_it_makes_and_spares_its_input(self, name):
    examples = _examples(_images(4))
    before = examples['x'].copy()
    examples['x'].setflags(write=False)
    augmentation = cifar_augmentation.build_augmentation(name, _STATISTICS)
    augmented = augmentation(examples, np.random.default_rng(1))
    self.assertEqual(
        augmented['x'].shape[1:], augmentation.element_spec['x'].shape
    )
    np.testing.assert_array_equal(augmented['y'], np.arange(4))
    np.testing.assert_array_equal(examples['x'], before)

  @parameterized.parameters(*cifar_augmentation.AUGMENTATIONS)
  def test_no_examples(self, name):
    size = cifar_augmentation.crop_size(name)
    self.assertEqual(
        _inputs(_images(0), name, seed=1).shape, (0, size, size, 3)
    )

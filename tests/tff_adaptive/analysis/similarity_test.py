# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the alignment of moments, and of its picture."""

import collections

from absl.testing import parameterized
import numpy as np

from tests.tff_adaptive.analysis import figure_testing
from tff_adaptive.analysis import similarity

# Two columns of three rows, whose centered products are [[2, -1], [-1, 2]] / 3.
_TWO_COLUMNS = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])


def _random(*shape, seed=1):
  return np.random.default_rng(seed).normal(size=shape)


def _moments(seed):
  """Returns a client's moments of a convolution and a dense layer."""
  return collections.OrderedDict(
      kernel=_random(3, 3, 2, 4, seed=seed),
      bias=_random(4, seed=seed),
      dense=_random(16, 5, seed=seed + 100),
  )


class LinearCKATest(parameterized.TestCase):

  def test_literal_number(self):
    # (4 + 1) / 9 over sqrt(10) / 3 times 2 / 3.
    found = similarity.linear_cka(_TWO_COLUMNS, _TWO_COLUMNS[:, :1])
    self.assertAlmostEqual(found, 5 / (2 * np.sqrt(10)), places=14)

  def test_wide_matrices_need_no_products_of_columns(self):
    x = _random(2, 10**6)
    self.assertAlmostEqual(similarity.linear_cka(x, x), 1.0, places=12)

  @parameterized.parameters((3, 50), (50, 3))
  def test_is_the_same_for_wide_and_tall_matrices(self, num_rows, num_columns):
    x, y = _random(num_rows, num_columns), _random(num_rows, 9, seed=2)
    a, b = (z - z.mean(axis=0) for z in (x, y))
    expected = np.linalg.norm(a.T @ b) ** 2 / (
        np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b)
    )
    self.assertAlmostEqual(similarity.linear_cka(x, y), expected, places=12)

  @parameterized.parameters(1.0, 1e-90, 1e90)
  def test_is_one_for_the_same_matrix_and_symmetric(self, scale):
    x, y = scale * _random(9, 4), _random(9, 6, seed=2)
    self.assertAlmostEqual(similarity.linear_cka(x, x), 1.0, places=12)
    self.assertAlmostEqual(
        similarity.linear_cka(x, y), similarity.linear_cka(y, x), places=12
    )

  def test_is_zero_without_a_common_direction(self):
    x, y = np.array([[1.0], [-1.0], [0.0]]), np.array([[1.0], [1.0], [-2.0]])
    self.assertAlmostEqual(similarity.linear_cka(x, y), 0.0, places=15)

  def test_constant_columns_play_no_part(self):
    x, y = _random(9, 4), _random(9, 6, seed=2)
    constant = np.full([9, 2], 0.1)
    self.assertAlmostEqual(
        similarity.linear_cka(np.hstack([x, constant]), y),
        similarity.linear_cka(x, y),
        places=12,
    )
    # Nor does rounding of their mean pass for a direction.
    self.assertEqual(similarity.linear_cka(constant, y), 0.0)
    self.assertEqual(similarity.linear_cka(constant, constant), 0.0)


class MomentsCKATest(parameterized.TestCase):

  def test_averages_layers_by_their_entries(self):
    a, b = _moments(1), _moments(2)
    convolution, dense = (
        similarity.linear_cka(
            a[name].reshape([rows, -1]), b[name].reshape([rows, -1])
        )
        for name, rows in (('kernel', 18), ('dense', 16))
    )
    self.assertAlmostEqual(
        similarity.moments_cka(a, b),
        (72 * convolution + 80 * dense) / 152,
        places=12,
    )

  def test_takes_mappings_sequences_and_nests(self):
    a, b = _moments(1), _moments(2)
    expected = similarity.moments_cka(a, b)
    for convert in (
        lambda moments: tuple(moments.values()),
        lambda moments: [
            (moments['kernel'], moments['bias']),
            moments['dense'],
        ],
    ):
      found = similarity.moments_cka(convert(a), convert(b))
      self.assertEqual(found, expected)

  def test_vectors_are_left_out(self):
    a, b = _moments(1), _moments(2)
    expected = similarity.moments_cka(a, b)
    a['bias'] = 7.0 * b['bias']
    self.assertEqual(similarity.moments_cka(a, b), expected)

  def test_kernels_without_variation_at_both_clients_are_left_out(self):
    a = [_random(5, 2), np.zeros([4, 3])]
    self.assertAlmostEqual(similarity.moments_cka(a, a), 1.0, places=12)
    # A layer counts if only one of the clients has trained it.
    b = [a[0], _random(4, 3)]
    self.assertAlmostEqual(similarity.moments_cka(a, b), 10 / 22, places=12)
    untrained = [np.zeros([5, 2])]
    self.assertEqual(similarity.moments_cka(untrained, untrained), 0.0)

  def test_pairs_make_a_symmetric_matrix(self):
    clients = [_moments(seed) for seed in range(4)]
    matrix = similarity.pairwise_moments_cka(clients)
    self.assertEqual(matrix.shape, (4, 4))
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_allclose(np.diag(matrix), 1.0, rtol=1e-12)
    self.assertTrue(np.all((matrix >= 0.0) & (matrix <= 1.0)))
    self.assertAlmostEqual(
        matrix[2, 1], similarity.moments_cka(clients[1], clients[2]), places=12
    )


class PlotSimilarityTest(figure_testing.FigureTestCase):

  def _draw(self, matrix, labels):
    return self.draw(
        similarity.plot_similarity,
        matrix,
        labels,
        self.png,
        'A title',
        axis_label='client',
    )

  def test_plots_and_writes_the_values(self):
    drawing = self._draw([[1.0, 0.25], [0.25, 0.7]], ['first', 'second'])
    axes, color_bar = drawing.axes
    self.assertEqual(drawing.get_suptitle(), 'A title')
    self.assertEqual(axes.get_xlabel(), 'client')
    self.assertEqual(color_bar.get_ylim(), (0.0, 1.0))
    (cells,) = axes.get_images()
    np.testing.assert_array_equal(cells.get_array(), [[1.0, 0.25], [0.25, 0.7]])
    self.assertEqual(
        [text.get_text() for text in axes.texts],
        ['1.00', '0.25', '0.25', '0.70'],
    )
    # Dark cells have white values, light ones black values.
    self.assertEqual(
        [text.get_color() for text in axes.texts],
        ['white', 'black', 'black', 'white'],
    )
    for tick_labels in (axes.get_xticklabels(), axes.get_yticklabels()):
      self.assertEqual(
          [label.get_text() for label in tick_labels], ['first', 'second']
      )

  @parameterized.parameters((1, 1, 1), (12, 144, 12), (13, 0, 13), (100, 0, 50))
  def test_plots_every_number_of_rows(self, num_rows, num_values, num_labels):
    drawing = self._draw(
        np.eye(num_rows) / 2 + 0.5, [f'client_{i}' for i in range(num_rows)]
    )
    axes, _ = drawing.axes
    self.assertLen(axes.texts, num_values)
    self.assertLen(axes.get_xticklabels(), num_labels)
    # Nothing is cut off at the edges.
    box = axes.get_tightbbox()
    self.assertBetween(box.x0, 0, box.x1)
    self.assertLess(box.x1, drawing.bbox.x1)
    self.assertBetween(box.y0, 0, box.y1)
    self.assertLess(box.y1, drawing.bbox.y1)

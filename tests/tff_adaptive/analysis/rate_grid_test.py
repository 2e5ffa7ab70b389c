# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of heat maps over learning rates, and of the best rates."""

from absl.testing import parameterized
import numpy as np

from tests.tff_adaptive.analysis import figure_testing
from tff_adaptive.analysis import rate_grid

_VALUES = [[70.0, 80.0, 75.0], [np.nan, np.nan, np.nan], [60.0, np.nan, 50.0]]


def _grid(values=_VALUES, **kwargs):
  return rate_grid.RateGrid(
      np.array([0.01, 0.1, 1.0]),
      np.array([0.001, 0.1, 10.0]),
      np.array(values),
      **kwargs,
  )


class RateGridTest(figure_testing.FigureTestCase):

  def _draw(self, plot, panels, **options):
    return self.draw(plot, panels, self.png, **options)

  @parameterized.parameters((True, (0, 1)), (False, (2, 2)))
  def test_best(self, higher_is_better, place):
    self.assertEqual(_grid(higher_is_better=higher_is_better).best(), place)

  def test_nothing_has_no_best(self):
    self.assertIsNone(_grid(np.full([3, 3], np.nan)).best())

  @parameterized.parameters((True, (0, 1)), (False, (0, 0)))
  def test_infinite_values_count_as_missing(self, higher_is_better, place):
    infinity = np.inf if higher_is_better else -np.inf
    values = np.array([[70.0, 80.0, infinity], [-infinity] * 3, [infinity] * 3])
    grid = _grid(values, higher_is_better=higher_is_better)
    self.assertEqual(grid.best(), place)
    rates = [rates.tolist() for rates in rate_grid.best_server_rates(grid)]
    self.assertEqual(rates, [[0.01], [grid.server_rates[place[1]]]])
    drawing = self._draw(rate_grid.plot_rate_grids, {'': grid})
    shares = drawing.axes[0].images[0].get_array()
    self.assertCountEqual(shares.compressed(), [0.0, 1.0])

  def test_heat_map_has_numbers_dashes_and_a_frame(self):
    drawing = self._draw(
        rate_grid.plot_rate_grids, {'FedAdam': _grid()}, title='T'
    )
    (axes,) = drawing.axes
    self.assertEmpty(drawing.legends)
    texts = {t.get_position(): t for t in axes.texts}
    self.assertEqual(texts[1, 0].get_text(), '80.0')
    self.assertEqual(texts[1, 0].get_fontweight(), 'bold')
    self.assertEqual(texts[0, 0].get_fontweight(), 'normal')
    self.assertEqual(texts[1, 1].get_text(), '–')
    (frame,) = axes.patches
    self.assertEqual((frame.get_x(), frame.get_y()), (0.55, -0.45))
    self.assertEqual(
        [label.get_text() for label in axes.get_xticklabels()],
        ['0.001', '0.1', '10'],
    )
    self.assertEqual(axes.get_xlabel(), 'server learning rate')
    self.assertEqual(axes.get_ylabel(), 'client learning rate')

  def test_heat_map_has_a_cross_where_a_run_diverged(self):
    diverged = np.zeros([3, 3], bool)
    diverged[1, 2] = True
    drawing = self._draw(
        rate_grid.plot_rate_grids, {'': _grid(), 'b': _grid(diverged=diverged)}
    )
    first, second = drawing.axes
    self.assertEmpty(first.lines)
    (cross,) = second.lines
    np.testing.assert_array_equal(cross.get_xydata(), [[2.0, 1.0]])
    self.assertEqual((cross.get_marker(), cross.get_linestyle()), ('x', 'None'))
    # No dash below the cross, and one elsewhere in its row.
    texts = {t.get_position(): t.get_text() for t in second.texts}
    self.assertNotIn((2, 1), texts)
    self.assertEqual(texts[1, 1], '–')
    (legend,) = drawing.legends
    self.assertEqual([t.get_text() for t in legend.texts], ['diverged'])

  def test_crosses_alone_are_plotted(self):
    nothing = np.full([3, 3], np.nan)
    grid = _grid(nothing, diverged=np.ones([3, 3], bool))
    (axes,) = self._draw(rate_grid.plot_rate_grids, {'': grid}).axes
    self.assertLen(axes.lines[0].get_xdata(), 9)
    self.assertTrue(_grid(nothing, diverged=np.zeros([3, 3])).is_empty())

  def test_darker_is_better_also_for_losses(self):
    (axes,) = self._draw(
        rate_grid.plot_rate_grids, {'': _grid(higher_is_better=False)}
    ).axes
    shades = axes.images[0].get_array()
    self.assertEqual(float(shades[2, 2]), 1.0)
    self.assertEqual(float(shades[0, 1]), 0.0)

  def test_equal_values_are_all_the_best(self):
    (axes,) = self._draw(
        rate_grid.plot_rate_grids, {'': _grid(np.full([3, 3], 5.0))}
    ).axes
    np.testing.assert_array_equal(axes.images[0].get_array(), np.ones([3, 3]))

  def test_best_server_rates(self):
    client_rates, server_rates = rate_grid.best_server_rates(_grid())
    np.testing.assert_array_equal(client_rates, [0.01, 1.0])
    np.testing.assert_array_equal(server_rates, [0.1, 0.001])
    _, smallest = rate_grid.best_server_rates(_grid(higher_is_better=False))
    np.testing.assert_array_equal(smallest, [0.001, 10.0])

  def test_nothing_to_plot_is_an_error(self):
    with self.assertRaisesRegex(ValueError, '^There are no values to plot.$'):
      rate_grid.plot_rate_grids({'': _grid(np.full([3, 3], np.nan))}, self.png)

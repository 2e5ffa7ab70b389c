# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of curves with bands."""

from absl.testing import parameterized
import numpy as np

from tests.tff_adaptive.analysis import figure_testing
from tff_adaptive.analysis import curves


def _curve(level, num_points=5, spread=0.1):
  x = np.arange(1, num_points + 1)
  mean = np.full(num_points, level)
  return curves.BandCurve(x, mean, mean - spread, mean + spread)


class BandCurvesTest(figure_testing.FigureTestCase):

  def _draw(self, panels, **options):
    return self.draw(curves.plot_band_curves, panels, self.png, **options)

  def test_plots_lines_bands_and_labels(self):
    drawing = self._draw(
        {'MNIST': {'SGD': _curve(1.0)}, 'FMNIST': {'SGD': _curve(2.0)}},
        title='T',
        y_label='test accuracy (%)',
        y_min=0.0,
        y_max=4.0,
    )
    self.assertEqual(drawing.get_suptitle(), 'T')
    for axes, title, level in zip(drawing.axes, ('MNIST', 'FMNIST'), (1, 2)):
      self.assertEqual(axes.get_title(loc='left'), title)
      self.assertEqual(axes.get_xlabel(), 'round')
      self.assertEqual(axes.get_ylabel(), 'test accuracy (%)')
      self.assertEqual(axes.get_ylim(), (0.0, 4.0))
      (line,) = axes.get_lines()
      np.testing.assert_array_equal(line.get_ydata(), [level] * 5)
      (band,) = axes.collections
      edges = band.get_paths()[0].vertices[:, 1]
      np.testing.assert_allclose(
          [edges.min(), edges.max()], [level - 0.1, level + 0.1]
      )

  def test_one_run_has_no_band(self):
    (axes,) = self._draw({'': {'SGD': _curve(1.0, spread=0.0)}}).axes
    self.assertEmpty(axes.collections)

  def test_a_method_looks_the_same_in_all_panels_and_figures(self):
    names = ['SGD', 'Adam', 'SPS']
    drawing = self._draw(
        {
            'a': {'SPS': _curve(1.0)},
            'b': {'Adam': _curve(1.0), 'SPS': _curve(2.0)},
        },
        names=names,
    )
    other = self._draw({'a': {n: _curve(1.0) for n in names}})
    looks = [
        (line.get_color(), line.get_marker(), line.get_linestyle())
        for axes in (drawing.axes[0], drawing.axes[1], other.axes[0])
        for line in axes.get_lines()
    ]
    sps, adam, sps_again, sgd_other, adam_other, sps_other = looks
    self.assertEqual(sps, sps_again)
    self.assertEqual(sps, sps_other)
    self.assertEqual(adam, adam_other)
    self.assertLen({sgd_other, adam_other, sps_other}, 3)
    (legend,) = drawing.legends
    self.assertEqual([t.get_text() for t in legend.texts], ['Adam', 'SPS'])

  def test_many_methods_differ_in_more_than_color(self):
    names = [f'method {i}' for i in range(12)]
    (axes,) = self._draw(
        {'': {n: _curve(float(i)) for i, n in enumerate(names)}}
    ).axes
    looks = {
        (line.get_marker(), str(line.get_linestyle()))
        for line in axes.get_lines()
    }
    self.assertLen(looks, 12)

  def test_no_line_hides_the_markers_of_an_equal_one(self):
    (axes,) = self._draw({'': {n: _curve(1.0, 50) for n in 'abcd'}}).axes
    starts = [line.get_markevery()[0] for line in axes.get_lines()]
    self.assertEqual(starts, [0, 1, 2, 3])
    (axes,) = self._draw({'': {n: _curve(1.0, 5) for n in 'abcd'}}).axes
    for line in axes.get_lines():  # Of so few points all are marked.
      self.assertEqual(line.get_markevery(), (0, 1))

  def test_rows_of_the_legend_are_equally_long(self):
    names = [f'{i}: a rather long name' for i in range(4)]
    drawing = self._draw({'': {n: _curve(1.0) for n in names}})
    (legend,) = drawing.legends
    columns = {round(t.get_window_extent().x0) for t in legend.texts}
    self.assertLen(columns, 2)

  def test_logarithmic_axes_name_the_few_values(self):
    x = np.array([0.01, 0.1, 1.0])
    curve = curves.BandCurve(x, x, x, x)
    (axes,) = self._draw({'': {'a': curve}}, log_x=True, log_y=True).axes
    self.assertEqual((axes.get_xscale(), axes.get_yscale()), ('log', 'log'))
    self.assertEqual(
        [label.get_text() for label in axes.get_xticklabels()],
        ['0.01', '0.1', '1'],
    )

  @parameterized.named_parameters(
      ('within_a_decade', 2.0, 8.0, ['2', '5']),
      ('two_decades', 0.9, 95.0, ['1', '2', '5', '10', '20', '50']),
  )
  def test_logarithmic_values_are_written_as_numbers(self, low, high, names):
    curve = curves.BandCurve(*4 * [np.array([low, high])])
    (axes,) = self._draw(
        {'': {'a': curve}}, log_y=True, y_min=low, y_max=high
    ).axes
    self.assertEqual(
        [
            label.get_text()
            for place, label in zip(axes.get_yticks(), axes.get_yticklabels())
            if low <= place <= high
        ],
        names,
    )

  def test_an_axis_is_logarithmic_in_the_distance_to_a_value(self):
    y = np.array([0.0, 90.0, 99.0, 100.0])
    curve = curves.BandCurve(np.arange(4), y, y, y)
    (axes,) = self._draw({'': {'a': curve}}, log_below=100.0).axes
    values = [0.0, 50.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.8, 99.9]
    ticks = [label.get_text() for label in axes.get_yticklabels()]
    self.assertContainsSubset([f'{value:g}' for value in values], ticks)
    heights = axes.transData.transform([(0, v) for v in (0, 90, 99)])[:, 1]
    self.assertAlmostEqual(heights[1] - heights[0], heights[2] - heights[1])
    # A value at no distance has a place.
    top = axes.transData.transform((0, 100.0))[1]
    self.assertBetween(top, heights[2], axes.bbox.y1)
    curve = curves.BandCurve(np.arange(2), *3 * [np.array([52.0, 68.0])])
    (axes,) = self._draw({'': {'a': curve}}, log_below=100.0).axes
    self.assertGreaterEqual(len(axes.get_yticks()), 3)
    curve = curves.BandCurve(np.arange(3), *3 * [np.array([-10.0, -1.0, -0.1])])
    (axes,) = self._draw({'': {'a': curve}}, log_below=0.0).axes
    heights = axes.transData.transform([(0, v) for v in curve.mean])[:, 1]
    self.assertAlmostEqual(heights[1] - heights[0], heights[2] - heights[1])

  @parameterized.parameters(
      (1e14, (0.95, 2.05), ['out of range: c']), (50.0, (-1.45, 52.45), [])
  )
  def test_a_curve_that_explodes_leaves_the_panel(self, last, ends, texts):
    found = {
        name: curves.BandCurve(np.arange(3), *3 * [np.array(values)])
        for name, values in {
            'a': [2.0, 1.0, 1.0],
            'b': [1.5, 1.0, 1.0],
            'c': [1.0, last, np.nan],
        }.items()
    }
    (axes,) = self._draw({'': found}).axes
    self.assertSequenceAlmostEqual(axes.get_ylim(), ends)
    self.assertEqual([text.get_text() for text in axes.texts], texts)

  def test_one_of_two_curves_that_explodes_leaves_the_panel(self):
    found = {
        'a': curves.BandCurve.of_line([1, 2], [2.0, 1.0]),
        'b': curves.BandCurve.of_line([1, 2], [2.0, 1e14]),
    }
    (axes,) = self._draw({'': found}).axes
    self.assertSequenceAlmostEqual(axes.get_ylim(), (0.95, 2.05))
    (text,) = axes.texts
    self.assertEqual(text.get_text(), 'out of range: b')

  def test_others_are_alike_and_share_an_entry(self):
    drawing = self._draw(
        {'': {name: _curve(1.0) for name in 'abcd'}},
        names=['c', 'a'],
        only_names=True,
    )
    (legend,) = drawing.legends
    self.assertEqual([t.get_text() for t in legend.texts], ['c', 'a', 'others'])
    colors = [line.get_color() for line in drawing.axes[0].lines]
    self.assertLen(colors, 4)
    self.assertLen(set(colors), 3)

  def test_an_other_with_one_point_is_visible(self):
    point = curves.BandCurve.of_line([1], [0.5])
    (axes,) = self._draw(
        {'': {'a': point, 'b': _curve(1.0)}}, names=['b'], only_names=True
    ).axes
    self.assertEqual(axes.lines[0].get_marker(), '.')

  def test_names_from_left_to_right(self):
    x = np.arange(2)
    curve = curves.BandCurve(x, x, x, x)
    (axes,) = self._draw({'': {'a': curve}}, x_names=['low', 'high']).axes
    self.assertEqual(
        [label.get_text() for label in axes.get_xticklabels()], ['low', 'high']
    )

  def test_two_scales_of_an_axis_are_an_error(self):
    curve = curves.BandCurve.of_line([1.0, 2.0], [1.0, 2.0])
    with self.assertRaisesRegex(ValueError, '`log_y` or `log_below`'):
      curves.plot_band_curves(
          {'': {'SGD': curve}}, self.png, log_y=True, log_below=100.0
      )

  def test_nothing_to_plot_is_an_error(self):
    with self.assertRaisesRegex(ValueError, '^There are no curves to plot.$'):
      curves.plot_band_curves({'a': {}}, self.png)
    self.assertFalse(self.png.exists())

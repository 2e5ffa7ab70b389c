# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the plots of a partition and of a metric over clients."""

from absl.testing import parameterized
import numpy as np

from tests.tff_adaptive.analysis import figure_testing
from tff_adaptive.analysis import client_plots
from tff_adaptive.data import client_data
from tff_adaptive.data import partition
from tff_adaptive.evaluation import client_metrics


def _examples(labels):
  return {
      'x': np.zeros([len(labels), 2], np.float32),
      'y': np.array(labels, np.int32),
  }


class CountLabelsTest(parameterized.TestCase):

  def test_counts(self):
    parts = {'a': [0, 1, 4], 'b': [], 'c': [2, 2, 2]}
    counts = client_plots.count_labels([0, 2, 1, 0, 0], parts)
    self.assertEqual(counts.tolist(), [[2, 0, 1], [0, 0, 0], [0, 3, 0]])
    self.assertEqual(counts.dtype, np.int64)

  def test_more_classes_than_occur(self):
    counts = client_plots.count_labels([0, 1], {'a': [1]}, num_classes=4)
    self.assertEqual(counts.tolist(), [[0, 1, 0, 0]])


class PlotTest(figure_testing.FigureTestCase):

  @parameterized.parameters((1, 1), (10, 10), (100, 10), (30, 62))
  def test_plots_every_number_of_clients(self, num_clients, num_classes):
    labels = np.arange(num_classes * 40) % num_classes
    parts = partition.dirichlet_per_client(labels, num_clients, 0.3, seed=1)
    drawing = self.draw(
        client_plots.plot_partition, labels, parts, self.png, title='A title'
    )
    sizes, bubbles = drawing.axes
    self.assertEqual(drawing.get_suptitle(), 'A title')
    self.assertEqual(sizes.get_ylabel(), 'examples')
    self.assertEqual(bubbles.get_xlabel(), 'client')
    self.assertEqual(bubbles.get_ylabel(), 'class')
    self.assertLen(sizes.patches, num_clients)

  def test_areas_are_in_proportion_to_the_counts(self):
    labels = np.repeat([0, 1], 100)
    parts = {'a': np.arange(100), 'b': np.arange(75, 125)}
    drawing = self.draw(client_plots.plot_partition, labels, parts, self.png)
    points = drawing.axes[1].collections[0]
    np.testing.assert_array_equal(
        points.get_offsets(), [[0, 0], [1, 0], [1, 1]]
    )
    areas = points.get_sizes()
    np.testing.assert_allclose(areas / areas[0], [1, 0.25, 0.25])
    bars = [bar.get_height() for bar in drawing.axes[0].patches]
    self.assertEqual(bars, [100, 50])

  def test_the_first_of_many_clients_are_plotted_and_the_label_says_so(self):
    labels = np.zeros([500], np.int32)
    parts = partition.iid(500, 250, seed=1)
    drawing = self.draw(
        client_plots.plot_partition, labels, parts, self.png, max_clients=40
    )
    self.assertLen(drawing.axes[0].patches, 40)
    self.assertEqual(
        drawing.axes[1].get_xlabel(), 'client (the first 40 of 250)'
    )

  @parameterized.parameters(
      (1, ['1']),
      (3, ['1', '2', '3']),
      (50, ['5', '25', '50']),
      (497, ['40', '200', '400']),
      (6742, ['600', '3,000', '6,000']),
  )
  def test_legend(self, largest, expected):
    drawing = self.draw(
        client_plots.plot_partition,
        np.zeros([largest], np.int32),
        {'a': np.arange(largest)},
        self.png,
    )
    texts = drawing.axes[1].get_legend().get_texts()
    self.assertEqual([text.get_text() for text in texts], expected)

  @parameterized.parameters('packed', 'shared', 'lazy')
  def test_plots_existing_clients(self, kind):
    clients = {'a': _examples([0, 0, 2]), 'b': _examples([])}
    if kind == 'packed':
      source = client_data.PackedClientArrays.from_clients(clients)
    elif kind == 'shared':
      source = client_data.PackedClientArrays.from_partition(
          _examples([2, 0]), {'a': [1, 1, 0], 'b': []}
      )
    else:
      spec = client_data.PackedClientArrays.from_clients(clients).element_spec
      source = client_data.LazyClientArrays(clients, clients.get, spec)
    drawing = self.draw(client_plots.plot_client_labels, source, 5, self.png)
    points = drawing.axes[1].collections[0].get_offsets()
    np.testing.assert_array_equal(points, [[0, 0], [0, 2]])


def _metrics(num_clients, seed=1):
  generator = np.random.default_rng(seed)
  return client_metrics.ClientMetrics(
      [f'client_{i}' for i in range(num_clients)],
      generator.integers(1, 50, num_clients),
      {
          'loss': generator.gamma(2.0, 0.5, num_clients),
          'accuracy': generator.beta(8.0, 2.0, num_clients),
      },
  )


class ClientHistogramTest(figure_testing.FigureTestCase):

  def _draw(self, *args, **kwargs):
    return self.draw(client_plots.plot_client_histogram, *args, **kwargs).axes[
        0
    ]

  def _legend(self, axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]

  @parameterized.parameters(1, 2, 500)
  def test_every_client_is_in_a_bar(self, num_clients):
    axes = self._draw(_metrics(num_clients), 'accuracy', self.png)
    heights = [bar.get_height() for bar in axes.patches]
    self.assertEqual(sum(heights), num_clients)
    self.assertIn(f'accuracy (%) of {num_clients} client', axes.get_xlabel())

  @parameterized.parameters(0.3, 2.5e16)
  def test_rounding_errors_of_a_constant_are_in_one_bar(self, value):
    values = np.array([value, np.nextafter(value, np.inf), value])
    metrics = client_metrics.ClientMetrics(
        ['a', 'b', 'c'], np.ones([3], np.int64), {'loss': values}
    )
    axes = self._draw(metrics, 'loss', self.png)
    bars = [bar.get_height() for bar in axes.patches]
    self.assertEqual(bars, [0, 0, 3, 0, 0])

  def test_lines_are_where_the_summary_says(self):
    metrics = _metrics(40)
    axes = self._draw(metrics, 'loss', self.png, title='A task')
    summary = metrics.summarize()
    expected = [
        summary[f'loss_{name}'] for name in ('mean', 'median', 'worst_decile')
    ]
    found = [line.get_xdata()[0] for line in axes.lines]
    np.testing.assert_allclose(found, expected)
    self.assertEqual(
        self._legend(axes),
        [
            f'{name}: {value:.3g}'
            for name, value in zip(('mean', 'median', 'worst 10 %'), expected)
        ],
    )
    # Told apart without colors, too.
    self.assertLen({str(line._dash_pattern) for line in axes.lines}, 3)

  def test_earlier_values_are_an_outline_on_the_same_bins(self):
    before, after = _metrics(30, seed=2), _metrics(30)
    axes = self._draw(after, 'accuracy', self.png, before=before)
    self.assertIn('before fine-tuning', self._legend(axes))
    *bars, outline = axes.patches
    self.assertEqual(sum(bar.get_height() for bar in bars), 30)
    edges = {round(float(x), 9) for x in outline.get_xy()[:, 0]}
    for bar in bars:
      self.assertIn(round(bar.get_x(), 9), edges)

  def test_values_that_are_not_finite_are_left_out_and_said(self):
    metrics = client_metrics.ClientMetrics(
        ['a', 'b', 'c'], [1, 1, 1], {'loss': [0.5, np.nan, np.inf]}
    )
    axes = self._draw(metrics, 'loss', self.png)
    self.assertEqual(sum(bar.get_height() for bar in axes.patches), 1)
    self.assertEqual(
        axes.get_xlabel(), 'loss of 3 clients (2 not finite, left out)'
    )

  def test_invalid_metrics_cannot_be_plotted(self):
    with self.assertRaisesRegex(ValueError, "'recall'; there are loss, acc"):
      client_plots.plot_client_histogram(_metrics(3), 'recall', self.png)
    nothing = client_metrics.ClientMetrics(['a'], [1], {'loss': [np.nan]})
    with self.assertRaisesRegex(ValueError, "No client has a finite 'loss'"):
      client_plots.plot_client_histogram(nothing, 'loss', self.png)
    self.assertFalse(self.png.exists())

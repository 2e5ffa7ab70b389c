# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the picture of a metric over clients."""

from absl.testing import parameterized
import numpy as np

from tests.tff_adaptive.analysis import figure_testing
from tff_adaptive.analysis import client_plots
from tff_adaptive.simulation import client_evaluation


def _metrics(num_clients, seed=1):
  generator = np.random.default_rng(seed)
  return client_evaluation.ClientMetrics(
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
    # Told apart without colours, too.
    self.assertLen({str(line._dash_pattern) for line in axes.lines}, 3)

  def test_what_was_before_is_an_outline_on_the_same_bins(self):
    before, after = _metrics(30, seed=2), _metrics(30)
    axes = self._draw(after, 'accuracy', self.png, before=before)
    self.assertIn('before fine-tuning', self._legend(axes))
    *bars, outline = axes.patches
    self.assertEqual(sum(bar.get_height() for bar in bars), 30)
    edges = {round(float(x), 9) for x in outline.get_xy()[:, 0]}
    for bar in bars:
      self.assertIn(round(bar.get_x(), 9), edges)

  def test_values_that_are_not_finite_are_left_out_and_said(self):
    metrics = client_evaluation.ClientMetrics(
        ['a', 'b', 'c'], [1, 1, 1], {'loss': [0.5, np.nan, np.inf]}
    )
    axes = self._draw(metrics, 'loss', self.png)
    self.assertEqual(sum(bar.get_height() for bar in axes.patches), 1)
    self.assertEqual(
        axes.get_xlabel(), 'loss of 3 clients (2 not finite, left out)'
    )

  def test_what_cannot_be_drawn_is_refused(self):
    with self.assertRaisesRegex(ValueError, "'recall'; there are loss, acc"):
      client_plots.plot_client_histogram(_metrics(3), 'recall', self.png)
    nothing = client_evaluation.ClientMetrics(['a'], [1], {'loss': [np.nan]})
    with self.assertRaisesRegex(ValueError, "No client has a finite 'loss'"):
      client_plots.plot_client_histogram(nothing, 'loss', self.png)
    self.assertFalse(self.png.exists())

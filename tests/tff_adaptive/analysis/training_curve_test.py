# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the curves of a run."""

from absl.testing import parameterized
import matplotlib

from tests.tff_adaptive import file_testing
from tests.tff_adaptive.analysis import figure_testing
from tff_adaptive.analysis import training_curve

_STEP_SIZES = {
    'clients/step_size_mean': 0.2,
    'clients/step_size_min': 0.1,
    'clients/step_size_max': 0.4,
}


class TrainingCurveTest(figure_testing.FigureTestCase):

  def setUp(self):
    super().setUp()
    self.csv = self.folder / 'metrics.csv'

  def _write(self, columns, num_rounds=6):
    lines = [','.join(['round_num', *columns])]
    for i in range(num_rounds):
      values = [
          '' if name.startswith('evaluation') and i % 2 else str(value)
          for name, value in columns.items()
      ]
      lines.append(','.join([str(i + 1), *values]))
    self.csv.write_text('\n'.join(lines) + '\n')

  def _draw(self, title='digits: delta_sgd'):
    return self.draw(
        training_curve.plot_training_curve, self.csv, self.png, title
    )

  @parameterized.named_parameters(
      (
          'everything',
          {
              'clients/loss': 1.0,
              **_STEP_SIZES,
              'evaluation/loss': 1.5,
              'evaluation/accuracy': 0.5,
          },
          ['test accuracy (%)', 'mean loss per example', "clients' step size"],
      ),
      (
          'no_steps',
          {'clients/loss': 1.0, 'evaluation/accuracy': 0.5},
          ['test accuracy (%)', 'mean loss per example'],
      ),
      ('loss_only', {'clients/loss': 1.0}, ['mean loss per example']),
      (
          'wide_steps',
          {**_STEP_SIZES, 'clients/step_size_max': 40.0},
          ["clients' step size"],
      ),
      (
          'diverged',
          {'clients/loss': 'nan', 'evaluation/accuracy': 0.1},
          ['test accuracy (%)'],
      ),
  )
  def test_panels(self, columns, labels):
    self._write(columns)
    drawing = self._draw()
    self.assertEqual([axes.get_ylabel() for axes in drawing.axes], labels)
    self.assertEqual(drawing.axes[-1].get_xlabel(), 'round')
    self.assertEqual(drawing.get_suptitle(), 'digits: delta_sgd')

  def test_step_sizes_are_those_of_rounds_in_which_all_are_finite(self):
    names = ','.join(_STEP_SIZES)
    rows = ['1,0.2,0.1,0.4', '2,inf,0.1,inf', '3,0.3,nan,0.5', '4,0.4,0.2,0.6']
    self.csv.write_text('\n'.join([f'round_num,{names}', *rows, '']))
    (axes,) = self._draw().axes
    (line,), (band,) = axes.lines, axes.collections
    self.assertEqual(line.get_xydata().tolist(), [[1, 0.2], [4, 0.4]])
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices}
    self.assertEqual(corners, {(1, 0.1), (1, 0.4), (4, 0.2), (4, 0.6)})

  def test_rounding_errors_of_a_constant_rate_are_not_drawn(self):
    rates = [0.3, 0.29999998, 0.3]
    self._write(dict(zip(_STEP_SIZES, rates)))
    (axes,) = self._draw().axes
    low, high = axes.get_ylim()
    self.assertLess(low, 0.28)
    self.assertGreater(high, 0.32)

  def test_the_data_of_the_evaluations_are_named(self):
    self._write(
        {
            'clients/loss': 1.0,
            'evaluation/loss': 1.5,
            'evaluation/accuracy': 0.5,
        }
    )
    accuracy, loss = self.draw(
        training_curve.plot_training_curve,
        self.csv,
        self.png,
        data='validation',
    ).axes
    self.assertEqual(accuracy.get_ylabel(), 'validation accuracy (%)')
    self.assertEqual(
        [text.get_text() for text in loss.get_legend().texts],
        ['training (clients)', 'validation'],
    )

  @parameterized.parameters(('.pdf', b'%PDF'), ('.svg', b'<?xml'))
  def test_formats_of_vector_graphics(self, suffix, start):
    self._write({'evaluation/accuracy': 0.25})
    path = self.png.with_suffix(suffix)
    written = []
    for _ in range(2):
      training_curve.plot_training_curve(self.csv, path)
      written.append(path.read_bytes())
    self.assertStartsWith(written[0], start)
    self.assertEqual(*written)

  def test_unknown_format_is_refused(self):
    self._write({'evaluation/accuracy': 0.25})
    with self.assertRaisesRegex(ValueError, "'a.jpeg' must end in .png, .pdf"):
      training_curve.plot_training_curve(self.csv, 'a.jpeg')

  def test_plots_the_numbers_of_the_file(self):
    self._write({'evaluation/accuracy': 0.25})
    (line,) = self._draw().axes[0].get_lines()
    self.assertEqual(list(line.get_xdata()), [1, 3, 5])
    self.assertEqual(list(line.get_ydata()), [25.0, 25.0, 25.0])

  def test_one_round_is_enough(self):
    self._write({'clients/loss': 1.0, **_STEP_SIZES}, num_rounds=1)
    self.assertLen(self._draw(title='').axes, 2)

  def test_leaves_matplotlib_as_it_was(self):
    backend = matplotlib.rcParams._get('backend')  # pylint: disable=protected-access
    self._write({'clients/loss': 1.0})
    self._draw()
    self.assertEqual(matplotlib.rcParams._get('backend'), backend)  # pylint: disable=protected-access

  def test_a_full_disk_keeps_the_picture_that_was(self):
    self._write({'clients/loss': 1.0})
    self._draw()
    before = file_testing.read_files(self.png.parent)
    with file_testing.max_file_size(500):
      with self.assertRaisesRegex(
          OSError, f'^could not write {self.png}: File too large$'
      ):
        self._draw('Another title')
    self.assertEqual(file_testing.read_files(self.png.parent), before)

  def test_nothing_to_plot_is_an_error(self):
    self._write({'seconds': 1.0})
    with self.assertRaisesRegex(training_curve.NoCurveError, 'metrics.csv'):
      training_curve.plot_training_curve(self.csv, self.png)

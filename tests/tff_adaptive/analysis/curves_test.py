# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Tests of the curves of a run."""

import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import matplotlib
from matplotlib import figure
from matplotlib import image
import numpy as np

from tests.tff_adaptive import file_testing
from tff_adaptive.analysis import curves

_STEP_SIZES = {
    'clients/step_size_mean': 0.2,
    'clients/step_size_min': 0.1,
    'clients/step_size_max': 0.4,
}


class CurvesTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.csv = pathlib.Path(folder) / 'metrics.csv'
    self.png = pathlib.Path(folder) / 'plots' / 'curve.png'

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
    """Draws and returns the figure, which is caught when it is saved."""
    saved = []
    original = figure.Figure.savefig

    def savefig(drawing, *args, **kwargs):
      saved.append(drawing)
      original(drawing, *args, **kwargs)

    with absltest.mock.patch.object(figure.Figure, 'savefig', savefig):
      curves.plot_training_curve(self.csv, self.png, title)
    return saved[0]

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
    pixels = image.imread(self.png)
    self.assertGreater(np.std(pixels), 0.05)

  def test_draws_the_numbers_of_the_file(self):
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
    with file_testing.max_file_size(5000):
      with self.assertRaisesRegex(
          OSError, f'^could not write {self.png}: File too large$'
      ):
        self._draw('Another title')
    self.assertEqual(file_testing.read_files(self.png.parent), before)

  def test_nothing_to_draw_is_an_error(self):
    self._write({'seconds': 1.0})
    with self.assertRaisesRegex(ValueError, 'metrics.csv has no accuracy'):
      curves.plot_training_curve(self.csv, self.png)


if __name__ == '__main__':
  absltest.main()

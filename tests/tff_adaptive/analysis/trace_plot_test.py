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
"""Tests of the picture of one round."""

import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
from matplotlib import figure
from matplotlib import image
import numpy as np

from tff_adaptive import analysis

_DELTA_SGD = ('loss', 'step_size', 'theta', 'smoothness_limit', 'growth_limit')


def _trace(names, num_clients=3, num_steps=5, largest=0.4):
  num_rows = num_clients * num_steps
  values = np.linspace(0.1, largest, num_rows, dtype=np.float32)
  return analysis.RoundTrace(
      round_num=3,
      client_id=np.repeat(
          [f'client_{i}' for i in range(num_clients)], num_steps
      ),
      step=np.tile(np.arange(num_steps), num_clients),
      values={name: values for name in names},
      state=None,
      metrics=None,
  )


class TracePlotTest(parameterized.TestCase):

  def _draw(self, trace, title='delta_sgd, round 4'):
    """Draws and returns the figure, which is caught when it is saved."""
    folder = self.enter_context(tempfile.TemporaryDirectory())
    path = pathlib.Path(folder) / 'plots' / 'trace.png'
    saved = []
    original = figure.Figure.savefig

    def savefig(drawing, *args, **kwargs):
      saved.append(drawing)
      original(drawing, *args, **kwargs)

    with absltest.mock.patch.object(figure.Figure, 'savefig', savefig):
      analysis.plot_trace(trace, path, title)
    self.assertGreater(np.std(image.imread(path)), 0.02)
    return saved[0]

  @parameterized.named_parameters(
      (
          'delta_sgd',
          _DELTA_SGD,
          [
              'step size',
              'limit from\nthe smoothness',
              'limit of\nthe growth',
          ],
      ),
      ('sgd', ('loss', 'step_size'), ['step size', 'loss of the batch']),
      ('adagrad', ('loss',), ['loss of the batch']),
  )
  def test_panels(self, names, labels):
    drawing = self._draw(_trace(names))
    self.assertEqual([axes.get_ylabel() for axes in drawing.axes], labels)
    self.assertEqual(drawing.axes[-1].get_xlabel(), 'local step')
    self.assertEqual(drawing.get_suptitle(), 'delta_sgd, round 4')

  def test_a_line_a_client(self):
    trace = _trace(_DELTA_SGD)
    drawing = self._draw(trace)
    for axes in drawing.axes:
      lines = axes.get_lines()
      self.assertLen(lines, 3)
      for line, (_, rows) in zip(lines, trace.clients()):
        np.testing.assert_array_equal(line.get_xdata(), trace.step[rows])
        np.testing.assert_array_equal(
            line.get_ydata(), trace.values['step_size'][rows]
        )
    (legend,) = drawing.legends
    self.assertEqual(
        [text.get_text() for text in legend.get_texts()],
        ['client_0', 'client_1', 'client_2'],
    )

  @parameterized.parameters((0.4, 'linear'), (40.0, 'log'))
  def test_step_sizes_and_limits_share_an_axis(self, largest, scale):
    drawing = self._draw(_trace(_DELTA_SGD, largest=largest))
    self.assertEqual([axes.get_yscale() for axes in drawing.axes], [scale] * 3)
    self.assertLen({axes.get_ylim() for axes in drawing.axes}, 1)

  def test_many_clients_have_no_names(self):
    drawing = self._draw(_trace(('loss', 'step_size'), num_clients=100))
    self.assertEmpty(drawing.legends)
    self.assertLen(drawing.axes[0].get_lines(), 100)

  def test_diverged_clients_and_single_steps_are_drawn(self):
    trace = _trace(('loss', 'step_size'), num_steps=1)
    for name in trace.values:
      trace.values[name][:] = np.nan
    self.assertLen(self._draw(trace, title='').axes, 2)

  def test_no_step_is_an_error(self):
    with self.assertRaisesRegex(ValueError, 'The trace has no step'):
      analysis.plot_trace(_trace(('loss',), num_clients=0), 'trace.png')


if __name__ == '__main__':
  absltest.main()

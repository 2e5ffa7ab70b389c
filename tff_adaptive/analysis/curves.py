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
"""Curves of one run over its rounds, drawn from `metrics.csv`."""

from matplotlib import ticker

from tff_adaptive.analysis import _style
from tff_adaptive.analysis import run_metrics

_ACCURACY = 'evaluation/accuracy'
_TEST_LOSS = 'evaluation/loss'
_TRAIN_LOSS = 'clients/loss'
_STEP_SIZES = (
    'clients/step_size_mean',
    'clients/step_size_min',
    'clients/step_size_max',
)
_PANEL_HEIGHT = 2.3
_WIDTH = 7.0


def _frame(axes, label: str):
  """Gives a panel its label, grid and frame."""
  axes.set_ylabel(label)
  _style.frame(axes)


def _legend(axes):
  """Puts the legend above the panel, where it covers no curve."""
  axes.legend(
      frameon=False,
      loc='lower right',
      bbox_to_anchor=(1.0, 0.97),
      ncols=2,
      fontsize=9,
  )


def _draw_accuracy(axes, columns):
  """Draws the test accuracy and writes its last value beside it."""
  series = columns[_ACCURACY]
  percents = [100.0 * value for value in series[1]]
  axes.plot(
      series[0],
      percents,
      color=_style.BLUE,
      linewidth=1.8,
      marker=_style.marker(len(series[0])),
      markersize=3.5,
  )
  axes.annotate(
      f'{percents[-1]:.1f} %',
      (series[0][-1], percents[-1]),
      xytext=(6, 0),
      textcoords='offset points',
      color=_style.BLUE,
      va='center',
      fontweight='bold',
      annotation_clip=False,
  )
  _frame(axes, 'test accuracy (%)')


def _draw_losses(axes, columns):
  """Draws the clients' training loss and, if there is one, the test loss."""
  lines = [
      (_TRAIN_LOSS, 'training (clients)', _style.VERMILION, '-'),
      (_TEST_LOSS, 'test', _style.BLUE, '--'),
  ]
  drawn = [line for line in lines if line[0] in columns]
  for name, label, color, dashes in drawn:
    axes.plot(
        *columns[name],
        color=color,
        linestyle=dashes,
        linewidth=1.5,
        label=label,
    )
  if len(drawn) > 1:
    _legend(axes)
  _frame(axes, 'mean loss per example')


def _draw_step_sizes(axes, columns):
  """Draws the mean of the clients' step sizes within their range."""
  mean, low, high = (columns[name] for name in _STEP_SIZES)
  if min(low[1]) > 0 and max(high[1]) > 20 * min(low[1]):
    axes.set_yscale('log')
  axes.fill_between(
      mean[0],
      low[1],
      high[1],
      color=_style.GREEN,
      alpha=0.22,
      linewidth=0,
      label='smallest to largest',
  )
  axes.plot(*mean, color=_style.GREEN, linewidth=1.5, label='mean')
  _legend(axes)
  _frame(axes, "clients' step size")


def _panels(columns) -> list:
  """Returns the panels for which there are columns, from top to bottom."""
  panels = []
  if _ACCURACY in columns:
    panels.append(_draw_accuracy)
  if _TRAIN_LOSS in columns or _TEST_LOSS in columns:
    panels.append(_draw_losses)
  lengths = {len(columns[n][0]) for n in _STEP_SIZES if n in columns}
  if all(name in columns for name in _STEP_SIZES) and len(lengths) == 1:
    panels.append(_draw_step_sizes)
  return panels


def plot_training_curve(
    metrics_csv: _style.PathLike, path_png: _style.PathLike, title: str = ''
):
  """Draws one run: test accuracy, loss and the clients' step sizes by round.

  Panels without columns in the file are left out. The figure uses no global
  state of matplotlib.

  Args:
    metrics_csv: The file that `CSVMetricsWriter` wrote.
    path_png: The picture to write, atomically; its folder is made.
    title: What was trained: method and task. Empty (the default) for no title.

  Raises:
    OSError: If the picture cannot be written; names it.
    ValueError: If the file has no column that could be drawn.

  Example:
    >>> plot_training_curve(
    ...     'runs/demo/metrics.csv', 'runs/demo/plots/training.png',
    ...     title='delta_sgd + fedavg on digits')
  """
  columns = run_metrics.read_columns(metrics_csv)
  panels = _panels(columns)
  if not panels:
    raise ValueError(f'{metrics_csv} has no accuracy, loss or step size.')
  drawing = _style.new_figure(_WIDTH, _PANEL_HEIGHT * len(panels) + 0.7)
  grid = drawing.subplots(len(panels), 1, sharex=True, squeeze=False)
  for draw, axes in zip(panels, grid[:, 0]):
    draw(axes, columns)
  drawing.align_ylabels()
  last = grid[-1, 0]
  last.set_xlabel('round')
  last.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
  rounds = columns['round_num'][0]
  last.set_xlim(0, max(rounds) + 1)
  _style.save(drawing, path_png, title)

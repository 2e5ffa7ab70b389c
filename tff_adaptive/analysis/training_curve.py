# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The curves of one run: its accuracy, losses and step sizes by round."""

from collections.abc import Callable
import functools

from tff_adaptive import _files
from tff_adaptive import _run_metrics
from tff_adaptive.analysis import _style

_ACCURACY = 'evaluation/accuracy'
_LOSS = 'evaluation/loss'
_TRAIN_LOSS = 'clients/loss'
_STEP_SIZES = (
    'clients/step_size_mean',
    'clients/step_size_min',
    'clients/step_size_max',
)
_RUN_PANEL_HEIGHT = 2.3
_WIDTH = 7.0


class NoCurveError(ValueError):
  """A metrics file has no finite accuracy, loss or step size."""


def _frame(axes, label: str):
  """Adds the label, grid and frame of a panel."""
  axes.set_ylabel(label)
  _style.frame(axes)


def _legend(axes):
  """Adds the legend above the panel, where it covers no curve."""
  axes.legend(
      frameon=False,
      loc='lower right',
      bbox_to_anchor=(1.0, 0.97),
      ncols=2,
      fontsize=9,
  )


def _draw_accuracy(axes, columns, *, data):
  """Plots the accuracy on the data, with its last value next to it."""
  rounds, values = columns[_ACCURACY]
  percents = [100.0 * value for value in values]
  marker = _style.marker(len(rounds))
  axes.plot(
      rounds,
      percents,
      color=_style.BLUE,
      linewidth=1.8,
      marker=marker,
      markersize=3.5,
  )
  axes.annotate(
      f'{percents[-1]:.1f} %',
      (rounds[-1], percents[-1]),
      xytext=(6, 0),
      textcoords='offset points',
      color=_style.BLUE,
      va='center',
      fontweight='bold',
      annotation_clip=False,
  )
  _frame(axes, f'{data} accuracy (%)')


def _draw_losses(axes, columns, *, data):
  """Plots the clients' training loss and, if measured, that on the data."""
  looks = {
      _TRAIN_LOSS: dict(label='training (clients)', color=_style.VERMILION),
      _LOSS: dict(label=data, color=_style.BLUE, linestyle='--'),
  }
  drawn = [name for name in looks if name in columns]
  for name in drawn:
    marker = _style.marker(len(columns[name][0]))
    axes.plot(
        *columns[name],
        linewidth=1.5,
        marker=marker if name == _LOSS else None,
        markersize=3.5,
        **looks[name],
    )
  if len(drawn) > 1:
    _legend(axes)
  _frame(axes, 'mean loss per example')


def _rounds_of_step_sizes(columns) -> list[int]:
  """Returns the rounds in which mean, minimum and maximum are finite."""
  found = [set(columns.get(name, ((), ()))[0]) for name in _STEP_SIZES]
  return sorted(set.intersection(*found))


def _draw_step_sizes(axes, columns):
  """Plots the mean of the clients' step sizes within their range."""
  by_round = [dict(zip(*columns[name])) for name in _STEP_SIZES]
  rounds = _rounds_of_step_sizes(columns)
  mean, low, high = ([found[r] for r in rounds] for found in by_round)
  if min(low) > 0 and max(high) > 20 * min(low):
    axes.set_yscale('log')
  axes.fill_between(
      rounds,
      low,
      high,
      color=_style.GREEN,
      alpha=0.22,
      linewidth=0,
      label='smallest to largest',
  )
  axes.plot(rounds, mean, color=_style.GREEN, linewidth=1.5, label='mean')
  bottom, top = axes.get_ylim()
  if top - bottom < 1e-3 * abs(top):  # Rounding errors of a constant.
    axes.set_ylim(0.9 * bottom, 1.1 * top)
  _legend(axes)
  _frame(axes, "clients' step size")


def _panels(columns, data: str) -> list:
  """Returns the panels for which there are columns, from top to bottom."""
  panels: list[Callable[..., None]] = []
  if _ACCURACY in columns:
    panels.append(functools.partial(_draw_accuracy, data=data))
  if _TRAIN_LOSS in columns or _LOSS in columns:
    panels.append(functools.partial(_draw_losses, data=data))
  if _rounds_of_step_sizes(columns):
    panels.append(_draw_step_sizes)
  return panels


def plot_training_curve(
    metrics_csv: _files.PathLike,
    path: _files.PathLike,
    title: str = '',
    *,
    data: str = 'test',
):
  """Plots a run: accuracy, loss and the clients' step sizes by round.

  Panels without columns in the file are left out. The figure uses no global
  state of matplotlib.

  Args:
    metrics_csv: A file of `CSVMetricsWriter`.
    path: The .png, .pdf or .svg file to write; its folder is created.
    title: The title, for example the method and the task. Defaults to no title.
    data: The name of the data of the evaluations. Defaults to 'test'.

  Raises:
    OSError: If a file cannot be read or written; names it.
    NoCurveError: If the metrics file has no finite number to plot.
    ValueError: If it is damaged.

  Example:
    >>> plot_training_curve(
    ...     'runs/demo/metrics.csv', 'runs/demo/plots/training.png',
    ...     title='delta_sgd + fedavg on digits')
  """
  columns = _run_metrics.read_columns(metrics_csv)
  panels = _panels(columns, data)
  if not panels:
    raise NoCurveError(
        f'{metrics_csv} has no finite accuracy, loss or step size.'
    )
  drawing, stack = _style.new_stack(
      len(panels), width=_WIDTH, height=_RUN_PANEL_HEIGHT, x_label='round'
  )
  for draw, axes in zip(panels, stack):
    draw(axes, columns)
  drawing.align_ylabels()
  stack[-1].set_xlim(0, max(columns['round_num'][0]) + 1)
  _style.save(drawing, path, title)

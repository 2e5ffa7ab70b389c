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
"""A picture of how a metric is spread over clients."""

from typing import Optional

from matplotlib import ticker
import numpy as np

from tff_adaptive.analysis import _style
from tff_adaptive.simulation import client_evaluation

_LIGHT_BLUE = '#9CC9E6'
_GRID = '#E4E4E4'

# What is marked: its name in the summary, its name in the picture, its look.
_MARKS = (
    ('mean', 'mean', _style.BLUE, '-'),
    ('median', 'median', _style.BLACK, (0, (5, 2))),
    ('worst_decile', 'worst 10 %', _style.VERMILION, (0, (1, 1.2))),
)
_MIN_BINS = 5
_MAX_BINS = 40
_WIDTH = 7.0
_HEIGHT = 3.6


def plot_client_histogram(
    metrics: client_evaluation.ClientMetrics,
    metric: str,
    path_png: _style.PathLike,
    title: str = '',
    before: Optional[client_evaluation.ClientMetrics] = None,
):
  """Draws how many clients have which value of a metric.

  The mean, the median and the mean of the worst tenth of the clients that are
  drawn are marked, see `ClientMetrics.summarize`. An accuracy is shown in
  percent. The figure uses no global state of matplotlib.

  Args:
    metrics: What was found by client.
    metric: The name of the metric, such as 'accuracy'.
    path_png: The picture to write, atomically; its folder is made.
    title: What was evaluated: method and task. Empty (the default) for no
      title.
    before: What was found before fine-tuning; its histogram is an outline. None
      (the default) for none.

  Raises:
    ValueError: If there is no such metric, or no client has a finite value.
    OSError: If the picture cannot be written; names it.

  Example:

    >>> metrics = client_evaluation.ClientMetrics(
    ...     ['a', 'b', 'c'], np.array([10, 20, 10]),
    ...     {'accuracy': np.array([0.8, 1.0, 0.9])})
    >>> plot_client_histogram(
    ...     metrics, 'accuracy', 'plots/clients_accuracy.png',
    ...     title='delta_sgd + fedavg on emnist')
  """
  shown = _drop_not_finite(metrics, metric)
  values, outlined = shown.values[metric], np.zeros(0)
  if before is not None:
    outlined = _drop_not_finite(before, metric).values[metric]
  num_bins = np.clip(int(np.sqrt(len(values))) + 1, _MIN_BINS, _MAX_BINS)
  edges = np.histogram_bin_edges(np.append(values, outlined), num_bins)

  drawing = _style.new_figure(_WIDTH, _HEIGHT)
  axes = drawing.subplots()
  axes.hist(values, edges, color=_LIGHT_BLUE, edgecolor='white', linewidth=0.6)
  if before is not None:
    axes.hist(
        outlined,
        edges,
        histtype='step',
        color=_style.GREY,
        linewidth=1.3,
        label='before fine-tuning',
    )
  _draw_marks(axes, shown, metric)
  _label(axes, metric, len(values), len(metrics.client_ids))
  _style.save(drawing, path_png, title)


def _is_share(metric: str) -> bool:
  """Whether a metric is shown in percent."""
  return 'accuracy' in metric


def _drop_not_finite(
    metrics: client_evaluation.ClientMetrics, metric: str
) -> client_evaluation.ClientMetrics:
  """Returns the clients that can be drawn, or raises."""
  if metric not in metrics.values:
    raise ValueError(
        f'There is no metric {metric!r}; there are {", ".join(metrics.values)}.'
    )
  values = metrics.values[metric]
  is_finite = np.isfinite(values)
  if not is_finite.any():
    raise ValueError(f'No client has a finite {metric!r}.')
  return client_evaluation.ClientMetrics(
      np.asarray(metrics.client_ids)[is_finite].tolist(),
      metrics.num_examples[is_finite],
      {metric: values[is_finite]},
  )


def _draw_marks(
    axes, metrics: client_evaluation.ClientMetrics, metric: str
) -> None:
  """Draws the numbers of the summary as lines, which the legend names."""
  summary = metrics.summarize()
  for name, label, color, dashes in _MARKS:
    value = summary[f'{metric}_{name}']
    number = f'{100 * value:.1f} %' if _is_share(metric) else f'{value:.3g}'
    axes.axvline(
        value,
        color=color,
        linestyle=dashes,
        linewidth=2.0,
        label=f'{label}: {number}',
    )
  axes.legend(
      frameon=False,
      loc='lower left',
      bbox_to_anchor=(-0.02, 0.99),
      ncols=4,
      fontsize=9,
      handlelength=1.9,
      handletextpad=0.5,
      columnspacing=1.1,
      borderaxespad=0.2,
  )


def _label(axes, metric: str, num_shown: int, num_clients: int) -> None:
  """Gives the picture its labels, grid and frame."""
  text = metric.replace('_', ' ')
  if _is_share(metric):
    axes.xaxis.set_major_formatter(lambda value, _: f'{100 * value:.4g}')
    text += ' (%)'
  text += f' of {num_clients:,} client' + 's' * (num_clients > 1)
  if num_shown < num_clients:
    text += f' ({num_clients - num_shown:,} not finite, left out)'
  axes.set(xlabel=text, ylabel='clients')
  axes.yaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
  axes.yaxis.set_major_formatter('{x:,.0f}')
  _style.frame(axes, axis='y', grid=_GRID)

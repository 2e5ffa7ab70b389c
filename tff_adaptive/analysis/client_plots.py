# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figures of clients: class counts and histograms of metrics."""

from collections.abc import Mapping, Sequence
import itertools
from typing import Optional

from matplotlib import ticker
import numpy as np

from tff_adaptive import _files
from tff_adaptive.analysis import _style
from tff_adaptive.data import client_data
from tff_adaptive.data import specs
from tff_adaptive.evaluation import client_metrics

# Dark on white, with all information in the sizes: readable for the
# color-blind and in grayscale.
_GRID = '#E4E4E4'
_LABEL_FEATURE = 'y'

_MIN_WIDTH = 7.0
_MAX_WIDTH = 13.0
_MARGIN_WIDTH = 2.0  # For labels and legend, in inches.
_MARGIN_HEIGHT = 1.9  # For labels, title and the panel of sizes.
_MAX_PITCH = 0.34  # Between two clients or two classes, in inches.
_MIN_PITCH = 0.08
_MAX_HEIGHT = 12.0
_POINTS_PER_INCH = 72.0
# The diameter of the bubble for the largest count, in units of the pitch of the
# classes; wider than the pitch of many clients, few of which have such bubbles.
_LARGEST_BUBBLE = 0.95
_LARGEST_OVERLAP = 1.9
_SMALLEST_AREA = 0.8  # A dot that is just visible, in square points.
_FONT_SIZE = 9
_STEPS = [1, 2, 5, 10]


def count_labels(
    labels: np.ndarray,
    client_indices: Mapping[str, np.ndarray],
    num_classes: Optional[int] = None,
) -> np.ndarray:
  """Counts each client's examples of each class.

  Args:
    labels: The class of each row, integers from 0 of shape [num_rows].
    client_indices: The rows of each client by id, as returned by the functions
      of `partition`. A row that occurs twice counts twice.
    num_classes: The number of classes. None (the default) for the largest label
      plus one.

  Returns:
    The counts, int64 of shape [num_clients, num_classes].

  Raises:
    ValueError: If there are no clients, or a label is not in [0, num_classes).

  Example:

    >>> count_labels([0, 1, 1], {'a': [0, 1], 'b': [2, 2]}).tolist()
    [[1, 1], [0, 2]]
  """
  labels = np.asarray(labels)
  if num_classes is None:
    num_classes = int(labels.max(initial=0)) + 1
  return _count(
      [labels[np.asarray(rows, np.int64)] for rows in client_indices.values()],
      num_classes,
  )


def plot_partition(
    labels: np.ndarray,
    client_indices: Mapping[str, np.ndarray],
    path: _files.PathLike,
    title: str = '',
    max_clients: int = 100,
):
  """Plots each client's class counts: bubble areas show numbers of examples.

  A panel above shows the sizes of the clients. The figure uses no global state
  of matplotlib.

  Args:
    labels: The class of each row, integers from 0 of shape [num_rows].
    client_indices: The rows of each client by id, as returned by the functions
      of `partition`.
    path: The .png, .pdf or .svg file to write; its folder is created.
    title: The title, for example the data set and the partition. Defaults to
      no title.
    max_clients: The maximum number of clients to plot, the first ones; the
      figure says if there are more. Defaults to 100.

  Raises:
    ValueError: If there are no clients, a label is negative, or `max_clients`
      is not positive.
    OSError: If the file cannot be written; names it.

  Example:

    >>> labels = np.arange(5000) % 10
    >>> plot_partition(
    ...     labels, partition.dirichlet_per_client(labels, 100, 0.1, seed=1),
    ...     'plots/partition.png', title='Ten classes, Dirichlet 0.1')

  References:
    Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, Figure 8. Its colors of clients are left
    out, because they repeat the axis.
  """
  specs.check_positive('max_clients', max_clients)
  shown = dict(list(client_indices.items())[:max_clients])
  _draw(count_labels(labels, shown), len(client_indices), path, title)


def plot_client_labels(
    source: client_data.ClientArrays,
    num_classes: int,
    path: _files.PathLike,
    title: str = '',
    max_clients: int = 100,
):
  """Plots the class counts of given clients, such as a task's `train_data`.

  Args:
    source: The clients; the feature 'y' is the class of an example.
    num_classes: The number of classes.
    path: See `plot_partition`.
    title: See `plot_partition`.
    max_clients: See `plot_partition`; other clients are not read.

  Raises:
    ValueError: If the clients have no feature 'y' with one integer per example,
      a label is not in [0, num_classes), or `max_clients` is not positive.
    OSError: If the file cannot be written; names it.

  Example:

    >>> plot_client_labels(digits.train_data, 10, 'plots/partition.png')
  """
  specs.check_positive('max_clients', max_clients)
  if not has_class_labels(source):
    raise ValueError(
        "The clients must have a feature 'y' with one integer per example, "
        f'found {dict(source.element_spec)}.'
    )
  labels = [
      _labels_of(source, name) for name in source.client_ids[:max_clients]
  ]
  counts = _count(labels, num_classes)
  _draw(counts, len(source.client_ids), path, title)


def has_class_labels(source: client_data.ClientArrays) -> bool:
  """Returns whether `plot_client_labels` can plot these clients."""
  spec = source.element_spec.get(_LABEL_FEATURE)
  return spec is not None and spec.shape.rank == 0 and spec.dtype.is_integer


def _labels_of(source: client_data.ClientArrays, client_id: str) -> np.ndarray:
  if isinstance(source, client_data.PackedClientArrays):
    # Reads only the labels of shared arrays: images need not be gathered.
    return source.values[_LABEL_FEATURE][source.rows(client_id)]
  return source.examples(client_id)[_LABEL_FEATURE]


def _count(labels: Sequence[np.ndarray], num_classes: int) -> np.ndarray:
  """Returns the class counts of each client."""
  if not labels:
    raise ValueError('There must be at least one client, found none.')
  for client_labels in labels:
    is_bad = (client_labels < 0) | (client_labels >= num_classes)
    if np.any(is_bad):
      raise ValueError(
          f'`labels` must be from 0 to {num_classes - 1}, found '
          f'{client_labels[np.argmax(is_bad)]}.'
      )
  return np.stack(
      [np.bincount(part, minlength=num_classes) for part in labels]
  ).astype(np.int64, copy=False)


def _draw(
    counts: np.ndarray, num_clients: int, path: _files.PathLike, title: str
) -> None:
  """Plots class counts of shape [clients shown, classes]."""
  num_shown, num_classes = counts.shape
  width = np.clip(
      num_shown * _MAX_PITCH + _MARGIN_WIDTH, _MIN_WIDTH, _MAX_WIDTH
  )
  pitch_x = (width - _MARGIN_WIDTH) / num_shown
  pitch_y = np.clip(
      (_MAX_HEIGHT - _MARGIN_HEIGHT) / num_classes, _MIN_PITCH, _MAX_PITCH
  )
  drawing = _style.new_figure(width, num_classes * pitch_y + _MARGIN_HEIGHT)
  sizes, bubbles = drawing.subplots(
      2, 1, sharex=True, height_ratios=[0.75, max(num_classes * pitch_y, 0.5)]
  )
  diameter = _POINTS_PER_INCH * min(
      _LARGEST_BUBBLE * pitch_y, _LARGEST_OVERLAP * pitch_x
  )
  _draw_sizes(sizes, counts.sum(axis=1))
  _draw_bubbles(bubbles, counts, diameter)
  label = 'client'
  if num_shown < num_clients:
    label += f' (the first {num_shown} of {num_clients})'
  bubbles.set_xlabel(label)
  _style.save(drawing, path, title)


def _draw_sizes(axes, sizes: np.ndarray) -> None:
  """Plots a bar for each client."""
  axes.bar(range(len(sizes)), sizes, 0.7, color=_style.GRAY, linewidth=0)
  axes.set(ylabel='examples', ylim=(0, 1.1 * max(sizes.max(), 1)))
  axes.yaxis.set_major_locator(
      ticker.MaxNLocator(3, integer=True, steps=_STEPS)
  )
  axes.yaxis.set_major_formatter('{x:,.0f}')
  axes.tick_params(axis='x', length=0)
  _style.frame(axes, grid=None)


def _draw_bubbles(axes, counts: np.ndarray, diameter: float) -> None:
  """Plots a bubble for each client and class, and a legend of three sizes."""
  num_shown, num_classes = counts.shape
  largest = max(int(counts.max()), 1)

  def scatter(x, y, shown_counts, **kwargs):
    areas = diameter**2 * np.asarray(shown_counts) / largest
    axes.scatter(
        x,
        y,
        s=np.maximum(areas, _SMALLEST_AREA),
        color=_style.BLUE,
        alpha=0.85,
        linewidths=0,
        clip_on=False,
        zorder=3,
        **kwargs,
    )

  clients, classes = np.nonzero(counts)
  scatter(clients, classes, counts[clients, classes])
  for count in _legend_counts(largest):
    scatter([], [], [count], label=f'{count:,}')
  axes.legend(
      title='examples',
      frameon=False,
      loc='upper left',
      bbox_to_anchor=(1.0, 1.0),
      labelspacing=max(0.9, diameter / _FONT_SIZE - 0.7),
      handletextpad=max(0.8, 0.5 * diameter / _FONT_SIZE - 0.5),
      borderaxespad=0.8,
      fontsize=_FONT_SIZE,
      title_fontsize=_FONT_SIZE,
  )
  axes.set(ylabel='class', xlim=(-1, num_shown), ylim=(-0.7, num_classes - 0.3))
  for axis, count in ((axes.xaxis, num_shown), (axes.yaxis, num_classes)):
    if count <= 20:
      axis.set_major_locator(ticker.FixedLocator(range(count)))
    else:
      axis.set_major_locator(ticker.MaxNLocator(10, integer=True, steps=_STEPS))
  _style.frame(axes, grid=_GRID)


def _legend_counts(largest: int) -> list[int]:
  """Returns up to three round counts, none above the largest."""
  if largest < 4:
    return list(range(1, largest + 1))
  digits = 10 ** (len(str(largest)) - 1)
  top = largest // digits * digits
  return sorted({max(top // 10, 1), max(top // 2, 1), top})


_LIGHT_BLUE = '#9CC9E6'

# The marked statistics: name in the summary, name in the figure, and look.
_MARKS = (
    ('mean', 'mean', _style.BLUE, '-'),
    ('median', 'median', _style.BLACK, (0, (5, 2))),
    ('worst_decile', 'worst 10 %', _style.VERMILION, (0, (1, 1.2))),
)
_MIN_BINS = 5
_ROUNDING = 1e-12
_MAX_BINS = 40
_WIDTH = 7.0
_HEIGHT = 3.6


def plot_client_histogram(
    metrics: client_metrics.ClientMetrics,
    metric: str,
    path: _files.PathLike,
    title: str = '',
    before: Optional[client_metrics.ClientMetrics] = None,
):
  """Plots a histogram of a metric over clients.

  Vertical lines mark the mean, the median and the mean of the worst tenth of
  the plotted clients, see `ClientMetrics.summarize`. An accuracy is shown in
  percent. The figure uses no global state of matplotlib.

  Args:
    metrics: The metrics of the clients.
    metric: The name of the metric, such as 'accuracy'.
    path: The .png, .pdf or .svg file to write; its folder is created.
    title: The title, for example the method and the task. Defaults to no title.
    before: The metrics before fine-tuning, plotted as an outline. None (the
      default) for none.

  Raises:
    ValueError: If the metric does not exist, or no client has a finite value.
    OSError: If the file cannot be written; names it.

  Example:

    >>> metrics = client_metrics.ClientMetrics(
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
  edges = _bin_edges(np.append(values, outlined), num_bins)

  drawing = _style.new_figure(_WIDTH, _HEIGHT)
  axes = drawing.subplots()
  axes.hist(values, edges, color=_LIGHT_BLUE, edgecolor='white', linewidth=0.6)
  if before is not None:
    axes.hist(
        outlined,
        edges,
        histtype='step',
        color=_style.GRAY,
        linewidth=1.3,
        label='before fine-tuning',
    )
  _draw_marks(axes, shown, metric)
  _label(axes, metric, len(values), len(metrics.client_ids))
  _style.save(drawing, path, title)


def _bin_edges(values: np.ndarray, num_bins: int) -> np.ndarray:
  low, high = values.min(), values.max()
  if high - low <= _ROUNDING * max(abs(low), abs(high)):
    # Rounding errors of a constant are too close for bins between them.
    margin = 0.5 * max(1.0, abs(low))
    low, high = low - margin, high + margin
  return np.linspace(low, high, num_bins + 1)


def _is_share(metric: str) -> bool:
  """Returns whether a metric is shown in percent."""
  return 'accuracy' in metric


def _drop_not_finite(
    metrics: client_metrics.ClientMetrics, metric: str
) -> client_metrics.ClientMetrics:
  """Returns the clients with finite values, or raises."""
  if metric not in metrics.values:
    raise ValueError(
        f'There is no metric {metric!r}; there are {", ".join(metrics.values)}.'
    )
  values = metrics.values[metric]
  is_finite = np.isfinite(values)
  if not is_finite.any():
    raise ValueError(f'No client has a finite {metric!r}.')
  return client_metrics.ClientMetrics(
      itertools.compress(metrics.client_ids, is_finite),
      metrics.num_examples[is_finite],
      {metric: values[is_finite]},
      metrics.modes,
  )


def _draw_marks(
    axes, metrics: client_metrics.ClientMetrics, metric: str
) -> None:
  """Plots the statistics as lines, with a legend."""
  summary = metrics.summarize()
  for name, label, color, dashes in _MARKS:
    if f'{metric}_{name}' not in summary:  # A count has no worst clients.
      continue
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
  """Adds labels, grid and frame."""
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

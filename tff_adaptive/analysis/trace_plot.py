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
"""A picture of one round: what every client did, step by step."""

from typing import Any

import matplotlib
from matplotlib import ticker
import numpy as np

from tff_adaptive.analysis import _style
from tff_adaptive.analysis import round_trace

# Each colour has two dashes before clients look alike.
_DASHES = ('-', '--')
_MAX_NAMED_CLIENTS = len(_style.COLORS) * len(_DASHES)
_MANY_COLORS = 'viridis'

_LABELS = {
    'step_size': 'step size',
    'smoothness_limit': 'limit from\nthe smoothness',
    'growth_limit': 'limit of\nthe growth',
    'loss': 'loss of the batch',
}
# Panels with the same axis of values, to be compared.
_STEP_SIZES = ('step_size', 'smoothness_limit', 'growth_limit')
_WIDE_RANGE = 20.0  # From largest to smallest; beyond, the axis is logarithmic.
_PANEL_HEIGHT = 2.1
_WIDTH = 8.0
_MAX_MARKED_STEPS = 30


def _panels(trace: round_trace.RoundTrace) -> list[str]:
  """The values to draw: what sets the step size, or else the loss with it."""
  if 'smoothness_limit' in trace.values:
    return list(_STEP_SIZES)
  return [name for name in ('step_size', 'loss') if name in trace.values]


def _looks(num_clients: int) -> list[dict[str, Any]]:
  """Colours and dashes of the clients' lines."""
  if num_clients <= _MAX_NAMED_CLIENTS:
    looks = [(color, dash) for dash in _DASHES for color in _style.COLORS]
    return [
        {'color': color, 'linestyle': dash, 'linewidth': 1.4}
        for color, dash in looks[:num_clients]
    ]
  colors = matplotlib.colormaps[_MANY_COLORS](np.linspace(0, 0.9, num_clients))
  return [{'color': color, 'linewidth': 0.8, 'alpha': 0.7} for color in colors]


def _scale(panels, trace: round_trace.RoundTrace):
  """Gives panels one axis of values, which shows small ones, too."""
  values = np.asarray([trace.values[name] for _, name in panels])
  values = values[np.isfinite(values)]
  if not len(values):
    return
  low, high = values.min(), values.max()
  is_wide = 0 < low < high / _WIDE_RANGE
  margin = (high / low) ** 0.05 if is_wide else 0.05 * (high - low) or 1.0
  for axes, _ in panels:
    if is_wide:
      axes.set_yscale('log')
      axes.set_ylim(low / margin, high * margin)
    else:
      axes.set_ylim(low - margin, high + margin)


def _draw(axes, name: str, trace: round_trace.RoundTrace):
  """Draws a line a client."""
  clients = list(trace.clients())
  is_marked = max(trace.step) < _MAX_MARKED_STEPS
  for (client_id, rows), look in zip(clients, _looks(len(clients))):
    axes.plot(
        trace.step[rows],
        trace.values[name][rows],
        label=client_id,
        marker='o' if is_marked else None,
        markersize=3.0,
        **look,
    )
  axes.set_ylabel(_LABELS[name])
  _style.frame(axes)


def plot_trace(
    trace: round_trace.RoundTrace,
    path_png: _style.PathLike,
    title: str = '',
):
  """Draws the local steps of a round, a line a client.

  Of Delta-SGD the step size above its two limits, of which it is the smaller
  one, all with the same axis; else the step size, if the optimizer has one,
  above the loss. The figure uses no global state of matplotlib.

  Args:
    trace: What `trace_round` returned.
    path_png: The picture to write, atomically; its folder is made.
    title: What was trained. Empty (the default) for no title.

  Raises:
    OSError: If the picture cannot be written; names it.
    ValueError: If the trace has no step.

  Example:

    >>> trace = round_trace.RoundTrace(
    ...     round_num=7, client_id=np.array(['a', 'a', 'b']),
    ...     step=np.array([0, 1, 0]),
    ...     values={'loss': np.array([2.3, 2.1, 2.2]),
    ...             'step_size': np.array([0.2, 0.25, 0.2])},
    ...     state=None, metrics=None)
    >>> plot_trace(trace, 'round_8.png', title='delta_sgd, round 8')

  References:
    Kim, Toghani, Uribe, Kyrillidis, Adaptive Federated Learning with
    Auto-Tuned Clients, ICLR 2024, https://arxiv.org/abs/2306.11201, Figure 7.
  """
  if not len(trace.step):
    raise ValueError('The trace has no step: no client has an example.')
  names = _panels(trace)
  drawing = _style.new_figure(_WIDTH, _PANEL_HEIGHT * len(names) + 0.7)
  grid = drawing.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
  panels = list(zip(grid, names))
  for axes, name in panels:
    _draw(axes, name, trace)
  _scale([panel for panel in panels if panel[1] in _STEP_SIZES], trace)
  drawing.align_ylabels()
  grid[-1].set_xlabel('local step')
  grid[-1].xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
  lines, labels = grid[0].get_legend_handles_labels()
  if len(lines) <= _MAX_NAMED_CLIENTS:
    drawing.legend(
        lines,
        labels,
        loc='outside right center',
        frameon=False,
        fontsize=9,
        title='client',
    )
  _style.save(drawing, path_png, title)

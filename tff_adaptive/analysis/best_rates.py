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
"""Which learning rate of the server is the best for each one of the clients."""

from collections.abc import Mapping

import numpy as np

from tff_adaptive.analysis import _style
from tff_adaptive.analysis import rate_grid

_PANEL_WIDTH = 3.6
_PANEL_HEIGHT = 3.2
_MARGIN = 2.0  # A factor, around the smallest and largest rates.


def best_server_rates(
    grid: rate_grid.RateGrid,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the client rates with a value, and the best server rate of each.

  Args:
    grid: The values; of equal ones, the smallest server rate is taken.

  Returns:
    Two arrays of the same length.

  Example:

    >>> best_server_rates(RateGrid(
    ...     np.array([0.01, 0.1]), np.array([0.1, 1.0]),
    ...     np.array([[70.0, 80.0], [75.0, np.nan]])))
    (array([0.01, 0.1 ]), array([1. , 0.1]))
  """
  values = np.asarray(grid.values, np.float64)
  worst = -np.inf if grid.higher_is_better else np.inf
  has_value = np.isfinite(values).any(axis=1)
  filled = np.where(np.isfinite(values), values, worst)[has_value]
  find = np.argmax if grid.higher_is_better else np.argmin
  best = find(filled, axis=1) if len(filled) else np.zeros([0], np.int64)
  return (
      np.asarray(grid.client_rates)[has_value],
      np.asarray(grid.server_rates)[best],
  )


def plot_best_server_rates(
    panels: Mapping[str, rate_grid.RateGrid],
    path_png: _style.PathLike,
    *,
    title: str = '',
    x_label: str = 'client learning rate',
    y_label: str = 'best server learning rate',
):
  """Draws the best server rate over the client rate, both logarithmic.

  The figure uses no global state of matplotlib.

  Args:
    panels: The values by the title of their panel.
    path_png: The picture to write, atomically; its folder is made.
    title: What is compared. Empty (the default) for no title.
    x_label: The label below. Defaults to 'client learning rate'.
    y_label: The label beside. Defaults to 'best server learning rate'.

  Raises:
    ValueError: If there is no value.
    OSError: If the picture cannot be written; names it.

  Example:

    >>> grid = RateGrid(
    ...     np.array([0.01, 0.1]), np.array([0.1, 1.0]),
    ...     np.array([[70.0, 80.0], [75.0, np.nan]]))
    >>> plot_best_server_rates({'FedAdam': grid}, 'best_rates.png')

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Figure 4.
  """
  if all(grid.best() is None for grid in panels.values()):
    raise ValueError('There is no value to draw.')
  drawing, axes_by_title = _style.new_panels(
      list(panels), width=_PANEL_WIDTH, height=_PANEL_HEIGHT
  )
  looks = _style.looks(list(panels))
  for name, grid in panels.items():
    axes = axes_by_title[name]
    axes.plot(
        *best_server_rates(grid), linewidth=1.6, markersize=6.0, **looks[name]
    )
    axes.set_xscale('log')
    axes.set_yscale('log')
    # The whole grid that was searched, so that a best rate at its edge shows.
    axes.set_xlim(
        min(grid.client_rates) / _MARGIN, max(grid.client_rates) * _MARGIN
    )
    axes.set_ylim(
        min(grid.server_rates) / _MARGIN, max(grid.server_rates) * _MARGIN
    )
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    _style.frame(axes)
  _style.save(drawing, path_png, title)

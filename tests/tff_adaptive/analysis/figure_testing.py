# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A test case for plots, which catches figures when they are saved."""

from typing import Any
from unittest import mock

from matplotlib import figure
from matplotlib import image
import numpy as np

from tests import folder_testing
from tff_adaptive.analysis import _style


class FigureTestCase(folder_testing.FolderTestCase):
  """Draws into `png`, coarsely, in a folder that does not exist yet."""

  def setUp(self):
    super().setUp()
    self.enter_context(mock.patch.object(_style, '_DPI', 50))
    self.png = self.folder / 'plots' / 'figure.png'

  def draw(self, plot, *args: Any, **kwargs: Any) -> figure.Figure:
    """Calls a function that writes `png`; returns the figure, not blank."""
    saved = []
    original = figure.Figure.savefig

    def savefig(drawing, *args, **kwargs):
      saved.append(drawing)
      original(drawing, *args, **kwargs)

    with mock.patch.object(figure.Figure, 'savefig', savefig):
      plot(*args, **kwargs)
    self.assertGreater(np.std(image.imread(self.png)), 0.02)
    return saved[0]

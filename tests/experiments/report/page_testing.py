# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes pages of made-up runs, for the tests of what stands on them."""

import contextlib
import io
import pathlib
from unittest import mock

from absl.testing import parameterized
from matplotlib import image
import numpy as np

from experiments import published
from experiments.report import page
from tests import folder_testing
from tests.experiments.report import made_up_runs
from tff_adaptive.analysis import _style


class PageTestCase(parameterized.TestCase):
  """A test with a folder of runs and one of pages, whose figures are coarse.

  Attributes:
    runs_dir: The folder of all runs.
    output_dir: The folder of the pages.
  """

  def setUp(self):
    super().setUp()
    self.enter_context(mock.patch.object(_style, '_DPI', 50))
    folder = folder_testing.new(self)
    self.runs_dir = folder / 'runs'
    self.output_dir = pathlib.Path(folder) / 'out'
    self.runs_dir.mkdir()

  def write(self, *tables: published.Table) -> str:
    """Writes the pages of tables; returns what is printed."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
      page.write_tables(
          tables,
          self.runs_dir,
          self.output_dir,
          lambda table: f'report --table={table.name}',
      )
    return out.getvalue()

  def read(self, suffix: str) -> str:
    """Returns a file of the table of `made_up_runs`."""
    path = self.output_dir / 'paper' / f'table_1{suffix}'
    return path.read_text(encoding='utf-8')

  def write_runs(self, table, finals, **kwargs):
    """Writes two seeds of every cell with a final number, half a point off."""
    for cell, final in zip(table.cells, finals):
      if final is not None:
        made_up_runs.write_cell(
            self.runs_dir,
            cell,
            [[0.1, 0.2, 0.3, final + spread] for spread in (-0.005, 0.005)],
            **kwargs,
        )

  def assert_plotted(self, name='paper/table_1'):
    """Asserts that a picture is not blank."""
    picture = image.imread(self.output_dir / f'{name}.png')
    self.assertGreater(np.std(picture), 0.02)

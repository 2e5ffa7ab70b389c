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
"""Writes pages of made-up runs, for the tests of what stands on them."""

import contextlib
import io
import pathlib
import tempfile

from absl.testing import parameterized

from experiments import published
from experiments.report import writing


class PageTestCase(parameterized.TestCase):
  """A test with a folder of runs and one of pages.

  Attributes:
    runs_dir: The folder of all runs.
    output_dir: The folder of the pages.
  """

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.runs_dir = pathlib.Path(folder) / 'runs'
    self.output_dir = pathlib.Path(folder) / 'out'
    self.runs_dir.mkdir()

  def write(self, *tables: published.Table) -> str:
    """Writes the pages of tables; returns what is printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
      writing.write_tables(
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

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
"""What the checks of claims work with: rules, processes, tables and runs.

TensorFlow is imported by the first check that needs it, not with this module,
so that the names of all claims are known at once.
"""

from collections.abc import Sequence
import functools
import importlib
import pathlib
from typing import Any, Optional

import numpy as np

from experiments import published
from experiments.audit import quadratics

# Of this project.
_PRESETS = published.ROOT / 'experiments' / 'presets'


class Workbench:
  """The library, the published tables and the folder of runs, for checks.

  Attributes:
    runs_dir: The folder of all runs.
  """

  def __init__(
      self, runs_dir: pathlib.Path, presets: Optional[pathlib.Path] = None
  ):
    """Initializes the workbench.

    Args:
      runs_dir: The folder of all runs; it may be missing.
      presets: The folder of the papers' tables. Default: that of this project.
    """
    self.runs_dir = pathlib.Path(runs_dir)
    self._presets = pathlib.Path(presets or _PRESETS)
    self._results: dict[tuple[str, ...], Any] = {}

  def find_table(self, name: str) -> Optional[published.Table]:
    """Returns a published table as 'delta_sgd/table_1', if it is there."""
    if not (self._presets / f'{name}.yaml').is_file():
      return None
    return published.find_table(name, self._presets)

  def collect(self, table: published.Table) -> Sequence[Any]:
    """Returns the `reports.cell_results.CellResult`s of a table, read once.

    Args:
      table: The table, or a part of it: runs of other cells are not read.

    Returns:
      A result for every cell.

    Raises:
      RunError: If a file of a run is damaged.
      OSError: If a file cannot be read.
    """
    names = tuple(cell.experiment_name for cell in table.cells)
    if names not in self._results:
      reader = importlib.import_module('experiments.report.cell_results')
      self._results[names] = reader.collect(table, self.runs_dir)
    return self._results[names]

  @property
  def runs(self) -> list[Any]:
    """The runs that count among those that were read so far, each once."""
    found = {
        run.path: run
        for results in self._results.values()
        for result in results
        for run in result.runs.values()
    }
    return list(found.values())

  def linear_cka(self, x: np.ndarray, y: np.ndarray) -> float:
    """See `tff_adaptive.analysis.linear_cka`."""
    return importlib.import_module('tff_adaptive.analysis').linear_cka(x, y)

  @functools.cached_property
  def _federated(self) -> Any:
    return importlib.import_module('experiments.audit.federated_runs')

  def steps(
      self, rule: str, batches: quadratics.Batches, start: Any, **arguments: Any
  ) -> Any:
    """See `experiments.audit.federated_runs.run`."""
    return self._federated.run(rule, batches, start, **arguments)

  def server_step(
      self, rule: str, changes: np.ndarray, loss: float = 0.0, **arguments: Any
  ) -> float:
    """See `experiments.audit.federated_runs.server_step`."""
    return self._federated.server_step(rule, changes, loss, **arguments)

  def train(
      self,
      config: Any,
      start: float = 0.0,
      clients: Sequence[quadratics.Client] = quadratics.CLIENTS,
      **options: Any,
  ) -> Any:
    """See `experiments.audit.federated_runs.train`."""
    return self._federated.train(config, clients, start, **options)

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
"""The clients that rounds have rejected, by name."""

from collections.abc import Mapping, Sequence
import os
import pathlib
from typing import Any, Union

from absl import logging
import numpy as np

from tff_adaptive.client_works import rejections
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.simulation import client_states
from tff_adaptive.simulation import metrics_writers

_REJECTIONS_KEY = 'rejections'
_COLUMNS = (metrics_writers.ROUND_NUM_KEY, 'client_id', 'reason')


def find_rejected(
    clients: Sequence[Any], metrics: Any
) -> list[tuple[str, str]]:
  """Finds out which clients a round has rejected.

  Args:
    clients: The clients of the round. Those of a `Cohort` have ids; those of
      another sequence go by their places in it, '0' and so on.
    metrics: What the process measured in the round, see
      `tff_adaptive.client_works.build_local_training_client_work`.

  Returns:
    The id of every rejected client and the name of its `Rejection` in lower
    case, in the order of the clients. Nothing, of a process that does not tell.

  Example:

    >>> find_rejected(cohort, process.next(state, cohort).metrics)
    []
  """
  codes = metrics
  for key in (client_states.CLIENT_WORK_KEY, _REJECTIONS_KEY):
    codes = codes.get(key, ()) if isinstance(codes, Mapping) else ()
  ids: Sequence[Any] = range(len(codes))
  if isinstance(clients, cohort_lib.Cohort):
    ids = clients.client_ids
  return [
      (str(ids[place]), rejections.Rejection(codes[place]).name.lower())
      for place in np.flatnonzero(codes)
  ]


class RejectedClientsWriter(metrics_writers.LogFileWriter):
  """Writes `rejected_clients.csv`: one row a rejected client and round.

  The columns are `round_num`, `client_id` and `reason`: `no_example`,
  `not_finite` or `too_large`, see `tff_adaptive.client_works.Rejection`. There
  is no file before a client is rejected. The first one is warned of.

  Example:

    >>> writer = RejectedClientsWriter('runs/demo/rejected_clients.csv')
    >>> writer.resume(0)
    >>> writer.write_rejected(1, [('client_007', 'not_finite')])
  """

  def __init__(self, path: Union[str, os.PathLike]):
    """Initializes the writer; nothing is read or written yet.

    Args:
      path: The file, in a folder that exists.
    """
    super().__init__()
    self._path = pathlib.Path(path)
    self._has_warned = False

  def resume(self, round_num: int):
    """Keeps the rows up to `round_num`; with none there is no file.

    Args:
      round_num: The number of finished rounds.

    Raises:
      MetricsFileError: If the file is damaged; names it.
      OSError: If the file cannot be written; names it.
    """
    self.close()
    try:
      _, rows = metrics_writers.read_rows(self._path)
      for row in rows:
        if not row[0].isdecimal():
          raise metrics_writers.damaged(self._path, f'{row[0]!r} is no round')
    except metrics_writers.DamagedFileError as error:
      raise metrics_writers.MetricsFileError(str(error)) from error
    rows = [row for row in rows if int(row[0]) <= round_num]
    if not rows:
      self._path.unlink(missing_ok=True)
      return
    metrics_writers.replace_rows(self._path, _COLUMNS, rows)

  def write(self, round_num: int, row: Mapping[str, Any]):
    """Does nothing: numbers are for other writers."""

  def write_rejected(self, round_num: int, rejected: Sequence[tuple[str, str]]):
    """Adds the rejected clients of a round; see the base class."""
    if not rejected:
      return
    if not self._has_warned:
      self._has_warned = True
      self._warn(round_num, rejected)
    if self._file is None:
      if not self._path.exists():
        metrics_writers.replace_rows(self._path, _COLUMNS, [])
      self._file = metrics_writers.LogFile(self._path)
    lines = [
        metrics_writers.to_line([str(round_num), *client])
        for client in rejected
    ]
    self._file.write(''.join(lines).encode())

  def _warn(self, round_num: int, rejected: Sequence[tuple[str, str]]):
    client_id, reason = rejected[0]
    others = f' (the first of {len(rejected)})' if len(rejected) > 1 else ''
    logging.warning(
        'Round %d has rejected client %r%s: %s. It counts for nothing; %s '
        'names the rejected clients of all rounds.',
        round_num,
        client_id,
        others,
        reason,
        self._path,
    )

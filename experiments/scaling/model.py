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
"""What rounds on many workers would take, from the parts of measured ones.

No TensorFlow is imported here.
"""

import math
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
  from tff_adaptive.runtime import scale_out


@attrs.frozen
class Prediction:
  """What a round would take.

  Attributes:
    num_workers: How many workers share it, each on a machine of its own.
    num_clients: How many clients take part.
    work_seconds: Until the last worker is done with its chunks.
    network_seconds: For what goes through the driver's network.
    driver_seconds: For what the driver does: prepare, hand out, merge, report
      and update.
    num_bytes: What goes through the driver's network.
  """

  num_workers: int
  num_clients: int
  work_seconds: float
  network_seconds: float
  driver_seconds: float
  num_bytes: int

  @property
  def seconds(self) -> float:
    """The whole round, as if nothing of it overlapped."""
    return self.work_seconds + self.network_seconds + self.driver_seconds


@attrs.frozen
class ScalingModel:
  """A round on one worker, taken apart.

  Attributes:
    costs: What the measured round has taken, or medians of several.
    num_clients: How many clients took part in it.
    bytes_per_second: What the driver's network carries.
  """

  costs: 'scale_out.RoundCosts'
  num_clients: int
  bytes_per_second: float

  def predict(
      self, num_workers: int, num_clients: int, num_chunks: int
  ) -> Prediction:
    """Predicts a round of clients like the measured ones.

    Everything that is sent goes through the one network interface of the
    driver, to and from every machine; a worker has one core; and nothing
    overlaps, neither work with what is sent nor that with what is merged. What
    is left of the measured round is the packing and unpacking of messages, and
    grows with their bytes. So the prediction is rather too slow than too fast,
    as long as workers are as fast as the measured one.

    Args:
      num_workers: How many workers share it.
      num_clients: How many clients take part.
      num_chunks: How many chunks they are cut into.

    Returns:
      The prediction.
    """
    costs = self.costs
    clients_ratio = num_clients / self.num_clients
    chunks_ratio = num_chunks / costs.num_chunks
    work = costs.work_seconds * clients_ratio / num_chunks
    overhead = max(
        0.0,
        costs.seconds
        - costs.server_seconds
        - costs.merge_seconds
        - costs.work_seconds,
    )
    num_bytes = self._bytes(num_workers, clients_ratio, chunks_ratio)
    return Prediction(
        num_workers,
        num_clients,
        work * math.ceil(num_chunks / num_workers),
        num_bytes / self.bytes_per_second,
        costs.server_seconds
        + costs.merge_seconds * chunks_ratio
        + overhead * num_bytes / self._bytes(1, 1.0, 1.0),
        num_bytes,
    )

  def _bytes(
      self, num_workers: int, clients_ratio: float, chunks_ratio: float
  ) -> int:
    """Returns what goes through the driver's network."""
    return round(
        self.costs.broadcast_bytes * num_workers
        + self.costs.chunk_bytes * clients_ratio
        + self.costs.sum_bytes * chunks_ratio
    )

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
"""How a compiled round runs its clients."""

import math
import os

import attrs

LOOP = 'loop'
PARALLEL = 'parallel'
XLA = 'xla'
PLANS = (LOOP, PARALLEL, XLA)
# The plan, and the device, that suit.
AUTO = 'auto'

# A cohort is folded in about this many chunks: enough for many cores.
_MIN_CHUNKS = 16
# A large cohort in more, for many workers, whose sums all go to the driver.
_CLIENTS_PER_CHUNK = 8
_MAX_CHUNKS = 128


@attrs.frozen
class Plan:
  """How a compiled round runs its clients.

  Attributes:
    name: `'loop'`, one client after the other; `'parallel'`, several at once;
      `'xla'`, as `'parallel'`, with local steps that XLA compiles, once for
      each size of batch.
    num_parallel_clients: How many clients are worked on at once.
    device: Where the clients' work runs, such as `'CPU:0'`.
  """

  name: str
  num_parallel_clients: int
  device: str

  def chunk_size_of(self, num_clients: int) -> int:
    """The number of clients in a chunk, of a cohort of `num_clients`."""
    num_chunks = num_clients // _CLIENTS_PER_CHUNK
    num_chunks = min(max(num_chunks, _MIN_CHUNKS), _MAX_CHUNKS)
    return max(1, math.ceil(num_clients / num_chunks))


def num_cores() -> int:
  """The cores that this process may use."""
  return len(os.sched_getaffinity(0))


def choose(name: str, device: str) -> Plan:
  """Chooses the plan.

  On a GPU a client after the other: its cores are busy with one already. On a
  CPU several clients at once, each on a core of its own. XLA was never faster
  there; `experiments.benchmark --plan=...` compares the plans.

  Args:
    name: A name of `PLANS`, or `AUTO` for the plan that suits.
    device: Where the clients' work runs.

  Returns:
    The plan.

  Raises:
    ValueError: If there is no such plan.
  """
  if name not in (AUTO, *PLANS):
    raise ValueError(f'`plan` must be one of {[AUTO, *PLANS]}, found {name!r}.')
  if name == AUTO:
    name = LOOP if 'GPU' in device else PARALLEL
  return Plan(name, 1 if name == LOOP else num_cores(), device)

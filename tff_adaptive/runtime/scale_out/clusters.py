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
"""The cluster of Ray that a driver works with."""

import os
from typing import Any, Optional

from absl import logging

from tff_adaptive.runtime import plans


class ClusterError(RuntimeError):
  """The cluster cannot do what it is asked for; its text is one sentence."""


def connect(address: Optional[str], num_cpus: Optional[int]) -> bool:
  """Connects this process to a cluster, unless it is connected already.

  Args:
    address: Where to find a cluster: 'auto' for one on this machine, or
      'host:port' of its head. None for one of its own, which ends with it.
    num_cpus: How many cores a cluster of its own says it has. None for those
      that this process may use.

  Returns:
    Whether it was connected now; then `disconnect` is to be called at the end.

  Raises:
    ClusterError: If Ray is not installed, or there is no cluster.
  """
  ray = _import_ray()
  if ray.is_initialized():
    return False
  options: dict[str, Any] = {'address': address}
  if address is None:
    options = {
        'address': 'local',
        'num_cpus': num_cpus or plans.num_cores(),
        'include_dashboard': False,
    }
  try:
    ray.init(**options, configure_logging=False, log_to_driver=False)
  except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
    raise ClusterError(
        f'There is no cluster of Ray at {address or "this machine"!r}; start '
        f'one with `ray start --head`, or correct the address ({error}).'
    ) from error
  logging.info('Ray: %s', ray.cluster_resources())
  return True


def _import_ray():
  """Returns Ray, which reports nothing of this process to its makers."""
  os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
  # Nobody reads them, and it complains where it cannot send them.
  os.environ.setdefault('RAY_enable_metrics_collection', '0')
  # What Ray will do anyway in its next versions; it warns otherwise.
  os.environ.setdefault('RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO', '0')
  try:
    import ray  # pylint: disable=import-outside-toplevel
  except ImportError as error:
    raise ClusterError(
        'Ray is not installed: pip install "tff_adaptive[ray]".'
    ) from error
  return ray


def disconnect() -> None:
  """Ends what `connect` has begun."""
  _import_ray().shutdown()

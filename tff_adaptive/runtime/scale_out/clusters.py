# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The connection of this process to a Ray cluster."""

import os
from typing import Any, Optional

from absl import logging

# The number of contexts on the connection that `connect` made.
_num_users = 0


class ClusterError(RuntimeError):
  """The cluster cannot do what was asked; the text is one sentence."""


def connect(address: Optional[str], num_cpus: int) -> bool:
  """Connects this process to a Ray cluster, unless it is connected already.

  Args:
    address: The cluster's address: 'auto' for one on this machine, or the
      'host:port' of its head. None starts a new cluster on this machine, which
      ends with this process.
    num_cpus: The number of cores of a new cluster.

  Returns:
    Whether the connection is one of this function; if so, call `disconnect` at
    the end.

  Raises:
    ClusterError: If Ray is not installed or does not start, or there is no
      cluster at the address.
  """
  global _num_users
  ray = _import_ray()
  if not ray.is_initialized():
    _init(address, num_cpus)
    _num_users += 1
    return True
  found = ray.get_runtime_context().gcs_address
  # Not an error, since a cluster has several addresses.
  if address not in (None, 'auto', found):
    logging.warning(
        'This process is connected to the Ray cluster at %s; the address %s '
        'is not used. If it is another cluster, call `ray.shutdown()` first.',
        found,
        address,
    )
  _num_users += bool(_num_users)
  return bool(_num_users)


def _init(address: Optional[str], num_cpus: int) -> None:
  """Connects this process; the arguments are those of `connect`."""
  ray = _import_ray()
  options: dict[str, Any] = {'address': address}
  if address is None:
    options = {
        'address': 'local',
        'num_cpus': num_cpus,
        'include_dashboard': False,
    }
  try:
    ray.init(**options, configure_logging=False, log_to_driver=False)
  except Exception as error:  # pylint: disable=broad-exception-caught
    # Ray raises errors of many kinds, after a time-out a plain `Exception`.
    if address is None:
      raise ClusterError(
          f'Ray did not start on this machine: {error}'
      ) from error
    raise ClusterError(
        f'There is no Ray cluster at {address!r}; start one with `ray start '
        f'--head`, or correct the address ({error}).'
    ) from error
  logging.info('Ray: %s', ray.cluster_resources())


def _import_ray():
  """Imports Ray, with its usage reports switched off."""
  os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
  # Nobody reads the metrics, and Ray complains if it cannot send them.
  os.environ.setdefault('RAY_enable_metrics_collection', '0')
  # The default of Ray's next versions; it warns if unset.
  os.environ.setdefault('RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO', '0')
  try:
    import ray  # pylint: disable=import-outside-toplevel
  except ImportError as error:
    raise ClusterError(
        'Ray is not installed: pip install "ray>=2.40".'
    ) from error
  return ray


def disconnect() -> None:
  """Ends the connection that `connect` made, unless another one uses it."""
  global _num_users
  _num_users -= 1
  if not _num_users:
    _import_ray().shutdown()

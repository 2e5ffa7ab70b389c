# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The clients of a round on several devices, and the sum of their sums.

Each device has the state and all rows, and trains its share of the clients from
a zero sum. The sums are merged in the order of the devices by the computation's
own `merge`, so that bits depend on the number of devices alone.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from tff_adaptive.runtime.accelerators import control_lowerings

_AXIS = 'devices'


class Shares(NamedTuple):
  """The clients of each device.

  Attributes:
    members: The numbers of the clients, int32 of [devices, most clients].
    counts: How many of them there are, int32 of [devices].
    places: The place of each client in `members`, as if that were flat, int32
      of [clients]; that of a padded client has none.
  """

  members: Any
  counts: Any
  places: Any


def share_out(
    num_batches: np.ndarray, num_padded: int, num_devices: int
) -> Shares:
  """Shares clients out among devices, the longest first.

  They are dealt out back and forth, so that devices have about as many batches
  each, and numbers of clients that differ by one at most.

  Args:
    num_batches: The number of batches of each client.
    num_padded: The number of clients to which arrays are padded.
    num_devices: The number of devices.

  Example:

    >>> shares = share_out(np.array([1, 5, 2, 1]), 4, num_devices=2)
    >>> shares.members.tolist()
    [[1, 3], [2, 0]]
  """
  rounds, turns = np.divmod(np.arange(len(num_batches)), num_devices)
  owners = np.where(rounds % 2, num_devices - 1 - turns, turns)
  by_length = np.argsort(-num_batches, kind='stable')
  members = np.zeros([num_devices, -(-num_padded // num_devices)], np.int32)
  counts = np.bincount(owners, minlength=num_devices).astype(np.int32)
  for device, count in enumerate(counts):
    members[device, :count] = by_length[owners == device]
  is_taken = np.arange(members.shape[1]) < counts[:, np.newaxis]
  places = np.empty([num_padded], np.int32)
  places[members[is_taken]] = np.flatnonzero(is_taken)
  num_free = num_padded - len(num_batches)
  places[len(num_batches) :] = np.flatnonzero(~is_taken)[:num_free]
  return Shares(members, counts, places)


class ClientShards:
  """Sums the results of clients on several devices, while JAX traces.

  Attributes:
    everywhere: The placement of an array that each device has.
  """

  def __init__(
      self,
      devices: Sequence[Any],
      merge: Callable[..., list[Any]],
      appends: Collection[int],
  ):
    """Initializes the devices.

    Args:
      devices: JAX's devices.
      merge: Merges two sums, given their leaves.
      appends: The leaves of a sum that hold rows of each client.
    """
    self._merge = merge
    self._appends = appends
    self._mesh = jax.sharding.Mesh(np.array(devices), [_AXIS])
    self._split = jax.sharding.PartitionSpec(_AXIS)
    self.everywhere = jax.sharding.NamedSharding(
        self._mesh, jax.sharding.PartitionSpec()
    )

  def share_out(self, num_batches: np.ndarray, num_padded: int) -> Shares:
    """Shares clients out; the arguments are those of `share_out`."""
    return share_out(num_batches, num_padded, self._mesh.size)

  def sum(
      self,
      sum_share: Callable[[Any, Any], list[Any]],
      zero: Sequence[Any],
      shares: Shares,
  ) -> list[Any]:
    """Returns the sum over all clients; rows are in the order of the clients.

    Args:
      sum_share: Returns the sum of a device's clients, given their numbers and
        how many there are.
      zero: The leaves of the zero sum.
      shares: The clients of each device.
    """

    def run(members, counts):
      total = sum_share(members[0], counts[0])
      return [
          leaf if place in self._appends else jnp.asarray(leaf)[np.newaxis]
          for place, leaf in enumerate(total)
      ]

    of_devices = lax.with_sharding_constraint(
        jax.shard_map(
            run,
            mesh=self._mesh,
            in_specs=self._split,
            out_specs=self._split,
            check_vma=False,
        )(shares.members, shares.counts),
        self.everywhere,
    )
    total = self._merge_all(of_devices, zero)
    for place in self._appends:
      total[place] = jax.tree.map(
          lambda rows: rows[shares.places], of_devices[place]
      )
    return total

  def _merge_all(
      self, of_devices: Sequence[Any], zero: Sequence[Any]
  ) -> list[Any]:
    """Merges the sums of the devices in their order, but for rows."""

    def of_device(number):
      return [
          zero[place] if place in self._appends else leaf[number]
          for place, leaf in enumerate(of_devices)
      ]

    total = of_device(0)
    for number in range(1, self._mesh.size):
      merged = control_lowerings.as_arrays(
          self._merge(*total, *of_device(number))
      )
      # What is appended to rows is not read.
      total = [
          before if place in self._appends else leaf
          for place, (before, leaf) in enumerate(zip(total, merged))
      ]
    return total

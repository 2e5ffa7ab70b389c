# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The same clients in sources of all kinds."""

import collections
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np

from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays


def packed(clients: Mapping[str, Any]) -> client_data.PackedClientArrays:
  return client_data.PackedClientArrays.from_clients(clients)


def partitioned(clients: Mapping[str, Any]) -> client_data.PackedClientArrays:
  """Returns clients whose rows are stored from the last one to the first."""
  names = next(iter(clients.values()))
  values = collections.OrderedDict(
      (name, np.concatenate([c[name] for c in clients.values()])[::-1])
      for name in names
  )
  rows, left = {}, len(next(iter(values.values())))
  for client_id, features in clients.items():
    size = len(next(iter(features.values())))
    rows[client_id] = list(range(left - 1, left - 1 - size, -1))
    left -= size
  return client_data.PackedClientArrays.from_partition(values, rows)


def lazy(
    clients: Mapping[str, Any],
    read: Optional[list[str]] = None,
    spec: Any = None,
    **kwargs: Any,
) -> client_data.LazyClientArrays:
  """Returns lazy clients; appends to `read` the id of each that is read."""

  def load(client_id):
    if read is not None:
      read.append(client_id)
    return clients[client_id]

  spec = spec or feature_arrays.spec_of(
      feature_arrays.as_examples(next(iter(clients.values())), 'A client')
  )
  return client_data.LazyClientArrays(clients, load, spec, **kwargs)


SOURCES = (('packed', packed), ('partitioned', partitioned), ('lazy', lazy))

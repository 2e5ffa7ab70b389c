# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clients' data: arrays, cohorts, batches, partitions, sampling and files.

A client is a mapping from feature names to NumPy arrays with one row per
example; shuffling, repeating and batching are done by index. The module
`partition` splits a data set among clients, `transforms` derives clients from
other clients, and `random_streams` provides seeded random numbers.

This package imports no other package of the library. Functions import
TensorFlow only when they need its types.
"""

from typing import Any, TYPE_CHECKING

from tff_adaptive.data import partition
from tff_adaptive.data import random_streams
from tff_adaptive.data import transforms
from tff_adaptive.data.batching import Augmentation
from tff_adaptive.data.batching import BatchPlan
from tff_adaptive.data.checks import check_central_examples
from tff_adaptive.data.checks import check_clients
from tff_adaptive.data.client_data import ClientArrays
from tff_adaptive.data.client_data import LazyClientArrays
from tff_adaptive.data.client_data import PackedClientArrays
from tff_adaptive.data.cohort import Cohort
from tff_adaptive.data.cohort import StatefulCohort
from tff_adaptive.data.sampling import build_client_sampling
from tff_adaptive.data.sampling import build_cohort_fn
from tff_adaptive.data.sampling import build_poisson_client_sampling
from tff_adaptive.data.sampling import sample_client_examples
from tff_adaptive.data.sampling import sample_examples
from tff_adaptive.data.sampling import sample_examples_evenly
from tff_adaptive.data.sources import read_clients
from tff_adaptive.data.sources import read_examples

if TYPE_CHECKING:
  from tff_adaptive.data.sqlite import load_sqlite_clients
  from tff_adaptive.data.sqlite import write_sqlite_clients
  from tff_adaptive.data.tff_client_data import from_client_data
  from tff_adaptive.data.tff_client_data import to_client_data
else:

  def __getattr__(name: str) -> Any:
    """Imports the names that need TensorFlow on first access."""
    # pylint: disable=import-outside-toplevel
    if name in ('load_sqlite_clients', 'write_sqlite_clients'):
      from tff_adaptive.data import sqlite as module
    elif name in ('from_client_data', 'to_client_data'):
      from tff_adaptive.data import tff_client_data as module
    else:
      raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(module, name)

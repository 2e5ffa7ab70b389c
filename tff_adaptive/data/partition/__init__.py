# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Splits a central data set among clients.

A partition is an ordered mapping from client ids, 'client_000' and so on, to
the rows of each client, as `PackedClientArrays.from_partition` takes it. All
functions are pure functions of their arguments; random numbers come from
`random_streams`. Functions that end in `_sizes` return values for the argument
`examples_per_client` of the others.
"""

from tff_adaptive.data.partition.dirichlet import ClientIndices
from tff_adaptive.data.partition.dirichlet import dirichlet_per_class
from tff_adaptive.data.partition.dirichlet import dirichlet_per_client
from tff_adaptive.data.partition.dirichlet import Sizes
from tff_adaptive.data.partition.pachinko import pachinko_allocation
from tff_adaptive.data.partition.schemes import by_natural_id
from tff_adaptive.data.partition.schemes import by_scheme
from tff_adaptive.data.partition.schemes import COARSE_SCHEMES
from tff_adaptive.data.partition.schemes import equal_sizes
from tff_adaptive.data.partition.schemes import iid
from tff_adaptive.data.partition.schemes import SCHEMES
from tff_adaptive.data.partition.schemes import shards
from tff_adaptive.data.partition.schemes import skewed_sizes
from tff_adaptive.data.partition.schemes import uniform_sizes

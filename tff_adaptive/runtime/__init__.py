# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Execution contexts for TFF computations: the compiled runtime and TFF's.

A computation and its argument come in; its result, as arrays, goes out. The
files of this folder are the way of a round; read them in this order:

- `contexts`, `compiled`: the context, which compiles each computation once.
- `computations`: splits a computation into the parts of a round.
- `rounds`: the programs that a computation becomes; one graph for a round.
- `chunks`: the loop over clients in that graph, and the order of its sums.
- `running`: runs a graph: Ctrl-C, forks, sequences that are not at clients.
- `round_keys`: which random numbers are drawn; `plans`: devices, and the size
  of chunks; `values`: values of TFF's types as flat lists, and back.
- `native`: TFF's own runtime; `export`: rounds as programs for XLA.

Each folder is one subject. It imports the folders before it and, of the files
above, what depends on no folder:

- `sequences`: the datasets inside the clients' work, as loops over rows.
- `graphs`: TFF's graphs as functions of this process.
- `datasets`: the clients' data, read once and held as tensors.
- `steps`: computations that are no round; `compiled` imports it, rounds do not.
- `accelerators`: rounds as programs of XLA, which JAX runs; likewise.
- `scale_out`: rounds on several machines.
"""

from tff_adaptive.runtime.compiled import AsyncCompiledContext
from tff_adaptive.runtime.compiled import CompiledContext
from tff_adaptive.runtime.computations import UnsupportedComputationError
from tff_adaptive.runtime.export import export_round
from tff_adaptive.runtime.export import export_rounds
from tff_adaptive.runtime.native import NativeContext
from tff_adaptive.runtime.plans import AUTO
from tff_adaptive.runtime.plans import choose_plan
from tff_adaptive.runtime.plans import set_threads

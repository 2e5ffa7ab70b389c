# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Execution contexts for TFF computations: the compiled runtime and TFF's.

- `compiled`: the context; `async_context`: the same for `tff.program`.
- `native`, `record_buffers`: the context of TFF's runtime.
- `contexts`: what contexts share, and TFF's default one.
- `computations`: splits a computation into the parts of a round.
- `rounds`: one graph per round; `plans`: devices, and the size of chunks.
- `steps`, `step_graphs`, `step_runs`, `step_functions`, `client_loops`,
  `placed_values`: computations that are no round.
- `expressions`, `local_functions`, `tensorflow_loops`, `mapped_sequences`,
  `graph_calls`: what these consist of.
- `round_keys`: which random numbers a round draws; `running`: Ctrl-C, forks.
- `chunks`: the loop over clients; `sequences`: the loop over batches.
- `dataset_ops`, `dataset_nodes`, `dataset_chains`, `derived_sequences`,
  `batched_sequences`, `shuffled_sequences`, `sequence_variants`,
  `sequence_reads`: the datasets inside the clients' work, as such loops.
- `client_tensors`, `dataset_cache`, `held_rows`, `dataset_rows`,
  `element_maps`, `made_datasets`, `elements`, `values`: data in and out.
- `graph_functions`, `read_order`, `sums`, `untrained`, `zero_products`: read and
  rewrite graphs.
- `export`: rounds as programs for XLA.
- `scale_out`: rounds on several machines.
"""

from tff_adaptive.runtime.async_context import AsyncCompiledContext
from tff_adaptive.runtime.compiled import CompiledContext
from tff_adaptive.runtime.computations import UnsupportedComputationError
from tff_adaptive.runtime.export import export_round
from tff_adaptive.runtime.native import NativeContext
from tff_adaptive.runtime.plans import AUTO
from tff_adaptive.runtime.plans import choose_plan
from tff_adaptive.runtime.plans import set_threads

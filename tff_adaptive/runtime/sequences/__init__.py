# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The datasets inside the clients' work, as loops over rows.

In: the graph of a computation whose sequences are datasets. Out: the same graph
with ops on tensors, or the reason why it needs datasets. What the graph then
takes for a client is a `data.batching.PackedClients`.

Read `sequences` first: a sequence, its state, and the loop over it.

- `derived_sequences`, `batched_sequences`, `shuffled_sequences`: sequences that
  are made of others, as `map`, `batch` and `shuffle` make datasets.
- `dataset_nodes`: the ops of a graph that make datasets, and what they tell.
- `dataset_chains`: a reduction, with the chain of such ops, as one loop.
- `dataset_ops`: replaces all ops on datasets of a graph.
- `sequence_reads`: counts how often a graph reads a sequence.
"""

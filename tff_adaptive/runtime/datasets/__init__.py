# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The clients' data, read once and held as tensors.

In: what a computation is given for its clients: a `tf.data.Dataset` or a list
for each, or a `data.Cohort`. Out: the tensors of the whole cohort, from which
the graph of a round picks a client by its number.

Read `client_tensors` first, whose `collect` goes through the others:

- `dataset_cache`: keeps what was read for later rounds.
- `dataset_reads`: reads a dataset as far as it is the same in all rounds, into
  `dataset_rows`, from which each round draws.
- `dataset_graphs`: the graph of a dataset; `dataset_splits`: splits it into rows
  and the ops that choose among them, which `element_orders` computes.
- `row_functions`: tells which functions of batches may be called for rows;
  `element_maps`: calls functions that differ in each round.
- `elements`: checks and converts elements and other leaves.
"""

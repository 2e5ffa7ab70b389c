# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""TFF's TensorFlow computations as functions of this process.

In: a computation as TFF stores it, a graph with the names of its parameters and
results. Out: a `GraphFunction`, which adds the computation to the graph that is
being built; `build` makes a TensorFlow function of such a graph.

Read `graph_functions` first: it lists what is rewritten, and in which order.

- `variables`: makes variables anonymous, orders their reads, and finds those
  that are not trained.
- `zero_products`: lets zero times NaN be zero where it is in TFF's runtime.
- `graph_imports`: imports the rewritten graph, and puts the loops of
  `sequences` in place of the reductions of datasets.
"""

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds as programs of XLA, which JAX runs on GPUs, TPUs and, for tests, CPUs.

The parts of a round come in as TensorFlow's graphs, the clients' data as rows;
the result of one compiled program goes out. Read in this order:

- `xla_rounds`: the round, with its loop over clients.
- `cohort_arrays`, `client_rows`: the arrays of a cohort; a client's rows.
- `graph_programs`: evaluates a graph, op by op, while JAX traces.
- `lowerings`: the table of ops, and `array_`, `math_`, `network_`, `random_`,
  `list_`, `variable_` and `control_lowerings`, its entries.
- `padding`: batches with room for more rows than they have; `padded_rules`, the
  table of ops that meet them, and `padded_*_lowerings`, its entries.
- `client_shards`: the clients of several devices, and the sum of their sums;
  `xla_sums`: the sum of some of a round's clients, for a worker.
- `kept_rows`, `tokens`: rows of a number not known before, and strings.
- `device_values`: values on devices; `devices`: their names.
- `exported_rounds`: the same programs as files.

Only `devices` is imported without JAX.
"""

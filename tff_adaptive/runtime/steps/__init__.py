# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Computations that are no round, and functions in TFF's own language.

In: a computation as TFF writes it, an expression of intrinsics and functions.
Out: a program that evaluates it: as one graph if it can be, else one intrinsic
after the other. Work on clients' datasets is a round within it.

Read `expressions` first: what an expression is, and how it is evaluated.

- `local_functions`: evaluates expressions without clients in a graph;
  `mapped_sequences`: the sequences in them.
- `rewrites`: prepares all computations, also rounds, by these functions.
- `placed_values`: values at the server and the clients.
- `step_functions`: the compiled functions of an expression; `step_runs`:
  evaluates it step by step.
- `steps`: the program, and the same steps in one graph.
"""

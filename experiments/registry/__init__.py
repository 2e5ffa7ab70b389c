# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The choices of the binaries: one row per task, optimizer, algorithm, etc.

A row names a builder and its arguments that have flags, with the builder's own
defaults; the row of an algorithm also names rows that it requires. Nothing here
imports TensorFlow, so that `--help` is fast; a test compares every row with the
signature of its builder.
"""

from experiments.registry import rows
from experiments.registry.own import Entry
from experiments.registry.own import find as find_own
from experiments.registry.own import find_submission
from experiments.registry.own import form_of as form_of_own
from experiments.registry.own import is_own
from experiments.registry.own import kind_of as kind_of_own
from experiments.registry.own import KINDS as OWN_KINDS
from experiments.registry.own import load as load_own
from experiments.registry.own import read_entry
from experiments.registry.own import SUBMISSION
from experiments.registry.rows import ALGORITHM
from experiments.registry.rows import CLIENT_OPTIMIZER
from experiments.registry.rows import CLIENT_SCHEDULE
from experiments.registry.rows import COMPILED
from experiments.registry.rows import create_task
from experiments.registry.rows import LOSS_TERM
from experiments.registry.rows import NATIVE
from experiments.registry.rows import RAY
from experiments.registry.rows import Row
from experiments.registry.rows import RULES
from experiments.registry.rows import RUNTIME
from experiments.registry.rows import SERVER_OPTIMIZER
from experiments.registry.rows import SERVER_SCHEDULE
from experiments.registry.rows import TASK
from experiments.registry.rows import weighting_of
from experiments.registry.signatures import Argument
from tasks import catalogue
from tasks.definitions import resolve

ROWS = {
    kind: {row.name: row for row in rows_of_kind}
    for kind, rows_of_kind in (
        (TASK, [create_task(*item) for item in catalogue.TASKS.items()]),
        (ALGORITHM, rows.ALGORITHMS),
        (CLIENT_OPTIMIZER, rows.create_optimizers(CLIENT_OPTIMIZER)),
        (SERVER_OPTIMIZER, rows.create_optimizers(SERVER_OPTIMIZER)),
        (LOSS_TERM, rows.create_loss_terms()),
        (CLIENT_SCHEDULE, rows.create_schedules(CLIENT_SCHEDULE)),
        (SERVER_SCHEDULE, rows.create_schedules(SERVER_SCHEDULE)),
        (RUNTIME, rows.RUNTIMES),
    )
}

# The names of rules that belong to one algorithm.
FIXED = frozenset(
    part.name
    for row in ROWS[ALGORITHM].values()
    for part in row.parts
    if part.is_fixed
)

# The builders of runtimes by name.
RUNTIMES = {name: row.builder for name, row in ROWS[RUNTIME].items()}

# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""What the binaries can be told by flags: one row a task, optimizer, algorithm.

A row names a builder and the arguments that get a flag, with the builder's own
defaults. Nothing here imports TensorFlow, so that `--help` is quick; a test
compares every row with its builder's signature. A new optimizer is a new row.
"""

from experiments.registry import algorithms
from experiments.registry import optimizers
from experiments.registry import runtimes
from experiments.registry import schedules
from experiments.registry import tasks
from experiments.registry.rows import Argument
from experiments.registry.rows import resolve
from experiments.registry.rows import Row

TASK = 'task'
ALGORITHM = 'algorithm'
CLIENT_OPTIMIZER = 'client_optimizer'
SERVER_OPTIMIZER = 'server_optimizer'
LOSS_TERM = 'loss_term'
CLIENT_SCHEDULE = 'client_schedule'
SERVER_SCHEDULE = 'server_schedule'
RUNTIME = 'runtime'

ROWS = {
    kind: {row.name: row for row in rows_of_kind}
    for kind, rows_of_kind in (
        (TASK, tasks.TASKS),
        (ALGORITHM, algorithms.ALGORITHMS),
        (CLIENT_OPTIMIZER, optimizers.CLIENT_OPTIMIZERS),
        (SERVER_OPTIMIZER, optimizers.SERVER_OPTIMIZERS),
        (LOSS_TERM, algorithms.LOSS_TERMS),
        (CLIENT_SCHEDULE, schedules.create_rows(CLIENT_SCHEDULE)),
        (SERVER_SCHEDULE, schedules.create_rows(SERVER_SCHEDULE)),
        (RUNTIME, runtimes.RUNTIMES),
    )
}

# The builders of runtimes by name.
RUNTIMES = {name: row.builder for name, row in ROWS[RUNTIME].items()}

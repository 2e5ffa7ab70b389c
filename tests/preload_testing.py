# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the process is to have imported that `program_testing` forks."""

from experiments import command_line

# As the binaries do, before the first import of TensorFlow: it changes bits.
command_line.prepare_libraries()

import tensorflow_federated  # noqa: E402, F401

from experiments.train import training_run  # noqa: E402, F401

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Imports what a run needs, in the process that is forked for every run."""

import gc

from experiments import command_line

# As the binaries do, before the first import of TensorFlow: it changes bits.
command_line.prepare_libraries()

import sklearn.datasets  # noqa: E402, F401
import tensorflow_federated  # noqa: E402, F401

from experiments.train import training_run  # noqa: E402, F401
from tff_adaptive.runtime import contexts  # noqa: E402

# Otherwise TFF prints a traceback when this process ends.
contexts.free_default_at_exit()

# What is imported stays: no collection of a fork looks at it again.
gc.freeze()

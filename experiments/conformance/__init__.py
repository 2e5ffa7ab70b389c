# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Comparisons of frameworks with reference trajectories.

An adapter replays the runs of a file of reference trajectories in its own
framework, and `check` compares them. `problems` has the models of such files.
TensorFlow is not imported here.
"""

from experiments.conformance.adapters import Adapter
from experiments.conformance.adapters import AdapterError
from experiments.conformance.adapters import CommandAdapter
from experiments.conformance.adapters import COMMON_KEYS
from experiments.conformance.adapters import create_adapter
from experiments.conformance.adapters import GoldenRun
from experiments.conformance.adapters import UnsupportedError
from experiments.conformance.goldens import check
from experiments.conformance.goldens import read_goldens

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The papers' tables and figures as data: cells, numbers and commands.

A paper is a folder in `experiments/presets` with a file of flags by name, one
data file per table or figure, and a README. TensorFlow is not imported here.
"""

from experiments.preset_flags import expand
from experiments.preset_flags import GivenFlag
from experiments.preset_flags import Origin
from experiments.published.commands import argument_values
from experiments.published.commands import AxisFlags
from experiments.published.commands import build_command
from experiments.published.commands import build_sweep_command
from experiments.published.commands import DATA_DIR
from experiments.published.commands import Hyperparameter
from experiments.published.commands import hyperparameters
from experiments.published.commands import parse_flags
from experiments.published.commands import restrict
from experiments.published.commands import train_arguments
from experiments.published.files import find_table
from experiments.published.files import load_tables
from experiments.published.tables import AXES
from experiments.published.tables import Cell
from experiments.published.tables import Entry
from experiments.published.tables import Measure
from experiments.published.tables import PublishedError
from experiments.published.tables import REPLICATION_ONLY
from experiments.published.tables import ROOT
from experiments.published.tables import Table

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Simulates federated training: tasks, the training loop and its files.

Clients' data are in `tff_adaptive.data`, and evaluations in
`tff_adaptive.evaluation`.
"""

from tff_adaptive.simulation.callbacks import Callback
from tff_adaptive.simulation.callbacks import EarlyStopping
from tff_adaptive.simulation.callbacks import PrivacySpent
from tff_adaptive.simulation.callbacks import RoundEnd
from tff_adaptive.simulation.callbacks import TrainingStart
from tff_adaptive.simulation.callbacks import UnknownMetricError
from tff_adaptive.simulation.checkpoints import CheckpointManager
from tff_adaptive.simulation.client_states import ClientStateStore
from tff_adaptive.simulation.client_states import ClientStoreMemoryError
from tff_adaptive.simulation.cohorts import build_pooled_cohort_fn
from tff_adaptive.simulation.cohorts import CohortPrefetcher
from tff_adaptive.simulation.cohorts import FaultCounts
from tff_adaptive.simulation.cohorts import inject_faults
from tff_adaptive.simulation.interruptions import AllClientsRejectedError
from tff_adaptive.simulation.kept_weights import BestCheckpoint
from tff_adaptive.simulation.kept_weights import LastWeightsAverage
from tff_adaptive.simulation.kept_weights import WeightsMovingAverage
from tff_adaptive.simulation.metrics_writers import CSVMetricsWriter
from tff_adaptive.simulation.metrics_writers import find_rejected
from tff_adaptive.simulation.metrics_writers import MetricsWriter
from tff_adaptive.simulation.metrics_writers import RejectedClientsWriter
from tff_adaptive.simulation.metrics_writers import TensorBoardMetricsWriter
from tff_adaptive.simulation.run_directory import RunDirectory
from tff_adaptive.simulation.task import hold_out_clients
from tff_adaptive.simulation.task import hold_out_examples
from tff_adaptive.simulation.task import hold_out_validation
from tff_adaptive.simulation.task import Protocol
from tff_adaptive.simulation.task import take_clients
from tff_adaptive.simulation.task import Task
from tff_adaptive.simulation.trackers import MLflowWriter
from tff_adaptive.simulation.trackers import TrackerError
from tff_adaptive.simulation.trackers import WandbWriter
from tff_adaptive.simulation.training_loop import run_training
from tff_adaptive.simulation.training_loop import TrainingInterrupted
from tff_adaptive.simulation.training_loop import TrainingResult
from tff_adaptive.simulation.weights_files import read_weights
from tff_adaptive.simulation.weights_files import StoredWeights
from tff_adaptive.simulation.weights_files import write_weights

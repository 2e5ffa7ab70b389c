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
"""Simulating federated training: clients, cohorts, tasks and what runs them.

Client data are arrays, shuffled and batched by index. Partitions are in the
module `partition`, clients that are made of others in `client_data_transforms`,
seeded random numbers in `random_streams`. Evaluation client by client is in
`client_evaluation`, which needs the runtime, as nothing else here does.
"""

from tff_adaptive.simulation.augmentation import Augmentation
from tff_adaptive.simulation.batching import BatchPlan
from tff_adaptive.simulation.callbacks import BestCheckpoint
from tff_adaptive.simulation.callbacks import BestWeights
from tff_adaptive.simulation.callbacks import Callback
from tff_adaptive.simulation.callbacks import EarlyStopping
from tff_adaptive.simulation.callbacks import LastWeightsAverage
from tff_adaptive.simulation.callbacks import load_best
from tff_adaptive.simulation.callbacks import PrivacySpent
from tff_adaptive.simulation.callbacks import RoundEnd
from tff_adaptive.simulation.callbacks import TrainingStart
from tff_adaptive.simulation.callbacks import UnknownMetricError
from tff_adaptive.simulation.callbacks import WeightsMovingAverage
from tff_adaptive.simulation.checkpoints import CheckpointManager
from tff_adaptive.simulation.client_data import ClientArrays
from tff_adaptive.simulation.client_data import LazyClientArrays
from tff_adaptive.simulation.client_data import PackedClientArrays
from tff_adaptive.simulation.client_data_conversion import from_client_data
from tff_adaptive.simulation.client_data_conversion import to_client_data
from tff_adaptive.simulation.client_metrics import ClientMetrics
from tff_adaptive.simulation.client_store import ClientStateStore
from tff_adaptive.simulation.client_store import ClientStoreMemoryError
from tff_adaptive.simulation.cohort import Cohort
from tff_adaptive.simulation.cohort import StatefulCohort
from tff_adaptive.simulation.data_checks import check_central_examples
from tff_adaptive.simulation.data_checks import check_clients
from tff_adaptive.simulation.data_sources import read_clients
from tff_adaptive.simulation.data_sources import read_examples
from tff_adaptive.simulation.evaluation import build_central_evaluation
from tff_adaptive.simulation.example_sampling import sample_client_examples
from tff_adaptive.simulation.example_sampling import sample_examples
from tff_adaptive.simulation.faults import FaultCounts
from tff_adaptive.simulation.faults import inject_faults
from tff_adaptive.simulation.metrics_writers import CSVMetricsWriter
from tff_adaptive.simulation.metrics_writers import MetricsWriter
from tff_adaptive.simulation.metrics_writers import TensorBoardMetricsWriter
from tff_adaptive.simulation.pooled_data import build_pooled_cohort_fn
from tff_adaptive.simulation.prefetching import CohortPrefetcher
from tff_adaptive.simulation.rejected_clients import find_rejected
from tff_adaptive.simulation.rejected_clients import RejectedClientsWriter
from tff_adaptive.simulation.run_directory import RunDirectory
from tff_adaptive.simulation.sampling import build_client_sampling
from tff_adaptive.simulation.sampling import build_poisson_client_sampling
from tff_adaptive.simulation.sqlite_data import load_sqlite_clients
from tff_adaptive.simulation.sqlite_writing import write_sqlite_clients
from tff_adaptive.simulation.task import Protocol
from tff_adaptive.simulation.task import Task
from tff_adaptive.simulation.task_transforms import hold_out_clients
from tff_adaptive.simulation.task_transforms import hold_out_examples
from tff_adaptive.simulation.task_transforms import take_clients
from tff_adaptive.simulation.training_loop import run_training
from tff_adaptive.simulation.training_loop import TrainingInterrupted
from tff_adaptive.simulation.training_loop import TrainingResult
from tff_adaptive.simulation.weights_files import read_weights
from tff_adaptive.simulation.weights_files import StoredWeights
from tff_adaptive.simulation.weights_files import write_weights

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
"""Callbacks of the training loop: what watches a run and may end it.

How to write one is in the module `callback`.
"""

from tff_adaptive.simulation.callbacks.averaging import LastWeightsAverage
from tff_adaptive.simulation.callbacks.averaging import WeightsMovingAverage
from tff_adaptive.simulation.callbacks.best_checkpoint import BestCheckpoint
from tff_adaptive.simulation.callbacks.best_checkpoint import BestWeights
from tff_adaptive.simulation.callbacks.best_checkpoint import load_best
from tff_adaptive.simulation.callbacks.callback import Callback
from tff_adaptive.simulation.callbacks.callback import RoundEnd
from tff_adaptive.simulation.callbacks.callback import TrainingStart
from tff_adaptive.simulation.callbacks.early_stopping import EarlyStopping
from tff_adaptive.simulation.callbacks.monitor import UnknownMetricError
from tff_adaptive.simulation.callbacks.privacy_spent import PrivacySpent

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
"""Figures and tables of runs, from the files that they wrote."""

from tff_adaptive.analysis.client_plots import count_labels
from tff_adaptive.analysis.client_plots import plot_client_histogram
from tff_adaptive.analysis.client_plots import plot_client_labels
from tff_adaptive.analysis.client_plots import plot_partition
from tff_adaptive.analysis.curves import BandCurve
from tff_adaptive.analysis.curves import plot_band_curves
from tff_adaptive.analysis.curves import plot_training_curve
from tff_adaptive.analysis.rate_grid import best_server_rates
from tff_adaptive.analysis.rate_grid import plot_best_server_rates
from tff_adaptive.analysis.rate_grid import plot_rate_grids
from tff_adaptive.analysis.rate_grid import RateGrid
from tff_adaptive.analysis.round_trace import plot_trace
from tff_adaptive.analysis.round_trace import RoundTrace
from tff_adaptive.analysis.round_trace import trace_round
from tff_adaptive.analysis.run_metrics import find_round
from tff_adaptive.analysis.run_metrics import read_columns
from tff_adaptive.analysis.run_metrics import summarize
from tff_adaptive.analysis.similarity import linear_cka
from tff_adaptive.analysis.similarity import moments_cka
from tff_adaptive.analysis.similarity import pairwise_moments_cka
from tff_adaptive.analysis.similarity import plot_similarity

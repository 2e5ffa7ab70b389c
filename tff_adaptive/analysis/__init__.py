# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figures and tables of runs, made from their files."""

from tff_adaptive._run_metrics import find_round
from tff_adaptive._run_metrics import read_columns
from tff_adaptive._run_metrics import summarize
from tff_adaptive.analysis.client_plots import count_labels
from tff_adaptive.analysis.client_plots import plot_client_histogram
from tff_adaptive.analysis.client_plots import plot_client_labels
from tff_adaptive.analysis.client_plots import plot_partition
from tff_adaptive.analysis.curves import BandCurve
from tff_adaptive.analysis.curves import plot_band_curves
from tff_adaptive.analysis.rate_grid import best_server_rates
from tff_adaptive.analysis.rate_grid import plot_rate_grids
from tff_adaptive.analysis.rate_grid import RateGrid
from tff_adaptive.analysis.round_trace import plot_trace
from tff_adaptive.analysis.round_trace import RoundTrace
from tff_adaptive.analysis.round_trace import trace_round
from tff_adaptive.analysis.similarity import linear_cka
from tff_adaptive.analysis.similarity import moments_cka
from tff_adaptive.analysis.similarity import pairwise_moments_cka
from tff_adaptive.analysis.similarity import plot_similarity
from tff_adaptive.analysis.training_curve import plot_training_curve

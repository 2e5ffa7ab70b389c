# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The binary `experiments.gpu_report`: everything to measure on a GPU."""

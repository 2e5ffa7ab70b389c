# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The binary `experiments.report`: the page, pictures and CSV file of a table.

No TensorFlow is imported before the metrics of a run are read.
"""

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The binary `experiments.report`: pages, figures and CSV files of tables.

TensorFlow is imported only to write pages.
"""

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The folders of finished runs, and the numbers that are made of them.

No TensorFlow is imported before the metrics of a run are read.
"""

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sweeps: what is tried, how it is run, what is best.

No TensorFlow is imported before the flags of every trial are checked.
"""

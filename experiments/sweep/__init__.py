# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sweeps: search spaces, trials, their execution and the choice of the best.

TensorFlow is imported only after the flags of every trial are checked.
"""

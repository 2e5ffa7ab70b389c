# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The leaderboard: all algorithms with the same budget and paired seeds.

TensorFlow is imported only after the flags of every run are checked.
"""

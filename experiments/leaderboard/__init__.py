# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The leaderboard: all algorithms, the same budget, paired seeds.

No TensorFlow is imported before the flags of every run are checked.
"""

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The binary `experiments.train`, which builds and trains runs from flags."""

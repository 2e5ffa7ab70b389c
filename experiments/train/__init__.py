# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The binary `experiments.train`, and the parts of a run, built from its flags."""

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adaptive federated optimization on TensorFlow Federated."""

from tff_adaptive import _stack

__version__ = '0.1.0'

# TFF 0.87 cannot be imported on current TensorFlow without this.
_stack.install()

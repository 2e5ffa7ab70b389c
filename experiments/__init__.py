# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Binaries that run experiments, and the flags they share."""

from tff_adaptive import _stack

_stack.require_packages()

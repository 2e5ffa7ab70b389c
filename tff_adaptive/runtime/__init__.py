# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Execution contexts for TFF computations: the compiled runtime and TFF's."""

from tff_adaptive.runtime.compiled import choose_plan
from tff_adaptive.runtime.compiled import compiled_context
from tff_adaptive.runtime.compiled import CompiledContext
from tff_adaptive.runtime.compiled import create_compiled_context
from tff_adaptive.runtime.compiled import set_compiled_context
from tff_adaptive.runtime.computations import UnsupportedComputationError
from tff_adaptive.runtime.export import export_round
from tff_adaptive.runtime.native import create_native_context
from tff_adaptive.runtime.native import native_context
from tff_adaptive.runtime.plans import AUTO
from tff_adaptive.runtime.plans import set_threads

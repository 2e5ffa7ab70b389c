# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learning tasks, each a value of `definitions.TaskDefinition`.

Tasks of your own are made of `definitions`, `clients` and `data`; those of this
project are in `catalogue`.
"""

from tff_adaptive import _stack

_stack.require_packages()

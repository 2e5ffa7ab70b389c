# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Processes of every client rule, for the tests of what all of them share."""

from typing import Any

import tensorflow_federated as tff

from tests.tff_adaptive.optimizers import rules_testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import runtime

_ROWS = {
    name: (build, arguments)
    for name, build, arguments, _ in rules_testing.RULES
    if name not in rules_testing.SERVER_RULES
}
NAMES = tuple(_ROWS)
# FedDyn adds up the changes of all clients, each of which counts the same.
_WEIGHTINGS = {
    'feddyn': dict(client_weighting=tff.learning.ClientWeighting.UNIFORM)
}


def build_optimizer(name: str) -> Any:
  """Returns the client optimizer of a row."""
  build, arguments = _ROWS[name]
  return build(**arguments)


def build(name: str, model: Any, **options: Any) -> Any:
  """Returns the process of a row."""
  options = {**_WEIGHTINGS.get(name, {}), **options}
  return algorithms.build_fed_opt(model, build_optimizer(name), **options)


def context(name: str) -> Any:
  """Returns a context; Mime needs TFF's runtime, which asks clients twice."""
  if name == 'mime':
    return runtime.NativeContext()
  return compiled_testing.installed(1)

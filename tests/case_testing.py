# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of the cases of a test."""

from typing import Any

from absl.testing import parameterized


def named(**cases: Any) -> Any:
  """Returns a decorator that runs a test with each of the named cases.

  Args:
    **cases: The argument of the test, or a tuple of several.
  """
  return parameterized.named_parameters(
      (name, *case) if isinstance(case, tuple) else (name, case)
      for name, case in cases.items()
  )

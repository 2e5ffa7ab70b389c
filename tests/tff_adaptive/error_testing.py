# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of calls that are refused: a type of error, and what it names."""

import functools
from typing import Any

import pytest


def row(error: type[Exception], named: str, call: Any, *args, **kwargs) -> Any:
  """Returns a row of a call whose error has a text that matches `named`."""
  return error, named, functools.partial(call, *args, **kwargs)


value_error = functools.partial(row, ValueError)
type_error = functools.partial(row, TypeError)


def bad(error: type[Exception], call: Any, **arguments: Any) -> list[Any]:
  """Returns rows of a call with one bad argument each, which is named."""
  return [
      row(error, f'`{name}`', call, **{name: value})
      for name, value in arguments.items()
  ]


bad_values = functools.partial(bad, ValueError)
bad_types = functools.partial(bad, TypeError)


def refused(*rows: Any) -> Any:
  """Returns a test that the call of each row raises its error."""

  @pytest.mark.parametrize('error, named, call', rows)
  def test(error, named, call):
    with pytest.raises(error, match=named):
      call()

  return test

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""New folders for tests."""

import pathlib
import tempfile
from typing import Any

from absl.testing import parameterized


def new(owner: Any) -> pathlib.Path:
  """Returns a new folder that is removed with a test case or its class."""
  return pathlib.Path(owner.enter_context(tempfile.TemporaryDirectory()))


class FolderTestCase(parameterized.TestCase):
  """A test case with a new `folder` for each test."""

  def setUp(self):
    super().setUp()
    self.folder = new(self)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""New folders for tests, and the files in them."""

import csv
import pathlib
import sys
import tempfile
from typing import Any
from unittest import mock

from absl.testing import parameterized


def new(owner: Any) -> pathlib.Path:
  """Returns a new folder that is removed with a test case or its class."""
  return pathlib.Path(owner.enter_context(tempfile.TemporaryDirectory()))


def import_from(test: Any, folder: pathlib.Path):
  """Lets a test import the modules in a folder."""
  path = [str(folder), *sys.path]
  test.enter_context(mock.patch.object(sys, 'path', path))


def read_rows(path: pathlib.Path) -> list[dict[str, str]]:
  """Returns the rows of a CSV file, such as `metrics.csv`, by its columns."""
  with open(path, encoding='utf-8', newline='') as file:
    return list(csv.DictReader(file))


class FolderTestCase(parameterized.TestCase):
  """A test case with a new `folder` for each test."""

  def setUp(self):
    super().setUp()
    self.folder = new(self)

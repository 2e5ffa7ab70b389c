# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the look for optional packages."""

import sys
from unittest import mock

from absl.testing import absltest

from tests import folder_testing
from tff_adaptive import _packages


class PackagesTest(absltest.TestCase):

  def test_a_package_that_is_there_passes_and_is_not_imported(self):
    _packages.check_installed('antigravity')
    self.assertNotIn('antigravity', sys.modules)

  def test_a_folder_of_runs_is_no_package(self):
    folder = folder_testing.new(self)
    (folder / 'tracker_runs_here').mkdir()
    self.enter_context(mock.patch.object(sys, 'path', [folder, *sys.path]))
    with self.assertRaisesRegex(ImportError, 'tracker_runs_here is not inst'):
      _packages.check_installed('tracker_runs_here')

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel as setup.cfg says, with one more file.

A `.pth` file at the top of the wheel lands in `site-packages`, where Python
reads it at start: programs that import TFF before `tff_adaptive` need it, see
tff_adaptive/_stack.py. setup.cfg has no place for such a file.
"""

import os

import setuptools
from setuptools.command import build_py


class _BuildWithImportHook(build_py.build_py):
  """Copies the import hook beside the packages."""

  def run(self):
    super().run()
    if not self.editable_mode:
      self.copy_file('tff_adaptive/_import_hook.pth', self._hook())

  def get_outputs(self, include_bytecode=True):
    return [*super().get_outputs(include_bytecode), self._hook()]

  def _hook(self):
    return os.path.join(self.build_lib, 'tff_adaptive.pth')


setuptools.setup(cmdclass={'build_py': _BuildWithImportHook})

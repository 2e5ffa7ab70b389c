# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Builds the wheel as setup.cfg says, with one more file.

A `.pth` file at the top of the wheel lands in `site-packages`, where Python reads
it at start: programs that import TFF before `tff_adaptive` need it, see
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

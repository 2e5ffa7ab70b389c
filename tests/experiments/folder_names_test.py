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
"""Tests of names of folders."""

from absl.testing import absltest
from absl.testing import parameterized

from experiments import folder_names


class FolderNamesTest(parameterized.TestCase):

  @parameterized.parameters(
      ('alpha = 0.1', '', 'alpha_0.1'),
      ('rate=1e-3,a_b+c', '=,', 'rate=1e-3,a_b+c'),
      ('a/../b', '', 'a_.._b'),
      ('α β', '', '_'),
  )
  def test_slugs(self, text, kept, slug):
    self.assertEqual(folder_names.to_slug(text, kept), slug)


if __name__ == '__main__':
  absltest.main()

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
"""Tests of finding the adapter that a flag asks for."""

from absl.testing import absltest
from absl.testing import parameterized

from experiments import conformance_kit
from experiments.conformance_kit import named_adapters


class CreateAdapterTest(parameterized.TestCase):

  @parameterized.named_parameters(
      (
          'name',
          'stock_flower',
          r"unknown adapter 'stock_flower'; the known ones are \['stock_tff', "
          r"'tff_adaptive'\], 'command:...' and 'module:attribute'",
      ),
      ('module', 'no_such_module:Adapter', 'cannot be imported .*no_such_modu'),
      ('attribute', 'json:Adapter', "cannot be imported .*'Adapter'"),
      ('command', 'command:no-such-program', 'begins with no program'),
  )
  def test_unknown_adapter_raises(self, value, message):
    with self.assertRaisesRegex(ValueError, message):
      conformance_kit.create_adapter(value)

  def test_module_and_attribute_are_called(self):
    adapter = conformance_kit.create_adapter(
        'experiments.conformance_kit.named_adapters:HELP.title'
    )
    self.assertEqual(adapter, named_adapters.HELP.title())

  def test_command_is_the_rest(self):
    adapter = conformance_kit.create_adapter('command:true --x', timeout=1.0)
    self.assertIsInstance(adapter, conformance_kit.CommandAdapter)
    self.assertEqual(adapter.name, 'true --x')

  @parameterized.parameters(
      (None, False), ('stock_tff', False), ('command:true', True)
  )
  def test_is_command(self, value, expected):
    self.assertEqual(named_adapters.is_command(value), expected)


if __name__ == '__main__':
  absltest.main()

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
"""Tests of `specs.instance_of`."""

from typing import Any, Optional

from absl.testing import absltest
from absl.testing import parameterized
import attrs

from tff_adaptive.data import specs


@attrs.frozen
class _Checked:
  name: str = attrs.field(validator=specs.instance_of(str))
  fn: Any = attrs.field(default=len, validator=specs.is_callable)
  other: Optional[str] = attrs.field(
      default=None,
      validator=attrs.validators.optional(specs.instance_of(str)),
  )


class ValidatorsTest(parameterized.TestCase):

  def test_right_types_pass(self):
    self.assertEqual(_Checked('a', print, 'b').other, 'b')

  @parameterized.named_parameters(
      ('type', dict(name=[1]), '`name` must be of type str, found list.'),
      (
          'optional_type',
          dict(name='a', other=3),
          '`other` must be of type str, found int.',
      ),
      (
          'callable',
          dict(name='a', fn='fn'),
          '`fn` must be callable, found str.',
      ),
  )
  def test_another_type_raises_a_sentence_without_the_value(
      self, arguments, sentence
  ):
    with self.assertRaises(TypeError) as caught:
      _Checked(**arguments)
    self.assertEqual(str(caught.exception), sentence)


if __name__ == '__main__':
  absltest.main()

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

from absl.testing import absltest
import tensorflow as tf

from tff_adaptive import _errors


class FirstLineTest(absltest.TestCase):

  def test_takes_the_first_line(self):
    self.assertEqual(_errors.first_line(ValueError('one.\ntwo')), 'one')
    self.assertEqual(_errors.first_line(KeyError()), 'KeyError')

  def test_drops_what_tensorflow_puts_around_it(self):
    with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
      tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature([], tf.float32)})
    line = _errors.first_line(caught.exception)
    self.assertRegex(line, '^Feature: x .*could not be found$')


if __name__ == '__main__':
  absltest.main()

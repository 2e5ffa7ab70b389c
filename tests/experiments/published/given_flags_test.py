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
"""Tests of flags with their origin."""

import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized

from experiments.published import given_flags

_SPECIFIED = given_flags.Origin.SPECIFIED
_ASSUMED = given_flags.Origin.ASSUMED
_LOST = given_flags.Origin.LOST


class GivenFlagsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(
        self.enter_context(tempfile.TemporaryDirectory())
    )

  def _read(self, *lines):
    path = self.folder / 'method.flags'
    path.write_text('\n'.join(lines), encoding='utf-8')
    return given_flags.read_flagfile(path)

  def test_heading_holds_up_to_the_next(self):
    found = self._read(
        '--task=mnist',
        '# assumed: the paper does not say',
        '--client_epochs=1',
        '',
        '--nokeep_best',
        '# lost: the grid',
        '--sgd_momentum=0.9',
    )
    self.assertEqual(
        found,
        [
            given_flags.GivenFlag('task', '--task=mnist', _SPECIFIED),
            given_flags.GivenFlag(
                'client_epochs',
                '--client_epochs=1',
                _ASSUMED,
                'the paper does not say',
            ),
            given_flags.GivenFlag(
                'nokeep_best',
                '--nokeep_best',
                _ASSUMED,
                'the paper does not say',
            ),
            given_flags.GivenFlag(
                'sgd_momentum', '--sgd_momentum=0.9', _LOST, 'the grid'
            ),
        ],
    )

  @parameterized.parameters(
      '# What all experiments share.',
      '// What all experiments share.',
      '# unspecified: a word that only looks like a heading',
  )
  def test_other_comment_changes_nothing(self, comment):
    found = self._read('# assumed: ours', comment, '--task=mnist')
    self.assertEqual([flag.origin for flag in found], [_ASSUMED])

  def test_second_line_of_a_heading_is_a_comment(self):
    found = self._read('# lost: the text says', '# nothing', '--task=mnist')
    self.assertEqual(found[0].origin, _LOST)
    self.assertEqual(found[0].reason, 'the text says')

  def test_entry_has_flags_by_origin(self):
    found = given_flags.from_mapping(
        {
            'name': 'SGD',
            'lost': ['--sgd_momentum=0.9'],
            'specified': ['--client_optimizer=sgd', '--client_epochs=1'],
            'assumed': None,
        }
    )
    self.assertEqual(
        [(flag.name, flag.origin) for flag in found],
        [
            ('client_optimizer', _SPECIFIED),
            ('client_epochs', _SPECIFIED),
            ('sgd_momentum', _LOST),
        ],
    )

  def test_expand_puts_flags_in_the_place_of_the_file(self):
    self._read('# assumed: ours', '--client_epochs=1')
    given = given_flags.from_mapping(
        {
            'specified': [
                '--task=mnist',
                '--flagfile=method.flags',
                '--client_epochs=2',
            ]
        }
    )
    found = given_flags.expand(given, self.folder)
    self.assertEqual(
        [(flag.text, flag.origin) for flag in found],
        [
            ('--task=mnist', _SPECIFIED),
            ('--client_epochs=1', _ASSUMED),
            ('--client_epochs=2', _SPECIFIED),
        ],
    )

  def test_missing_flagfile_is_named(self):
    given = given_flags.from_mapping({'specified': ['--flagfile=no.flags']})
    with self.assertRaisesRegex(FileNotFoundError, 'no.flags'):
      given_flags.expand(given, self.folder)


if __name__ == '__main__':
  absltest.main()

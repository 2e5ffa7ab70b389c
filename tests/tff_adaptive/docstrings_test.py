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
"""Tests that every public name has a docstring of the library's form.

Public is what users import, see `tools.docs.public_api`, and what the registry
of the experiments names.
"""

import pathlib
import tempfile
import textwrap

from absl.testing import absltest
from absl.testing import parameterized

from experiments import registry
from tests.tff_adaptive import docstring_rules_testing
from tests.tff_adaptive import docstring_testing

_ROOT = pathlib.Path(__file__).resolve().parents[2]

# What implements something that was published, beside the registry's rows.
_PUBLISHED = (
    'tff_adaptive.analysis.linear_cka',
    'tff_adaptive.analysis.moments_cka',
    'tff_adaptive.losses.MulticlassHinge',
    'tff_adaptive.privacy.AdaptiveClipping',
    'tff_adaptive.privacy.DifferentialPrivacy',
    'tff_adaptive.privacy.RoundAccountant',
    'tff_adaptive.simulation.LastWeightsAverage',
    'tff_adaptive.data.partition.dirichlet_per_class',
    'tff_adaptive.data.partition.dirichlet_per_client',
    'tff_adaptive.data.partition.pachinko_allocation',
    'tff_adaptive.data.partition.shards',
)
# Rows of the registry that are nobody's publication.
_UNPUBLISHED_ROWS = ('inverse_sqrt', 'table')

# Errors that the search for `raise` finds, and that cannot happen.
_IMPOSSIBLE_ERRORS = {
    # It looks for the file itself.
    'tasks.cifar100.load_tff_cifar100': ('FileNotFoundError',),
    # The seed is a constant.
    'tasks.digits.load_digits': ('TypeError', 'ValueError'),
    # The number of checkpoints is the default.
    'tff_adaptive.simulation.read_weights': ('ValueError',),
}


def _find_registered(
    sources: docstring_testing.Sources,
) -> list[docstring_testing.Public]:
  """Returns what the registry names that is published somewhere."""
  found = []
  for kind, rows in registry.ROWS.items():
    for name, row in rows.items():
      if kind == registry.RUNTIME or name in _UNPUBLISHED_ROWS:
        continue
      if row.builder is not None:
        found.append(sources.find(row.builder.replace(':', '.')))
  return found


class PublicNamesTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.sources = docstring_testing.Sources(_ROOT)
    cls.published = [
        *_find_registered(cls.sources),
        *(cls.sources.find(name) for name in _PUBLISHED),
    ]
    cls.rules = docstring_rules_testing.Rules(
        cls.sources, cls.published, _IMPOSSIBLE_ERRORS
    )

  def _assert_no_offence(self, publics):
    self.assertNotEmpty(publics)
    offences = [
        offence
        for public in publics
        for offence in self.rules.find_offences(public)
    ]
    self.assertEmpty(offences, '\n' + '\n'.join(offences))

  def test_public_names(self):
    publics = self.sources.publics()
    self.assertGreater(len(publics), 200)
    self._assert_no_offence(publics)

  def test_registered_names(self):
    self._assert_no_offence(self.published)

  def test_modules_themselves(self):
    self._assert_no_offence(self.sources.as_publics())


_COMPLETE = '''
  def build_rule(rate: float, *, decay: float = 0.5) -> int:
    """Builds a rule.

    Args:
      rate: The step size, positive.
      decay: The share that is kept, in [0, 1). Defaults to 0.5.

    Returns:
      The rule.

    Raises:
      ValueError: If an argument is out of its range.

    Example:

      >>> build_rule(1.0)

    References:
      Somebody, A Rule, 2020, Algorithm 1.
    """
    if not rate > 0:
      raise ValueError('`rate` must be positive.')
'''

# What is called, in the place of CALL, and what that calls.
_ERRORS = """
    CALL

  class _Private:
    def __init__(self, rate):
      _check(rate)

  def _prepare(rate):
    return _check(rate)

  def _compute(rate):
    raise ValueError('It has come so far.')

  def _check(rate):
    if rate <= 0:
      raise ValueError('`rate` must be positive.')
"""

_CLASS = '''
  @attrs.frozen
  class Rule:
    """A rule.

    Attributes:
      rate: The step size, positive.
      decay: The share. Defaults to 0.5.

    Raises:
      ValueError: If the rate is not positive.

    References:
      Somebody, A Rule, 2020, Algorithm 1.
    """

    rate: float
    decay: float = 0.5

    def __attrs_post_init__(self):
      if self.rate <= 0:
        raise ValueError('`rate` must be positive.')

    def last(self) -> float:
      """Returns the step size at the end."""
      return self.rate
'''


class RulesTest(parameterized.TestCase):
  """Each rule finds what breaks it."""

  def _find_offences(self, source, name='build_rule'):
    """The messages about a definition, in a tree with one module."""
    folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
    (folder / 'tff_adaptive').mkdir()
    (folder / 'tff_adaptive/__init__.py').write_text(
        f'"""A library."""\n\nfrom tff_adaptive._rules import {name}\n'
    )
    (folder / 'tff_adaptive/_rules.py').write_text(
        '"""Rules."""\n\n' + textwrap.dedent(source)
    )
    sources = docstring_testing.Sources(folder)
    (public,) = sources.publics()
    rules = docstring_rules_testing.Rules(sources, [public], {})
    offences = list(rules.find_offences(public))
    place = rf'tff_adaptive/_rules\.py:\d+: tff_adaptive\.{name}'
    for offence in offences:
      self.assertRegex(offence, place)
    return [offence.partition(': ')[2] for offence in offences]

  def test_complete_docstring_has_no_offence(self):
    self.assertEmpty(self._find_offences(_COMPLETE))

  @parameterized.named_parameters(
      ('summary_without_full_stop', 'a rule.', 'a rule', 'the summary'),
      (
          'summary_on_two_lines',
          'a rule.\n',
          'a rule.\n    It.\n',
          'the summary',
      ),
      ('summary_too_long', 'a rule.', f'a {"long " * 20}rule.', 'column 80'),
      (
          'argument_missing',
          '      rate: The step size, positive.\n',
          '',
          r"`Args:` lacks \['rate'\]",
      ),
      (
          'argument_unknown',
          '      rate: The',
          '      speed: No.\n      rate: The',
          r"unknown \['speed'\]",
      ),
      (
          'argument_without_text',
          'rate: The step size, positive.',
          'rate:',
          'says nothing of `rate`',
      ),
      ('default_not_said', ' Defaults to 0.5.', '', '`decay` does not say'),
      ('no_returns', '    Returns:\n      The rule.\n\n', '', 'no `Returns:`'),
      (
          'no_yields',
          '    if not rate > 0:\n',
          '    yield rate\n    if not rate > 0:\n',
          'no `Yields:`',
      ),
      (
          'other_error',
          'ValueError:',
          'TypeError:',
          '`Raises:` lacks ValueError',
      ),
      (
          'no_example',
          '    Example:\n\n      >>> build_rule(1.0)\n\n',
          '',
          'no `Example:`',
      ),
      (
          'no_reference',
          '    References:\n      Somebody, A Rule, 2020, Algorithm 1.\n',
          '',
          'no `References:`',
      ),
      ('reference_without_year', ' 2020,', '', '`References:` needs'),
      ('reference_without_place', ', Algorithm 1', '', '`References:` needs'),
  )
  def test_offence_of_a_function(self, old, new, expected):
    self.assertEqual(_COMPLETE.count(old), 1)
    offences = self._find_offences(_COMPLETE.replace(old, new))
    self.assertLen(offences, 1)
    self.assertRegex(offences[0], expected)

  @parameterized.named_parameters(
      ('complete', '', '', None),
      (
          'attribute_missing',
          '      decay: The share. Defaults to 0.5.\n',
          '',
          r"`Attributes:` has \['rate'\]; describe \['rate', 'decay'\]",
      ),
      ('default_not_said', ' Defaults to 0.5.', '', '`decay` does not say'),
      ('error_of_the_constructor', 'ValueError:', 'KeyError:', 'ValueError'),
      (
          'method_without_docstring',
          '      """Returns the step size at the end."""\n',
          '',
          'last: no docstring',
      ),
      (
          'method_with_an_argument',
          'def last(self)',
          'def last(self, num_steps)',
          r"last: `Args:` lacks \['num_steps'\]",
      ),
  )
  def test_offence_of_a_class(self, old, new, expected):
    source = _CLASS.replace(old, new)
    offences = self._find_offences(source, 'Rule')
    if expected is None:
      self.assertEmpty(offences)
      return
    self.assertNotEqual(source, _CLASS)
    self.assertLen(offences, 1)
    self.assertRegex(offences[0], expected)

  @parameterized.named_parameters(
      ('validation', '_check(rate)', True),
      ('validation_further_on', '_prepare(rate)', True),
      ('constructor', '_Private(rate)', True),
      ('anything_else', '_compute(rate)', False),
      ('a_function_of_the_builder', 'lambda: _check(rate)', False),
  )
  def test_errors_of_what_is_called(self, call, is_found):
    start = _COMPLETE.index('    if not rate > 0')
    source = _COMPLETE.replace('ValueError', 'IndexError')[:start] + _ERRORS
    offences = self._find_offences(source.replace('CALL', call))
    self.assertLen(offences, is_found)
    for offence in offences:
      self.assertRegex(offence, 'lacks ValueError, raised in .*_rules:')

  def test_errors_that_are_caught(self):
    start = _COMPLETE.index('    if not rate > 0')
    caught = """
    try:
      _check(rate)
    except (KeyError, ValueError):
      raise LookupError('It is bad.') from None
"""
    source = _COMPLETE[:start] + caught + _ERRORS.partition('CALL')[2]
    offences = self._find_offences(source.replace('ValueError:', 'OSError:'))
    self.assertLen(offences, 1)
    self.assertRegex(offences[0], 'lacks LookupError')

  def test_documented_bases_of_errors_count(self):
    source = _COMPLETE.replace("raise ValueError('", "raise UnicodeError('")
    self.assertEmpty(self._find_offences(source))

  def test_constants_have_a_comment(self):
    self.assertRegex(self._find_offences('A = 1\n', 'A')[0], 'no comment')
    self.assertEmpty(self._find_offences('# A number.\nA = 1\n', 'A'))

  def test_overriding_methods_need_no_docstring(self):
    base = _CLASS.replace('class Rule', 'class _Base').replace('@', '# ')
    derived = """
  class Rule(_Base):
    \"\"\"Another rule.\"\"\"

    def last(self):
      return 0.1
"""
    self.assertNotEmpty(self._find_offences(derived, 'Rule'))
    self.assertLen(self._find_offences(base + derived, 'Rule'), 1)


if __name__ == '__main__':
  absltest.main()

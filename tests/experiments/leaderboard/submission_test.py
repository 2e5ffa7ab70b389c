# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a method of your own that says how it is tuned."""

from unittest import mock

from absl import flags
from absl.testing import parameterized

from docs.examples import submission
from experiments import registry
from experiments.leaderboard import board
from experiments.leaderboard import results as results_lib
from tests import folder_testing
from tests import page_testing

_PLACE = 'docs.examples.submission:build_normalized_sgd'
_RULE = '\ndef build_own(learning_rate=0.1, scale=1.0):\n  pass\n'


class SubmissionTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    # Other tests look at all rules that there are.
    for kind in registry.RULES:
      self.enter_context(mock.patch.dict(registry.ROWS[kind]))

  def _read(self, constant, name):
    """Returns the method of a new module with a constant."""
    folder = folder_testing.new(self)
    (folder / f'{name}.py').write_text(constant + _RULE, encoding='utf-8')
    folder_testing.import_from(self, folder)
    return board.create_method(registry.CLIENT_OPTIMIZER, f'{name}:build_own')

  def test_the_example_joins_the_default_methods(self):
    rules = board.load().restrict(methods=['default', _PLACE], num_trials=3)
    *others, name = rules.methods
    self.assertEqual(tuple(others), rules.default_methods)
    method = rules.methods[name]
    self.assertEqual(method.name, submission.SUBMISSION['name'])
    self.assertEqual(method.place, _PLACE)
    (given,) = submission.SUBMISSION['search']
    self.assertEqual(method.search, (board.Range(**given),))
    trials = results_lib.Plan(rules, 'runs').tuning('digits', method.name)
    self.assertLen(trials, 3)
    self.assertEqual(trials[1].hparams['client_optimizer'], _PLACE)

  def test_the_guide_shows_the_constant(self):
    source = page_testing.read('docs/examples/submission.py')
    shown = source[source.index('SUBMISSION') : source.index('\n\nclass')]
    guide = page_testing.read('docs/leaderboard.md')
    self.assertIn(f'```python\n{shown}```', guide)

  def test_what_is_not_given_has_defaults(self):
    found = self._read(
        "SUBMISSION = {'tuning_free': True, 'flags': ['--own_scale=2']}",
        'submitted',
    )
    self.assertEqual(found.name, 'own')
    self.assertEqual(
        found.flags, ('--client_optimizer=submitted:build_own', '--own_scale=2')
    )
    self.assertEqual([r.flag for r in found.search], ['client_learning_rate'])
    self.assertTrue(found.tuning_free)
    self.assertEqual(found.defaults, board.OURS)

  @parameterized.named_parameters(
      ('annotated', 'SUBMISSION: dict[str, object] = {"name": "Mine"}'),
      ('imported', 'from own_submission import OF_OWN as SUBMISSION'),
  )
  def test_the_constant_may_be(self, constant):
    folder = folder_testing.new(self)
    (folder / 'own_submission.py').write_text('OF_OWN = {"name": "Mine"}')
    folder_testing.import_from(self, folder)
    name = self.id().rpartition('_be_')[2]
    self.assertEqual(self._read(constant, name).name, 'Mine')

  @parameterized.parameters('FedAvg', 'delta_sgd', 'Normalized-SGD')
  def test_two_methods_of_one_name_are_refused(self, name):
    rules, module = board.load(), f'like_{board.to_key(name)}'
    place = self._read(f'SUBMISSION = {{"name": {name!r}}}', module).place
    with self.assertRaisesRegex(flags.Error, f'={place} has the name of .*'):
      rules.restrict(methods=['FedAdam', _PLACE, place])

  @parameterized.named_parameters(
      ('of_call', 'SUBMISSION = dict(name="a")', 'must be a dictionary'),
      ('of_list', 'SUBMISSION = ["a"]', 'must be a dictionary'),
      ('of_import', 'from math import pi as SUBMISSION', 'must be a diction'),
      ('of_key', 'SUBMISSION = {"ranges": []}', "takes name, .*'ranges'"),
      ('of_source', 'SUBMISSION = {"defaults": "me"}', 'defaults.*paper'),
      (
          'of_range',
          'SUBMISSION = {"search": [{"flag": "a"}]}',
          'values.*missing',
      ),
  )
  def test_what_cannot_be_read_is_one_sentence(self, constant, sentence):
    name = self.id().rpartition('_sentence_')[2]
    with self.assertRaisesRegex(flags.Error, f'^SUBMISSION of .*{sentence}'):
      self._read(constant, name)

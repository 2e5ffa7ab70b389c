# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a new rule is its file and a line in its package's `__init__`."""

import json
import pathlib
import shlex
import subprocess
import sys

from absl.testing import absltest
import pytest

from tests import page_testing

_RULE = '''"""Sign descent, a rule of this test."""

import collections
from typing import Literal

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import optimizer


class _SignDescent(optimizer.ExtraArgsOptimizer):

  def __init__(self, learning_rate):
    self._hparams = collections.OrderedDict(learning_rate=learning_rate)

  def initialize(self, specs):
    return self._hparams

  def next(self, state, weights, gradients, **unused_extra_args):
    rate = state['learning_rate']
    return state, tf.nest.map_structure(
        lambda x, g: x - tf.cast(rate, x.dtype) * tf.sign(g), weights, gradients
    )

  def report(self, state):
    return collections.OrderedDict()

  def get_hparams(self, state):
    return state

  def set_hparams(self, state, hparams):
    return hparams


def build_sign_descent(
    learning_rate: ranges.NotNegative = 0.03,
    ties: Literal['stay', 'fall'] = 'stay'
) -> optimizer.ExtraArgsOptimizer:
  """Builds sign descent.

  Args:
    learning_rate: How far each coordinate goes.
    ties: What becomes of coordinates whose gradient is zero. Default 'stay'.

  References:
    Bernstein et al., signSGD, ICML 2018, https://arxiv.org/abs/1802.04434,
    Algorithm 1.
  """
  return _SignDescent(learning_rate)
'''
_LINE = (
    'from tff_adaptive.optimizers.client.sign_descent import '
    'build_sign_descent\n'
)


class NewRuleTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self._project = self.enter_context(page_testing.copied_project())
    package = self._project / 'tff_adaptive' / 'optimizers'
    (package / 'client' / 'sign_descent.py').write_text(_RULE, encoding='utf-8')
    with (package / '__init__.py').open('a', encoding='utf-8') as file:
      file.write(_LINE)

  def _run(self, module: str, *flags: str) -> str:
    result = self._try(module, *flags)
    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
    return result.stdout

  def _try(self, module: str, *flags: str) -> subprocess.CompletedProcess:
    command = shlex.join([sys.executable, '-m', module, *flags])
    return page_testing.run(command, self._project)

  def _page(self, name: str) -> str:
    return pathlib.Path(self._project, name).read_text(encoding='utf-8')

  def test_flags_help_ranges_and_measurements_know_it(self):
    text = ' '.join(self._run('experiments.train', '--help').split())
    self.assertIn('sign_descent', text)
    self.assertIn('--sign_descent_ties: <stay|fall>: sign_descent: What', text)
    self.assertIn('sign_descent', self._run('experiments.benchmark', '--help'))
    trials = self._run(
        'experiments.leaderboard',
        '--dry_run',
        '--tasks=digits',
        '--methods=sign_descent',
    )
    self.assertIn('--client_optimizer=sign_descent', trials)
    self.assertRegex(trials, r'--client_learning_rate=0\.\d+')

  @pytest.mark.slow
  def test_runs_and_tables_know_it(self):
    self._run(
        'experiments.train',
        '--task=digits',
        '--client_optimizer=sign_descent',
        '--client_learning_rate=0.01',
        '--total_rounds=2',
        '--experiment_name=new',
    )
    hparams = json.loads(self._page('runs/new/hparams.json'))
    self.assertEqual(hparams['client_optimizer'], 'sign_descent')
    self.assertEqual(hparams['sign_descent_ties'], 'stay')
    self._run('tools.tables')
    self.assertRegex(
        self._page('docs/algorithms.md'),
        r'\| `sign_descent` \| sign descent\. \| `learning_rate=0.03`, '
        r'`ties=stay` \| \[Bernstein et al\., signSGD, ICML 2018\]',
    )
    self.assertRegex(
        self._page('docs/guide/one_optimizer.md'),
        r'clients \| .*`build_sign_descent`.* \| nothing \| works \|',
    )
    self.assertIn(
        '| sign_descent |',
        self._page('docs/guide/recommended_hyperparameters.md'),
    )
    goldens = json.loads(self._page('tests/goldens/goldens.json'))
    run = goldens['runs'][0]
    run['config']['client'] = {'name': 'sign_descent', 'lr': 0.05}
    path = self._project / 'goldens.json'
    path.write_text(json.dumps({**goldens, 'runs': [run]}), encoding='utf-8')
    replay = self._try('experiments.conformance', f'--goldens={path}')
    # The numbers are those of another rule; this one was run.
    self.assertRegex(replay.stdout, r'fedavg quadratic \d\S* \S+ FAIL')

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that all claims get the verdicts and numbers of docs/results again."""

import collections
import json
import math
import pathlib

from absl.testing import parameterized
import numpy as np
import pytest

from tests import folder_testing
from tools import audit
from tools import results
from tools.audit import laboratory
from tools.audit.claim import Status

_RESULTS = pathlib.Path(__file__).resolve().parents[3] / 'docs' / 'results'
_BOARD = results.KEPT_DIR / 'leaderboard'
_KEPT = json.loads((_RESULTS / 'claims.json').read_text(encoding='utf-8'))
# Those that are measured, hold, and would not if the library computed NaN;
# delta_sgd.same_batch_is_better would stop.
_MEASURED = (
    'delta_sgd.step_bounds',
    'fedcada.adjustment_fades',
    'fedexp.step_at_least_one',
    'fedli.local_descent',
    'fedli.step_bounds',
    'fedopt.lookahead',
    'fedopt.scale_invariance',
    'fedopt.tau_is_adaptivity',
    'fedopt.yogi_changes_slowly',
    'fedprox.limits_drift',
    'scaffold.corrects_drift',
    'sps.exact_on_isotropic_quadratics',
)


def _flatten(numbers, path=''):
  """Yields numbers with their places; infinite ones are words, as in JSON."""
  if isinstance(numbers, (dict, list)):
    is_list = isinstance(numbers, list)
    for name, part in enumerate(numbers) if is_list else numbers.items():
      yield from _flatten(part, f'{path}/{name}')
  else:
    is_word = isinstance(numbers, float) and not math.isfinite(numbers)
    yield path, str(numbers) if is_word else numbers


class _Broken(laboratory.Laboratory):
  """A laboratory in which everything that is computed is NaN."""

  def steps(self, rule, batches, start, **arguments):
    del rule, arguments
    num_steps = len(batches.slopes)

    def nan(num_rows=num_steps, shape=(len(start),)):
      return np.full([num_rows, *shape], math.nan)

    return laboratory.Path(
        nan(num_steps + 1),
        collections.defaultdict(nan),
        collections.defaultdict(lambda: nan(shape=())),
    )

  def server_step(self, *args, **kwargs):
    return math.nan

  def train(self, *args, **kwargs):
    return laboratory.Training([math.nan] * 2, {}, False)


class _Kept(laboratory.Laboratory):
  """A laboratory with the kept runs; most of them are of the leaderboard."""

  def __init__(self, runs_dir, links):
    super().__init__(runs_dir)
    for path in results.KEPT_DIR.rglob('*.csv'):
      if path.parent != _BOARD:
        (links / f'{path.parent.name}.{path.name}').symlink_to(path)
    results.unpack(links, runs_dir)

  def tuned(self, methods):
    results.unpack(_BOARD, self.runs_dir)
    return super().tuned(methods)


class ClaimsTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.lab = _Kept(folder_testing.new(cls), folder_testing.new(cls))

  @parameterized.named_parameters(
      (name.replace('.', '_'), name) for name in audit.CLAIMS
  )
  @pytest.mark.sample(5)
  def test_verdict(self, name):
    verdict = audit.CLAIMS[name].check(self.lab)
    kept = _KEPT[name]
    self.assertEqual(verdict.status.value, kept['verdict'], verdict.evidence)
    found = dict(_flatten(verdict.numbers))
    expected = dict(_flatten(kept['numbers']))
    self.assertEqual(list(found), list(expected))
    for place, number in expected.items():
      if isinstance(number, float):
        # Only rounding is left of a distance, and it depends on the machine.
        self.assertAlmostEqual(
            found[place], number, delta=1e-6 + 1e-3 * abs(number), msg=place
        )
      else:
        self.assertEqual(found[place], number, place)

  def test_every_claim_is_kept(self):
    self.assertEqual(list(audit.CLAIMS), list(_KEPT))

  @parameterized.named_parameters(
      (name.replace('.', '_'), name) for name in _MEASURED
  )
  def test_what_is_not_a_number_does_not_hold(self, name):
    self.assertEqual(_KEPT[name]['verdict'], Status.HOLDS)
    verdict = audit.CLAIMS[name].check(_Broken(pathlib.Path('no runs')))
    self.assertNotEqual(verdict.status, Status.HOLDS)

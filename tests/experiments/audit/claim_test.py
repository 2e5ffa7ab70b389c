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
"""Tests of what a claim is, and of how methods are compared."""

import math

from absl.testing import absltest
from absl.testing import parameterized

from experiments import audit
from experiments.audit import claim
from experiments.audit.claim import Status


class ClaimTest(absltest.TestCase):

  def test_docstring_is_the_claim_and_the_method(self):
    paper = claim.Paper('fedopt', 'Reddi et al.')

    @paper.claim('Algorithm 2')
    def moves(lab):
      """FedAdam moves,

      and this is
      how one sees it.

      Twice.
      """
      return claim.Verdict(claim.Status.HOLDS, f'It moved by {lab}.')

    found = paper.claims['fedopt.moves']
    self.assertEqual(found.statement, 'FedAdam moves,')
    self.assertEqual(found.method, 'and this is how one sees it. Twice.')
    self.assertEqual(found.source, 'Reddi et al., Algorithm 2')
    self.assertEqual(found.check(3).evidence, 'It moved by 3.')
    self.assertIs(found.check, moves)

  def test_every_claim_says_what_it_is_and_how_it_is_checked(self):
    for name, found in audit.CLAIMS.items():
      with self.subTest(name):
        self.assertEqual(found.name, name)
        self.assertEndsWith(found.statement, '.')
        self.assertEndsWith(found.method, '.')

  def test_every_paper_has_several_claims(self):
    papers = [name.partition('.')[0] for name in audit.CLAIMS]
    for paper in ('delta_sgd', 'fedopt', 'fedcada', 'fedli'):
      self.assertGreaterEqual(papers.count(paper), 5)


_INF = math.inf


class DifferencesTest(parameterized.TestCase):

  def test_paired_interval(self):
    difference = claim.compare(
        {0: 1.0, 1: 2.0, 2: 4.0, 5: 0.0}, {0: 0.0, 1: 0.0, 2: 1.0, 7: 9.0}
    )
    # 2 +- 4.302653 / sqrt(3), the t quantile of two degrees of freedom.
    self.assertEqual(difference.num_seeds, 3)
    self.assertSequenceAlmostEqual(
        difference.interval, (2.0, -0.484138, 4.484138), places=5
    )
    self.assertEqual(str(difference), '+2.00 [-0.48, +4.48] (3 paired seeds)')
    self.assertEqual(difference.to_numbers()['seeds'], 3)

  def test_no_common_seed(self):
    with self.assertRaisesRegex(ValueError, r'\[0\] and \[1\]'):
      claim.compare({0: 1.0}, {1: 1.0})

  @parameterized.named_parameters(
      ('above', [1.0, 1.1, 1.2], Status.HOLDS, Status.HOLDS),
      ('within_the_margin', [-0.1, -0.11, -0.12], Status.HOLDS, Status.FAILS),
      ('equal', [0.0, 0.0, 0.0], Status.HOLDS, Status.FAILS),
      ('by_chance', [3.0, -2.0, 1.0], Status.OPEN, Status.OPEN),
      ('around_the_margin', [-0.4, -0.5, -0.6], Status.OPEN, Status.FAILS),
      ('below', [-2.0, -2.1, -2.2], Status.FAILS, Status.FAILS),
      ('one_seed_above', [9.0], Status.OPEN, Status.OPEN),
      ('one_seed_below', [-9.0], Status.OPEN, Status.OPEN),
      ('diverged', [-_INF, 1.0], Status.FAILS, Status.FAILS),
      ('one_seed_diverged', [-_INF], Status.FAILS, Status.FAILS),
      ('the_other_one_diverged', [_INF, 1.0], Status.HOLDS, Status.HOLDS),
      ('both_diverged_apart', [_INF, -_INF], Status.OPEN, Status.OPEN),
  )
  def test_three_answers(self, found, not_behind, ahead):
    difference = claim.compare(
        dict(enumerate(found)), dict.fromkeys(range(len(found)), 0.0)
    )
    self.assertEqual(claim.not_behind(difference), not_behind)
    self.assertEqual(claim.ahead(difference), ahead)

  @parameterized.parameters(
      ([-0.3], '-0.30 (one seed, which decides nothing)'),
      ([-_INF, 0.0], 'it diverged'),
      ([_INF], 'the other one diverged'),
      ([_INF, -_INF], 'each of them, in a seed of its own, diverged'),
  )
  def test_text(self, found, expected):
    difference = claim.compare(
        dict(enumerate(found)), dict.fromkeys(range(len(found)), 0.0)
    )
    self.assertEqual(str(difference), expected)

  def test_the_worst_answer_is_that_of_all(self):
    self.assertEqual(claim.unite([Status.HOLDS, Status.OPEN]), Status.OPEN)
    self.assertEqual(
        claim.unite([Status.OPEN, Status.FAILS, Status.HOLDS]),
        Status.FAILS,
    )


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the claims of a paper."""

from absl.testing import absltest

from tools import audit
from tools.audit import claim


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

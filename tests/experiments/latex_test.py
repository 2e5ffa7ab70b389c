# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of tables in LaTeX."""

from absl.testing import parameterized

from experiments import formatting


class LatexTest(parameterized.TestCase):

  @parameterized.parameters(
      ('lr < 0.1 | > 1', r'lr \textless{} 0.1 \textbar{} \textgreater{} 1'),
      ('[1] FedAvg*', '{[}1] FedAvg{*}'),
      ('a_b \\ {c}^-\n2', r'a\_b \textbackslash{} \{c\}\textasciicircum{}- 2'),
  )
  def test_text_is_shown_as_it_is(self, text, shown):
    self.assertEqual(formatting.escape_latex(text), shown)

  def test_a_row_does_not_continue_the_one_before(self):
    table = formatting.to_latex(
        ['a', 'b'], [['x', '1'], ['[y]', '2']], 'About y.'
    )
    self.assertIn('x & 1 \\\\\n{[}y] & 2 \\\\\n', table)

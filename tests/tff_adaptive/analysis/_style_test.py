# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the common style of figures."""

from absl.testing import parameterized
from matplotlib import text
from matplotlib import ticker

from tests import folder_testing
from tff_adaptive.analysis import _style


class StyleTest(parameterized.TestCase):

  @parameterized.parameters(
      r'costs $5 and $\notacommand{',
      r'$\frac{1}{2}$',
      '$$',
      '<script>&amp;</script>',
  )
  def test_a_name_is_drawn_as_it_is_written(self, name):
    drawing = _style.new_figure(4, 3)
    axes = drawing.subplots()
    axes.plot([1, 10], [1, 100], label=name)
    axes.set(xlabel=name, ylabel=name, title=name, yscale='log')
    axes.set_xticks([1, 10], [name, name])
    axes.annotate(name, (1, 1))
    axes.legend()
    folder = folder_testing.new(self)
    for suffix in ('png', 'svg', 'pdf'):
      _style.save(drawing, folder / f'a.{suffix}', name)
    shown = [t for t in drawing.findobj(text.Text) if t.get_text() == name]
    self.assertGreaterEqual(len(shown), 7)
    self.assertFalse(any(t.get_parse_math() for t in shown))
    self.assertNotIn('<script>', (folder / 'a.svg').read_text())

  def test_powers_of_ten_are_still_formulas(self):
    drawing = _style.new_figure(4, 3)
    axes = drawing.subplots()
    axes.plot([1, 10], [1e-5, 1e5])
    axes.set(yscale='log')
    _style.save(drawing, folder_testing.new(self) / 'a.png')
    formatter = axes.yaxis.get_major_formatter()
    self.assertIsInstance(formatter, ticker.LogFormatter)
    labels = [t for t in axes.get_yticklabels() if '$' in t.get_text()]
    self.assertNotEmpty(labels)
    self.assertTrue(all(t.get_parse_math() for t in labels))

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the progress of a training run."""

import io
import types
from unittest import mock

from absl.testing import absltest

from tff_adaptive.simulation import progress


class ProgressTest(absltest.TestCase):

  def _show(self, stream, clock):
    row = {'clients/loss': 1.5, 'evaluation/loss': 9.0}
    shown = progress.Progress(100, 10, stream)
    with mock.patch.object(progress, 'time', clock):
      for round_num in range(11, 101):
        extra = {'evaluation/accuracy': 0.5} if round_num == 20 else {}
        # The first one compiles.
        seconds = 9.0 if round_num == 11 else 2.0
        shown.update(round_num, {**row, **extra}, seconds=seconds)
    shown.close()

  def test_plain_lines_at_intervals(self):
    stream = io.StringIO()
    seconds = iter(range(1000))
    self._show(stream, types.SimpleNamespace(monotonic=lambda: next(seconds)))
    lines = stream.getvalue().splitlines()
    self.assertEqual(lines.pop(0), 'continues after round 10')
    self.assertEqual(lines[0], 'round  11/100  loss 1.5000  9.00 s/round')
    self.assertRegex(lines[1], r'  2.00 s/round  0:0\d:\d\d left$')
    self.assertEqual(
        lines[-1],
        'round 100/100  loss 1.5000  accuracy 0.5000  2.00 s/round',
    )
    self.assertBetween(len(lines), 10, 30)

  def test_one_bar_in_a_terminal(self):
    stream = io.StringIO()
    stream.isatty = lambda: True
    self._show(stream, types.SimpleNamespace(monotonic=lambda: 0))
    text = stream.getvalue()
    self.assertIn('100/100 rounds', text)
    self.assertIn('loss=1.5000, accuracy=0.5000', text)
    self.assertIn('s/round', text)
    self.assertIn('left', text)
    self.assertNotIn('continues', text)

  def test_losses_of_any_size_keep_their_digits(self):
    stream = io.StringIO()
    shown = progress.Progress(2, stream=stream)
    shown.update(1, {'clients/loss': 3.14e-6}, seconds=1.0)
    shown.update(2, {'clients/loss': 5.75e34}, seconds=1.0)
    self.assertIn('loss 3.14e-06  ', stream.getvalue())
    self.assertIn('loss 5.75e+34  ', stream.getvalue())

  def test_closing_twice_is_fine(self):
    stream = io.StringIO()
    stream.isatty = lambda: True
    shown = progress.Progress(2, stream=stream)
    shown.close()
    written = stream.getvalue()
    shown.close()
    self.assertEqual(stream.getvalue(), written)

  def test_a_reader_may_be_gone(self):
    stream = mock.Mock()
    stream.isatty.return_value = False
    stream.write.side_effect = BrokenPipeError
    self._show(stream, types.SimpleNamespace(monotonic=lambda: 0))
    self.assertGreater(stream.write.call_count, 1)

  def test_a_process_may_report_no_loss(self):
    stream = io.StringIO()
    shown = progress.Progress(1, stream=stream)
    shown.update(1, {'evaluation_average/accuracy': 0.5}, seconds=1.0)
    self.assertEqual(stream.getvalue(), 'round 1/1  1.00 s/round\n')

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of long trainings that look at what the process holds."""

from unittest import mock

from absl import flags
from absl.testing import parameterized
import pytest

from experiments.benchmark import soak
from tests import folder_testing
from tests import program_testing


def _samples(megabytes, num_files=(7,) * 9, num_threads=(3,) * 9):
  return [
      soak.Sample(20 * place, 1.0 * place, *held)
      for place, held in enumerate(zip(megabytes, num_files, num_threads))
  ]


class GrowthTest(parameterized.TestCase):

  def test_the_first_measurements_do_not_count(self):
    growth = soak.compute_growth(_samples([0, 50] + [100.0] * 7))
    self.assertEqual(growth.num_files, 0)
    self.assertAlmostEqual(growth.megabytes_per_1000_rounds, 0.0, delta=1e-6)

  def test_growth_is_found(self):
    growth = soak.compute_growth(
        _samples(
            [100.0 + 0.2 * place for place in range(9)],
            num_files=range(9),
            num_threads=[3] * 5 + [5] * 4,
        )
    )
    self.assertAlmostEqual(growth.megabytes_per_1000_rounds, 10.0)
    self.assertEqual((growth.num_files, growth.num_threads), (6, 2))


class SoakTest(parameterized.TestCase):

  def test_an_interruption_keeps_what_was_measured(self):
    folder = folder_testing.new(self)
    values = flags.FlagValues()
    soak.define(values)
    values(['soak', f'--output_dir={folder}'])

    def train(*unused_args):
      yield from _samples([100.0] * 9)
      yield from _samples([100.0] * 3)
      raise KeyboardInterrupt

    with mock.patch.object(soak, '_train', train):
      with self.assertRaises(KeyboardInterrupt):
        soak.main(values)
    rows = folder_testing.read_rows(folder / 'tiny_many.compiled.csv')
    self.assertLen(rows, 11)

  @pytest.mark.slow
  def test_four_hundred_rounds_hold_no_more(self):
    folder = folder_testing.new(self)
    process = program_testing.run(
        'experiments.benchmark',
        *('--mode=soak', '--rounds=400', f'--output_dir={folder}'),
    )
    self.assertEqual(process.returncode, 0, process.stderr)
    table = folder / 'tiny_many.compiled.csv'
    rows = folder_testing.read_rows(table)
    self.assertLen(rows, 21)
    self.assertEqual(rows[-1]['round_num'], '400')
    self.assertTrue(table.with_suffix('.png').is_file())

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the benchmark's other modes: rounds on workers, long trainings."""

from unittest import mock

from absl import flags
from absl.testing import parameterized
import attrs
import pytest

from experiments.benchmark import scaling
from experiments.benchmark import soak
from tests import folder_testing
from tests import program_testing


@attrs.frozen
class _Costs:
  seconds: float = 10.0
  server_seconds: float = 0.5
  merge_seconds: float = 1.0
  work_seconds: float = 8.0
  num_chunks: int = 10
  broadcast_bytes: int = 1000
  chunk_bytes: int = 100
  sum_bytes: int = 10_000


class ScalingModelTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.model = scaling.ScalingModel(_Costs(), 20, 11_100.0)

  def test_one_worker_takes_what_was_measured_and_the_network(self):
    found = self.model.predict(1, 20, 10)
    self.assertAlmostEqual(found.work_seconds, 8.0)
    self.assertAlmostEqual(found.driver_seconds, 2.0)
    self.assertEqual(found.num_bytes, 11_100)
    self.assertAlmostEqual(found.seconds, 11.0)

  @parameterized.parameters((2, 4.0), (3, 3.2), (4, 2.4), (10, 0.8), (20, 0.8))
  def test_no_chunk_is_shared(self, num_workers, expected):
    found = self.model.predict(num_workers, 20, 10)
    self.assertAlmostEqual(found.work_seconds, expected)

  def test_more_workers_are_sent_more(self):
    found = self.model.predict(5, 20, 10)
    self.assertEqual(found.num_bytes, 5000 + 100 + 10_000)
    # The 0.5 s of messages grow with their bytes.
    self.assertAlmostEqual(
        found.driver_seconds, 0.5 + 1.0 + 0.5 * 15_100 / 11_100
    )

  def test_more_clients_are_more_work_and_more_chunks(self):
    found = self.model.predict(1, 40, 30)
    self.assertAlmostEqual(found.work_seconds, 16.0)
    self.assertAlmostEqual(
        found.driver_seconds, 0.5 + 3 * 1.0 + 0.5 * 31_200 / 11_100
    )
    self.assertEqual(found.num_bytes, 1000 + 200 + 30_000)

  def test_work_of_several_cores_leaves_no_negative_rest(self):
    model = scaling.ScalingModel(_Costs(seconds=5.0), 20, 1e9)
    self.assertAlmostEqual(model.predict(1, 20, 10).driver_seconds, 1.5)


class ScalingTest(parameterized.TestCase):

  @pytest.mark.slow
  def test_measures_and_predicts(self):
    folder = folder_testing.new(self)
    process = program_testing.run(
        'experiments.benchmark',
        *('--mode=scaling', '--workload=tiny_many', '--rounds=1'),
        *('--predict=1,100', '--clients=5000', f'--output_dir={folder}'),
    )
    self.assertEqual(process.returncode, 0, process.stderr)
    self.assertRegex(process.stdout, r'ray_2 logistic')
    self.assertRegex(process.stdout, r'(?m)^ +2 +0\.')
    one, many = folder_testing.read_rows(folder / 'tiny_many.csv')
    self.assertEqual((one['num_workers'], many['num_workers']), ('1', '100'))
    self.assertEqual(one['num_clients'], '5000')
    self.assertLess(float(many['work_seconds']), float(one['work_seconds']))
    self.assertGreater(int(many['num_bytes']), int(one['num_bytes']))
    self.assertTrue((folder / 'tiny_many.png').is_file())


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

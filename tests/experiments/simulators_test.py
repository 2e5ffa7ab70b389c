# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the presets of the protocols that other simulators are timed on."""

import os
import re

from absl.testing import absltest

from experiments import published
from experiments import registry
from tests import page_testing

_FOLDER = 'experiments/presets/simulators'
_ROW = re.compile(r'^\| `(\w+)\.flags` \| ([^|]+) \| .+ \|$', re.M)


class SimulatorsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(published.ROOT)  # Flagfiles are given from the project's folder.

  def test_presets_have_the_numbers_of_the_page(self):
    rows = _ROW.findall(page_testing.read(f'{_FOLDER}/README.md'))
    files = sorted((published.ROOT / _FOLDER).glob('*.flags'))
    self.assertCountEqual([name for name, _ in rows], [f.stem for f in files])
    for name, protocol in rows:
      with self.subTest(name):
        choices, settings = published.parse_flags(
            [f'--flagfile={_FOLDER}/{name}.flags', '--data_dir=data']
        )
        self.assertEqual(settings.experiment_name, name)
        numbers = {
            float(n.replace(',', ''))
            for n in re.findall(r'[\d,.]*\d', protocol)
        }
        rate = choices[registry.CLIENT_OPTIMIZER].given['learning_rate']
        self.assertLessEqual(
            {
                settings.clients_per_round,
                settings.client_batch_size,
                settings.total_rounds,
                rate,
            },
            numbers,
        )

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the files and the table of the last evaluations."""

import collections
import contextlib
import io
import json
import tempfile

from absl.testing import absltest
import numpy as np

from experiments.train import evaluation_results
from tff_adaptive import evaluation
from tff_adaptive.simulation import run_directory


def _metrics(accuracy):
  return evaluation.ClientMetrics(
      ['a', 'b'], [1, 3], {'loss': [0.5, np.nan], 'accuracy': accuracy}
  )


class WriteTest(absltest.TestCase):

  def test_writes_file_pictures_and_table(self):
    folder = self.enter_context(tempfile.TemporaryDirectory())
    directory = run_directory.RunDirectory(folder, 'run')
    directory.open({})
    found = {
        'central': {'test': collections.OrderedDict(loss=0.5, accuracy=0.75)},
        'per_client': _metrics([0.5, 1.0]),
        'personalized': evaluation.PersonalizedMetrics(
            _metrics([0.5, 1.0]), _metrics([1.0, 1.0])
        ),
    }
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
      evaluation_results.write(found, 7, directory, 'A title')
    content = json.loads((directory.path / 'evaluation.json').read_text())
    self.assertEqual(content['round_num'], 7)
    self.assertEqual(content['central']['test']['accuracy'], 0.75)
    per_client = content['per_client']
    self.assertEqual(per_client['num_clients'], 2)
    self.assertEqual(per_client['summary']['accuracy_weighted_mean'], 0.875)
    self.assertIsNone(per_client['summary']['loss_mean'])
    self.assertEqual(
        per_client['clients']['b'],
        {'num_examples': 3, 'loss': None, 'accuracy': 1.0},
    )
    after = content['personalized']['after']['summary']
    self.assertEqual(after['accuracy_worst_decile'], 1.0)
    self.assertEqual(
        {path.name for path in directory.plots.iterdir()},
        {
            'clients_loss.png',
            'clients_accuracy.png',
            'personalized_loss.png',
            'personalized_accuracy.png',
        },
    )
    lines = out.getvalue().splitlines()
    self.assertEqual(lines[0], 'central, test: loss 0.5, accuracy 0.75')
    self.assertRegex(lines[1], '^by client +clients +metric +mean +by examples')
    self.assertRegex(
        lines[3], r'^per client +2 +accuracy +0\.75 +0\.875 +0\.75 +0\.5$'
    )
    self.assertRegex(lines[7], r'^after fine-tuning +2 +accuracy +1 +1 +1 +1$')

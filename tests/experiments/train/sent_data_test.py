# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that workers can be sent the source of every task's client data."""

import contextlib
import io

from absl.testing import parameterized
import pytest
import tensorflow as tf

from experiments import published
from experiments import registry
from experiments.train import run_parts

_TASKS = tuple(registry.ROWS[registry.TASK])


class SentDataTest(tf.test.TestCase, parameterized.TestCase):

  def _check(self, *arguments):
    """Sends the clients of a task; what is read then must be the same."""
    if '--task=digits' not in arguments:  # They come with a package.
      arguments = (*arguments, '--use_synthetic_data')
    choices, settings = published.parse_flags(
        [
            *arguments,
            '--clients_per_round=2',
            f'--output_dir={self.get_temp_dir()}',
        ]
    )
    with contextlib.redirect_stdout(io.StringIO()):
      task = run_parts.build_task(choices, settings)
    from ray import cloudpickle

    sent = cloudpickle.loads(cloudpickle.dumps(task.train_data))
    self.assertEqual(sent.client_ids, task.train_data.client_ids)
    for client_id in sent.client_ids[:3]:
      expected = task.train_data.examples(client_id)
      found = sent.examples(client_id)
      self.assertEqual(list(found), list(expected))
      tf.nest.map_structure(self.assertAllEqual, found, expected)

  def test_files_that_are_preprocessed(self):
    self._check('--task=shakespeare', '--num_clients=5')

  @parameterized.parameters(*_TASKS)
  @pytest.mark.slow
  def test_every_task_with_held_out_examples(self, name):
    self._check(f'--task={name}', '--heldout_fraction=0.2', '--num_clients=3')

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `emnist_data`."""

import types

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow_federated as tff

from tasks import definitions
from tasks import emnist
from tasks.images import emnist_data
from tests import folder_testing
from tests.tasks import data_testing
from tests.tasks.images import emnist_testing

_BASELINES = tff.simulation.baselines
# A client in one batch: TFF's order of batches is not deterministic.
_SPEC = _BASELINES.ClientSpec(
    num_epochs=1, batch_size=1000, shuffle_buffer_size=1
)


def _tff_datasets(task_name, folder, only_digits):
  """Returns the clients of TFF's task and its unshuffled preprocessing."""
  create = {
      'emnist_ae': _BASELINES.emnist.create_autoencoder_task,
      'emnist_cr': _BASELINES.emnist.create_character_recognition_task,
  }[task_name]
  return create(
      _SPEC, _SPEC, only_digits=only_digits, cache_dir=str(folder)
  ).datasets


_TASKS = {'emnist_cr': emnist.EMNIST_CR, 'emnist_ae': emnist.EMNIST_AE}
_PROTOCOL = definitions.Protocol(2, 1, clients_per_round=1, total_rounds=1)


def _create(task_name, folder, **arguments):
  return _TASKS[task_name].create(folder, protocol=_PROTOCOL, **arguments)


def _load(folder, max_bytes):
  args = types.SimpleNamespace(only_digits=False, max_bytes_in_memory=max_bytes)
  return emnist_data.Characters().load(args, folder, seed=0)


def _prepare(data, raw):
  return data.build_prepare(types.SimpleNamespace(), train=None, data_dir=None)(
      raw
  )


class EmnistDataTest(folder_testing.FolderTestCase):

  def _assert_equal_to_tff(self, task_name, data_dir, baseline, **arguments):
    """Compares clients of both splits with TFF's preprocessing of them."""
    task = _create(task_name, data_dir, **arguments)
    for source, clients, preprocess in (
        (task.train_data, baseline.train_data, baseline.train_preprocess_fn),
        (task.test_data, baseline.test_data, baseline.eval_preprocess_fn),
    ):
      self.assertEqual(list(source.client_ids), clients.client_ids)
      for client_id in source.client_ids[:5]:
        dataset = clients.create_tf_dataset_for_client(client_id)
        (expected,) = preprocess(dataset).as_numpy_iterator()
        found = source.examples(client_id)
        self.assertEqual(list(found), ['x', 'y'])
        for array, wanted in zip(found.values(), expected):
          self.assertEqual(array.dtype, wanted.dtype)
          np.testing.assert_array_equal(array, wanted)

  @parameterized.product(
      task_name=tuple(_TASKS), only_digits=(False, True), in_memory=(1 << 30, 0)
  )
  @pytest.mark.sample(3)
  def test_equals_tff_on_a_small_file(self, task_name, only_digits, in_memory):
    emnist_testing.write(self.folder)
    baseline = _tff_datasets(task_name, self.folder / 'tff', only_digits)
    self._assert_equal_to_tff(
        task_name,
        self.folder,
        baseline,
        only_digits=only_digits,
        max_bytes_in_memory=in_memory,
    )

  @pytest.mark.slow
  @pytest.mark.published_data
  def test_equals_tff_on_the_real_file(self):
    folder = data_testing.real_data('emnist_cr')
    data = _load(folder, 0)
    for task_name in _TASKS:
      baseline = _tff_datasets(task_name, folder / 'tff', False)
      self._assert_equal_to_tff(
          task_name, folder, baseline, max_bytes_in_memory=0
      )
    self.assertLen(data.central_test['label'], data.test.total_examples)

  def test_central_test_data_are_those_of_all_writers(self):
    emnist_testing.write(self.folder)
    wanted = emnist_testing.splits()['all_test']
    for max_bytes in (0, 1 << 20):
      data = _load(self.folder, max_bytes)
      np.testing.assert_equal(
          data.central_test,
          {
              name: np.concatenate([wanted[i][name] for i in sorted(wanted)])
              for name in ('label', 'pixels')
          },
      )

  def test_input_and_target_of_the_autoencoder_share_their_memory(self):
    raw = emnist_testing.examples(3, seed=1)
    before = raw['pixels'].copy()
    pair = _prepare(emnist_data.Pictures(), raw)
    self.assertIs(pair['x'], pair['y'])
    np.testing.assert_array_equal(raw['pixels'], before)
    characters = _prepare(emnist_data.Characters(), raw)
    self.assertTrue(np.shares_memory(characters['x'], raw['pixels']))

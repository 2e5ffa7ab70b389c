# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the tasks on federated EMNIST."""

from absl.testing import parameterized
import numpy as np

from tasks import emnist
from tests import folder_testing
from tests.tasks.images import emnist_testing
from tff_adaptive.data import client_data
from tff_adaptive.simulation import task

_SMALL = task.Protocol(2, 1, clients_per_round=2, total_rounds=3)


class EmnistTasksTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.data_dir = folder_testing.new(cls)
    emnist_testing.write(cls.data_dir)

  @classmethod
  def _create_cr(cls, **kwargs):
    return emnist.EMNIST_CR.create(
        cls.data_dir, **{'model_id': '2nn', 'protocol': _SMALL, **kwargs}
    )

  def test_digits_alone(self):
    cr = self._create_cr(only_digits=True)
    self.assertEqual(cr.num_classes, 10)
    self.assertEqual(cr.functional_model.initial_weights[0][-1].shape, (10,))
    self.assertLess(cr.train_data.values['y'].max(), 10)
    self.assertGreater(self._create_cr().train_data.values['y'].max(), 9)
    ae = emnist.EMNIST_AE.create(
        self.data_dir, only_digits=True, protocol=_SMALL
    )
    np.testing.assert_array_equal(
        ae.central_test['x'], 1 - cr.central_test['x'].reshape(-1, 784)
    )

  @parameterized.named_parameters(
      ('cr', emnist.EMNIST_CR, dict(model_id='2nn')),
      ('ae', emnist.EMNIST_AE, {}),
  )
  def test_own_data_are_preprocessed_as_the_file_is(self, definition, options):
    splits = emnist_testing.splits()
    options = dict(protocol=_SMALL, **options)
    found = definition.create_from_data(
        splits['all_train'],
        splits['all_test'],
        test_data=splits['all_test'],
        **options,
    )
    wanted = definition.create(self.data_dir, max_bytes_in_memory=0, **options)
    self.assertIsInstance(wanted.train_data, client_data.LazyClientArrays)
    self.assertCountEqual(
        found.train_data.client_ids, wanted.train_data.client_ids
    )
    for client_id in wanted.train_data.client_ids:
      for ours, theirs in (
          (found.train_data, wanted.train_data),
          (found.test_data, wanted.test_data),
      ):
        for name in ('x', 'y'):
          np.testing.assert_array_equal(
              ours.examples(client_id)[name], theirs.examples(client_id)[name]
          )

  def test_fewer_writers_than_a_round_needs_raise(self):
    with self.assertRaisesRegex(ValueError, '`clients_per_round`.*at most 2'):
      self._create_cr(protocol=None)

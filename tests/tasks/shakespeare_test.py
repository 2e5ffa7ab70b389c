# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the task on Shakespeare."""

import functools

from absl.testing import parameterized
import numpy as np
import pytest

from tasks import shakespeare as shakespeare_lib
from tasks.language import shakespeare_data
from tests.tasks import data_testing
from tff_adaptive.simulation import task

_PROTOCOL = task.Protocol(2, 1, clients_per_round=2, total_rounds=3)
_TEXTS = {
    'HAMLET': {'snippets': ['To be, or not to be', 'Words, words, words.']},
    'NOBODY': {'snippets': np.array([], np.object_)},
    'OPHELIA': {'snippets': ['My lord?']},
}
_TEST = {'snippets': ['The rest is silence.', '']}


@functools.cache
def _small_task(test_data=True):
  return shakespeare_lib.SHAKESPEARE.create_from_data(
      _TEXTS,
      _TEST,
      test_data={'HAMLET': _TEST} if test_data else None,
      model_id='small_lstm',
      sequence_length=6,
      seed=1,
      protocol=_PROTOCOL,
  )


class ShakespeareTasksTest(parameterized.TestCase):

  def test_data_are_preprocessed(self):
    small = _small_task()
    self.assertEqual(small.name, 'shakespeare')
    self.assertEqual(small.train_data.client_ids, tuple(_TEXTS))
    self.assertEqual(small.train_data.num_examples('NOBODY'), 0)
    snippets = [text.encode() for text in _TEXTS['HAMLET']['snippets']]
    expected = shakespeare_data.to_sequences(
        {'snippets': np.array(snippets, np.object_)}, 6
    )
    found = small.train_data.examples('HAMLET')
    np.testing.assert_array_equal(found['x'], expected['x'])
    np.testing.assert_array_equal(found['y'], expected['y'])
    np.testing.assert_array_equal(
        small.central_test['y'], small.test_data.examples('HAMLET')['y']
    )
    self.assertLen(small.central_test['x'], 5)
    self.assertEqual(small.num_classes, 90)
    self.assertIsNone(_small_task(test_data=False).test_data)

  @pytest.mark.slow
  @pytest.mark.published_data
  def test_the_real_data(self):
    folder = data_testing.real_data('shakespeare')
    shakespeare = shakespeare_lib.SHAKESPEARE.create(folder, seed=1)
    self.assertLen(shakespeare.train_data.client_ids, 715)
    found = shakespeare_data.Shakespeare().load(None, folder, seed=0)
    train, test = found.train, found.test
    self.assertEqual(train.total_examples, 16_068)
    self.assertEqual(test.total_examples, 2_356)
    self.assertEqual(shakespeare.train_data.total_examples, 37_784)
    self.assertEqual(np.sum(shakespeare.train_data.values['y'] != 0), 2_353_667)
    self.assertEqual(shakespeare.central_test['x'].shape, (5_490, 80))
    self.assertEqual(shakespeare.test_data.total_examples, 5_490)
    self.assertLen(shakespeare.functional_model.initial_weights[0], 9)
    self.assertEqual(shakespeare.protocol.client_batch_size, 4)

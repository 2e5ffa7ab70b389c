# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `shakespeare_data`."""

import functools

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tasks.language import shakespeare_data
from tests.tasks import baseline_testing
from tests.tasks import data_testing

# Around the length of one row, of two, unknown characters, and nothing.
_SNIPPETS = [
    b'',
    b'Hark!',
    b'a' * 77,
    b'b' * 78,
    b'c' * 79,
    b'd' * 80,
    b'e' * 81,
    b'f' * 159,
    b'g' * 160,
    b'h' * 161,
    b'All of\nit\r\tin {one} ~line^',
    'Café 1600 €'.encode(),
    bytes(range(256)),
    shakespeare_data.CHARACTERS.encode(),
]


def _examples(snippets):
  array = np.empty(len(snippets), np.object_)
  array[:] = snippets
  return {'snippets': array}


@functools.cache
def _baseline(sequence_length):
  return tff.simulation.baselines.shakespeare.create_character_prediction_task(
      baseline_testing.SPEC,
      sequence_length=sequence_length,
      use_synthetic_data=True,
  )


class ShakespearePreprocessingTest(parameterized.TestCase):

  def test_a_snippet_by_hand(self):
    rows = shakespeare_data.to_sequences(
        _examples([b'hd~', b'l']), sequence_length=3
    )
    np.testing.assert_array_equal(
        rows['x'], [[88, 2, 1], [89, 0, 0], [88, 3, 89]]
    )
    np.testing.assert_array_equal(
        rows['y'], [[2, 1, 87], [0, 0, 0], [3, 89, 0]]
    )
    for array in rows.values():
      self.assertEqual(array.dtype, np.int32)

  def test_equals_the_preprocessing_of_tff(self):
    expected = baseline_testing.preprocess(
        _baseline(80), tf.data.Dataset.from_tensor_slices(_examples(_SNIPPETS))
    )
    rows = shakespeare_data.to_sequences(_examples(_SNIPPETS), 80)
    np.testing.assert_array_equal(rows['x'], expected[0])
    np.testing.assert_array_equal(rows['y'], expected[1])

  def test_real_data_equal_the_preprocessing_of_tff(self):
    folder = data_testing.SAMPLE
    found = shakespeare_data.Shakespeare().load(None, folder, seed=0)
    train, test = found.train, found.test
    self.assertEqual(train.client_ids, test.client_ids)
    self.assertLen(train.client_ids, 13)
    self.assertEqual(train.total_examples, 202)
    tff_train, _ = tff.simulation.datasets.shakespeare.load_data(
        cache_dir=str(folder / 'tff')
    )
    self.assertEqual(list(train.client_ids), tff_train.client_ids)
    baseline = _baseline(80)
    for client_id in train.client_ids[::4]:
      rows = shakespeare_data.to_sequences(train.examples(client_id))
      expected = baseline_testing.preprocess(
          baseline, tff_train.create_tf_dataset_for_client(client_id)
      )
      np.testing.assert_array_equal(rows['x'], expected[0])
      np.testing.assert_array_equal(rows['y'], expected[1])

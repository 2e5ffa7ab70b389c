# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the tasks on Shakespeare and AG News."""

import functools

from absl.testing import parameterized
import numpy as np
import pytest

from tasks import ag_news
from tasks import shakespeare as shakespeare_lib
from tasks.language import shakespeare_data
from tests import folder_testing
from tests.tasks import data_testing
from tests.tasks.texts import text_testing
from tff_adaptive import data
from tff_adaptive.data import transforms
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
    np.testing.assert_equal(found, expected)
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


_NEWS = {
    'ann': {'text': ['Shares fall', b'Cup final'], 'label': [2, 1]},
    'bob': {'text': ['The moon'], 'label': [3]},
}
_NEWS_TEST = {'text': ['Shares of the cup'], 'label': [2]}
_NEWS_PROTOCOL = task.Protocol(2, 1, clients_per_round=1, total_rounds=5)


def _from_data(train=None, test=None, **kwargs):
  return ag_news.AG_NEWS.create_from_data(
      train or _NEWS,
      test or _NEWS_TEST,
      **{
          'protocol': _NEWS_PROTOCOL,
          'vocab_size': 6,
          'max_length': 5,
          **kwargs,
      },
  )


class AGNewsTasksTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.data_dir = folder_testing.new(cls)
    cls.rows = text_testing.make_rows(40, 8, num_classes=4)
    text_testing.write_jsonl(cls.data_dir / 'ag_news.jsonl.gz', cls.rows)
    cls.default = ag_news.AG_NEWS.create(
        cls.data_dir, vocab_size=9, max_length=8, seed=3
    )

  def test_tokens_are_words_of_the_training_split(self):
    # 'the' is in every text, and first by its count.
    tokens = self.default.train_data.values['x']
    np.testing.assert_array_equal(tokens[:, :2], [[2, 3]] * 40)
    np.testing.assert_array_equal(tokens[:, 7], 0)
    self.assertEqual(tokens.max(), 8)
    test = self.default.central_test
    self.assertEqual((test['x'].shape, test['x'].dtype), ((8, 8), np.int32))
    np.testing.assert_array_equal(test['x'][:, :2], [[2, 3]] * 8)
    np.testing.assert_array_equal(
        test['y'], [row['label'] for row in self.rows[40:]]
    )

  def test_from_data_takes_the_callers_texts(self):
    mine = _from_data()
    ann = mine.train_data.examples('ann')
    # Every word occurs once: 'cup', 'fall' and 'final' are first.
    np.testing.assert_array_equal(ann['x'], [[2, 1, 4, 0, 0], [2, 3, 5, 0, 0]])
    np.testing.assert_array_equal(ann['y'], [2, 1])
    np.testing.assert_array_equal(mine.central_test['x'], [[2, 1, 1, 1, 3]])
    self.assertEqual(mine.protocol, _NEWS_PROTOCOL)

  def test_from_data_takes_the_splits_of_a_file(self):
    path = self.data_dir / 'mine.jsonl.gz'
    rows = [
        dict(row, client_id=f'client_{place % 3}')
        for place, row in enumerate(self.rows)
    ]
    text_testing.write_jsonl(path, rows)
    mine = _from_data(path, path)
    self.assertEqual(mine.train_data.total_examples, 40)
    self.assertLen(mine.train_data.client_ids, 3)
    self.assertLen(mine.central_test['y'], 8)

  def test_only_the_rows_of_the_clients_count(self):
    clients = data.read_clients(
        {
            'ann': {'text': ['up'], 'label': [0]},
            'bob': {'text': ['down down'], 'label': [9]},
        },
        ag_news.AG_NEWS.data.published_spec(),
    )
    mine = _from_data(transforms.select_clients(clients, ['ann']), vocab_size=4)
    np.testing.assert_array_equal(
        mine.train_data.examples('ann')['x'], [[2, 3, 0, 0, 0]]
    )

  @pytest.mark.slow
  def test_tokens_of_a_pretrained_model_are_its_own(self):
    folder = folder_testing.new(self)
    original = text_testing.write_pretrained(folder)
    mine = _from_data(model_id='distilbert', pretrained_dir=folder)
    place = text_testing.PIECES.index
    np.testing.assert_array_equal(
        mine.train_data.examples('bob')['x'],
        [[2, place('the'), place('moon'), 3, 0]],
    )
    np.testing.assert_array_equal(
        mine.functional_model.initial_weights[0][0],
        original.distilbert.weights[0].numpy(),
    )

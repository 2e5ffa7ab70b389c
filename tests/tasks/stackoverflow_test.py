# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the tasks on Stack Overflow."""

import functools
import time
import tracemalloc
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow_federated as tff

from tasks import stackoverflow
from tasks.language import bags_of_words
from tasks.language import word_sequences
from tests import folder_testing
from tests.tasks import data_testing
from tests.tasks import sqlite_testing
from tests.tasks.language import stackoverflow_testing
from tff_adaptive import algorithms
from tff_adaptive import runtime
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort
from tff_adaptive.simulation import task

_PROTOCOL = task.Protocol(2, 1, clients_per_round=2, total_rounds=3)
_WORDS = stackoverflow_testing.WORDS
_TAGS = stackoverflow_testing.TAGS
_CREATE = {
    'nwp': functools.partial(
        stackoverflow.STACKOVERFLOW_NWP.create,
        vocab_size=9,
        sequence_length=4,
        protocol=_PROTOCOL,
    ),
    'lr': functools.partial(
        stackoverflow.STACKOVERFLOW_LR.create,
        vocab_size=9,
        tag_vocab_size=5,
        max_words=8,
        protocol=_PROTOCOL,
    ),
}
_PREPROCESS = {
    'nwp': word_sequences.WordSequences(_WORDS, 4),
    'lr': bags_of_words.WordLists(_WORDS, _TAGS, 8),
}


def _assert_equal(found, expected):
  assert list(found) == list(expected)
  for name, array in expected.items():
    np.testing.assert_array_equal(found[name], array)


class StackOverflowTasksTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.data_dir = folder_testing.new(cls)
    stackoverflow_testing.write(cls.data_dir)
    # Building the models takes most of the time.
    cls.made = {name: create(cls.data_dir) for name, create in _CREATE.items()}

  @parameterized.parameters('nwp', 'lr')
  def test_clients_are_preprocessed(self, name):
    made = self.made[name]
    self.assertEqual(made.name, f'stackoverflow_{name}')
    for clients, places in (
        (made.train_data, {'ann': range(10), 'bob': [1, 4]}),
        (made.test_data, {'ann': [1, 1, 3], 'eve': range(5)}),
    ):
      self.assertEqual(clients.client_ids, tuple(places))
      for client_id, rows in places.items():
        self.assertEqual(clients.num_examples(client_id), len(rows))
        _assert_equal(
            clients.examples(client_id),
            _PREPROCESS[name](stackoverflow_testing.examples(rows)),
        )

  def test_clients_are_read_when_they_are_asked_for(self):
    clients = _CREATE['lr'](self.data_dir).train_data
    self.assertIsInstance(clients, client_data.LazyClientArrays)
    self.assertEqual(clients.total_examples, 12)
    self.assertEqual(clients._cache.num_bytes, 0)
    clients.examples('bob')
    # Two examples of eight words and five tags.
    self.assertEqual(clients._cache.num_bytes, 2 * (8 + 5) * 4)

  @parameterized.parameters('nwp', 'lr')
  def test_all_examples_are_tested_on_where_there_are_few(self, name):
    made = self.made[name]
    for found, places in (
        (made.central_test, [1, 1, 3, *range(5)]),
        (made.validation, [2, 3, 8]),
    ):
      expected = _PREPROCESS[name](stackoverflow_testing.examples(places))
      self.assertCountEqual(map(bytes, found['x']), map(bytes, expected['x']))

  def test_examples_to_test_and_to_validate_on_are_drawn(self):
    made = _CREATE['lr'](self.data_dir, num_test_examples=2)
    self.assertLen(made.central_test['x'], 2)
    self.assertLen(made.validation['x'], 2)

  def test_heldout_users_to_test_on(self):
    made = _CREATE['lr'](self.data_dir, test_split='heldout')
    self.assertEqual(made.test_data.client_ids, ('cho', 'dee'))
    self.assertLen(made.central_test['x'], 3)
    self.assertIsNone(made.validation)

  def test_form_of_the_data_is_that_of_the_model(self):
    dense = _CREATE['lr'](self.data_dir, model_id='logistic', max_words=1024)
    self.assertEqual(dense.train_data.element_spec['x'].shape, [9])
    expected = bags_of_words.WordFrequencies(_WORDS, _TAGS)(
        stackoverflow_testing.examples()
    )
    _assert_equal(dense.train_data.examples('ann'), expected)

  def test_data_of_ones_own(self):
    texts = {
        'tokens': ['how do i', 'a b'],
        'title': ['x', 'list'],
        'tags': ['c#', 'python|x'],
    }
    raw = {name: [text.encode() for text in one] for name, one in texts.items()}
    made = stackoverflow.STACKOVERFLOW_LR.create_from_data(
        {'me': texts, 'you': texts},
        texts,
        _WORDS,
        _TAGS,
        validation=texts,
        max_words=8,
        protocol=_PROTOCOL,
    )
    expected = _PREPROCESS['lr'](raw)
    _assert_equal(made.train_data.examples('you'), expected)
    _assert_equal(made.central_test, expected)
    _assert_equal(made.validation, expected)
    self.assertIsNone(made.test_data)
    self.assertIsInstance(made.train_data, client_data.PackedClientArrays)

  def test_vocabularies_of_ones_own_are_checked(self):
    texts = {'tokens': ['how do i'], 'title': ['x'], 'tags': ['c#']}
    create = stackoverflow.STACKOVERFLOW_LR.create_from_data
    with self.assertRaisesRegex(ValueError, '`tag_vocab_size` must be at'):
      create({'me': texts}, texts, _WORDS, _TAGS[:4])
    with self.assertRaisesRegex(TypeError, '`tag_vocabulary` is missing'):
      create({'me': texts}, texts, _WORDS)
    with self.assertRaisesRegex(TypeError, 'tag_vocabulary as positional'):
      create({'me': texts}, texts, _WORDS, _TAGS, 8)

  @pytest.mark.slow
  def test_a_round_of_tags_is_the_same_in_both_forms(self):
    words, logistic = (
        _weights_after_a_round(
            # Room for all words of all texts.
            _CREATE['lr'](self.data_dir, model_id=model_id, max_words=1024)
        )
        for model_id in ('words', 'logistic')
    )
    for a, b in zip(words, logistic, strict=True):
      np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)

  @pytest.mark.slow
  @pytest.mark.published_data
  def test_the_real_data(self):
    folder = data_testing.real_data('stackoverflow_nwp')
    made = stackoverflow.STACKOVERFLOW_NWP.create(folder, seed=1)
    self.assertLen(made.train_data.client_ids, 622)
    self.assertEqual(made.train_data.total_examples, 62_853)
    self.assertEqual(made.train_data._cache.num_bytes, 0)
    self.assertEqual(made.central_test['x'].shape, (10_000, 20))
    self.assertEqual(made.validation['x'].shape, (8_329, 20))
    self.assertEqual(made.test_data.total_examples, 23_644)


def _weights_after_a_round(made):
  process = algorithms.build_fed_opt(
      made.functional_model, tff.learning.optimizers.build_sgdm(0.5)
  )
  with runtime.CompiledContext(strict=True):
    output = process.next(
        process.initialize(),
        cohort.Cohort(
            made.train_data,
            made.train_data.client_ids,
            round_num=0,
            seed=1,
            plan=_PROTOCOL.batch_plan(),
        ),
    )
    return process.get_model_weights(output.state).trainable


_NUM_TRAIN, _NUM_OTHERS = 300_000, 2_000
_EXAMPLES_PER_CLIENT = 3
_NUM_TEST_EXAMPLES = 30
_MEGABYTE = 1 << 20


def _rows():
  """Split, client and example of all rows, the splits one after the other."""
  texts = stackoverflow_testing.examples()
  protos = [
      sqlite_testing.to_proto(dict(zip(texts, text)))
      for text in zip(*texts.values())
  ]
  for split, num_clients in (
      ('train', _NUM_TRAIN),
      ('heldout', _NUM_OTHERS),
      ('test', _NUM_OTHERS),
  ):
    for client in range(num_clients):
      for example in range(_EXAMPLES_PER_CLIENT):
        proto = protos[(client + example) % len(protos)]
        yield split, f'{client:08d}', proto


def _measured(what, call):
  """Prints the time and memory of a call, which is made once for each.

  Returns its result and its peak memory in megabytes.
  """
  start = time.monotonic()
  call()
  seconds = time.monotonic() - start
  tracemalloc.start()
  result = call()
  peak = tracemalloc.get_traced_memory()[1] / _MEGABYTE
  tracemalloc.stop()
  print(f'{what}: {seconds:.2f} s, peak {peak:.0f} MB')
  return result, peak


class StackOverflowScaleTest(absltest.TestCase):

  @pytest.mark.slow
  def test_many_clients_are_opened_and_few_are_read(self):
    data_dir = folder_testing.new(self)
    stackoverflow_testing.write_counts(data_dir)
    sqlite_testing.write_rows(
        data_dir / 'tff' / 'stackoverflow.sqlite', _rows()
    )
    was_read = set()
    examples = client_data.LazyClientArrays.examples

    def record(source, client_id):
      was_read.add((len(source.client_ids), client_id))
      return examples(source, client_id)

    self.enter_context(
        mock.patch.object(client_data.LazyClientArrays, 'examples', record)
    )
    # The one of the two tasks whose model is built in no time.
    tags, start_memory = _measured(
        f'{_NUM_TRAIN} clients opened',
        lambda: stackoverflow.STACKOVERFLOW_LR.create(
            data_dir,
            vocab_size=9,
            tag_vocab_size=5,
            max_words=16,
            num_test_examples=_NUM_TEST_EXAMPLES,
        ),
    )
    self.assertLen(tags.train_data.client_ids, _NUM_TRAIN)
    self.assertEqual(
        tags.train_data.total_examples, _NUM_TRAIN * _EXAMPLES_PER_CLIENT
    )
    self.assertLen(tags.central_test['x'], _NUM_TEST_EXAMPLES)
    # Those that the examples to test and to validate on were drawn from.
    self.assertNotIn(_NUM_TRAIN, [size for size, _ in was_read])
    self.assertBetween(len(was_read), 2, 2 * 10 * _NUM_TEST_EXAMPLES)
    # Their ids, and where these are: not what they hold.
    self.assertLess(start_memory, 400)

    was_read.clear()
    ids = tags.train_data.client_ids[:: _NUM_TRAIN // 50]
    plan = stackoverflow.STACKOVERFLOW_LR.protocol.batch_plan()
    fetched, cohort_memory = _measured(
        f'cohort of {len(ids)} clients read',
        lambda: cohort.Cohort(tags.train_data, ids, 0, 1, plan).fetch(),
    )
    self.assertLen(fetched.pack().order, len(ids) * _EXAMPLES_PER_CLIENT)
    self.assertEqual({client_id for _, client_id in was_read}, set(ids))
    self.assertLess(cohort_memory, 10)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Test of Stack Overflow's tasks with as many clients as the original has."""

import time
import tracemalloc
from unittest import mock

from absl.testing import absltest
import pytest

from tasks import stackoverflow
from tests import folder_testing
from tests.tasks import sqlite_testing
from tests.tasks.language import stackoverflow_testing
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort

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

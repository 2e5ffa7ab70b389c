# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the seconds of a run's parts, and of the profile of a block."""

import gzip
import json
from unittest import mock

from absl.testing import absltest
import tensorflow as tf

from tests import folder_testing
from tff_adaptive.simulation import progress


class StopwatchTest(absltest.TestCase):

  def test_a_part_does_not_include_those_within_it(self):
    stopwatch = progress.Stopwatch()
    # At the beginning and at the end of each block.
    clock = mock.Mock(side_effect=[100.0, 101.0, 103.0, 107.0, 115.0, 131.0])
    with mock.patch.object(progress.time, 'perf_counter', clock):
      with stopwatch.measure('outer'):
        with stopwatch.measure('inner'):
          pass
      with stopwatch.measure('inner'):
        pass
    self.assertEqual(stopwatch.seconds, {'outer': 1 + 4, 'inner': 2 + 16})

  def test_an_error_ends_a_part(self):
    stopwatch = progress.Stopwatch()
    clock = mock.Mock(side_effect=[0.0, 1.0, 5.0, 7.0])
    with mock.patch.object(progress.time, 'perf_counter', clock):
      with self.assertRaisesRegex(ValueError, 'broken'):
        with stopwatch.measure('first'):
          raise ValueError('broken')
      with stopwatch.measure('second'):
        pass
    self.assertEqual(stopwatch.seconds, {'first': 1.0, 'second': 2.0})


class ProfileTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    folder = folder_testing.new(self)
    self.path = folder / 'new' / 'profile.json.gz'

  def test_events_lie_within_their_part_on_named_threads(self):
    multiply = tf.function(lambda x: tf.linalg.matmul(x, x, name='product'))
    x = tf.ones([200, 200])
    multiply(x)
    with progress.profile(self.path):
      with progress.Stopwatch().measure('our part'):
        multiply(x).numpy()
    with gzip.open(self.path, 'rt', encoding='utf-8') as file:
      events = json.load(file)['traceEvents']
    shown = [event for event in events if event['ph'] == 'X']
    (part,) = [event for event in shown if event['name'] == 'our part']
    products = [e for e in shown if e['name'].startswith('product:')]
    self.assertLen(products, 1)
    self.assertGreater(products[0]['dur'], 0)
    self.assertGreaterEqual(products[0]['ts'], part['ts'])
    self.assertLessEqual(
        products[0]['ts'] + products[0]['dur'], part['ts'] + part['dur']
    )
    threads = {
        (event['pid'], event['tid'])
        for event in events
        if event['name'] == 'thread_name'
    }
    self.assertContainsSubset({(e['pid'], e['tid']) for e in shown}, threads)

  def test_a_block_that_raises_leaves_no_file_and_no_profiler(self):
    for _ in range(2):
      with self.assertRaisesRegex(ValueError, 'broken'):
        with progress.profile(self.path):
          raise ValueError('broken')
    self.assertFalse(self.path.exists())

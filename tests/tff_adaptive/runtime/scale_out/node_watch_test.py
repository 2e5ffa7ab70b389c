# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the death of Ray's process is noticed, with a like socket."""

import pathlib
import signal
import socket
import time

from absl import logging
from absl.testing import absltest
import pytest

from tff_adaptive.runtime import scale_out
from tff_adaptive.runtime.scale_out import node_watch

_SENTENCE = 'raylet, .* has died.*run the same command again to continue'


class NodeWatchTest(absltest.TestCase):

  @pytest.fixture(autouse=True)
  def _use_folder(self, tmp_path: pathlib.Path):
    self._path = str(tmp_path / 'raylet')

  def setUp(self):
    super().setUp()
    # A program that a shell starts in the background ignores SIGINT.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    self.addCleanup(signal.signal, signal.SIGINT, handler)
    self._server = socket.socket(socket.AF_UNIX)
    self.addCleanup(self._server.close)
    self._server.bind(self._path)
    self._server.listen()
    self._watch = node_watch.NodeWatch(self._path)
    self.addCleanup(self._watch.close)
    self._connection, _ = self._server.accept()

  def _die(self):
    self._server.close()
    self._connection.close()

  def _wait_for_death(self):
    while not self._watch.is_dead:
      time.sleep(0.05)

  def test_a_round_that_waits_ends_with_a_sentence(self):
    with self.assertLogs(logging.get_absl_logger(), 'ERROR') as logs:
      with self.assertRaisesRegex(scale_out.ClusterError, _SENTENCE):
        with self._watch.guarded():
          self._die()
          time.sleep(60)
    self.assertLen(logs.output, 1)
    self.assertRegex(logs.output[0], _SENTENCE)

  def test_a_round_that_begins_later_does_not(self):
    self._die()
    self._wait_for_death()
    with self.assertRaisesRegex(scale_out.ClusterError, _SENTENCE):
      with self._watch.guarded():
        self.fail('The round has begun.')

  def test_a_connection_that_ends_is_no_death(self):
    self._connection.close()
    self._connection, _ = self._server.accept()
    with self._watch.guarded():
      pass
    with self.assertRaisesRegex(ValueError, 'an error of its own'):
      with self._watch.guarded():
        raise ValueError('an error of its own')

  def test_what_is_closed_is_no_death(self):
    self._watch.close()
    self._watch.close()
    self._die()
    time.sleep(2 * node_watch._SECONDS_BETWEEN_CONNECTIONS)
    self.assertFalse(self._watch.is_dead)

  def test_nothing_is_watched_on_another_machine(self):
    watch = node_watch.NodeWatch(None)
    with watch.guarded():
      pass
    watch.close()

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of moved_variables."""

from absl.testing import absltest
import tensorflow as tf

from tff_adaptive.client_works import moved_variables


class FindTest(absltest.TestCase):

  def test_writes_are_told_from_reads(self):
    written, read = tf.Variable(1.0, name='a'), tf.Variable(2.0, name='b')
    found = []

    @tf.function
    def compute():
      read.assign(3.0)  # Before the block.
      with moved_variables.find([written, read]) as moved:
        written.assign_add(read)
      found.append(moved)
      with moved_variables.find([written, read]) as moved:
        tf.identity(written)
      found.append(moved)

    compute()
    self.assertEqual(found, [['a'], []])

  def test_nothing_is_found_eagerly(self):
    variable = tf.Variable(1.0)
    with moved_variables.find([variable]) as moved:
      variable.assign(2.0)
    self.assertEmpty(moved)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A test case for data sources."""

import collections

from absl.testing import parameterized
import tensorflow as tf

from tests import folder_testing
from tff_adaptive.data import sources

FEATURES = collections.OrderedDict(
    x=tf.TensorSpec([2], tf.float32), y=tf.TensorSpec([], tf.int32)
)


class DataSourceTestCase(parameterized.TestCase):
  """A test that writes files and expects errors of one sentence."""

  def path(self, name):
    """Returns a path in a folder of its own."""
    folder = folder_testing.new(self)
    return folder / name

  def text_file(self, name, text):
    """Returns the path of a file with a text."""
    path = self.path(name)
    path.write_text(text, encoding='utf-8')
    return path

  def assert_error(self, kind, sentence, read, *arguments, **keywords):
    """Checks that the error is the sentence, and one line."""
    with self.assertRaises(kind) as caught:
      read(*arguments, **keywords)
    self.assertIn(sentence, str(caught.exception))
    self.assertNotIn('\n', str(caught.exception))
    self.assertEndsWith(str(caught.exception), '.')

  def assert_unreadable(self, sentence, source, features=FEATURES, **keywords):
    """Checks the error of reading examples."""
    read = sources.read_examples
    self.assert_error(ValueError, sentence, read, source, features, **keywords)

  def assert_no_clients(self, sentence, source, features=FEATURES, **keywords):
    """Checks the error of reading clients."""
    read = sources.read_clients
    self.assert_error(ValueError, sentence, read, source, features, **keywords)

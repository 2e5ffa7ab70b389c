# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of types on their way to another process."""

import collections
import pickle

from absl.testing import absltest
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

# Types can be pickled from here on.
from tff_adaptive.runtime.scale_out import messages  # noqa: F401

_Dict = collections.OrderedDict
Pair = collections.namedtuple('Pair', ['second', 'first'])


class TypeMessagesTest(absltest.TestCase):

  def test_a_type_survives_pickling_with_its_containers(self):
    batch = tff.types.tensorflow_to_type(
        Pair(
            tf.TensorSpec([None, 3], tf.float32),
            tf.TensorSpec([None], tf.int32),
        )
    )
    type_spec = tff.to_type(
        _Dict(
            data=tff.SequenceType(batch),
            state=[np.int64, (np.str_, tff.StructType([np.bool_]))],
        )
    )
    found = pickle.loads(pickle.dumps(type_spec))
    self.assertEqual(found, type_spec)
    self.assertIs(found.python_container, _Dict)
    self.assertIs(found['data'].element.python_container, Pair)
    self.assertIs(found['state'].python_container, list)
    self.assertIs(type(found['state'][1][1]), tff.StructType)

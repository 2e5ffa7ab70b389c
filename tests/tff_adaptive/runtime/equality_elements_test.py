# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that what clients have, of any type, is the same on both runtimes."""

import collections
from typing import Any

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import equality_testing
from tests.tff_adaptive.runtime import sequence_testing

_Dict = collections.OrderedDict
_ROWS = sequence_testing.ROWS
_dataset = sequence_testing.dataset
_digest = sequence_testing.digest
_numbers = sequence_testing.numbers
_over_clients = sequence_testing.over_clients


def _tensor(dtype: Any, *shape: Any) -> tff.TensorType:
  return tff.TensorType(dtype, shape)


# Those of the kinds below that have no rows of one shape.
_NOT_ROWS = ('rows_of_any_size', 'rows_and_a_number', 'rows_of_two_lengths')
# Elements of all kinds: their type, and two clients with lists of them.
_ELEMENTS = {
    'numbers': (np.float32, [[1.0, 2.0, 3.0], [4.0]]),
    'integers': (np.int64, [[1, 2, 3], [4]]),
    'vectors': (
        _tensor(np.float32, 2),
        [[np.float32([1, 2]), np.float32([3, 4])], [np.float32([5, 6])]],
    ),
    'rows': (_tensor(np.float32, None), [_numbers(4, 4, 1), _numbers(2)]),
    'rows_and_an_empty_client': (
        _tensor(np.float32, None),
        [_numbers(3), [], []],
    ),
    'matrices': (
        _tensor(np.float32, None, 2),
        [[np.ones([3, 2], np.float32)], [np.ones([1, 2], np.float32)]],
    ),
    'rows_of_any_size': (
        _tensor(np.float32, None, None),
        [[np.ones([3, 2], np.float32)], [np.ones([1, 4], np.float32)]],
    ),
    'rows_and_a_number': (
        _Dict(x=_tensor(np.float32, None), w=np.float32),
        [
            [_Dict(x=np.float32([1, 2]), w=np.float32(3))],
            [_Dict(x=np.float32([4]), w=np.float32(5))],
        ],
    ),
    'rows_of_two_lengths': (
        _Dict(x=_tensor(np.float32, None), y=_tensor(np.float32, None)),
        [[_Dict(x=np.float32([1, 2]), y=np.float32([3]))]],
    ),
    # `tf.data` sorts names, types keep them as they are.
    'names_not_in_order': (
        _Dict(b=_tensor(np.float32, None), a=_tensor(np.float32, None)),
        [[_Dict(b=np.float32([1, 2]), a=np.float32([3, 4]))]],
    ),
    'pairs': (
        (_tensor(np.float32, None), _tensor(np.int32, None)),
        [[(np.float32([1, 2]), np.int32([3, 4]))]],
    ),
    'structures': (
        _Dict(
            x=(_tensor(np.float32, None), _tensor(np.float32, None, 2)),
            y=_tensor(np.int64, None),
        ),
        [
            [
                _Dict(
                    x=(np.float32([1, 2]), np.ones([2, 2], np.float32)),
                    y=np.int64([3, 4]),
                )
            ]
        ],
    ),
    'strings': (
        _tensor(np.str_, None),
        [[np.array(['a', 'bc'], object)], [np.array(['def'], object)]],
    ),
    'other_dtypes': (
        (
            _tensor(np.float16, None),
            _tensor(np.bool_, None),
            _tensor(np.uint8, None),
            _tensor(np.float64, None),
        ),
        [
            [
                (
                    np.float16([1, 2]),
                    np.array([True, False]),
                    np.uint8([3, 4]),
                    np.float64([5, 6]),
                )
            ]
        ],
    ),
}


@pytest.mark.usefixtures('native_runtime')
class ElementsTest(equality_testing.TestCase):

  @parameterized.parameters(True, False)
  def test_elements(self, are_rows):
    # All kinds at once: each is a field of what a client has.
    kinds = {
        name: kind
        for name, kind in _ELEMENTS.items()
        if (name not in _NOT_ROWS) == are_rows
    }
    digests = _over_clients(
        lambda value: _Dict((name, _digest(value[name])) for name in kinds),
        tff.StructType(
            [
                (name, tff.SequenceType(kind))
                for name, (kind, _) in kinds.items()
            ]
        ),
    )
    lists = [
        _Dict(
            (name, [*of_clients, [], []][i])
            for name, (_, of_clients) in kinds.items()
        )
        for i in range(3)
    ]
    datasets = [
        _Dict((name, _dataset(client[name], kinds[name][0])) for name in kinds)
        for client in lists
    ]
    with equality_testing.pipelines(not are_rows):
      expected = self.assert_equals(digests, datasets)
      with equality_testing.compiled():
        self.assert_same(expected, digests(lists), 1e-6)

  def test_nested_lists(self):
    element_type = _Dict(
        x=_tensor(np.float32, None, 2), y=_tensor(np.int32, None)
    )
    arrays = [_Dict(x=np.float32([[1, 2], [3, 4]]), y=np.int32([5, 6]))]
    lists = [_Dict(x=[(1.0, 2.0), (3.0, 4.0)], y=[5, 6])]
    digest = _over_clients(_digest, tff.SequenceType(element_type))
    with equality_testing.compiled():
      self.assertAllEqual(digest([lists]), digest([arrays]))
      with self.assertRaisesRegex(ValueError, "'x'.*different lengths: pad"):
        digest([[_Dict(x=[[1.0, 2.0], [3.0]], y=[5, 6])]])

  def test_several_fields(self):
    # A client's value may hold more than a sequence.
    fields = tff.StructType(
        [('a', _ROWS), ('b', _tensor(np.float32, 2)), ('c', _ROWS)]
    )
    compute = _over_clients(
        lambda v: _digest(v['a']) + v['b'] * _digest(v['c']), fields
    )
    clients = [
        _Dict(a=_numbers(2, 1), b=np.float32([3, 4]), c=_numbers(5)),
        _Dict(a=[], b=np.float32([5, 6]), c=_numbers(1, 1)),
    ]
    self.assert_equals(compute, clients)
    self.assert_equals(compute, [])

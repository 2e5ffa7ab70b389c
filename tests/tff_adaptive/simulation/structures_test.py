# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of names and leaves of nested structures."""

import collections
import types

from absl.testing import absltest
import attrs
import tensorflow_federated as tff

from tff_adaptive.simulation import structures

_Pair = collections.namedtuple('_Pair', ['first', 'second'])


@attrs.frozen
class _Checked:
  value: object = attrs.field(validator=attrs.validators.instance_of(int))
  derived: int = attrs.field(init=False, default=2)


@attrs.frozen
class _State:
  weights: object
  _hidden: object


class StructuresTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.nest = _State(
        weights=_Pair([1, 2], ()),
        hidden=collections.OrderedDict(
            z=tff.structure.Struct([('a', 3), (None, 4)]), b=None, c=5
        ),
    )

  def test_flatten_names_every_leaf_in_order(self):
    names = [
        '/'.join(path) for path, _ in structures.flatten_with_path(self.nest)
    ]
    self.assertEqual(
        names,
        [
            'weights/first/0',
            'weights/first/1',
            '_hidden/z/a',
            '_hidden/z/1',
            '_hidden/c',
        ],
    )

  def test_reading_leaves_builds_nothing(self):
    self.assertEqual(
        structures.flatten_with_path(_Checked(1)),
        [(('value',), 1), (('derived',), 2)],
    )

  def test_map_keeps_the_containers(self):
    doubled = structures.map_with_path(lambda _, leaf: 2 * leaf, self.nest)
    self.assertEqual(
        doubled,
        _State(
            weights=_Pair([2, 4], ()),
            hidden=collections.OrderedDict(
                z=tff.structure.Struct([('a', 6), (None, 8)]), b=None, c=10
            ),
        ),
    )

  def test_map_keeps_mappings_that_take_no_pairs(self):
    for nest in (
        collections.Counter(a=1, b=2),
        collections.defaultdict(int, a=1, b=2),
        collections.ChainMap({'b': 2}, {'a': 1}),
        types.MappingProxyType({'a': 1, 'b': 2}),
    ):
      doubled = structures.map_with_path(lambda _, leaf: 2 * leaf, nest)
      self.assertIs(type(doubled), type(nest))
      self.assertEqual(doubled, {'a': 2, 'b': 4})
      self.assertEqual(nest, {'a': 1, 'b': 2})

  def test_map_keeps_a_lone_leaf(self):
    self.assertEqual(
        structures.map_with_path(lambda path, leaf: (path, leaf), 7), ((), 7)
    )

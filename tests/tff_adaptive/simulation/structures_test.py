# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Tests of names and leaves of nested structures."""

import collections

from absl.testing import absltest
import attrs
import tensorflow_federated as tff

from tff_adaptive.simulation import structures

_Pair = collections.namedtuple('_Pair', ['first', 'second'])


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

  def test_map_keeps_a_lone_leaf(self):
    self.assertEqual(
        structures.map_with_path(lambda path, leaf: (path, leaf), 7), ((), 7)
    )

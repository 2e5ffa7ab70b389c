# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of specs: differences are named with a cure, lossy casts are found."""

import collections
from collections.abc import Callable
from typing import Any, Optional

from absl.testing import parameterized
import attrs
import tensorflow as tf

from tests import case_testing
from tff_adaptive.data import specs

_Dict = collections.OrderedDict
_EXPECTED = _Dict(
    x=tf.TensorSpec([None, 20], tf.float32), y=tf.TensorSpec([None], tf.int32)
)
_X, _Y = _EXPECTED.values()
_Pair = collections.namedtuple('_Pair', ['a', 'b'])


def _found(**changes):
  return _Dict(_EXPECTED, **changes)


class FindDifferenceTest(parameterized.TestCase):

  @case_testing.named(
      alike=_EXPECTED,
      other_order=_Dict(reversed(_EXPECTED.items())),
      no_names=(tuple(_EXPECTED.values()),),
      a_fixed_size=_found(y=tf.TensorSpec([7], tf.int32)),
      unknown=_found(x=tf.TensorSpec(None, tf.float32)),
  )
  def test_specs_that_fit_have_no_difference(self, found):
    self.assertIsNone(specs.find_difference(found, _EXPECTED, in_pipeline=True))

  @case_testing.named(
      type=('y', tf.TensorSpec([None], tf.int64), 'int64[?]'),
      strings=('y', tf.TensorSpec([None], tf.string), 'string[?]'),
      examples=('x', tf.TensorSpec([20], tf.float32), 'float32[20]'),
      of_batches=('y', tf.TensorSpec([None] * 2, tf.int32), 'int32[?,?]'),
      as_many=('x', tf.TensorSpec([None, 4, 5]), 'float32[?,4,5]'),
      columns=('y', tf.TensorSpec([None, 1], tf.int64), 'int64[?,1]'),
      width=('x', tf.TensorSpec([3, 7], tf.float32), 'float32[3,7]'),
      numbers=('x', tf.TensorSpec([None], tf.float32), 'float32[?]'),
  )
  def test_a_field_that_does_not_fit(self, field, spec, found):
    wanted = {'x': 'float32[?,20]', 'y': 'int32[?]'}[field]
    self.assertEqual(
        specs.find_difference(_found(**{field: spec}), _EXPECTED),
        f"{found} in field '{field}'; make it {wanted}",
    )

  @case_testing.named(
      no_dense_tensor=(
          _found(x=tf.RaggedTensorSpec([None, None], tf.float32)),
          "RaggedTensorSpec in field 'x'; make it a dense float32[?,20]",
      ),
      missing=(_Dict(x=_X), "the fields ['x']; make them ['x', 'y']"),
      more=(_found(z=_Y), "the fields ['x', 'y', 'z']; make them ['x', 'y']"),
      other_names=(
          _Dict(x=_X, label=_Y),
          "the fields ['x', 'label']; make them ['x', 'y']",
      ),
      number=((_X,), 'elements of 1 tensors; make them of 2'),
  )
  def test_what_does_not_fit(self, found, expected):
    difference = specs.find_difference(found, _EXPECTED)
    self.assertEqual(difference, expected)

  def test_fields_within_fields(self):
    expected = _Dict(x=_EXPECTED, y=_Pair(_EXPECTED['y'], _EXPECTED['y']))
    self.assertEqual(
        specs.field_names(expected), ["'x/x'", "'x/y'", "'y/a'", "'y/b'"]
    )
    found = _Dict(expected, x=_Dict(x=_EXPECTED['x']))
    self.assertEqual(
        specs.find_difference(found, expected),
        "the fields ['x']; make them ['x', 'y']",
    )

  def test_a_tensor_has_no_field(self):
    self.assertEqual(
        specs.find_difference(
            tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int32)
        ),
        'int64[]; make it int32[]',
    )

  def test_a_size_that_is_open_fits_a_fixed_one_in_a_pipeline_alone(self):
    found, fixed = (
        {'x': tf.TensorSpec([size], tf.float32)} for size in (None, 5)
    )
    self.assertIsNone(specs.find_difference(found, fixed, in_pipeline=True))
    self.assertEqual(
        specs.find_difference(found, fixed),
        "float32[?] in field 'x'; make it float32[5]",
    )


@attrs.frozen
class _Checked:
  name: str = attrs.field(validator=specs.instance_of(str))
  fn: Any = attrs.field(default=len, validator=specs.instance_of(Callable))
  other: Optional[str] = attrs.field(
      default=None, validator=attrs.validators.optional(specs.instance_of(str))
  )


class ValidatorsTest(parameterized.TestCase):

  def test_right_types_pass(self):
    self.assertEqual(_Checked('a', print, 'b').other, 'b')

  @case_testing.named(
      type=(dict(name=[1]), '`name` must be of type str, found list.'),
      optional_type=(
          dict(name='a', other=3),
          '`other` must be of type str, found int.',
      ),
      callable=(
          dict(name='a', fn='fn'),
          '`fn` must be of type Callable, found str.',
      ),
  )
  def test_another_type_raises_a_sentence_without_the_value(
      self, arguments, sentence
  ):
    with self.assertRaises(TypeError) as caught:
      _Checked(**arguments)
    self.assertEqual(str(caught.exception), sentence)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of specs: differences are named with a cure, lossy casts are found."""

import collections
from collections.abc import Callable
from typing import Any, Optional

from absl.testing import parameterized
import attrs
import numpy as np
import tensorflow as tf

from tff_adaptive.data import specs

_Dict = collections.OrderedDict
_EXPECTED = _Dict(
    x=tf.TensorSpec([None, 20], tf.float32), y=tf.TensorSpec([None], tf.int32)
)
_BFLOAT16 = tf.bfloat16.as_numpy_dtype
_Pair = collections.namedtuple('_Pair', ['a', 'b'])


def _found(**changes):
  return _Dict(_EXPECTED, **changes)


class FindDifferenceTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('alike', _EXPECTED),
      ('other_order', _Dict(reversed(_EXPECTED.items()))),
      ('no_names', tuple(_EXPECTED.values())),
      ('a_fixed_size', _found(y=tf.TensorSpec([7], tf.int32))),
      ('unknown', _found(x=tf.TensorSpec(None, tf.float32))),
  )
  def test_specs_that_fit_have_no_difference(self, found):
    self.assertIsNone(specs.find_difference(found, _EXPECTED, in_pipeline=True))

  @parameterized.named_parameters(
      (
          'type',
          _found(y=tf.TensorSpec([None], tf.int64)),
          "int64[?] in field 'y'; make it int32[?]",
      ),
      (
          'strings',
          _found(y=tf.TensorSpec([None], tf.string)),
          "string[?] in field 'y'; make it int32[?]",
      ),
      (
          'examples',
          _found(x=tf.TensorSpec([20], tf.float32)),
          "float32[20] in field 'x'; make it float32[?,20]",
      ),
      (
          'batches_of_batches',
          _found(y=tf.TensorSpec([None, None], tf.int32)),
          "int32[?,?] in field 'y'; make it int32[?]",
      ),
      (
          'as_many_numbers',
          _found(x=tf.TensorSpec([None, 4, 5], tf.float32)),
          "float32[?,4,5] in field 'x'; make it float32[?,20]",
      ),
      (
          'columns',
          _found(y=tf.TensorSpec([None, 1], tf.int64)),
          "int64[?,1] in field 'y'; make it int32[?]",
      ),
      (
          'width',
          _found(x=tf.TensorSpec([3, 7], tf.float32)),
          "float32[3,7] in field 'x'; make it float32[?,20]",
      ),
      (
          'batches_of_numbers',
          _found(x=tf.TensorSpec([None], tf.float32)),
          "float32[?] in field 'x'; make it float32[?,20]",
      ),
      (
          'no_dense_tensor',
          _found(x=tf.RaggedTensorSpec([None, None], tf.float32)),
          "RaggedTensorSpec in field 'x'; make it a dense float32[?,20]",
      ),
      (
          'missing',
          _Dict(x=_EXPECTED['x']),
          "the fields ['x']; make them ['x', 'y']",
      ),
      (
          'surplus',
          _found(z=_EXPECTED['y']),
          "the fields ['x', 'y', 'z']; make them ['x', 'y']",
      ),
      (
          'other_names',
          _Dict(x=_EXPECTED['x'], label=_EXPECTED['y']),
          "the fields ['x', 'label']; make them ['x', 'y']",
      ),
      (
          'number_of_tensors',
          (_EXPECTED['x'],),
          'elements of 1 tensors; make them of 2',
      ),
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

  @parameterized.named_parameters(
      (
          'width',
          tf.TensorSpec([None, 3], tf.float32),
          "float32[?,3] in field 'x'; make it float32[?,20]",
      ),
      (
          'examples',
          tf.TensorSpec([20], tf.float64),
          "float64[20] in field 'x'; make it float32[?,20]",
      ),
  )
  def test_outside_of_pipelines(self, found, sentence):
    self.assertEqual(
        specs.find_difference(_found(x=found), _EXPECTED), sentence
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


class CastTest(parameterized.TestCase):

  @parameterized.parameters(
      ([1, 300], np.int64, np.uint8, [False, True]),
      ([-1, 1], np.int32, np.uint32, [True, False]),
      ([2**24, 2**24 + 1], np.int32, np.float32, [False, True]),
      ([0.1, 1e300, np.inf, np.nan], np.float64, np.float32, [0, 1, 0, 0]),
      ([0, 2], np.int32, np.bool_, [False, True]),
      ([True], np.bool_, np.float32, [False]),
      ([1e30, 1, np.nan, np.inf], _BFLOAT16, np.float16, [1, 0, 0, 0]),
      ([1e39, 0.1, np.nan], np.float64, _BFLOAT16, [1, 0, 0]),
      ([256, 257], np.int32, _BFLOAT16, [False, True]),
      ([1.5], np.float32, np.float32, [False]),
  )
  def test_finds_what_changes(self, values, found, wanted, expected):
    array = np.asarray(values, found)
    cast, changed = specs.cast(array, wanted)
    self.assertEqual(cast.dtype, wanted)
    self.assertEqual(changed.tolist(), expected)
    with np.errstate(over='ignore'):
      self.assertEqual(str(cast), str(array.astype(wanted)))

  def test_copies_nothing_without_need(self):
    array = np.zeros([2], np.float32)
    self.assertIs(specs.cast(array, np.float32)[0], array)


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

  @parameterized.named_parameters(
      ('type', dict(name=[1]), '`name` must be of type str, found list.'),
      (
          'optional_type',
          dict(name='a', other=3),
          '`other` must be of type str, found int.',
      ),
      (
          'callable',
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

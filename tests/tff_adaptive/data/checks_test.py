# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `checks`."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.data import client_arrays_testing
from tff_adaptive.data import checks
from tff_adaptive.data import client_data


def _client(x=(1.0, 2.0), y=(0, 9)):
  return {'x': np.array(x, np.float32), 'y': np.array(y, np.int32)}


def _source(**clients):
  return client_data.PackedClientArrays.from_clients(
      {'good': _client(), **clients}
  )


_EMPTY = _client((), ())
_NAN = _client((1.0, np.nan))
_INFINITE = _client((-np.inf, 1.0))


class CheckClientsTest(parameterized.TestCase):

  @parameterized.parameters('error', 'reject')
  def test_good_clients_pass(self, policy):
    self.assertEmpty(
        checks.check_clients(_source(), num_classes=10, bad_clients=policy)
    )

  def test_some_clients_spread_over_all_can_be_looked_through(self):
    clients = {f'client_{i}': _client() for i in range(9)}
    read = []
    source = client_arrays_testing.lazy(clients, read, cache_bytes=0)
    checks.check_clients(source, num_classes=10, max_clients=3)
    self.assertEqual(read, ['client_0', 'client_3', 'client_6'])
    checks.check_clients(source, num_classes=10, max_clients=9)
    self.assertLen(read, 3 + 9)

  @parameterized.named_parameters(
      ('empty', _EMPTY, "^Client 'bad' has no example, where at least one"),
      ('nan', _NAN, "^Client 'bad' has nan in feature 'x' of example 1, where"),
      ('infinite', _INFINITE, "^Client 'bad' has -inf in feature 'x' of exam"),
  )
  def test_bad_client_raises_one_sentence_with_the_way_out(self, bad, message):
    with self.assertRaisesRegex(ValueError, message) as raised:
      checks.check_clients(_source(bad=bad), num_classes=10)
    self.assertEndsWith(str(raised.exception), '`bad_clients="reject"`.')
    self.assertNotIn('\n', str(raised.exception))

  @parameterized.product(
      dtype=[tf.float16, tf.bfloat16, tf.float64, tf.as_dtype('float8_e5m2')],
      value=['nan', 'inf'],
  )
  def test_every_type_of_floats_is_looked_through(self, dtype, value):
    source = client_data.PackedClientArrays.from_clients(
        {
            'a': {'x': np.array([1, 2], dtype.as_numpy_dtype)},
            'b': {'x': np.array([1, float(value)], dtype.as_numpy_dtype)},
        }
    )
    bad = checks.check_clients(source, bad_clients='reject')
    self.assertEqual(list(bad), ['b'])
    self.assertStartsWith(bad['b'], f"has {value} in feature 'x' of example 1")

  def test_number_of_bad_clients_is_said(self):
    source = _source(first=_NAN, second=_EMPTY)
    with self.assertRaisesRegex(ValueError, r"'first' \(the first of 2\) has"):
      checks.check_clients(source)

  def test_reject_reports_clients(self):
    source = _source(a=_EMPTY, b=_client(), c=_NAN)
    with self.assertLogs(level='WARNING') as logs:
      bad = checks.check_clients(source, num_classes=10, bad_clients='reject')
    self.assertEqual(list(bad), ['a', 'c'])
    self.assertStartsWith(bad['a'], 'has no example')
    self.assertStartsWith(bad['c'], "has nan in feature 'x'")
    self.assertRegex(logs.output[0], "2 of 4 checked clients are bad.*'a'")

  def test_clients_beyond_the_maximum_are_not_counted(self):
    source = _source(a=_EMPTY, b=_client(), c=_NAN)
    with self.assertLogs(level='WARNING') as logs:
      checks.check_clients(source, bad_clients='reject', max_clients=3)
    self.assertIn('of 3 checked clients', logs.output[0])

  @parameterized.product(label=[11, -1], policy=['error', 'reject'])
  def test_label_out_of_range_is_always_an_error(self, label, policy):
    source = _source(bad=_client(y=(3, label)))
    with self.assertRaisesRegex(
        ValueError,
        f"^Client 'bad' has the label {label} at example 1, where labels must "
        r'be integers from 0 to 9 \(`bad_clients="reject"` does not apply',
    ):
      checks.check_clients(source, num_classes=10, bad_clients=policy)

  def test_labels_that_begin_at_1_are_told_apart(self):
    source = _source(bad=_client(y=(3, 10)))
    with self.assertRaisesRegex(ValueError, 'to 9; subtract 1 if yours begin'):
      checks.check_clients(source, num_classes=10)

  def test_labels_that_are_no_integers_are_an_error(self):
    source = client_data.PackedClientArrays.from_clients(
        {'bad': {'y': np.array([0.0, 1.5])}}
    )
    with self.assertRaisesRegex(ValueError, "'bad'.* float64, .* 0 to 9"):
      checks.check_clients(source, num_classes=10)

  def test_labels_are_not_looked_at_without_classes(self):
    source = _source(odd=_client(y=(3, -7)))
    self.assertEmpty(checks.check_clients(source))

  def test_labels_of_any_shape_and_name(self):
    source = client_data.PackedClientArrays.from_clients(
        {'a': {'next': np.array([[0, 1], [2, 5]])}}
    )
    with self.assertRaisesRegex(ValueError, 'label 5 at example 1.*0 to 4'):
      checks.check_clients(source, num_classes=5, label_key='next')

  def test_labels_missing_raises(self):
    with self.assertRaisesRegex(ValueError, r"'label'.*\['x', 'y'\]"):
      checks.check_clients(_source(), num_classes=2, label_key='label')

  def test_unknown_policy_raises(self):
    with self.assertRaisesRegex(ValueError, "'error', 'reject'.*'ignore'"):
      checks.check_clients(_source(), bad_clients='ignore')

  def test_a_maximum_that_checks_nobody_raises(self):
    for number in (0, -1):
      with self.assertRaisesRegex(ValueError, '`max_clients` must be pos'):
        checks.check_clients(_source(), max_clients=number)

  def test_lazy_clients_and_features_that_are_no_numbers(self):
    text = {'text': np.array([b'nan'], object)}
    source = client_arrays_testing.lazy({'a': text, 'b': text})
    self.assertEmpty(checks.check_clients(source))

  def test_row_shared_by_clients_makes_all_of_them_bad(self):
    source = client_data.PackedClientArrays.from_partition(
        {'x': np.array([1.0, np.nan])}, {'a': [0], 'b': [1, 0], 'c': [0, 1]}
    )
    bad = checks.check_clients(source, bad_clients='reject')
    self.assertEqual(list(bad), ['b', 'c'])


class CheckCentralExamplesTest(parameterized.TestCase):

  def test_good_examples_pass(self):
    checks.check_central_examples(_client(), num_classes=10)

  @parameterized.named_parameters(
      ('empty', _EMPTY, '^The test set has no example, .*needed.$'),
      ('nan', _NAN, "^The test set has nan in feature 'x' of example 1"),
      ('label', _client(y=(0, 10)), '^The test set has the label 10 at exam'),
      ('key', {'x': np.ones([1])}, r"^The labels must be in feature 'y'.*'x'"),
  )
  def test_bad_examples_raise(self, examples, message):
    with self.assertRaisesRegex(ValueError, message):
      checks.check_central_examples(examples, num_classes=10)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the compiled runtime's errors say of wrong arguments."""

import collections
import functools
from typing import Any
import warnings

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import error_testing
from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.runtime import computations_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import data

_Dict = collections.OrderedDict
_value, _type = error_testing.value_error, error_testing.type_error
_FIVE = tff.TensorType(np.float32, [5])
_count = lambda elements: elements.reduce(0, lambda n, _: n + 1)
# What clients do, and with what.
_WORK = {
    'pairs': (lambda x: tf.reduce_sum(x), tff.TensorType(np.float32, [2])),
    'numbers': (lambda x: x, np.int32),
    'words': (_count, tff.SequenceType(np.str_)),
    'first': (
        tf.function(lambda rows: sequence_testing.weigh(next(iter(rows)))),
        sequence_testing.ROWS,
    ),
    'x': (
        lambda batches: batches.reduce(
            0.0, lambda total, e: total + tf.reduce_sum(e['x'])
        ),
        tff.SequenceType(_Dict(x=tff.TensorType(np.float32, [None]))),
    ),
}


@functools.cache
def _computation(name: str) -> Any:
  """Returns a sum over clients, or another computation."""
  if name in computations_testing.CASES:
    return computations_testing.CASES[name].computation
  if name == 'no_clients':
    add_up = lambda d: d.reduce(0.0, lambda total, x: total + tf.reduce_sum(x))
    return tff.tensorflow.computation(add_up, tff.SequenceType(_FIVE))
  if name == 'doubled':
    double = tff.tensorflow.computation(lambda value: 2 * value, np.int32)
    return tff.federated_computation(
        lambda values: tff.federated_map(double, values),
        testing.at_clients(np.int32),
    )
  return sequence_testing.over_clients(*_WORK[name])


def _call(name: str, *arguments: Any) -> Any:
  with compiled_testing.installed():
    return _computation(name)(*arguments)


def _train(clients: Any) -> Any:
  """Runs a round of clients, or of those that a function returns."""
  process = compiled_testing.process()
  with compiled_testing.installed():
    clients = clients() if callable(clients) else clients
    return process.next(process.initialize(), clients)


def _batch(**changes: Any) -> _Dict:
  """Returns a batch of two examples, with changes."""
  x, y = np.zeros([2, 5], np.float32), np.zeros([2], np.int32)
  return _Dict({'x': x, 'y': y, **changes})


def _mapped(change: Any) -> Any:
  return lambda: [testing.dataset(5), testing.dataset(5).map(change)]


def _cohort(**features: Any) -> data.Cohort:
  source = data.PackedClientArrays.from_clients({'a': features})
  return data.Cohort(source, ['a'], 0, 1, data.BatchPlan(2))


_WIDE = np.zeros([2, 7], np.float32)
test_arguments_are_refused = error_testing.refused(
    _type('must be a list', _call, 'results_at_the_clients', 3.0),
    _value(
        'the same number of clients, found 1 and 2',
        _call,
        'state_of_clients',
        *(1.0, [[], []], [1.0]),
    ),
    _value(
        'clients, found 1 and 2',
        _call,
        'struct_of_places',
        _Dict(b=[1.0, 2.0], a=(3.0, 4), c=[np.ones([2], np.float32)]),
    ),
    _type(
        'Expected a value of type float32, found one of shape',
        _call,
        'results_at_the_clients',
        [1.0, [2.0, 3.0]],
    ),
    _type(
        'with different fields',
        _call,
        'arguments_at_all_places',
        *(1.0, [2.0], 10.0, [_Dict(y=4.0)]),
    ),
    *(
        _type(named, _call, 'sequences_preprocessed_at_the_clients', argument)
        for named, argument in (
            ('for each client, found float', [1.0, 2.0]),
            ('Expected elements of type float32', [[[1.0, 2.0]]]),
        )
    ),
    *(
        _value(f'less than `max_key`, 3, found {keys[1]}', _call, name, *both)
        for name in ('selection', 'sum_of_selections')
        for keys in ([0, 3], [0, -1])
        for both in [([keys, [1, 1]], [1.0, 2.0, 3.0])]
    ),
    _type(
        'found an array of type float', _call, 'doubled', [*np.float32([1.5])]
    ),
    _type('found one of shape', _call, 'doubled', [*np.ones([2, 3], 'i')]),
    _type('list with one entry per cl', _call, 'datasets_made_of_ids', 3),
    _value('End of sequence', _call, 'first', [[]]),
    _type(r'2\], found one of shape \(3', _call, 'pairs', [np.ones([3], 'f')]),
    _type('found str', _call, 'words', ['ann']),
    _type('found bytes', _call, 'words', [b'ann']),
    _type('string, found an array of type int64', _call, 'words', [[1, 2]]),
    _type('int32, found .* float64', _call, 'numbers', [np.float64(2.5)]),
    _value(f'{2**40} of type int64', _call, 'numbers', [np.array(2**40)]),
    _type(r'7\].*float32\[5\]', _call, 'no_clients', [np.ones([7], 'f')]),
    *(
        _type(f'must be a list.*found {type(none).__name__}', _train, none)
        for none in (3, 2.5, None)
    ),
    _type('must be a list.*Dataset', _train, lambda: testing.dataset(5)),
    _type(
        r"found float32\[2,7\] in field 'x'; make it float32\[\?,5\]",
        _train,
        lambda: [tf.data.Dataset.from_tensors(_batch(x=_WIDE))],
    ),
    _type(
        r"found float32\[5\] in field 'x'; make it float32\[\?,5\]",
        _train,
        lambda: [testing.dataset(5), testing.dataset(5).unbatch()],
    ),
    _type(
        r"int64\[\?\] in field 'y'; make it int32",
        _train,
        _mapped(lambda b: _Dict(b, y=tf.cast(b['y'], tf.int64))),
    ),
    _type(
        r"\['a', 'b'\]; make them \['x', 'y'\]",
        _train,
        _mapped(lambda b: _Dict(a=b['x'], b=b['y'])),
    ),
    _type(r"\['x'\]; make", _train, _mapped(lambda b: _Dict(x=b['x']))),
    _type('NoneTensorSpec', _train, _mapped(lambda b: _Dict(b, x=None))),
    _type(r"float32\[2,7\] in field 'x'", _train, [[_batch(x=_WIDE)]]),
    _type(r"different fields: \['x'\]", _train, [[_Dict(x=_batch()['x'])]]),
    _type(r"different fields: .*'z'", _train, [[_batch(z=np.zeros([2]))]]),
    _type('single element, put it into a list', _train, [_batch()]),
    _type('found str', _train, ['xy']),
    _type('found int', _train, [3]),
    _type('found list_iterator', _train, [iter([_batch()])]),
    _type(
        "Field 'y'.*int32.*float32", _train, [[_batch(y=np.float32([0.5, 1]))]]
    ),
    _type("Field 'y'.*int32.*str", _train, [[_batch(y=np.array(['0', '1']))]]),
    _type("Field 'x'.*complex64", _train, [[_batch(x=np.zeros([2, 5], 'F'))]]),
    _value(
        "Field 'y'.*int32.*4294967296 ",
        _train,
        [[_batch(y=np.array([0, 2**32]))]],
    ),
    _value("Field 'x'.* 1e.300 ", _train, [[_batch(x=np.full([2, 5], 1e300))]]),
    _type(r"\['x'\]; make them", _train, _cohort(x=np.zeros([3, 5]))),
    _type(
        r"float64\[\?,5\] in field 'x'; make it float32\[\?,5\]",
        _train,
        _cohort(x=np.zeros([3, 5]), y=np.zeros([3], np.int32)),
    ),
    _type(
        r"float32\[\?,4\] in field 'x'",
        _train,
        _cohort(x=np.zeros([3, 4], np.float32), y=np.zeros([3], np.int32)),
    ),
)


class ArgumentsTest(compiled_testing.TestCase):

  def test_others_are_taken(self):
    self.assertEqual(_call('words', [['a', 'b']]), 2)
    self.assertEqual(_call('numbers', [np.int64(2), np.True_]), 3)
    self.assertEqual(_call('no_clients', [np.ones([5], np.float32)]), 5.0)

  def test_dataset_that_another_computation_has_read(self):
    rows = tf.data.Dataset.from_tensor_slices(_Dict(x=np.ones([3], 'f')))
    dataset = rows.batch(2)
    self.assertEqual(_call('x', [dataset]), 3.0)
    with self.assertRaisesRegex(TypeError, r"the fields \['x'\]"):
      _train([dataset])

  def test_values_of_several_shapes(self):
    count = sequence_testing.over_clients(
        lambda array: tf.cast(tf.size(array), tf.float32),
        tff.TensorType(np.float32, [None, 2]),
    )
    arrays = [np.ones([rows, 2], np.float32) for rows in (3, 1, 3)]
    with compiled_testing.installed():
      self.assertEqual(count(arrays[::2]), 12.0)
      self.assertEqual(count(arrays), 14.0)

  def test_an_empty_array_has_no_texts(self):
    count = sequence_testing.over_clients(
        lambda batches: batches.reduce(0, lambda n, words: n + tf.size(words)),
        tff.SequenceType(tff.TensorType(np.str_, [None])),
    )
    with compiled_testing.installed():
      self.assertEqual(count([[np.array([]), np.array(['a', 'b'])]]), 2)

  def test_numbers_that_a_type_holds_after_rounding(self):
    batches = [
        _Dict(x=np.full([2, 5], 0.1, x_type), y=np.array([0, 1], y_type))
        for x_type, y_type in ((np.float32, np.int32), (np.float64, np.int64))
    ]
    process = compiled_testing.process()
    with compiled_testing.installed():
      wanted, found = (
          process.get_model_weights(
              process.next(process.initialize(), [[batch]]).state
          ).trainable
          for batch in batches
      )
    for w, v in zip(wanted, found):
      self.assertAllEqual(w, v)

  def test_labels_out_of_range(self):
    clients = testing.clients([5])
    clients[0][0]['y'][0] = testing.NUM_CLASSES
    with self.assertRaisesRegex(
        ValueError,
        "^TensorFlow rejected the clients' data at .*: Received a label value "
        r'of 3 .* range of \[0, 3\); `data\.check_clients` finds the client\.$',
    ):
      _train(clients)

  def test_an_op_of_the_server(self):

    @tff.tensorflow.computation(np.float32)
    def check(total):
      return tf.debugging.check_numerics(total, 'too large', name='checked')

    @tff.federated_computation(testing.at_clients())
    def run(values):
      return tff.federated_map(check, tff.federated_sum(values))

    with compiled_testing.installed():
      self.assertEqual(run([1.0, 2.0]), 3.0)
      with self.assertRaisesRegex(
          ValueError,
          "^TensorFlow failed in the server's part \\('update'\\) at "
          "'.*checked'?.*: too large : Tensor had Inf values\\.$",
      ):
        run([1.0, np.inf])

  def test_an_op_of_the_clients(self):

    @tff.tensorflow.computation(np.float32)
    def check(value):
      low = tf.debugging.assert_less(value, 5.0, 'High value', name='high')
      with tf.control_dependencies([low]):
        return tf.debugging.check_numerics(value, 'none', name='checked')

    @tff.federated_computation(testing.at_clients())
    def run(values):
      return tff.federated_sum(tff.federated_map(check, values))

    with compiled_testing.installed():
      for value, pattern in (
          (-np.inf, "^TensorFlow failed in the clients' work at '.*checked'"),
          (7.0, "^An assertion of the clients' work failed at '.*high"),
      ):
        with self.assertRaisesRegex(ValueError, pattern):
          run([1.0, value])

  def test_an_assertion_of_a_step(self):
    @tff.federated_computation(testing.at_clients(np.int32))
    def add_up(values):
      total = tff.federated_secure_sum_bitwidth(values, 4)
      return total, tff.federated_broadcast(total)

    with compiled_testing.installed(), warnings.catch_warnings():
      warnings.filterwarnings('ignore', 'Secure sums')
      self.assertEqual(add_up([1, 2]), (3, 3))
      with self.assertRaisesRegex(ValueError, 'in a step: .*than maximum'):
        add_up([1, 200])

  def test_context_continues_after_an_error(self):
    process, clients = compiled_testing.process(), testing.clients([5, 9])
    with compiled_testing.installed():
      before = compiled_testing.train(process, clients)
      with self.assertRaises(TypeError):
        process.next(process.initialize(), 3)
      after = compiled_testing.train(process, clients)
    self.assert_same_bits(before, after)
    with self.assertRaises(TypeError):
      _call('results_at_the_clients', 3.0)
    self.assertEqual(_call('results_at_the_clients', [3.0]), [6.0])

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that computations that are no learning process give the same, too."""

import collections
from typing import Any

import attrs
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import runtime

_Dict = collections.OrderedDict


@tff.tensorflow.computation(np.float32, np.float32)
def _add(left, right):
  return left + right


@tff.tensorflow.computation
def _constants():
  return _Dict(b=(tf.constant([1.0, 2.0]), tf.constant('text')), a=[3, True])


@pytest.mark.usefixtures('native_runtime')
class ComputationsTest(equality_testing.TestCase):

  def test_sums_and_means(self):
    @tff.federated_computation(testing.at_clients())
    def add_up(values):
      return tff.federated_sum(values)

    @tff.federated_computation(testing.at_clients())
    def average(values):
      return tff.federated_mean(values)

    @tff.federated_computation(
        testing.at_clients(_Dict(x=np.float32, w=np.float32))
    )
    def weighted(values):
      return _Dict(
          mean=tff.federated_mean(values.x, values.w),
          total=tff.federated_sum(values.w),
      )

    for computation in (add_up, average):
      for values in ([1.0, 2.0, 3.5], [4.0], []):
        self.assert_equals(computation, values)
    self.assert_equals(weighted, [_Dict(x=1.0, w=2.0), _Dict(x=2.0, w=3.0)])

  def test_structures_of_sums(self):
    @tff.federated_computation(
        testing.at_clients(
            _Dict(
                b=tff.TensorType(np.int64, [2]),
                a=(np.float64, _Dict(c=np.int32)),
            )
        )
    )
    def add_up(values):
      return tff.federated_sum(values)

    self.assert_equals(
        add_up,
        [_Dict(b=[i, 2 * i], a=(0.5 * i, _Dict(c=i))) for i in range(20)],
    )

  def test_server_and_clients_to_one_value(self):
    @tff.federated_computation(testing.at_server(), testing.at_clients())
    def add_to(start, values):
      return tff.federated_map(_add, (start, tff.federated_sum(values)))

    @tff.federated_computation(testing.at_server(), testing.at_clients())
    def broadcast(start, values):
      sums = tff.federated_map(_add, (tff.federated_broadcast(start), values))
      return tff.federated_mean(sums)

    self.assert_equals(add_to, 10.0, [1.0, 2.0])
    self.assert_equals(broadcast, 10.0, [1.0, 2.0])

  def test_server_and_clients_to_two_values(self):
    @tff.federated_computation(testing.at_server(), testing.at_clients())
    def both(start, values):
      total = tff.federated_sum(values)
      return tff.federated_map(_add, (start, total)), total

    @tff.federated_computation(
        testing.at_server(np.int32), testing.at_clients()
    )
    def neither_is_the_state(start, values):
      return tff.federated_sum(values), start

    self.assert_equals(both, 10.0, [1.0, 2.0])
    self.assert_equals(neither_is_the_state, np.int32(10), [1.0, 2.0])

  def test_structs_of_server_and_clients(self):
    @tff.federated_computation(
        _Dict(
            b=testing.at_clients(),
            a=(testing.at_server(), testing.at_server(np.int32)),
            c=testing.at_clients(tff.TensorType(np.float32, [2])),
        )
    )
    def take_all(values):
      return _Dict(
          total=tff.federated_sum(values.b),
          first=values.a[0],
          mean=tff.federated_mean(values.c, weight=values.b),
          second=values.a[1],
      )

    vectors = np.float32([[1.0, 2.0], [3.0, 4.0]])
    self.assert_equals(take_all, _Dict(b=[1.0, 2.0], a=(3.0, 4), c=[*vectors]))
    with equality_testing.compiled():
      with self.assertRaisesRegex(ValueError, 'clients, found 1 and 2'):
        take_all(_Dict(b=[1.0, 2.0], a=(3.0, 4), c=[vectors[0]]))

  def test_values_that_are_equal_at_all_clients(self):
    @tff.federated_computation(
        testing.at_clients(),
        tff.FederatedType(np.float32, tff.CLIENTS, all_equal=True),
    )
    def add_to_each(values, value):
      sums = tff.federated_map(_add, (values, value))
      return tff.federated_sum(sums)

    self.assert_equals(add_to_each, [1.0, 2.0], 10.0)

  @pytest.mark.slow
  def test_clients_that_nothing_tells_the_number_of(self):
    @tff.federated_computation(
        tff.FederatedType(np.float32, tff.CLIENTS, all_equal=True)
    )
    def add_up(value):
      return tff.federated_sum(value)

    for number in (1, 3):
      with runtime.CompiledContext(strict=True, default_num_clients=number):
        self.assertEqual(add_up(2.0), 2.0 * number)
    with runtime.NativeContext(default_num_clients=3):
      self.assertEqual(add_up(2.0), 6.0)

  def test_fields_are_found_by_name(self):
    # TFF goes by place, which swaps them without a word.
    @tff.federated_computation(
        testing.at_clients(_Dict(b=np.float32, a=np.float32))
    )
    def add_up(values):
      return tff.federated_sum(values)

    with equality_testing.compiled():
      found = add_up([_Dict(a=1.0, b=10.0), _Dict(b=20.0, a=2.0)])
    self.assertEqual(found, _Dict(b=30.0, a=3.0))

  def test_zero_bytes_between_texts_change_the_sum(self):
    join = tff.tensorflow.computation(
        lambda x, y: tf.strings.join([x, y], separator='\0'), [np.str_, np.str_]
    )
    nothing = tff.tensorflow.computation(lambda: tf.constant(''))
    same = tff.tensorflow.computation(lambda x: x, np.str_)

    @tff.federated_computation(testing.at_clients(np.str_))
    def join_all(values):
      return tff.federated_aggregate(values, nothing(), join, join, same)

    texts = [f'{number}' for number in range(40)]
    with equality_testing.compiled():
      self.assertEqual(join_all(texts), '\0'.join(['', *texts]).encode())

  def test_zero_that_changes_the_sum_counts_once(self):
    ten = tff.tensorflow.computation(lambda: tf.constant(10))
    rows = tff.tensorflow.computation(lambda: tf.constant([[7.0]]))
    add = tff.tensorflow.computation(lambda x, y: x + y, [np.int32, np.int32])
    rows_type = tff.TensorType(np.float32, [None, 1])
    append = tff.tensorflow.computation(
        lambda rows, x: tf.concat([rows, [[x]]], 0), [rows_type, np.float32]
    )
    concat = tff.tensorflow.computation(
        lambda left, right: tf.concat([left, right], 0), [rows_type, rows_type]
    )
    same = tff.tensorflow.computation(lambda x: x, np.int32)
    same_rows = tff.tensorflow.computation(lambda x: x, rows_type)
    wide = tff.tensorflow.computation(
        lambda: tf.ensure_shape(rows(), [None, 1])
    )

    @tff.federated_computation(testing.at_clients(np.int32))
    def add_up(values):
      return tff.federated_aggregate(values, ten(), add, add, same)

    @tff.federated_computation(testing.at_clients(np.float32))
    def collect(values):
      return tff.federated_aggregate(values, wide(), append, concat, same_rows)

    for num_clients in (0, 1, 3, 40):
      self.assert_equals(add_up, list(range(num_clients)))
      self.assert_equals(collect, [float(i) for i in range(num_clients)])

  def test_branches_that_are_not_taken(self):
    def guarded(total, batch):
      return total + tf.cond(batch[0] > 0, lambda: 100 // batch[0], lambda: -1)

    batches = tff.SequenceType(tff.TensorType(np.int32, [None]))
    work = tff.tensorflow.computation(lambda ds: ds.reduce(0, guarded), batches)

    @tff.federated_computation(testing.at_clients(batches))
    def add_up(clients):
      return tff.federated_sum(tff.federated_map(work, clients))

    clients = [[np.array([i, 1], np.int32)] for i in (2, 0, 5)]
    self.assert_equals(add_up, clients)

  def test_server_alone(self):
    @tff.federated_computation
    def one_value():
      return tff.federated_value(3, tff.SERVER)

    @tff.federated_computation
    def computed():
      return tff.federated_eval(_constants, tff.SERVER)

    @tff.federated_computation
    def zipped():
      return tff.federated_zip(
          _Dict(
              b=tff.federated_value(3, tff.SERVER),
              a=tff.federated_eval(_constants, tff.SERVER),
          )
      )

    for computation in (one_value, computed, zipped, _constants):
      self.assert_equals(computation)

  def test_tensorflow_alone(self):
    @tff.tensorflow.computation(np.float32, sequence_testing.ROWS)
    def scale(factor, dataset):
      result = factor * sequence_testing.digest(dataset)
      return _Dict(result=result, text=tf.constant('a'))

    self.assert_equals(_add, 1.0, 2.0)
    dataset = sequence_testing.dataset(
        sequence_testing.numbers(3, 1), sequence_testing.ROWS.element
    )
    self.assert_equals(scale, 2.0, dataset)

  def test_containers_of_python(self):
    @attrs.define
    class Pair:
      left: Any
      right: Any

    @tff.tensorflow.computation
    def make():
      return Pair([1, (2.0,)], _Dict(z=tf.constant(3), a=()))

    @tff.tensorflow.computation(make.type_signature.result)
    def pass_on(pair):
      return pair

    self.assert_equals(pass_on, self.assert_equals(make))

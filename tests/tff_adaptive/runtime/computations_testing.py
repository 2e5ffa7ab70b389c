# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Computations of all kinds, with arguments and the path that they take.

`equality_computations_test` runs them in all contexts. The path of steps that
are no round is 'compiled', too, where they are one graph.
"""

import collections
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import sequence_testing

_Dict = collections.OrderedDict
_at_clients, _at_server = testing.at_clients, testing.at_server
_tf_computation = tff.tensorflow.computation
_TABLE = tff.TensorType(np.float32, [3])
_KEYS = tff.TensorType(np.int32, [2])
_KEPT = ([[0, 2], [1, 1], [2, 1]], [1.0, 2.0, 3.0])
_VECTOR = tff.TensorType(np.float32, [2])
_NUMBERS = tff.SequenceType(np.float32)
_ROWS = sequence_testing.ROWS
_numbers = sequence_testing.numbers


@attrs.frozen
class Output:
  """A container of results."""

  total: Any
  each: Any


@attrs.frozen
class Case:
  """A computation.

  Attributes:
    computation: The computation.
    arguments: The arguments of each call.
    path: The path of each call.
  """

  computation: Any
  arguments: Sequence[tuple[Any, ...]]
  path: str


CASES: dict[str, Case] = {}


def _of(fn: Any, *types: Any, of=(), calls=None, path='compiled') -> Case:
  """Returns a federated computation of these types, with its arguments."""
  return Case(tff.federated_computation(fn, *types), calls or [of], path)


def _case(*types: Any, **kwargs: Any) -> Any:
  """Adds the case of a function, under its name."""

  def add(fn):
    CASES[fn.__name__.strip('_')] = _of(fn, *types, **kwargs)
    return fn

  return add


@_tf_computation(np.float32)
def double(value):
  return 2 * value


@_tf_computation(np.float32, np.float32)
def add(left, right):
  return left + right


@_tf_computation(np.float32, np.float32)
def _divide(left, right):
  return left / right


@_tf_computation(_TABLE, np.int32)
def _select(table, key):
  return tf.gather(table, key)


@_tf_computation(_ROWS, np.float32)
def _train(batches, start):
  """Returns a weight and a state, as a client's training does."""
  weight = batches.reduce(start, lambda w, b: 0.9 * w + tf.reduce_mean(b))
  return _Dict(weight=weight, count=batches.reduce(0, lambda n, b: n + 1))


@_tf_computation(_NUMBERS)
def _preprocess(numbers):
  return numbers.map(lambda number: _Dict(b=3 * number, a=(number, 1)))


@_tf_computation
def _structure():
  return _Dict(b=(tf.constant([1.0, 2.0]), tf.constant('text')), a=[3, True])


@_tf_computation(np.float32, _ROWS)
def _scale(factor, dataset):
  result = factor * sequence_testing.digest(dataset)
  return _Dict(result=result, text=tf.constant('a'))


@_tf_computation
def _make_containers():
  return Output([1, (2.0,)], _Dict(z=tf.constant(3), a=()))


_pass_containers = _tf_computation(
    lambda value: value, _make_containers.type_signature.result
)
CASES.update(
    tensorflow=Case(add, [(1.0, 2.0)], 'compiled'),
    constants_of_tensorflow=Case(_structure, [()], 'compiled'),
    tensorflow_of_a_dataset=Case(
        _scale,
        [(2.0, sequence_testing.dataset(_numbers(3, 1), _ROWS.element))],
        'cached',
    ),
    containers_of_python=Case(
        _pass_containers, [(Output([1, (2.0,)], _Dict(z=3, a=())),)], 'compiled'
    ),
)


@_case(_at_server(), _at_server(_Dict(a=np.float32)), of=(2.0, _Dict(a=3.0)))
def _values_at_the_server(value, struct):
  total = tff.federated_map(add, (value, struct.a))
  return Output(total, tff.federated_zip([value, struct]))


@_case()
def _zipped_constants_at_the_server():
  three = tff.federated_value(3, tff.SERVER)
  structure = tff.federated_eval(_structure, tff.SERVER)
  return tff.federated_zip(_Dict(b=three, a=structure))


@_case()
def _evaluations_at_the_server():
  one = tff.federated_eval(_tf_computation(lambda: 1.0), tff.SERVER)
  two = tff.federated_value(2.0, tff.SERVER)
  return one, tff.federated_map(add, (one, two))


@_case()
def _evaluation_at_the_clients():
  numbers = tff.federated_eval(_tf_computation(lambda: 1.0), tff.CLIENTS)
  return _Dict(each=numbers, total=tff.federated_sum(numbers))


@_case(_at_clients(_NUMBERS), of=([[1.0, 2.0], [], [4.0]],), path='steps')
def _reductions_at_the_clients(numbers):
  total = _tf_computation(lambda n: n.reduce(0.0, tf.add), _NUMBERS)
  return tff.federated_map(total, numbers)


def _selections(keys, table):
  limit = tff.federated_value(3, tff.SERVER)
  return tff.federated_select(keys, limit, table, _select)


def _sum_selections(total: Any) -> Any:
  def run(keys, table):
    slices = _selections(keys, table)
    totals = tff.federated_map(
        _tf_computation(total, (_NUMBERS, _KEYS)), (slices, keys)
    )
    return totals, tff.federated_sum(totals)

  return run


@_case(_at_clients(_KEYS), _at_server(_TABLE), of=_KEPT)
def _sum_of_selections(keys, table):
  weigh = lambda numbers, keys: tf.cast(
      keys[0] + 1, tf.float32
  ) * numbers.reduce(0.0, lambda x, y: 0.5 * x + y)
  return _sum_selections(weigh)(keys, table)


@_case(_at_clients(_KEYS), _at_server(_TABLE), of=_KEPT)
def _sum_of_selections_as_datasets(keys, table):
  copy = tf.data.Dataset.from_tensors
  total = lambda numbers, _: numbers.flat_map(copy).reduce(0.0, tf.add)
  return _sum_selections(total)(keys, table)


@_case(
    _at_server(),
    _at_clients(_ROWS),
    _at_clients(),
    of=(1.0, [_numbers(3, 2), [], _numbers(4)], [0.5, 1.0, 2.0]),
    path='steps',
)
def _state_of_clients(model, batches, states):
  starts = tff.federated_map(add, (tff.federated_broadcast(model), states))
  results = tff.federated_map(_train, (batches, starts))
  model = tff.federated_map(add, (model, tff.federated_mean(results.weight)))
  return model, results


@_case(_at_clients(), of=([1.0, 2.5, 4.0],))
def _broadcast_of_an_aggregate(values):
  mean = tff.federated_broadcast(tff.federated_mean(values))
  return tff.federated_sum(tff.federated_map(_divide, (values, mean)))


@_case(
    _at_clients(_VECTOR),
    of=([*np.float32([[1, 0], [2.5, 1], [4, 3], [40, 2]])],),
)
def _weiszfeld(values):
  nearness = _tf_computation(
      lambda value, median: 1 / tf.maximum(tf.norm(value - median), 1e-3),
      (_VECTOR, _VECTOR),
  )
  median = tff.federated_mean(values)
  for _ in range(3):
    everywhere = tff.federated_broadcast(median)
    weights = tff.federated_map(nearness, (values, everywhere))
    median = tff.federated_mean(values, weights)
  return median, weights


@_case(
    _at_server(),
    _at_clients(_ROWS),
    of=(1.0, [_numbers(3, 2), _numbers(4)]),
    path='steps',
)
def _two_rounds_in_one(model, batches):
  for _ in range(2):
    start = tff.federated_broadcast(model)
    results = tff.federated_map(_train, (batches, start))
    model = tff.federated_mean(results.weight)
  return Output(model, tff.federated_sum(results.count))


@_case(_at_clients((np.float32, np.int32)), of=([(1.0, -2), (0.5, 7)],))
def _extremes_everywhere(values):
  low, high = tff.federated_min(values), tff.federated_max(values)
  return tff.federated_broadcast(low), high


@_case(
    _at_server(),
    _at_clients(),
    tff.FederatedType(np.float32, tff.CLIENTS, all_equal=True),
    _at_clients(_Dict(x=np.float32)),
    of=(1.0, [2.0, 3.0], 10.0, [_Dict(x=4.0), _Dict(x=5.0)]),
)
def _arguments_at_all_places(server, clients, equal, structs):
  both = tff.federated_map(add, (clients, equal))
  return _Dict(
      both=both,
      zipped=tff.federated_zip(_Dict(b=both, a=structs)),
      total=tff.federated_map(add, (tff.federated_sum(both), server)),
      equal=equal,
  )


@_case(_at_clients(), of=([2.0, 3.0],))
def _nested_computations(values):
  halve = _tf_computation(lambda x: x / 2, np.float32)
  inner = tff.federated_computation(
      lambda v: tff.federated_map(halve, v), _at_clients()
  )
  outer = tff.federated_computation(
      lambda v: (inner(v), tff.federated_mean(inner(v))), _at_clients()
  )
  return outer(values)


@_case(_at_clients((np.float32, _Dict(x=np.str_))), of=([(2.0, _Dict(x='a'))],))
def _selections_and_swaps(values):
  swap = tff.federated_computation(
      lambda value: (value[1], value[0]), values.type_signature.member
  )
  return values[1].x, tff.federated_map(swap, values)


@_case(
    _at_server(),
    _at_clients(np.str_),
    _at_clients(),
    of=(1.5, ['some', 'text'], [1.0, 2.5]),
)
def _texts_and_flags(start, texts, values):
  join = _tf_computation(lambda t: t + '!', np.str_)
  compare = _tf_computation(
      lambda x, y: (x + y, x > y), (np.float32, np.float32)
  )
  everywhere = tff.federated_broadcast(start)
  sums, flags = tff.federated_map(compare, (values, everywhere))
  return (
      tff.federated_map(join, texts),
      flags,
      everywhere,
      tff.federated_zip((sums, texts)),
      tff.federated_max(sums),
      'text',
  )


@_case(
    _at_clients(tff.TensorType(np.float32, [None])),
    of=([np.ones([2], np.float32), np.ones([5], np.float32)],),
    path='steps',
)
def _tensors_that_differ_in_shape(values):
  total = _tf_computation(
      lambda value: tf.reduce_sum(value), tff.TensorType(np.float32, [None])
  )
  return tff.federated_sum(tff.federated_map(total, values)), values


@_case(_at_clients(), of=([1.0, 2.0],))
def _own_aggregation(values):
  @_tf_computation
  def zero():
    return _Dict(total=0.0, count=0)

  @_tf_computation(zero.type_signature.result, np.float32)
  def accumulate(state, value):
    return _Dict(total=state['total'] + value, count=state['count'] + 1)

  @_tf_computation(*[zero.type_signature.result] * 2)
  def merge(left, right):
    return tf.nest.map_structure(tf.add, left, right)

  @_tf_computation(zero.type_signature.result)
  def report(state):
    return state['total'] / tf.cast(state['count'], tf.float32)

  mean = tff.federated_aggregate(values, zero(), accumulate, merge, report)
  return tff.federated_broadcast(mean), mean


_COHORTS = [([1.0, 2.0, 3.5],), ([4.0],), ([],)]


@_case(_at_server(), _at_clients(), of=(10.0, [1.0, 2.0]))
def _sum_and_state(start, values):
  total = tff.federated_sum(values)
  return tff.federated_map(add, (start, total)), total


@_case(_at_server(), _at_clients(), of=(10.0, [1.0, 2.0]))
def _mean_of_broadcast(start, values):
  sums = tff.federated_map(add, (tff.federated_broadcast(start), values))
  return tff.federated_mean(sums)


_SIZES = [(list(range(size)),) for size in (0, 1, 3, 40)]


@_case(_at_clients(np.int32), calls=_SIZES)
def _sum_from_ten(values):
  two = [np.int32, np.int32]
  plus = _tf_computation(lambda x, y: x + y, two)
  same = _tf_computation(lambda x: x, np.int32)
  ten = _tf_computation(lambda: tf.constant(10))
  return tff.federated_aggregate(values, ten(), plus, plus, same)


@_case(_at_clients(np.int32), calls=_SIZES)
def _rows_behind_another(values):
  rows_type = tff.TensorType(np.int32, [None, 1])
  append = _tf_computation(
      lambda rows, x: tf.concat([rows, [[x]]], 0), [rows_type, np.int32]
  )
  concat = _tf_computation(
      lambda left, right: tf.concat([left, right], 0), [rows_type, rows_type]
  )
  same = _tf_computation(lambda x: x, rows_type)
  first = _tf_computation(
      lambda: tf.ensure_shape(tf.constant([[7]]), [None, 1])
  )
  return tff.federated_aggregate(values, first(), append, concat, same)


_BATCHES = tff.SequenceType(tff.TensorType(np.int32, [None]))


@_case(
    _at_clients(_BATCHES),
    of=([[np.array([i, 1], np.int32)] for i in (2, 0, 5)],),
)
def _branch_that_is_not_taken(clients):
  def guarded(total, batch):
    return total + tf.cond(batch[0] > 0, lambda: 100 // batch[0], lambda: -1)

  work = _tf_computation(lambda batches: batches.reduce(0, guarded), _BATCHES)
  return tff.federated_sum(tff.federated_map(work, clients))


@_case(_at_clients(np.str_), of=(['3', '0', '10'],), path='cached')
def _datasets_made_of_ids(ids):
  @_tf_computation(np.str_)
  def make(client_id):
    numbers = tf.data.Dataset.range(tf.strings.to_number(client_id, tf.int64))
    return numbers.map(lambda x: tf.cast(x, tf.float32)).batch(2)

  digest = _tf_computation(sequence_testing.digest, _ROWS)
  datasets = tff.federated_map(make, ids)
  return tff.federated_sum(tff.federated_map(digest, datasets))


CASES.update(
    hello=_of(lambda: 'Hello, World!'),
    constants=_of(lambda: _Dict(b=(1.5, True), a=[3, _Dict(c='text')])),
    calls=_of(
        lambda value: (double(double(value)), value), np.float32, of=(2.0,)
    ),
    value_at_the_server=_of(
        lambda value: tff.federated_map(double, value), _at_server(), of=(2.0,)
    ),
    values_at_the_clients=_of(
        lambda: tff.federated_value((1.5, 'text'), tff.CLIENTS)
    ),
    reduction_of_a_sequence=_of(
        lambda numbers: tff.sequence_reduce(numbers, 1.0, add),
        _NUMBERS,
        of=([1.0, 2.0, 4.0],),
    ),
    sequence_at_the_server=_of(
        lambda numbers: numbers, _at_server(_NUMBERS), of=([1.0, 2.0, 4.0],)
    ),
    sequence_preprocessed_at_the_server=_of(
        lambda numbers: tff.federated_map(_preprocess, numbers),
        _at_server(_NUMBERS),
        of=([1.0, 2.0, 4.0],),
        path='threads',
    ),
    sequences_preprocessed_at_the_clients=_of(
        lambda numbers: tff.federated_map(_preprocess, numbers),
        _at_clients(_NUMBERS),
        of=([[1.0, 2.0], [], [4.0]],),
        path='steps',
    ),
    selection=_of(
        _selections,
        _at_clients(_KEYS),
        _at_server(_TABLE),
        of=_KEPT,
        path='steps',
    ),
    results_at_the_clients=_of(
        lambda values: tff.federated_map(double, values),
        _at_clients(),
        calls=[([1.0, 2.5],), ([4.0],)],
    ),
    sum=_of(tff.federated_sum, _at_clients(), calls=_COHORTS),
    mean=_of(
        lambda values: tff.federated_mean(values),
        _at_clients(),
        calls=_COHORTS,
    ),
    weighted_mean=_of(
        lambda values: _Dict(
            mean=tff.federated_mean(values.x, values.w),
            total=tff.federated_sum(values.w),
        ),
        _at_clients(_Dict(x=np.float32, w=np.float32)),
        of=([_Dict(x=1.0, w=2.0), _Dict(x=2.0, w=3.0)],),
    ),
    sum_of_structures=_of(
        tff.federated_sum,
        _at_clients(
            _Dict(
                b=tff.TensorType(np.int64, [2]),
                a=(np.float64, _Dict(c=np.int32)),
            )
        ),
        of=([_Dict(b=[i, 2 * i], a=(0.5 * i, _Dict(c=i))) for i in range(20)],),
    ),
    state_that_is_second=_of(
        lambda start, values: (tff.federated_sum(values), start),
        _at_server(np.int32),
        _at_clients(),
        of=(np.int32(10), [1.0, 2.0]),
    ),
    struct_of_places=_of(
        lambda values: _Dict(
            total=tff.federated_sum(values.b),
            first=values.a[0],
            mean=tff.federated_mean(values.c, weight=values.b),
            second=values.a[1],
        ),
        _Dict(
            b=_at_clients(),
            a=(_at_server(), _at_server(np.int32)),
            c=_at_clients(_VECTOR),
        ),
        of=(
            _Dict(
                b=[1.0, 2.0],
                a=(3.0, 4),
                c=[*np.float32([[1.0, 2.0], [3.0, 4.0]])],
            ),
        ),
    ),
    value_that_is_equal_at_all_clients=_of(
        lambda values, value: tff.federated_sum(
            tff.federated_map(add, (values, value))
        ),
        _at_clients(),
        tff.FederatedType(np.float32, tff.CLIENTS, all_equal=True),
        of=([1.0, 2.0], 10.0),
    ),
)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sequences of clients, and numbers that depend on all that is in them."""

import functools
from typing import Any

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing

ROWS = tff.SequenceType(tff.TensorType(np.float32, [None]))


class UnseededTestCase(tf.test.TestCase, parameterized.TestCase):
  """A test case whose shuffles and draws have no seed of TensorFlow's."""

  def setUp(self):
    super().setUp()
    tf.random.set_seed(None)


def over_clients(fn: Any, member_type: Any) -> Any:
  """Returns a computation that sums `fn` of what clients have over clients."""
  work = tff.tensorflow.computation(fn, member_type)

  @tff.federated_computation(testing.at_clients(member_type))
  def run(clients):
    return tff.federated_sum(tff.federated_map(work, clients))

  return run


def over_elements(fn: Any, element_type: Any, zero: Any = 0.0) -> Any:
  """Returns a computation that sums `fn` of all elements of clients."""
  return over_clients(
      lambda elements: elements.reduce(zero, lambda x, e: x + fn(e)),
      tff.SequenceType(element_type),
  )


def over_made_datasets(make: Any, fn: Any) -> Any:
  """Returns a computation that sums `fn` of the datasets that clients make."""
  work = tff.tensorflow.computation(fn, make.type_signature.result)

  @tff.federated_computation(testing.at_clients(make.type_signature.parameter))
  def run(values):
    datasets = tff.federated_map(make, values)
    return tff.federated_sum(tff.federated_map(work, datasets))

  return run


def aggregate(
    member_type: Any,
    zero: Any,
    accumulate: Any,
    merge: Any = None,
    total_type: Any = None,
    report: Any = lambda total: total,
) -> Any:
  """Returns a computation that aggregates what clients have.

  Args:
    member_type: The type of what a client has.
    zero: Returns the start of a sum.
    accumulate: Adds what a client has to a sum.
    merge: Adds two sums. Defaults to `accumulate`.
    total_type: The type of sums. Defaults to that of `zero`.
    report: Returns the result of the whole sum, by default the sum.
  """
  zero = tff.tensorflow.computation(zero)
  total_type = total_type or zero.type_signature.result
  add = tff.tensorflow.computation(accumulate, total_type, member_type)
  join = tff.tensorflow.computation(merge or accumulate, total_type, total_type)
  report = tff.tensorflow.computation(report, total_type)

  @tff.federated_computation(testing.at_clients(member_type))
  def run(values):
    return tff.federated_aggregate(values, zero(), add, join, report)

  return run


def elements_of(rows: Any) -> list[np.ndarray]:
  """Returns the elements of `dataset_rows.ClientRows` of one component."""
  order = np.arange(rows.num_rows) if rows.order is None else rows.order
  ends = np.cumsum(rows.lengths)
  (column,) = rows.rows
  elements = [
      column[order[end - size : end]] for size, end in zip(rows.lengths, ends)
  ]
  return elements if rows.are_batched else [one[0] for one in elements]


def weigh(value: Any) -> tf.Tensor:
  """Returns a number that depends on the components and their order."""
  totals = []
  for place, tensor in enumerate(tf.nest.flatten(value)):
    if tensor.dtype == tf.string:
      tensor = tf.strings.length(tensor)
    tensor = tf.reshape(tf.cast(tensor, tf.float32), [-1])
    totals.append((place + 1.0) * tf.reduce_sum(tf.cumsum(tensor)) + 0.1)
  return functools.reduce(tf.add, totals)


def digest(dataset: tf.data.Dataset) -> tf.Tensor:
  """Returns a number that depends on all elements and their order."""
  return dataset.reduce(0.0, lambda state, e: 0.7 * state + weigh(e))


def numbers(*sizes: int) -> list[np.ndarray]:
  """Returns batches of numbers, all different."""
  ends = np.cumsum(sizes)
  row = np.arange(sum(sizes), dtype=np.float32) + 0.5
  return [part for part in np.split(row, ends)[:-1]]


def dataset(elements: list[Any], element_type: Any) -> tf.data.Dataset:
  """Returns a dataset of elements of any sizes, without Python code."""
  spec = tff.types.type_to_tf_tensor_specs(tff.to_type(element_type))

  def one(element):
    return tf.data.Dataset.from_tensors(
        tf.nest.map_structure(
            lambda s, leaf: np.asarray(leaf, s.dtype.as_numpy_dtype),
            spec,
            element,
        )
    )

  if not elements:
    zeros = tf.nest.map_structure(
        lambda s: np.zeros([size or 0 for size in s.shape]), spec
    )
    return one(zeros).take(0)
  whole = one(elements[0])
  for element in elements[1:]:
    whole = whole.concatenate(one(element))
  return whole

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sequences of functions without clients, in a graph.

They are variants of datasets, the `PackedClients` of one client, `Selected`, or
`Mapped`: a mapping waits until the elements are read, so that a sum over mapped
elements is one loop, without a dataset in between.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import batching
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import running
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import element_orders
from tff_adaptive.runtime.datasets import elements
from tff_adaptive.runtime.sequences import sequences
from tff_adaptive.runtime.steps import expressions


def components_of(element_type: tff.Type, leaves: Iterable[Any]) -> list[Any]:
  """Returns an element's leaves in the order of `tf.nest`."""
  return tf.nest.flatten(values.build_pack(element_type)(iter(leaves)))


_plain = tf.autograph.experimental.do_not_convert


@attrs.frozen(eq=False)
class Selected:
  """A sequence of elements of one shape that are rows.

  Attributes:
    rows: The rows of each component, in the order of `tf.nest`.
  """

  rows: tuple[tf.Tensor, ...]


def pick(leaf: Any, number: tf.Tensor) -> Any:
  """Returns the leaf of a client, given those of all, stacked."""
  if isinstance(leaf, Selected):
    return Selected(tuple(tf.gather(rows, number) for rows in leaf.rows))
  return tf.gather(leaf, number)


def as_rows(leaf: Any) -> Any:
  """Returns a leaf; as a `PackedClients` if it consists of rows."""
  if not isinstance(leaf, Selected):
    return leaf
  end = tf.shape(leaf.rows[0])[0]
  return batching.PackedClients(leaf.rows, (), (), (), tf.zeros_like(end), end)


def as_variant(leaf: Any) -> Any:
  """Returns a leaf; as the variant of a dataset if it is a sequence.

  Raises:
    NeedsDatasetsError: If it consists of rows that are given.
  """
  if isinstance(leaf, batching.PackedClients):
    raise running.NeedsDatasetsError
  if not isinstance(leaf, Selected):
    return leaf
  dataset = tf.data.Dataset.from_tensor_slices(leaf.rows)
  # Each read would otherwise optimize it first, for milliseconds.
  dataset = dataset.with_options(element_orders.untuned())
  return tf.data.experimental.to_variant(dataset)


def _dataset(source: Any, leaf_type: tff.SequenceType) -> Any:
  """Returns a dataset whose elements are tuples, see `_element`."""
  specs = tuple(elements.component_specs(leaf_type))
  return tf.data.experimental.from_variant(as_variant(source), specs)


def _element(components: Sequence[Any], element_type: tff.Type) -> Any:
  """Returns the value of an element, given the order of `tf.nest`."""
  places = range(len(components))
  order = components_of(element_type, places)
  return expressions.pack(
      iter([components[order.index(place)] for place in places]), element_type
  )


@attrs.frozen(eq=False)
class Mapped:
  """A sequence to whose elements a function is yet to be applied.

  Attributes:
    call: The function of an element's number and the element.
    draws: Whether it draws random numbers.
    source: A sequence, of any kind.
    types: The types of the source and of the sequence.
  """

  call: Callable[[tf.Tensor, Any], Any]
  draws: bool
  source: Any
  types: tuple[tff.SequenceType, tff.SequenceType]


def _unwrap(
    sequence: Any, leaf_type: tff.SequenceType
) -> tuple[Any, tff.SequenceType, Callable[..., Any], bool]:
  """Returns the source of a sequence, its type, and what is yet to be done.

  The latter is a function of an element's number and the element, and whether
  it draws random numbers.
  """
  if not isinstance(sequence, Mapped):
    return sequence, leaf_type, lambda _, element: element, False
  source, source_type, before, draws = _unwrap(
      sequence.source, sequence.types[0]
  )

  def call(number, element):
    return sequence.call(number, before(number, element))

  return source, source_type, call, draws or sequence.draws


def apply(leaf: Any) -> Any:
  """Returns a leaf; a mapped sequence as the variant of a dataset."""
  if not isinstance(leaf, Mapped):
    return leaf
  returned = leaf.types[1]
  source, source_type, call, draws = _unwrap(leaf, returned)

  def run(number, *components):
    element = _element(components, source_type.element)
    results = expressions.flatten(call(number, element))
    return tuple(components_of(returned.element, results))

  dataset = _dataset(source, source_type)
  if draws:
    dataset = dataset.enumerate().map(
        _plain(lambda number, row: run(tf.cast(number, tf.int32), *row))
    )
  else:
    dataset = dataset.map(_plain(lambda *row: run(None, *row)))
  return tf.data.experimental.to_variant(dataset)


def reduce(
    sequence: Any,
    leaf_type: tff.SequenceType,
    zeros: list[tf.Tensor],
    add: Callable[..., Any],
    result_type: tff.Type,
    draws: bool,
) -> Any:
  """Returns the reduction of a sequence.

  Args:
    sequence: The sequence.
    leaf_type: Its type.
    zeros: The leaves of the first total.
    add: Maps an element's number, a total and the element to the next total.
    result_type: The type of a total.
    draws: Whether it draws random numbers.
  """
  source, source_type, call, also_draws = _unwrap(sequence, leaf_type)
  counts = [tf.zeros([], tf.int32)] if draws or also_draws else []

  def step(state, components):
    counted, total = state[: len(counts)], state[len(counts) :]
    number = counted[0] if counts else None
    element = call(number, _element(components, source_type.element))
    added = add(number, expressions.pack(iter(total), result_type), element)
    return (*(count + 1 for count in counted), *expressions.flatten(added))

  client = as_rows(source)
  if isinstance(client, batching.PackedClients):
    totals = sequences.reduce(
        sequences.Rows(client),
        [*counts, *zeros],
        lambda state, components: list(step(state, components)),
        shapes=[
            *(count.shape for count in counts),
            *(spec.shape for spec in values.tensor_specs(result_type)),
        ],
        num_parallel=plans.num_cores(),
    )
  else:
    dataset = _dataset(source, source_type)
    totals = dataset.reduce((*counts, *zeros), _plain(step))
  return expressions.pack(iter(totals[len(counts) :]), result_type)

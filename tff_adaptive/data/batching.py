# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Turns clients' examples into the batches of a round.

A `BatchPlan` assigns examples to batches, an `Augmentation` changes them before
training, and `PackedClients` are the batches of several clients.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import attrs
import numpy as np

from tff_adaptive.data import feature_arrays
from tff_adaptive.data import specs


@attrs.frozen
class BatchPlan:
  """The rule by which a client's examples become the batches of a round.

  The order is that of `dataset.take(max_examples)`, followed in each epoch by a
  full `shuffle` and `batch(batch_size)`: batches do not span epochs, and the
  short last batch of every epoch is kept.

  Attributes:
    batch_size: Examples per batch, a positive integer.
    num_epochs: Passes over the examples in a round, a positive integer.
      Defaults to 1, the protocol of the Delta-SGD and FedOpt papers.
    max_examples: The maximum number of examples of a client, the first ones in
      stored order; None (the default) for all. The others are never used.
    shuffle: Whether every epoch uses the examples in a new random order (the
      default) or in stored order.
    drop_remainder: Whether to drop the short last batch of an epoch. Defaults
      to False: dropping loses clients smaller than a batch entirely.

  Raises:
    TypeError: If a number is not an integer, or a flag not a bool.
    ValueError: If a number is not positive.

  Example:

    >>> plan = BatchPlan(batch_size=20, num_epochs=2)
    >>> batch_sizes(plan, num_examples=45)
    [20, 20, 5, 20, 20, 5]
  """

  batch_size: int = attrs.field(validator=specs.positive_integer)
  num_epochs: int = attrs.field(default=1, validator=specs.positive_integer)
  max_examples: Optional[int] = attrs.field(
      default=None, validator=attrs.validators.optional(specs.positive_integer)
  )
  shuffle: bool = attrs.field(default=True, validator=specs.instance_of(bool))
  drop_remainder: bool = attrs.field(
      default=False, validator=specs.instance_of(bool)
  )


def batch_sizes(plan: BatchPlan, num_examples: int) -> list[int]:
  """Returns the sizes of the batches of a client's round.

  Args:
    plan: The rule for batches.
    num_examples: The client's number of examples; may be 0.

  Returns:
    The size of each batch, in the order of training.

  Raises:
    ValueError: If `num_examples` is negative.

  Example:

    >>> plan = BatchPlan(batch_size=2, num_epochs=2)
    >>> batch_sizes(plan, num_examples=3)
    [2, 1, 2, 1]
  """
  num_full, rest = divmod(_num_used(plan, num_examples), plan.batch_size)
  epoch = [plan.batch_size] * num_full
  if rest and not plan.drop_remainder:
    epoch.append(rest)
  return epoch * plan.num_epochs


def example_order(
    plan: BatchPlan,
    num_examples: int,
    generator: Optional[np.random.Generator] = None,
) -> np.ndarray:
  """Returns the order of a client's examples in the batches of a round.

  Args:
    plan: The rule for batches.
    num_examples: The client's number of examples; may be 0.
    generator: The random generator for shuffling, which draws one permutation
      per epoch. Needed if `plan.shuffle` is set, unused otherwise.

  Returns:
    An int64 array of positions in [0, num_examples): the first
    `batch_sizes(plan, num_examples)[0]` are the first batch, and so on.

  Raises:
    ValueError: If `num_examples` is negative, or a generator is needed but
      missing.

  Example:

    >>> plan = BatchPlan(batch_size=2, num_epochs=2, shuffle=False)
    >>> example_order(plan, num_examples=3).tolist()
    [0, 1, 2, 0, 1, 2]
  """
  if plan.shuffle and generator is None:
    raise ValueError('A plan with `shuffle=True` needs a `generator`.')
  used = _num_used(plan, num_examples)
  end = used - used % plan.batch_size if plan.drop_remainder else used
  if generator is not None and plan.shuffle:
    epochs = [generator.permutation(used)[:end] for _ in range(plan.num_epochs)]
  else:
    epochs = [np.arange(end)] * plan.num_epochs
  order = epochs[0] if len(epochs) == 1 else np.concatenate(epochs)
  return order.astype(np.int64, copy=False)


def _num_used(plan: BatchPlan, num_examples: int) -> int:
  if num_examples < 0:
    raise ValueError(
        f'`num_examples` must not be negative, found {num_examples}.'
    )
  if plan.max_examples is None:
    return num_examples
  return min(num_examples, plan.max_examples)


class PackedClients(NamedTuple):
  """The data of clients, from `Cohort.pack` to the graph of a round.

  NumPy arrays become tensors on the way; the layout stays the same.

  Attributes:
    rows: Arrays of rows, [num_rows, ...]: one for each feature by name, or one
      for each component of an element.
    order: The row numbers of all elements one after the other, int64 of shape
      [num_picks]; `()` if elements are not batches but single rows.
    begins: The start of each element in `order`, int64 of shape
      [num_elements, 1]; `()` like `order`.
    sizes: The number of rows of each element, in the same way.
    starts: The index of each client's first element, int32 of shape
      [num_clients]; a scalar for a single client.
    ends: The index after each client's last element, in the same way.
  """

  rows: Any
  order: Any
  begins: Any
  sizes: Any
  starts: Any
  ends: Any


def of_batches(
    rows: Any, order: Any, sizes: Sequence[int], counts: Sequence[int]
) -> PackedClients:
  """Returns clients whose elements are batches.

  Args:
    rows: See `PackedClients`.
    order: See `PackedClients`.
    sizes: The number of rows of each batch.
    counts: The number of batches of each client.
  """
  bounds = offsets(sizes)
  return PackedClients(
      rows,
      order,
      bounds[:-1, np.newaxis],
      np.diff(bounds)[:, np.newaxis],
      *_bounds_of_clients(counts),
  )


def of_rows(rows: Any, counts: Sequence[int]) -> PackedClients:
  """Returns clients whose elements are single rows.

  Args:
    rows: See `PackedClients`; in the order of the clients.
    counts: The number of elements of each client.
  """
  return PackedClients(rows, (), (), (), *_bounds_of_clients(counts))


def _bounds_of_clients(counts: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
  bounds = offsets(counts).astype(np.int32)
  return bounds[:-1], bounds[1:]


def examples_of(packed: PackedClients, client: int) -> feature_arrays.Examples:
  """Returns the examples in all batches of one client.

  Args:
    packed: The batches of several clients, with rows by feature name.
    client: The index of the client.

  Returns:
    Feature names and new arrays, with the batches one after the other.
  """
  batches = slice(packed.starts[client], packed.ends[client])
  first = packed.begins[batches][:1].sum()
  last = first + packed.sizes[batches].sum()
  return feature_arrays.take(packed.rows, packed.order[first:last])


def offsets(lengths: Sequence[int]) -> np.ndarray:
  """Returns the start of each part, and the end of the last one."""
  return np.cumsum([0, *lengths], dtype=np.int64)


AugmentFn = Callable[
    [feature_arrays.Examples, np.random.Generator], Mapping[str, np.ndarray]
]
EvaluationFn = Callable[[feature_arrays.Examples], Mapping[str, np.ndarray]]


@attrs.frozen(eq=False)
class Augmentation:
  """A random change of a client's examples before training.

  It runs in NumPy, outside of the model, so that every runtime sees the same
  examples. A cohort passes it a random stream for each client and round, a
  function of the seed, the round and the client id.

  Attributes:
    fn: Maps features, arrays of shape [n, ...], and a random generator to the
      model's features. Each example occurs once per epoch, in the order of
      training.
    element_spec: Names and `tf.TensorSpec`s of one example of the result.
    evaluation_fn: The deterministic counterpart of `fn` for examples that are
      evaluated and not trained on. None (the default) if training examples
      cannot be evaluated.

  Example:

    >>> def flip(examples, generator):
    ...   is_flipped = generator.random(len(examples['x'])) < 0.5
    ...   x = np.where(
    ...       is_flipped[:, None], examples['x'][:, ::-1], examples['x'])
    ...   return {'x': x}
    >>> flips = Augmentation(flip, {'x': tf.TensorSpec([2], tf.float32)})
    >>> flips({'x': np.ones([3, 2], np.float32)}, np.random.default_rng())['x']
    array([[1., 1.],
           [1., 1.],
           [1., 1.]], dtype=float32)
  """

  fn: AugmentFn = attrs.field(validator=specs.instance_of(Callable))
  element_spec: feature_arrays.ElementSpec = attrs.field(
      converter=collections.OrderedDict
  )
  evaluation_fn: Optional[EvaluationFn] = attrs.field(
      default=None,
      validator=attrs.validators.optional(specs.instance_of(Callable)),
  )

  def __call__(
      self,
      examples: feature_arrays.Examples,
      generator: np.random.Generator,
      client_id: str = '',
  ) -> feature_arrays.Examples:
    """Returns the augmented examples.

    Args:
      examples: Feature names and arrays of shape [n, ...].
      generator: The source of random numbers.
      client_id: The client, for error messages.

    Returns:
      The same number of examples, with the features of `element_spec`.

    Raises:
      ValueError: If names, types, shapes or the number of examples are not as
        declared.
    """
    return self._check(
        examples,
        self.fn(collections.OrderedDict(examples), generator),
        f'Augmented client {client_id!r}',
    )

  def for_evaluation(
      self, examples: feature_arrays.Examples
  ) -> feature_arrays.Examples:
    """Returns the examples in their form for evaluation.

    Args:
      examples: Feature names and arrays of shape [n, ...], as clients hold
        them.

    Returns:
      The same number of examples, with the features of `element_spec`.

    Raises:
      ValueError: If there is no `evaluation_fn`, or names, types, shapes or the
        number of examples are not as declared.
    """
    if self.evaluation_fn is None:
      raise ValueError(
          'The augmentation has no `evaluation_fn`, so its randomly changed '
          'examples cannot be evaluated; add one, or build the task without '
          'augmentation.'
      )
    return self._check(
        examples,
        self.evaluation_fn(collections.OrderedDict(examples)),
        'The result of `evaluation_fn`',
    )

  def _check(
      self,
      examples: feature_arrays.Examples,
      augmented: Mapping[str, np.ndarray],
      owner: str,
  ) -> feature_arrays.Examples:
    """Returns the augmented examples if they are as declared, or raises."""
    changed = feature_arrays.as_examples(augmented, owner)
    before = feature_arrays.num_rows(examples)
    after = feature_arrays.num_rows(changed)
    if before != after:
      raise ValueError(
          'An augmentation must return as many examples as it was given, '
          f'{before}, but {owner} has {after}.'
      )
    return feature_arrays.check_match(changed, self.element_spec, owner)

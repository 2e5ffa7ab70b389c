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
"""How a client walks over its examples in a round, as index arrays."""

from typing import Optional

import attrs
import numpy as np

from tff_adaptive.data import specs


def positive_integer(instance, attribute, value) -> None:
  """An attrs validator: a positive integer, and nothing else.

  Args:
    instance: The object under construction; unused.
    attribute: The attribute, whose name an error gives.
    value: The value to check.

  Raises:
    TypeError: If the value is not an integer.
    ValueError: If it is not positive.
  """
  del instance  # Unused.
  specs.check_positive(attribute.name, value)


def _boolean(instance, attribute, value):
  del instance  # Unused.
  if not isinstance(value, bool):
    raise TypeError(
        f'`{attribute.name}` must be True or False, found {value!r}.'
    )


@attrs.frozen
class BatchPlan:
  """How a client's examples become the batches of a round.

  The order is that of `dataset.take(max_examples)`, then for every epoch
  `shuffle(everything)` and `batch(batch_size)`, one epoch after the other:
  batches lie within an epoch, and the short last batch of every epoch is kept.

  Attributes:
    batch_size: Examples in a batch, a positive integer.
    num_epochs: Passes over the examples in a round, a positive integer.
      Defaults to 1, the protocol of the Delta-SGD and FedOpt papers.
    max_examples: How many examples of a client count, the first ones in stored
      order; None (the default) for all. The others are never seen.
    shuffle: Whether every epoch takes the examples in a new random order
      (the default) or in stored order.
    drop_remainder: Whether to leave out the short last batch of an epoch.
      Defaults to False: dropping loses all of a client smaller than a batch.

  Raises:
    TypeError: If a number is not an integer, or a switch not a bool.
    ValueError: If a number is not positive.

  Example:

    >>> num_steps(BatchPlan(batch_size=20, num_epochs=2), num_examples=45)
    6
  """

  batch_size: int = attrs.field(validator=positive_integer)
  num_epochs: int = attrs.field(default=1, validator=positive_integer)
  max_examples: Optional[int] = attrs.field(
      default=None, validator=attrs.validators.optional(positive_integer)
  )
  shuffle: bool = attrs.field(default=True, validator=_boolean)
  drop_remainder: bool = attrs.field(default=False, validator=_boolean)


def num_steps(plan: BatchPlan, num_examples: int) -> int:
  """Returns how many batches a client of this size makes in a round.

  Args:
    plan: How examples become batches.
    num_examples: Examples that the client holds; may be 0.

  Returns:
    The number of batches, all epochs together.

  Raises:
    ValueError: If `num_examples` is negative.

  Example:

    >>> num_steps(BatchPlan(batch_size=64), num_examples=500)
    8
  """
  return len(batch_sizes(plan, num_examples))


def batch_sizes(plan: BatchPlan, num_examples: int) -> list[int]:
  """Returns how many examples are in which batch of a client's round.

  Args:
    plan: How examples become batches.
    num_examples: Examples that the client holds; may be 0.

  Returns:
    The size of every batch, in the order of training.

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
  """Returns the examples of all batches of a client's round, one by one.

  Args:
    plan: How examples become batches.
    num_examples: Examples that the client holds; may be 0.
    generator: The stream that shuffles, from which one permutation an epoch is
      drawn. Needed where `plan.shuffle` is set, unused otherwise.

  Returns:
    An int64 array of positions in [0, num_examples), of which the first
    `batch_sizes(plan, num_examples)[0]` are the first batch and so on.

  Raises:
    ValueError: If `num_examples` is negative, or a generator is needed and not
      given.

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


def batch_indices(
    plan: BatchPlan,
    num_examples: int,
    generator: Optional[np.random.Generator] = None,
) -> list[np.ndarray]:
  """Returns which examples are in which batch of a client's round.

  Args:
    plan: How examples become batches.
    num_examples: Examples that the client holds; may be 0.
    generator: As for `example_order`.

  Returns:
    An int64 array of positions in [0, num_examples) for every batch, in the
    order of training; an empty list for an empty client.

  Raises:
    ValueError: If `num_examples` is negative, or a generator is needed and not
      given.

  Example:

    >>> plan = BatchPlan(batch_size=2, num_epochs=2, shuffle=False)
    >>> [batch.tolist() for batch in batch_indices(plan, num_examples=3)]
    [[0, 1], [2], [0, 1], [2]]
  """
  order = example_order(plan, num_examples, generator)
  ends = np.cumsum(batch_sizes(plan, num_examples), dtype=np.int64)
  return np.split(order, ends)[:-1]


def _num_used(plan: BatchPlan, num_examples: int) -> int:
  if num_examples < 0:
    raise ValueError(
        f'`num_examples` must not be negative, found {num_examples}.'
    )
  if plan.max_examples is None:
    return num_examples
  return min(num_examples, plan.max_examples)

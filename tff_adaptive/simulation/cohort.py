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
"""The clients of one round, as the argument that TFF's computations take."""

from collections.abc import Sequence
from typing import Any, Union

import attrs
import numpy as np
import tensorflow as tf

from tff_adaptive.simulation import batching
from tff_adaptive.simulation import client_data
from tff_adaptive.simulation import feature_arrays
from tff_adaptive.simulation import random_streams

Batch = feature_arrays.Examples


@attrs.frozen(eq=False)
class Cohort(Sequence):
  """The clients of a round: a sequence whose items are datasets of batches.

  TFF's native runtime takes `list(cohort)` where clients' sequences are
  expected; it refuses any other sequence, and lists of batches too if one
  before the last is short, as in every epoch but the last one. A runtime that
  batches by index takes `index_plan` and the arrays of `source` instead. All
  are the same batches in the same order: shuffling depends on the seed, the
  round and the client's id, and neither on the other clients nor on the place
  in the cohort. A client that occurs twice brings the same batches twice.

  Attributes:
    source: The data of all clients.
    client_ids: The clients of this round, in order.
    round_num: The number of the round, a non-negative integer.
    seed: The seed of the experiment, a non-negative integer.
    plan: How examples become batches.

  Raises:
    KeyError: If the source does not know a client.
    TypeError: If `seed` or `round_num` is not an integer.
    ValueError: If `seed` or `round_num` is negative.

  Example:

    >>> source = client_data.PackedClientArrays.from_clients(
    ...     {'a': {'x': np.array([1.0, 2.0, 3.0])}})
    >>> plan = batching.BatchPlan(batch_size=2, shuffle=False)
    >>> cohort = Cohort(source, ['a'], round_num=0, seed=1, plan=plan)
    >>> [batch['x'].numpy().tolist() for batch in cohort[0]]
    [[1.0, 2.0], [3.0]]
    >>> [batch['x'].tolist() for batch in cohort.batches(0)]
    [[1.0, 2.0], [3.0]]
  """

  source: client_data.ClientArrays = attrs.field(
      validator=attrs.validators.instance_of(client_data.ClientArrays)
  )
  client_ids: tuple[str, ...] = attrs.field(converter=tuple)
  round_num: int
  seed: int = attrs.field(converter=random_streams.check_seed)
  plan: batching.BatchPlan = attrs.field(
      validator=attrs.validators.instance_of(batching.BatchPlan)
  )

  def __attrs_post_init__(self):
    if isinstance(self.round_num, bool) or not isinstance(
        self.round_num, (int, np.integer)
    ):
      raise TypeError(
          f'`round_num` must be an integer, found {self.round_num!r}.'
      )
    if self.round_num < 0:
      raise ValueError(
          f'`round_num` must not be negative, found {self.round_num}.'
      )
    for client_id in self.client_ids:
      self.source.position(client_id)

  def __len__(self) -> int:
    return len(self.client_ids)

  def __getitem__(
      self, index: Union[int, slice]
  ) -> Union[tf.data.Dataset, 'Cohort']:
    """Returns a client's batches, or for a slice a cohort of its clients."""
    if isinstance(index, slice):
      ids: Any = self.client_ids[index]
      return attrs.evolve(self, client_ids=ids)
    # Batching by tf.data needs no traced function, so no memory is left behind.
    dataset = None
    for positions in self._epochs(index):
      examples = self.source.take(self.client_ids[index], positions)
      epoch = tf.data.Dataset.from_tensor_slices(examples)
      epoch = epoch.batch(self.plan.batch_size)
      dataset = epoch if dataset is None else dataset.concatenate(epoch)
    return dataset

  def _epochs(self, index: int) -> list[np.ndarray]:
    """Returns the positions of every epoch, its batches joined together."""
    batches = self.index_plan(index)
    nothing = np.zeros([0], np.int64)
    steps = len(batches) // self.plan.num_epochs
    return [
        np.concatenate([nothing] + batches[i * steps : (i + 1) * steps])
        for i in range(self.plan.num_epochs if batches else 1)
    ]

  def num_examples(self, index: int) -> int:
    """Returns how many examples the client at a place holds, used or not."""
    return self.source.num_examples(self.client_ids[index])

  def num_steps(self, index: int) -> int:
    """Returns how many batches the client at a place has in this round."""
    return batching.num_steps(self.plan, self.num_examples(index))

  def arrays(self, index: int) -> feature_arrays.Examples:
    """Returns all examples of the client at a place, in stored order."""
    return self.source.examples(self.client_ids[index])

  def index_plan(self, index: int) -> list[np.ndarray]:
    """Returns which of `arrays(index)` are in which batch.

    Args:
      index: The place of the client in the cohort.

    Returns:
      An int64 array of positions for every batch, in the order of training.
    """
    client_id = self.client_ids[index]
    generator = None
    if self.plan.shuffle:
      generator = random_streams.stream(
          self.seed, random_streams.SHUFFLING, self.round_num, client_id
      )
    return batching.batch_indices(
        self.plan, self.source.num_examples(client_id), generator
    )

  def batches(self, index: int) -> list[Batch]:
    """Returns the batches of the client at a place, as arrays.

    Args:
      index: The place of the client in the cohort.

    Returns:
      For every batch its feature names and arrays of shape
      [batch_size or less, ...]; an empty list for an empty client.
    """
    client_id = self.client_ids[index]
    return [
        self.source.take(client_id, positions)
        for positions in self.index_plan(index)
    ]

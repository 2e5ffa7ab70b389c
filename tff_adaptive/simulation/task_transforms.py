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
"""Tasks made of other tasks: with fewer clients, or with other test data."""

from typing import Optional

import attrs

from tff_adaptive.data import client_data
from tff_adaptive.data import transforms as transforms
from tff_adaptive.simulation import task as task_lib


def hold_out_clients(
    task: task_lib.Task, num_clients: int, seed: int
) -> task_lib.Task:
  """Keeps some clients for testing only.

  Args:
    task: The task.
    num_clients: How many clients, drawn at random, are not trained on.
    seed: The seed of the draw.

  Returns:
    The task with the remaining clients to train on. The training examples of
    the others, which nobody trains on any more, are its test data, by client
    and centrally.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If no client would remain to train on, fewer than a round
      takes, the seed is negative, or the task augments its training examples
      and does not say what they are without chance.

  Example:

    >>> held_out = hold_out_clients(digits, 20, seed=0)
    >>> len(held_out.train_data.client_ids), len(held_out.test_data.client_ids)
    (30, 20)

  References:
    Zhou et al., FedCAda, https://arxiv.org/abs/2405.11811, hold 20 clients of
    Shakespeare out in this way.
  """
  clients = task.train_data
  total = len(clients.client_ids)
  if num_clients >= total:
    raise ValueError(
        f'At most {total - 1} of {total} clients can be held out, so that one '
        f'remains to train on; found {num_clients}.'
    )
  held_out = transforms.sample_client_ids(clients.client_ids, num_clients, seed)
  kept = set(clients.client_ids) - set(held_out)
  train_data = transforms.select_clients(
      clients, [name for name in clients.client_ids if name in kept]
  )
  return _with_held_out(
      task, train_data, transforms.select_clients(clients, held_out)
  )


def take_clients(
    task: task_lib.Task, num_clients: int, seed: int
) -> task_lib.Task:
  """Trains on some clients only.

  Args:
    task: The task.
    num_clients: How many clients, drawn at random.
    seed: The seed of the draw.

  Returns:
    The task with these clients. Of the clients to test on, those of the same
    ids remain, or all if there is none; the central test data stay.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If there are not as many clients, a round takes more, or the
      seed is negative.

  Example:

    >>> len(take_clients(digits, 10, seed=0).train_data.client_ids)
    10
  """
  ids = task.train_data.client_ids
  chosen = transforms.sample_client_ids(ids, num_clients, seed)
  return attrs.evolve(
      task,
      train_data=transforms.select_clients(task.train_data, chosen),
      test_data=_matching(task.test_data, set(chosen)),
  )


def hold_out_examples(
    task: task_lib.Task, test_fraction: float, seed: int
) -> task_lib.Task:
  """Keeps a part of every client's training examples for testing.

  Args:
    task: The task.
    test_fraction: Which part, in (0, 1); the number of examples is rounded
      down.
    seed: The seed of the split.

  Returns:
    The task with the remaining examples to train on. The others are its test
    data, by client and centrally.

  Raises:
    ValueError: If `test_fraction` is out of range, no client has enough
      examples, or the task augments its training examples and does not say
      what they are without chance.

  Example:

    >>> held_out = hold_out_examples(digits, 0.25, seed=0)
    >>> len(held_out.train_data.client_ids)
    50

  References:
    Zhou et al., FedCAda, https://arxiv.org/abs/2405.11811, evaluate on a
    quarter of every client's examples.
  """
  train_data, test_data = transforms.split_examples(
      task.train_data, test_fraction, seed
  )
  return _with_held_out(task, train_data, test_data)


def _with_held_out(
    task: task_lib.Task,
    train_data: client_data.ClientArrays,
    held_out: client_data.ClientArrays,
) -> task_lib.Task:
  """Returns the task with a part of its training data as test data."""
  packed = transforms.materialize(held_out)
  examples = transforms.concatenate(packed)
  if task.augmentation is not None:
    if task.augmentation.evaluation_fn is None:
      raise ValueError(
          'What is held out becomes test data, but task '
          f'{task.name!r} augments its training data at random; build the task '
          'without augmentation, or give this an `evaluation_fn`.'
      )
    examples = task.augmentation.for_evaluation(examples)
  return attrs.evolve(
      task,
      train_data=train_data,
      test_data=client_data.PackedClientArrays(
          examples, packed.offsets, packed.client_ids
      ),
      central_test=examples,
  )


def _matching(
    clients: Optional[client_data.ClientArrays], ids: set[str]
) -> Optional[client_data.ClientArrays]:
  """Returns the clients with these ids, or all if none has."""
  if clients is None:
    return None
  matching = [name for name in clients.client_ids if name in ids]
  return transforms.select_clients(clients, matching) if matching else clients

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Samples the clients of each round, and fixed subsets of examples."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import random_streams
from tff_adaptive.data import specs

# Clients with this many times as many examples are sampled from.
_POOL_FACTOR = 10


def build_client_sampling(
    client_ids: Sequence[str],
    clients_per_round: int,
    seed: int,
    *,
    replace: bool = False,
) -> Callable[[int], tuple[str, ...]]:
  """Builds the uniform sampling of each round's cohort.

  The cohort is a pure function of the seed and the round number, whichever
  rounds were sampled before. A resumed run therefore gets the same cohorts as
  an uninterrupted one, and two algorithms get the same clients.

  Args:
    client_ids: All clients, in a fixed order; cohorts depend on the order.
    clients_per_round: Clients in a cohort, a positive integer, at most the
      number of clients unless `replace` is set.
    seed: The seed of the experiment, a non-negative integer.
    replace: Whether a client may be in a cohort more than once. Defaults to
      False, as in all papers that this library follows.

  Returns:
    A function from a round number (a non-negative integer) to the ids of that
    round's cohort, in random order.

  Raises:
    TypeError: If `clients_per_round` or `seed` is not an integer.
    ValueError: If there are no clients, an id occurs twice, `clients_per_round`
      is not positive, or is larger than the number of clients while `replace`
      is False; from the returned function, if the round number is negative.

  Example:

    >>> cohort_fn = build_client_sampling(['a', 'b', 'c'], 2, seed=1)
    >>> cohort_fn(7) == cohort_fn(7)
    True
    >>> len(cohort_fn(0))
    2

  References:
    `tff.simulation.build_uniform_sampling_fn` has the same interface; it mixes
    its seed with the round number only, ours also with the use of the numbers.
  """
  random_streams.check_seed(seed)
  ids = _checked_ids(client_ids, clients_per_round, replace)

  def sample(round_num: int) -> tuple[str, ...]:
    generator = _start_stream(seed, round_num)
    chosen = generator.choice(len(ids), clients_per_round, replace=replace)
    return tuple(ids[i] for i in chosen)

  return sample


def build_cohort_fn(
    source: client_data.ClientArrays,
    clients_per_round: int,
    plan: batching.BatchPlan,
    *,
    seed: int,
) -> Callable[[int], cohort.Cohort]:
  """Builds the function from a round number to a cohort of sampled clients.

  Args:
    source: The data of all clients.
    clients_per_round: See `build_client_sampling`.
    plan: The rule for the clients' batches.
    seed: The seed of sampling and batches, a non-negative integer.

  Returns:
    A pure function from a round number (a non-negative integer) to the `Cohort`
    of that round, for `tff_adaptive.simulation.run_training`.

  Raises:
    TypeError: If `clients_per_round` or `seed` is not an integer.
    ValueError: See `build_client_sampling`.

  Example:

    >>> source = client_data.PackedClientArrays.from_clients(
    ...     {name: {'x': np.arange(3.0)} for name in 'abcd'})
    >>> cohort_fn = build_cohort_fn(source, 2, batching.BatchPlan(2), seed=1)
    >>> len(cohort_fn(7)), cohort_fn(7).client_ids == cohort_fn(7).client_ids
    (2, True)
  """
  sample = build_client_sampling(source.client_ids, clients_per_round, seed)
  return lambda round_num: cohort.Cohort(
      source, sample(round_num), round_num, seed, plan
  )


def build_poisson_client_sampling(
    client_ids: Sequence[str], clients_per_round: int, seed: int
) -> Callable[[int], tuple[str, ...]]:
  """Builds the Poisson sampling of each round's cohort.

  Each client participates independently with probability clients_per_round /
  number of clients: `clients_per_round` is the mean size of a cohort, which is
  binomial and may be 0. In a round without clients, a process of
  `tff_adaptive.algorithms` leaves its model unchanged, unless differential
  privacy adds noise to it.

  As with `build_client_sampling`, the cohort is a pure function of the seed and
  the round number.

  Args:
    client_ids: All clients, in a fixed order; cohorts depend on the order.
    clients_per_round: The mean number of clients in a cohort, a positive
      integer, at most the number of clients.
    seed: The seed of the experiment, a non-negative integer.

  Returns:
    A function from a round number (a non-negative integer) to the ids of that
    round's cohort, in random order.

  Raises:
    TypeError: If `clients_per_round` or `seed` is not an integer.
    ValueError: If there are no clients, an id occurs twice, or
      `clients_per_round` is not positive, or larger than the number of clients;
      from the returned function, if the round number is negative.

  Example:

    >>> cohort_fn = build_poisson_client_sampling(['a', 'b', 'c'], 2, seed=1)
    >>> cohort_fn(7) == cohort_fn(7)
    True

  References:
    McMahan et al., Learning Differentially Private Recurrent Language Models,
    ICLR 2018, https://arxiv.org/abs/1710.06963, Algorithm 1.
  """
  random_streams.check_seed(seed)
  ids = _checked_ids(client_ids, clients_per_round, replace=False)
  probability = clients_per_round / len(ids)

  def sample(round_num: int) -> tuple[str, ...]:
    generator = _start_stream(seed, round_num)
    chosen = np.flatnonzero(generator.random(len(ids)) < probability)
    return tuple(ids[i] for i in generator.permutation(chosen))

  return sample


def _start_stream(seed: int, round_num: int) -> np.random.Generator:
  """Returns the random stream of a round's sampling."""
  specs.check_not_negative('round_num', round_num)
  return random_streams.stream(seed, random_streams.SAMPLING, round_num)


def _checked_ids(
    client_ids: Sequence[str], clients_per_round: int, replace: bool
) -> tuple[str, ...]:
  """Returns the client ids after checking them and the cohort's size."""
  ids = tuple(client_ids)
  if not ids:
    raise ValueError('`client_ids` must name at least one client, found none.')
  if len(set(ids)) != len(ids):
    raise ValueError('`client_ids` must not name a client twice.')
  specs.check_positive('clients_per_round', clients_per_round)
  if clients_per_round > len(ids) and not replace:
    raise ValueError(
        f'`clients_per_round` must be at most {len(ids)}, the number of '
        f'clients, found {clients_per_round}.'
    )
  return ids


def sample_examples(
    examples: Mapping[str, np.ndarray], num_examples: int, seed: int
) -> feature_arrays.Examples:
  """Samples examples of a central data set, without replacement.

  Args:
    examples: Feature names and arrays of shape [total, ...].
    num_examples: The number of examples, a positive integer.
    seed: The seed of the sample, a non-negative integer.

  Returns:
    New arrays of shape [num_examples, ...], in stored order; `examples`
    unchanged if there are not more.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If `num_examples` is not positive, the seed is negative, or the
      arrays differ in length.

  Example:

    >>> sample_examples({'x': np.arange(100)}, 3, seed=0)['x'].shape
    (3,)
  """
  specs.check_positive('num_examples', num_examples)
  seed = random_streams.check_seed(seed)
  features = feature_arrays.as_examples(examples, 'The examples')
  total = feature_arrays.num_rows(features)
  if num_examples >= total:
    return features
  stream = random_streams.stream(seed, random_streams.EXAMPLE_SUBSET)
  rows = np.sort(stream.choice(total, num_examples, replace=False))
  return feature_arrays.take(features, rows)


def sample_client_examples(
    source: client_data.ClientArrays, num_examples: int, seed: int
) -> feature_arrays.Examples:
  """Samples examples from as few clients as possible.

  Clients are used in random order, each with all its examples, until there are
  enough; of the last client only the first examples are used. Other clients are
  not read, which matters for clients in files.

  Args:
    source: The clients.
    num_examples: The number of examples, a positive integer.
    seed: The seed of the sample, a non-negative integer.

  Returns:
    Feature names and arrays of shape [num_examples, ...], or [total, ...] if
    there are fewer examples.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If `num_examples` is not positive, or the seed is negative.

  Example:

    >>> seen = sample_client_examples(digits.train_data, 100, seed=0)
    >>> seen['y'].shape
    (100,)
  """
  specs.check_positive('num_examples', num_examples)
  order = random_streams.stream(
      seed, random_streams.EXAMPLE_SUBSET
  ).permutation(len(source.client_ids))
  parts, missing = [], num_examples
  for place in order:
    examples = source.examples(source.client_ids[place])
    parts.append(feature_arrays.take(examples, slice(missing)))
    missing -= feature_arrays.num_rows(parts[-1])
    if not missing:
      break
  return feature_arrays.concatenate(parts, source.element_spec)


def sample_examples_evenly(
    source: client_data.ClientArrays,
    num_examples: int,
    seed: int,
    *keys: random_streams.Key,
) -> feature_arrays.Examples:
  """Samples examples from many clients without reading all of them.

  Clients are sampled until they have ten times as many examples as wanted, and
  examples are sampled from these, all without replacement. Each example has
  nearly the same probability if no client has more examples than wanted; those
  of larger clients have a smaller one. If there are fewer examples, all clients
  are used.

  Args:
    source: The clients; only clients with a sampled example are read.
    num_examples: The number of examples, a positive integer; all of them if
      there are fewer.
    seed: The seed of the sample, a non-negative integer.
    *keys: Integers and strings that distinguish samples with the same seed,
      such as a round number.

  Returns:
    Feature names and arrays of shape [num_examples, ...], client by client.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If `num_examples` is not positive, or the seed negative.

  Example:

    >>> seen = sample_examples_evenly(digits.train_data, 100, 0, 'test')
    >>> seen['y'].shape
    (100,)
  """
  specs.check_positive('num_examples', num_examples)
  stream = random_streams.stream(seed, random_streams.DATA_SPLIT, *keys)
  pool, ends = [], [0]
  for place in stream.permutation(len(source.client_ids)):
    pool.append(source.client_ids[place])
    ends.append(ends[-1] + source.num_examples(pool[-1]))
    if ends[-1] >= _POOL_FACTOR * num_examples:
      break
  size = min(num_examples, ends[-1])
  drawn = np.sort(stream.choice(ends[-1], size, replace=False, shuffle=False))
  bounds = np.searchsorted(drawn, ends)
  parts = [
      source.take(client_id, drawn[first:last] - start)
      for client_id, start, first, last in zip(
          pool, ends, bounds[:-1], bounds[1:]
      )
      if last > first
  ] or [feature_arrays.empty(source.element_spec)]
  return feature_arrays.concatenate(parts, source.element_spec)

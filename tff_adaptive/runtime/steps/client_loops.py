# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loops over clients whose leaves are stacked, each as one graph."""

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from tff_adaptive.runtime import graph_calls
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.steps import expressions
from tff_adaptive.runtime.steps import local_functions
from tff_adaptive.runtime.steps import mapped_sequences


class ClientLoop:
  """A function that runs for all clients, or adds them up."""

  def __init__(
      self,
      function: local_functions.Function,
      columns: Sequence[int],
      results: Sequence[tf.TensorSpec],
      *,
      num_added: Optional[int] = None,
      num_parallel: int = 1,
      cache: Optional[dataset_cache.DatasetCache] = None,
  ):
    """Initializes the loop, which is built at its first run.

    Args:
      function: The function of a client.
      columns: The places of the leaves of its argument that are stacked.
      results: The specs of the leaves of its result. Their shapes are those of
        all clients, unless these are added up.
      num_added: The number of leaves of a sum. The argument begins with them,
        and the function returns the next ones. None, the default, returns the
        clients' results, stacked.
      num_parallel: The number of clients that run at once. Defaults to 1.
      cache: The cache of datasets. None (the default) reads none.
    """
    self._function = function
    self._columns = frozenset(columns)
    self._results = results
    self._num_added = num_added
    self._num_parallel = num_parallel
    self._call = graph_calls.GraphCall(
        self.add,
        function.types,
        self._specs(),
        cache,
        # Each client reads a sequence that all have.
        are_reread=True,
    )

  def __call__(
      self,
      leaves: Sequence[Any],
      scope: expressions.Scope,
      seeds: Sequence[np.ndarray],
      key: round_keys.RoundKey,
  ) -> list[tf.Tensor]:
    """Runs the loop.

    Args:
      leaves: The leaves of the argument; columns have a first axis of clients.
      scope: The values of the names that the function reads.
      seeds: The seeds of the clients.
      key: The key of unseeded shuffles.

    Returns:
      The leaves of the results, stacked, or those of the sum.
    """
    found = self.leaves(leaves, scope)
    return self._call(found, lambda: [tf.constant(np.stack(seeds))], key=key)

  def leaves(
      self, leaves: Sequence[Any], scope: expressions.Scope
  ) -> list[Any]:
    """Returns the leaves of `add`, given those of `__call__`."""
    return self._function.leaves(leaves, scope)

  def add(self, *tensors: Any) -> list[tf.Tensor]:
    """Adds the loop to the graph being built; returns its leaves.

    Args:
      *tensors: Those of `leaves`, and the seeds of the clients, int32 of shape
        [num_clients, 2].
    """
    *leaves, seeds = tensors
    if self._num_added is None:
      return self._add_map(leaves, seeds)
    return self._add_sum(leaves, seeds)

  def _specs(self) -> list[tf.TensorSpec]:
    specs = [
        tf.TensorSpec([None, *spec.shape], spec.dtype)
        if place in self._columns
        else spec
        for place, spec in enumerate(self._function.specs)
    ]
    return [*specs, tf.TensorSpec([None, 2], tf.int32)]

  def _add_client(
      self, leaves: Sequence[Any], seeds: tf.Tensor, number: tf.Tensor
  ) -> list[tf.Tensor]:
    """Adds a client to the graph being built; returns its result."""
    picked = [
        mapped_sequences.pick(leaf, number) if place in self._columns else leaf
        for place, leaf in enumerate(leaves)
    ]
    results = self._function.add(*picked, tf.gather(seeds, number))
    for result, spec in zip(results, self._results):
      result.set_shape(spec.shape)
    return results

  def _add_map(
      self, leaves: Sequence[Any], seeds: tf.Tensor
  ) -> list[tf.Tensor]:
    return list(
        tf.map_fn(
            lambda number: tuple(self._add_client(leaves, seeds, number)),
            tf.range(tf.shape(seeds)[0]),
            fn_output_signature=tuple(self._results),
            parallel_iterations=self._num_parallel,
        )
    )

  def _add_sum(
      self, leaves: Sequence[Any], seeds: tf.Tensor
  ) -> list[tf.Tensor]:
    count = self._num_added

    def add_client(number, *total):
      given = [*total, *leaves[count:]]
      return (number + 1, *self._add_client(given, seeds, number))

    shapes = (tf.TensorShape([]), *(spec.shape for spec in self._results))
    _, *total = tf.while_loop(
        lambda number, *_: number < tf.shape(seeds)[0],
        add_client,
        (tf.zeros([], tf.int32), *leaves[:count]),
        shape_invariants=shapes,
        parallel_iterations=1,
    )
    return total

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the memory does not grow with the rounds."""

import collections
from collections.abc import Iterator
import ctypes
import functools
import gc
from typing import Any
import unittest

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import data
from tff_adaptive import runtime

_Dict = collections.OrderedDict

# Rounds before which the memory is not yet what it will stay at, and after.
_WARM_UP, _NUM_ROUNDS = 20, 60
_NUM_WIDE = 500
_NUM_JUMPS = 3
_MAX_GROWTH_KB = 30


@functools.cache
def _wide_process() -> Any:
  """Returns a small model of long rows, so that a leak is noticed."""
  keras_model = tf.keras.Sequential(
      [tf.keras.layers.Dense(1, input_shape=(_NUM_WIDE,))]
  )
  spec = _Dict(
      x=tf.TensorSpec([None, _NUM_WIDE], tf.float32),
      y=tf.TensorSpec([None, 1], tf.float32),
  )
  model = tff.learning.models.functional_model_from_keras(
      keras_model, tf.keras.losses.MeanSquaredError(), spec
  )
  return tff.learning.algorithms.build_weighted_fed_avg(
      model,
      tff.learning.optimizers.build_sgdm(1e-4),
      tff.learning.optimizers.build_sgdm(1.0),
  )


def _wide_cohorts() -> Iterator[data.Cohort]:
  """Returns other clients in each round, and another number of them."""
  generator = np.random.default_rng(0)
  source = data.PackedClientArrays.from_clients(
      {
          str(size): _Dict(
              x=np.ones([size, _NUM_WIDE], np.float32),
              y=np.ones([size, 1], np.float32),
          )
          for size in range(1, 60)
      }
  )
  plan = data.BatchPlan(16)
  for round_num in range(_WARM_UP + _NUM_ROUNDS):
    num_clients = generator.integers(1, 15)
    sizes = generator.integers(1, 60, size=num_clients)
    if round_num == 0:
      # The largest comes first: what the allocator takes for it, it keeps.
      sizes = np.full([15], 59)
    yield data.Cohort(source, map(str, sizes), round_num, 1, plan)


class _MallocInfo(ctypes.Structure):
  """The `mallinfo2` of glibc."""

  _fields_ = [
      (name, ctypes.c_size_t)
      for name in (
          'arena',
          'ordblks',
          'smblks',
          'hblks',
          'hblkhd',
          'usmblks',
          'fsmblks',
          'uordblks',
          'fordblks',
          'keepcost',
      )
  ]


def _allocated_kilobytes() -> float:
  """Returns how many kilobytes are allocated and not freed.

  Resident memory would tell of the allocator as well: in a process that has run
  other tests it rises for a long time while free memory is taken into use.
  """
  mallinfo = ctypes.CDLL(None).mallinfo2
  mallinfo.restype = _MallocInfo
  info = mallinfo()
  return (info.uordblks + info.hblkhd) / 1024


@unittest.skipUnless(
    hasattr(ctypes.CDLL(None), 'mallinfo2'), 'Needs glibc 2.33 or newer.'
)
class MemoryTest(tf.test.TestCase):

  def _check(self, form):
    process = _wide_process()
    gc.collect()
    # Existing objects need not be scanned in every round.
    gc.freeze()
    self.addCleanup(gc.unfreeze)
    allocated = []
    with compiled_testing.installed():
      state = process.initialize()
      for cohort in _wide_cohorts():
        state = process.next(state, form(cohort)).state
        gc.collect()
        allocated.append(_allocated_kilobytes())
    # Now and then an allocator of TensorFlow takes some MB at once.
    growths = sorted(np.diff(allocated[_WARM_UP:]))[:-_NUM_JUMPS]
    # A function that is built again, or the rows of the seven clients of a
    # round if they stayed, would be more than 300 KB a round. TensorFlow itself
    # loses some 100 bytes of every batch that is read of a dataset, of which
    # there are twenty here.
    self.assertLess(np.mean(growths), _MAX_GROWTH_KB)

  @pytest.mark.slow
  def test_uneven_clients_leave_no_more_than_even_ones(self):
    even, uneven = (
        self._growth_per_round([12] * 20),
        self._growth_per_round([2] * 10 + [22] * 10),
    )
    # A resource for each tensor of the sum would be a KB or more.
    self.assertLess(uneven - even, 3.0)

  def _growth_per_round(self, sizes):
    """Returns the median KB that ten rounds of such clients leave, by 10."""
    source = data.PackedClientArrays.from_clients(
        {
            str(place): _Dict(
                x=np.ones([size, _NUM_WIDE], np.float32),
                y=np.ones([size, 1], np.float32),
            )
            for place, size in enumerate(sizes)
        }
    )
    process, allocated = _wide_process(), []
    with runtime.CompiledContext(strict=True, num_parallel_clients=2):
      state = process.initialize()
      for round_num in range(130):
        cohort = data.Cohort(
            source, source.client_ids, round_num, 1, data.BatchPlan(4)
        )
        state = process.next(state, cohort).state
        if round_num % 10 == 9:
          gc.collect()
          allocated.append(_allocated_kilobytes())
    return np.median(np.diff(allocated[3:])) / 10

  @pytest.mark.slow
  def test_does_not_grow_with_cohorts(self):
    self._check(lambda cohort: cohort)

  @pytest.mark.slow
  def test_does_not_grow_with_batches(self):
    self._check(lambda cohort: [cohort.batches(i) for i in range(len(cohort))])

  @pytest.mark.slow
  def test_does_not_grow_with_new_datasets(self):
    self._check(list)

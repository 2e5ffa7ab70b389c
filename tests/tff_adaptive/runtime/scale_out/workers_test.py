# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a worker, in this process."""

from unittest import mock

from absl.testing import absltest
import numpy as np
import ray
import tensorflow as tf

from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.runtime import equality_testing
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import dataset_cache
from tff_adaptive.runtime import plans
from tff_adaptive.runtime.scale_out import messages
from tff_adaptive.runtime.scale_out import workers


class CacheTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    # No references, but the objects themselves.
    self.enter_context(mock.patch.object(ray, 'get', lambda value: value))
    # TensorFlow has started here.
    self.enter_context(
        mock.patch.object(tf.config, 'list_physical_devices', return_value=[])
    )

  def test_keeps_no_more_than_it_may(self):
    process = compiled_testing.process()
    cohort = equality_testing.cohort()
    num_bytes = sum(array.nbytes for array in cohort.source.values.values())
    form = computations.get_round_form(process.next)
    spec = workers.build_spec(form, plans.choose(plans.LOOP, 'CPU:0'))
    chunk = messages.Chunk(
        start=0,
        clients=messages.from_cohort(cohort, source_key=0),
        num_clients=len(cohort),
        seeds=np.zeros([0, 2], np.int32),
        load=1.0,
    )
    with compiled_testing.installed():
      weights = process.get_model_weights(process.initialize())
    order = workers.Order(
        round_key=0,
        rounds={0: spec},
        sources={0: cohort.source},
        broadcast=tf.nest.flatten(weights.trainable),
        server_seed=np.zeros([2], np.int32),
    )
    found = {}
    for limit, kept in (
        (0, 0),
        (num_bytes - 1, 0),
        (num_bytes, num_bytes),
        (dataset_cache.DEFAULT_MAX_BYTES, num_bytes),
    ):
      settings = workers.WorkerSettings(
          num_cpus=1,
          uses_gpu=True,
          is_deterministic=False,
          uses_onednn=False,
          max_cache_bytes=limit,
      )
      worker = workers.Worker(settings)
      (chunk_sum,) = worker.sum_chunks(order, [chunk])
      found[limit] = chunk_sum.tensors
      self.assertEqual(worker._cache.num_bytes, kept)
    for tensors in found.values():
      for one, other in zip(tensors, found[0]):
        np.testing.assert_array_equal(one, other)

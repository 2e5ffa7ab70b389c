# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of rounds that workers share, on a cluster of this machine."""

import collections
import gc
import os
import signal
import threading
import time
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import ray
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import client_state_testing
from tests.tff_adaptive import error_testing
from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tests.tff_adaptive.runtime import equality_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive import algorithms
from tff_adaptive import data
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.aggregators import reports
from tff_adaptive.runtime import scale_out
from tff_adaptive.runtime.scale_out import clusters
from tff_adaptive.runtime.scale_out import scaled_rounds
from tff_adaptive.runtime.scale_out import worker_pools

_STEPS = data.BatchPlan(4, num_epochs=2)
_MAX_CACHE_BYTES = 2**30


def _cohorts(source=None, num_clients=5):
  ids = equality_testing.source().client_ids
  return [
      data.Cohort(
          source or equality_testing.source(),
          [ids[(i + round_num) % len(ids)] for i in range(num_clients)],
          round_num,
          seed=1,
          plan=_STEPS,
      )
      for round_num in range(3)
  ]


def _wait_until_gone(process_id):
  deadline = time.monotonic() + 30
  while time.monotonic() < deadline:
    try:
      os.kill(process_id, 0)
    except ProcessLookupError:
      return
    time.sleep(0.05)
  raise AssertionError(f'Process {process_id} is still there.')


def _bytes(arrays):
  return sum(array.nbytes for array in arrays)


def _kept_states(client_ids):
  """Returns the clients' states after a round."""
  process = client_state_testing.process()
  with compiled_testing.installed():
    output = process.next(
        process.initialize(),
        client_state_testing.stateful_cohort(client_ids, {}),
    )
  kept = output.metrics['client_work']['client_states']
  return {
      name.decode(): tf.nest.map_structure(
          lambda leaf, place=place: leaf[place], kept['client_state']
      )
      for place, name in enumerate(kept['client_id'].tolist())
  }


def _train(process, rounds):
  """Returns the state and the metrics after rounds."""
  state = process.initialize()
  for clients in rounds:
    output = process.next(state, clients)
    state = output.state
  return state, output.metrics


def _with_states():
  """Returns clients that keep a state, in a first and in a later round."""
  ids = ['a', 'short', 'long', 'b']
  return client_state_testing.process(), [
      client_state_testing.stateful_cohort(ids, {}),
      client_state_testing.stateful_cohort(ids, _kept_states(ids[:3])),
  ]


def _with_dropout():
  process = tff.learning.algorithms.build_weighted_fed_avg(
      testing.functional_model(dropout=0.5),
      tff.learning.optimizers.build_sgdm(0.1),
  )
  return process, _cohorts()


def _evaluation():
  model = testing.functional_model()
  return tff.learning.algorithms.build_fed_eval(model), _cohorts()[:1]


_process = compiled_testing.process
# Processes and rounds of clients. The first and the last name are always run.
_ROUNDS = {
    'cohorts': lambda: (_process(), _cohorts()),
    'dropout': _with_dropout,
    'lists_of_batches': lambda: (
        _process(),
        [testing.clients([3, 9, 1]), testing.clients([5])],
    ),
    'lists_of_datasets': lambda: (_process(), list(map(list, _cohorts()))),
    'kept_states': _with_states,
    'evaluation': _evaluation,
    'nobody': lambda: (_process(), [equality_testing.cohort()[:0]]),
}


class RayContextTest(compiled_testing.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.context = scale_out.RayContext(
        num_workers=2,
        num_parallel_clients=2,
        strict=True,
        seed=1,
        max_cache_bytes=_MAX_CACHE_BYTES,
    )
    cls.addClassCleanup(cls.context.close)

  def _installed(self):
    return tff.framework.get_context_stack().install(self.context)

  def _assert_same_results(self, process, rounds):
    """Trains on workers and here; all bits of the results must be equal."""
    with compiled_testing.installed():
      expected = _train(process, rounds)
    with self._installed():
      found = _train(process, rounds)
    self.assert_same_bits(expected, found)
    return found

  @parameterized.named_parameters(*_ROUNDS.items())
  @pytest.mark.sample(2)
  def test_results_have_the_bits_of_the_compiled_context(self, build):
    self._assert_same_results(*build())

  def test_more_chunks_than_workers_have_a_plan_and_costs(self):
    process = compiled_testing.process()
    self._assert_same_results(process, _cohorts(num_clients=40))
    plan = self.context.plan_of(process.next)
    self.assertEqual((plan.num_parallel_clients, plan.device), (2, 'CPU:0'))
    self.assertIsNone(self.context.costs_of(process.initialize))
    costs = self.context.costs_of(process.next)
    size = _bytes(testing.functional_model().initial_weights[0])
    self.assertEqual(costs.num_chunks, 14)
    self.assertGreaterEqual(costs.broadcast_bytes, size)
    self.assertGreaterEqual(costs.sum_bytes, 14 * size)
    self.assertGreater(costs.chunk_bytes, 0)
    for part in ('server_seconds', 'merge_seconds', 'work_seconds'):
      self.assertGreater(getattr(costs, part), 0, part)
    self.assertGreater(
        costs.seconds, costs.server_seconds + costs.merge_seconds
    )

  @pytest.mark.slow
  def test_rejected_clients_are_told_in_their_order(self):
    process = algorithms.build_fed_opt(
        testing.functional_model(), optimizers.build_delta_sgd()
    )
    rounds = _cohorts(num_clients=20)
    _, metrics = self._assert_same_results(process, rounds)
    codes = metrics['client_work']['rejections'].tolist()
    empty = [client_id == 'none' for client_id in rounds[-1].client_ids]
    self.assertEqual([bool(code) for code in codes], empty)
    self.assertTrue(any(empty))

  def test_datasets_that_clients_make_of_their_ids(self):
    @tff.tensorflow.computation(np.str_)
    def make(client_id):
      size = tf.strings.length(client_id)
      return tf.data.Dataset.range(tf.cast(size, tf.int64)).batch(2)

    @tff.tensorflow.computation(make.type_signature.result)
    def add_up(batches):
      return batches.reduce(
          np.int64(0), lambda total, batch: total + tf.reduce_sum(batch)
      )

    @tff.federated_computation(tff.FederatedType(np.str_, tff.CLIENTS))
    def add_up_all(ids):
      datasets = tff.federated_map(make, ids)
      return tff.federated_sum(tff.federated_map(add_up, datasets))

    with self._installed():
      self.assertEqual(add_up_all(['five5', 'ten', 'five5']), 10 + 3 + 10)

  @pytest.mark.slow
  def test_a_broadcast_of_an_aggregate(self):
    @tff.tensorflow.computation(np.float32, np.float32)
    def squared_distance(value, mean):
      return tf.square(value - mean)

    @tff.federated_computation(tff.FederatedType(np.float32, tff.CLIENTS))
    def variance(values):
      mean = tff.federated_broadcast(tff.federated_mean(values))
      distances = tff.federated_map(squared_distance, (values, mean))
      return tff.federated_mean(distances)

    with self._installed():
      self.assertEqual(variance([1.0, 2.0, 6.0]), np.float32(14 / 3))

  @pytest.mark.slow
  def test_what_aggregators_draw(self):
    two = [np.float32, np.float32]
    noisy = tff.tensorflow.computation(
        lambda x, y: x + y + tf.random.normal([]), two
    )
    zero = tff.tensorflow.computation(lambda: tf.constant(0.0))
    same = tff.tensorflow.computation(lambda x: x, np.float32)

    @tff.federated_computation(testing.at_clients())
    def add_up(values):
      return tff.federated_aggregate(values, zero(), noisy, noisy, same)

    sums = []
    with runtime.CompiledContext(
        num_parallel_clients=2, strict=True
    ) as compiled:
      for context, seed in ((compiled, 3), (self.context, 3), (compiled, 4)):
        with tff.framework.get_context_stack().install(context):
          context.begin_round(seed, 1)
          sums.append(add_up([1.0] * 40))
    self.assertEqual(sums[0], sums[1])
    self.assertNotEqual(sums[0], sums[2])

  @pytest.mark.slow
  def test_rows_are_stacked_beside_a_zero_that_changes_the_sum(self):
    add = tff.tensorflow.computation(lambda x, y: x + y, [np.int32, np.int32])
    same = tff.tensorflow.computation(lambda x: x, np.int32)
    ten = tff.tensorflow.computation(lambda: tf.constant(10))
    to_row = tff.tensorflow.computation(lambda x: x[tf.newaxis], np.int32)

    @tff.federated_computation(testing.at_clients(np.int32))
    def collect(values):
      rows = reports.stack_at_server(tff.federated_map(to_row, values))
      total = tff.federated_aggregate(values, ten(), add, add, same)
      return rows, total

    with self._installed():
      rows, total = collect(list(range(40)))
    self.assertAllEqual(rows, list(range(40)))
    self.assertEqual(total, 790)

  @pytest.mark.slow
  def test_texts_travel(self):
    join = tff.tensorflow.computation(
        lambda x, y: tf.strings.join([x, y]), [np.str_, np.str_]
    )
    empty = tff.tensorflow.computation(lambda: tf.constant(''))
    same = tff.tensorflow.computation(lambda x: x, np.str_)

    @tff.federated_computation(
        testing.at_server(np.str_), testing.at_clients(np.str_)
    )
    def run(prefix, values):
      both = (tff.federated_broadcast(prefix), values)
      joined = tff.federated_map(join, both)
      return tff.federated_aggregate(joined, empty(), join, join, same)

    with self._installed():
      self.assertEqual(run('-', ['a', 'b', '']), b'-a-b-')

  def test_data_that_are_read_by_the_workers(self):
    arrays = equality_testing.source()
    reads = []

    def load(client_id):
      reads.append(client_id)
      return arrays.examples(client_id)

    lazy = data.LazyClientArrays(arrays.client_ids, load, arrays.element_spec)
    rounds = _cohorts(lazy)
    with self._installed():
      found = _train(compiled_testing.process(), rounds)
    self.assertEmpty(reads)
    with compiled_testing.installed():
      expected = _train(compiled_testing.process(), _cohorts())
    self.assert_same_bits(expected, found)

  def test_an_array_that_is_changed_in_place_is_sent_again(self):
    x = np.ones([3], np.float32)
    source = data.PackedClientArrays.from_partition({'x': x}, {'a': [0, 1, 2]})
    add_up = sequence_testing.over_clients(
        lambda batches: batches.reduce(
            0.0, lambda total, batch: total + tf.reduce_sum(batch['x'])
        ),
        tff.SequenceType(
            tff.types.tensorflow_to_type(
                collections.OrderedDict(x=tf.TensorSpec([None]))
            )
        ),
    )
    with self._installed():
      for number in (1, 2):
        x[:] = number
        cohort = data.Cohort(source, ['a'], number, 1, data.BatchPlan(2))
        self.assertEqual(add_up(cohort), 3 * number)

  @parameterized.named_parameters(('one', [0]), ('both', [0, 1]))
  @pytest.mark.slow
  def test_workers_that_died_are_replaced_once(self, victims):
    process, rounds = compiled_testing.process(), _cohorts(num_clients=20)
    with compiled_testing.installed():
      expected = _train(process, rounds)
    num_lost = self.context.pool.num_lost
    with self._installed():
      state = process.initialize()
      for round_num, cohort in enumerate(rounds):
        if round_num == 1:
          before = self.context.pool.process_ids()
          for victim in victims:
            os.kill(before[victim], signal.SIGKILL)
            _wait_until_gone(before[victim])
        state = process.next(state, cohort).state
    self.assert_same_bits(expected[0], state)
    after = self.context.pool.process_ids()
    self.assertEqual(self.context.pool.num_lost, num_lost + len(victims))
    self.assertEqual([i for i in (0, 1) if after[i] != before[i]], victims)

  def test_longest_chunks_come_first(self):
    source = data.PackedClientArrays.from_clients(
        {str(size): dict(x=np.ones([size, 2])) for size in (1, 30, 5, 12)}
    )
    clients = data.Cohort(
        source, ['1', '30', '5', '12'], 0, 1, data.BatchPlan(4, num_epochs=2)
    )
    self.assertEqual(scaled_rounds._loads(clients), [3.0, 17.0, 5.0, 7.0])
    lazy = data.LazyClientArrays(
        source.client_ids, source.examples, source.element_spec
    )
    chunks = [mock.Mock(load=load) for load in (3.0, 17.0, 5.0, 7.0)]
    tasks = worker_pools._to_tasks(chunks, 3)
    self.assertEqual(
        [[chunk.load for chunk in task] for task in tasks],
        [[17.0, 3.0], [7.0], [5.0]],
    )
    self.assertLen(worker_pools._to_tasks(chunks, 9), 4)
    unread = data.Cohort(lazy, ['1', '30'], 0, 1, data.BatchPlan(4))
    self.assertEqual(scaled_rounds._loads(unread), [2.0, 2.0])

  def test_data_that_do_not_fit_are_an_error_of_the_worker(self):
    values = collections.OrderedDict(
        x=np.zeros([2, testing.NUM_FEATURES], np.float64),
        y=np.zeros([2], np.int32),
    )
    source = data.PackedClientArrays.from_clients({'a': values})
    cohort = data.Cohort(source, ['a'], 0, 1, _STEPS)
    process = compiled_testing.process()
    with self._installed():
      state = process.initialize()
      with self.assertRaisesRegex(TypeError, 'float64'):
        process.next(state, cohort)

  def test_values_that_cannot_be_sent_are_an_error(self):
    arrays = equality_testing.source()
    process = compiled_testing.process()
    wordless = mock.Mock(__reduce_ex__=mock.Mock(side_effect=TypeError))
    for part, reason in (
        (threading.Lock(), 'lock'),
        (wordless, 'TypeError'),
        (tf.data.Dataset.range(1), 'variant'),
    ):
      lazy = data.LazyClientArrays(
          arrays.client_ids,
          lambda client_id, part=part: (part, arrays.examples(client_id))[1],
          arrays.element_spec,
      )
      cohort, *_ = _cohorts(lazy)
      with self._installed():
        state = process.initialize()
        with self.assertRaisesRegex(
            TypeError, f'cannot be sent to the workers: .*{reason}'
        ):
          process.next(state, cohort)

  def test_install_makes_it_the_default(self):
    stack = tff.framework.get_context_stack()
    before, pool = stack.current, self.context.pool
    found = []

    def run():
      found.append((self.context.install(), stack.current))

    # Every thread has a stack of its own, so that no other test notices.
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    self.assertEqual(found, [(self.context, self.context)])
    self.assertIs(stack.current, before)
    self.assertIs(self.context.pool, pool)

  @pytest.mark.slow
  def test_sources_that_are_gone_are_dropped(self):
    process = compiled_testing.process()
    sources = self.context.pool.sources

    def train_on_new_source():
      arrays = equality_testing.source()
      source = data.PackedClientArrays(
          arrays.values,
          arrays.offsets,
          arrays.client_ids,
          indices=arrays.indices,
      )
      with self._installed():
        _train(process, _cohorts(source))
      return source, len(sources.references())

    counts = []
    for _ in range(4):
      source, count = train_on_new_source()
      counts.append(count)
      del source
      gc.collect()
    # The next one takes the place of the one that is gone.
    self.assertLen(set(counts[1:]), 1)

  @pytest.mark.slow
  def test_computations_that_are_gone_are_dropped(self):
    counts = []
    gc.collect()
    for _ in range(3):
      add_up = compiled_testing.build_sum()
      with self._installed():
        self.assertEqual(add_up([1.0] * 200), 200.0)
      del add_up
      gc.collect()
      for worker in self.context.pool._workers:
        count = worker.__ray_call__.remote(lambda actor: len(actor._rounds))
        counts.append(ray.get(count))
    # Computations of other tests may vanish meanwhile.
    self.assertLessEqual(max(counts[2:]), min(counts[:2]))

  def test_unsupported_computations_are_an_error(self):
    @tff.tensorflow.computation(np.float32, np.float32)
    def accumulate(total, value):
      return total + value * tf.random.gamma([], 1.0)

    add = tff.tensorflow.computation(lambda x, y: x + y, (np.float32,) * 2)
    report = tff.tensorflow.computation(lambda x: x, np.float32)

    @tff.federated_computation(testing.at_clients())
    def add_up(values):
      return tff.federated_aggregate(values, 0.0, accumulate, add, report)

    with (
        self._installed(),
        self.assertRaisesRegex(
            runtime.UnsupportedComputationError, 'RandomGamma'
        ),
    ):
      add_up([1.0, 2.0])

  @pytest.mark.slow
  def test_a_closed_context_says_so(self):
    pool = mock.Mock(wraps=self.context.pool, close=mock.Mock())
    with mock.patch.object(worker_pools, 'WorkerPool', return_value=pool):
      context = scale_out.RayContext(strict=True, seed=1)
    known, new = compiled_testing.build_sum(), compiled_testing.build_sum()
    with tff.framework.get_context_stack().install(context):
      self.assertEqual(known([1.0, 2.0]), 3.0)
      context.close()
      context.close()
      pool.close.assert_called_once_with()
      for add_up in (known, new):
        with self.assertRaisesRegex(
            scale_out.ClusterError, 'closed.*RayContext'
        ):
          add_up([1.0, 2.0])

  def test_workers_are_told_how_much_to_keep(self):
    limits = [
        worker.__ray_call__.remote(lambda actor: actor._cache._max_bytes)
        for worker in self.context.pool._workers
    ]
    self.assertEqual(ray.get(limits), [_MAX_CACHE_BYTES] * 2)

  def test_more_workers_than_cores_of_a_cluster_are_an_error(self):
    with self.assertRaisesRegex(
        scale_out.ClusterError, 'no room for 1000 workers with 1 cores each'
    ):
      scale_out.RayContext(num_workers=1000)
    self.assertTrue(ray.is_initialized())

  def test_the_address_of_another_cluster_is_not_used(self):
    with self.assertLogs('absl', 'WARNING') as logs:
      self.assertTrue(clusters.connect('10.0.0.5:6379', 1))
    self.assertRegex(logs.output[0], 'cluster at .*10.0.0.5:6379 is not used')
    clusters.disconnect()
    self.assertTrue(ray.is_initialized())

  def test_lists_that_are_no_rows_are_an_error(self):
    add_up = sequence_testing.over_clients(
        lambda rows: rows.reduce(0.0, lambda n, row: n + tf.reduce_sum(row)),
        tff.SequenceType(tff.TensorType(np.float32, [None, None])),
    )
    client = [np.ones([1, width], np.float32) for width in (2, 3)]
    with self._installed():
      with self.assertRaisesRegex(TypeError, 'sent to workers as arrays of'):
        add_up([client])

  def test_gpus_that_are_not_there_are_an_error(self):
    with self.assertRaisesRegex(scale_out.ClusterError, 'GPU'):
      scale_out.RayContext(num_workers=1, devices='GPU')


class XlaWorkersTest(compiled_testing.TestCase):
  """Workers that run programs of XLA, as they do on their GPUs."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.context = scale_out.RayContext(num_workers=2, devices='XLA:CPU', seed=1)
    cls.addClassCleanup(cls.context.close)

  def _installed(self):
    return tff.framework.get_context_stack().install(self.context)

  @parameterized.named_parameters(
      (name, _ROUNDS[name])
      for name in ('cohorts', 'dropout', 'lists_of_datasets', 'kept_states')
  )
  @pytest.mark.sample(2)
  def test_results_are_those_of_the_compiled_context(self, build):
    process, rounds = build()
    with compiled_testing.installed():
      expected = _train(process, rounds)
    with self._installed():
      found = _train(process, rounds)
    self.assertEqual(self.context.path_of(process.next), 'xla')
    plan = self.context.plan_of(process.next)
    self.assertEqual(
        (plan.num_parallel_clients, plan.device), (16, 'XLA:CPU:0')
    )
    for one, other in zip(
        *map(tf.nest.flatten, (found, expected)), strict=True
    ):
      if isinstance(other, np.ndarray) and other.dtype == object:
        self.assertAllEqual(one, other)
      else:
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)

  def test_what_has_no_form_is_summed_by_tensorflow(self):
    take = tff.tensorflow.computation(
        lambda x: tf.math.real(tf.signal.rfft(x)),
        tff.TensorType(np.float32, [4]),
    )
    rows_type = tff.TensorType(np.float32, [4])

    @tff.federated_computation(tff.FederatedType(rows_type, tff.CLIENTS))
    def add_up(rows):
      return tff.federated_sum(tff.federated_map(take, rows))

    rows = list(np.eye(4, dtype=np.float32))
    with self._installed():
      with self.assertWarnsRegex(RuntimeWarning, 'XLA has no form of .*FFT'):
        first = add_up(rows)
      self.assertAllClose(first, [4.0, 0.0, 0.0])
      self.assertAllClose(add_up(rows), first)
    self.assertEqual(self.context.path_of(add_up), 'compiled')


class ClustersTest(parameterized.TestCase):

  @parameterized.parameters((True, 0, False), (False, 1, True))
  def test_the_last_context_ends_a_cluster_of_contexts_alone(
      self, is_connected, num_shutdowns, disconnects
  ):
    fake = mock.Mock()
    fake.is_initialized.side_effect = [is_connected, True]
    with (
        mock.patch.object(clusters, '_import_ray', return_value=fake),
        mock.patch.object(clusters, '_num_users', 0),
    ):
      for _ in range(2):
        self.assertIs(clusters.connect(None, 1), disconnects)
      if disconnects:
        clusters.disconnect()
        fake.shutdown.assert_not_called()
        clusters.disconnect()
    self.assertEqual(fake.shutdown.call_count, num_shutdowns)

  @parameterized.parameters(
      (None, '^Ray did not start on this machine: no room$'),
      ('10.0.0.5:6379', "no Ray cluster at '10.0.0.5:6379'.*no room"),
  )
  def test_why_ray_did_not_start(self, address, message):
    fake = mock.Mock()
    fake.is_initialized.return_value = False
    fake.init.side_effect = Exception('no room')
    with mock.patch.object(clusters, '_import_ray', return_value=fake):
      with self.assertRaisesRegex(scale_out.ClusterError, message):
        clusters.connect(address, 1)

  @parameterized.parameters((2, False, 4), (3, False, 2), (1, True, 3))
  def test_workers_take_what_is_free_on_each_machine(
      self, num_cpus, uses_gpu, expected
  ):
    total = {'a': {'CPU': 8.0, 'GPU': 2.0}, 'b': {'CPU': 8.0, 'GPU': 2.0}}
    free = {'a': {'CPU': 5.0, 'GPU': 2.0}, 'b': {'CPU': 5.0, 'GPU': 1.0}}
    nodes = [
        {'NodeID': name, 'Alive': name in total, 'Resources': total['a']}
        for name in ('a', 'b', 'c')
    ]
    state = mock.Mock()
    state.available_resources_per_node.side_effect = [free, free, total]
    settings = mock.Mock(num_cpus=num_cpus, uses_gpu=uses_gpu)
    with (
        mock.patch.object(worker_pools, 'ray_state', state),
        mock.patch.object(worker_pools.ray, 'nodes', return_value=nodes),
    ):
      with mock.patch.object(worker_pools, '_SECONDS_FOR_FREE_CORES', -1.0):
        self.assertEqual(worker_pools._free_workers(settings), expected)
      # It waits for those that were freed just now.
      most = worker_pools._max_workers(settings)
      self.assertEqual(worker_pools._free_workers(settings), most)


class PlansTest(compiled_testing.TestCase):

  def test_the_plan_follows_the_device(self):
    plan = scale_out.choose_ray_plan(devices='GPU')
    self.assertEqual((plan.num_parallel_clients, plan.device), (0, 'XLA:GPU:0'))
    self.assertEqual(scale_out.choose_ray_plan(), runtime.choose_plan('CPU'))


test_arguments_are_refused = error_testing.refused(
    *error_testing.bad_values(
        scale_out.RayContext,
        num_workers=0,
        cpus_per_worker=-1,
        devices='TPU',
        num_parallel_clients=0,
        seed=-1,
        max_cache_bytes=-1,
    ),
    *error_testing.bad_types(scale_out.RayContext, max_cache_bytes=1.5),
)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that TFF's federated programs run on the compiled runtime."""

import asyncio
import collections
import csv
import os
import tempfile
import threading
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import runtime


@tff.federated_computation
def _start():
  return tff.federated_value((0.0, 0), tff.SERVER)


@tff.tensorflow.computation(np.float32, np.int32, np.float32)
def _next_state(total, count, value):
  return total + value, count + 1


@tff.federated_computation(
    testing.at_server((np.float32, np.int32)), testing.at_clients()
)
def _add(state, values):
  added = tff.federated_sum(values)
  state = tff.federated_map(_next_state, (state[0], state[1], added))
  return state, added


def _installed(**kwargs: Any) -> Any:
  """Installs a program context in a `with` statement."""
  context = runtime.AsyncCompiledContext(seed=1, **kwargs)
  return tff.framework.get_context_stack().install(
      tff.program.NativeFederatedContext(context)
  )


class _Numbers(tff.program.FederatedDataSourceIterator):
  """Selects a number for each client, one more in each round."""

  def __init__(self):
    self._round_num = 0

  @property
  def federated_type(self):
    return testing.at_clients()

  def select(self, k=None):
    self._round_num += 1
    return [np.float32(self._round_num)] * k

  @classmethod
  def from_bytes(cls, data):
    raise NotImplementedError

  def to_bytes(self):
    raise NotImplementedError


class _Source(tff.program.FederatedDataSource):

  @property
  def federated_type(self):
    return testing.at_clients()

  def iterator(self):
    return _Numbers()


def _join(batches: Any) -> Any:
  """Returns the examples of batches."""
  return collections.OrderedDict(
      (name, np.concatenate([batch[name] for batch in batches]))
      for name in batches[0]
  )


class ProgramsTest(compiled_testing.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = self.enterContext(tempfile.TemporaryDirectory())

  def test_program_with_file_managers(self):
    folder = self.folder
    metrics = os.path.join(folder, 'metrics.csv')
    releases = tff.program.CSVFileReleaseManager(metrics, key_fieldname='round')
    models = tff.program.SavedModelFileReleaseManager(folder, 'model_')
    states = tff.program.FileProgramStateManager(os.path.join(folder, 'states'))

    async def run():
      iterator = _Source().iterator()
      state = _start()
      for round_num in range(1, 4):
        state, added = _add(state, iterator.select(2))
        await releases.release({'added': added}, key=round_num)
        await states.save(state, version=round_num)
      await models.release(state, key=3)
      return await states.load_latest((np.float32(0), np.int32(0)))

    with _installed(strict=True):
      state, version = asyncio.run(run())
    self.assertEqual(version, 3)
    self.assertEqual(tuple(state), (2.0 * (1 + 2 + 3), 3))
    with open(metrics, encoding='utf-8') as file:
      rows = list(csv.DictReader(file))
    self.assertEqual([float(row['added']) for row in rows], [2.0, 4.0, 6.0])
    self.assertTrue(os.path.isdir(os.path.join(folder, 'model_3')))

  @pytest.mark.filterwarnings("ignore:Each client's `tf.data` pipeline")
  def test_train_model_resumes_and_gives_what_the_context_gives(self):
    process = compiled_testing.process()
    clients = testing.clients([5, 9, 4])
    source = tff.simulation.datasets.TestClientData(
        {str(i): _join(batches) for i, batches in enumerate(clients)}
    ).preprocess(lambda examples: examples.batch(4))
    by_id = tff.simulation.compose_dataset_computation_with_learning_process(
        source.dataset_computation, process
    )
    folder = os.path.join(self.folder, 'states')

    async def run(total_rounds):
      outputs = tff.program.MemoryReleaseManager()
      await tff.learning.programs.train_model(
          train_process=by_id,
          train_data_source=tff.program.ClientIdDataSource(source.client_ids),
          train_per_round_clients=3,
          train_total_rounds=total_rounds,
          program_state_manager=tff.program.FileProgramStateManager(folder),
          model_output_manager=outputs,
          evaluation_manager=None,
          evaluation_periodicity=1,
      )
      (state,) = outputs.values().values()
      return state

    with _installed():
      for total_rounds in (1, 2):
        state = asyncio.run(run(total_rounds))
    with compiled_testing.installed():
      expected = compiled_testing.train(process, clients, clients)
    self.assertAllClose(testing.trainable(state), expected, 1e-5)


class AsyncContextTest(compiled_testing.TestCase):

  def test_calls_are_awaited(self):
    context = runtime.AsyncCompiledContext(strict=True)
    add_up = compiled_testing.build_sum()

    async def run():
      with tff.framework.get_context_stack().install(context):
        return await asyncio.gather(add_up([1.0, 2.0]), add_up([3.0]))

    self.assertEqual(asyncio.run(run()), [3.0, 3.0])
    self.assertIsNotNone(context.context.plan_of(add_up))

  def test_event_loop_goes_on(self):
    context = runtime.AsyncCompiledContext()
    begun, ended = threading.Event(), threading.Event()

    def wait(comp, arg):
      del comp, arg  # Unused.
      begun.set()
      return ended.wait(60)

    async def run():
      with mock.patch.object(context.context, 'invoke', wait):
        call = asyncio.create_task(context.invoke(None, None))
        while not begun.is_set():
          await asyncio.sleep(0)
        ended.set()
        return await call

    self.assertTrue(asyncio.run(run()))

  def test_close_ends_the_compiled_context(self):
    context = runtime.AsyncCompiledContext()
    with mock.patch.object(context.context, 'close') as close:
      context.close()
    close.assert_called_once_with()


class WithoutItTest(compiled_testing.TestCase):
  """What people meet who take the other context; the guide names the errors."""

  def test_context_of_a_program_is_named(self):
    context = tff.program.NativeFederatedContext(runtime.CompiledContext())

    async def run():
      with tff.framework.get_context_stack().install(context):
        return await tff.program.materialize_value(_start())

    with self.assertRaisesRegex(
        TypeError, r'`runtime.AsyncCompiledContext\(\)`'
    ):
      asyncio.run(run())

  def test_program_in_a_compiled_context_is_refused_by_tff(self):
    with compiled_testing.installed():
      with self.assertRaisesRegex(ValueError, _NO_PROGRAM_CONTEXT):
        asyncio.run(
            tff.learning.programs.train_model(
                train_process=compiled_testing.process(),
                train_data_source=_Source(),
                train_per_round_clients=1,
                train_total_rounds=1,
                program_state_manager=None,
                model_output_manager=tff.program.MemoryReleaseManager(),
                evaluation_manager=None,
                evaluation_periodicity=1,
            )
        )


_NO_PROGRAM_CONTEXT = (
    'Expected the current context to be a `tff.program.FederatedContext`, '
    "found <class 'tff_adaptive.runtime.compiled.CompiledContext'>"
)

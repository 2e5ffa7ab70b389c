# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of compiled contexts: where they work, and what they keep how long."""

import asyncio
from collections.abc import Callable
from concurrent import futures
import gc
from typing import Any
from unittest import mock
import weakref

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import runtime
from tff_adaptive.runtime import graph_functions


def _in_thread(fn: Callable[[], Any]) -> Any:
  """Runs a function in another thread; returns its result or its error."""
  with futures.ThreadPoolExecutor(1) as executor:
    return executor.submit(fn).result()


def _train(size: int = 5) -> list[np.ndarray]:
  """Returns the weights after a round, in the context that is installed."""
  return compiled_testing.train(
      compiled_testing.process(), testing.clients([size, 9])
  )


class ContextsTest(compiled_testing.TestCase):

  def test_works_while_an_event_loop_runs(self):
    # As in a notebook.
    async def train():
      return _train()

    with compiled_testing.installed():
      expected = _train()
      self.assert_same_bits(asyncio.run(train()), expected)

  def test_works_in_another_thread(self):
    def train():
      with runtime.CompiledContext(num_parallel_clients=2, strict=True):
        return _train()

    with compiled_testing.installed():
      expected = _train()
    self.assert_same_bits(_in_thread(train), expected)

  def test_one_context_serves_several_threads(self):
    def train(size):
      with compiled_testing.installed():
        return _train(size)

    sizes = [5, 6, 7, 8]
    compiled_testing.process()  # Keras cannot build models in several threads.
    with futures.ThreadPoolExecutor(len(sizes)) as executor:
      found = list(executor.map(train, sizes))
    for size, trained in zip(sizes, found):
      self.assert_same_bits(trained, train(size))

  def test_context_before_is_back(self):
    stack = tff.framework.get_context_stack()
    before = stack.current
    with self.assertRaisesRegex(ValueError, 'as asked for'):
      with runtime.CompiledContext() as context:
        self.assertIs(stack.current, context)
        raise ValueError('as asked for')
    self.assertIs(stack.current, before)

  def test_install_makes_it_the_default(self):
    stack = tff.framework.get_context_stack()
    before = stack.current

    def run():
      context = runtime.CompiledContext(
          devices='CPU', num_parallel_clients=1, seed=1
      ).install()
      self.assertIs(stack.current, context)
      add_up = compiled_testing.build_sum()
      self.assertEqual(add_up([1.0, 2.0]), 3.0)
      self.assertEqual(context.plan_of(add_up).num_parallel_clients, 1)
      # It is below what a block installs.
      with runtime.CompiledContext() as other:
        self.assertIs(stack.current, other)
      self.assertIs(stack.current, context)

    # Every thread has a stack of its own, so that no other test notices.
    _in_thread(run)
    self.assertIs(stack.current, before)


class BuildingTest(tf.test.TestCase):
  """Asserts that nothing is built again."""

  def test_cohorts_of_all_sizes_share_a_function(self):
    process = compiled_testing.process()
    with runtime.CompiledContext(strict=True) as context:
      state = process.initialize()
      with mock.patch.object(
          graph_functions, 'build', wraps=graph_functions.build
      ) as build:
        for sizes in ([5], [9, 0, 3], range(7), range(20, 8, -1), [4, 4]):
          state = process.next(state, testing.clients(sizes)).state
        # The other is for the question of whether its zero is neutral.
        self.assertEqual(build.call_count, 2)
      (program,) = [
          program
          for program in context._programs.values()
          if hasattr(program, '_functions')
      ]
      self.assertLen(program._functions, 1)

  def test_programs_vanish_with_their_computation(self):
    with runtime.CompiledContext(strict=True) as context:
      add_up = compiled_testing.build_sum()
      add_up([1.0, 2.0])
      (program,) = map(weakref.ref, context._programs.values())
      del add_up
      gc.collect()
      self.assertEmpty(context._programs)
      self.assertIsNone(program())

  def test_programs_vanish_with_their_context(self):
    add_up = compiled_testing.build_sum()
    with runtime.CompiledContext(strict=True) as context:
      add_up([1.0, 2.0])
      (program,) = map(weakref.ref, context._programs.values())
    del context
    gc.collect()
    self.assertIsNone(program())
    # And the computation runs in the next one.
    with runtime.CompiledContext(strict=True):
      self.assertEqual(add_up([1.0, 2.0]), 3.0)

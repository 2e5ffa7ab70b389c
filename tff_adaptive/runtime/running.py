# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs built functions: in a process that can, and until Ctrl-C.

A `GraphCall` also reads the sequences among the arguments that are not at
clients, as a client's are read: once, as rows over which the graph loops. Where
rows cannot be, each call runs their `tf.data` pipelines.
"""

from collections.abc import Callable, Collection, Sequence
from concurrent import futures
import os
import threading
import time
from typing import Any, Optional

import tensorflow as tf
from tensorflow.python.eager import cancellation
from tensorflow.python.eager import context as eager_context
import tensorflow_federated as tff

from tff_adaptive.data import batching
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import client_tensors
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.datasets import dataset_rows
from tff_adaptive.runtime.datasets import elements
from tff_adaptive.runtime.graphs import graph_functions

# A call is expected to take as long as the one before it. Above this, another
# thread runs it, so that Ctrl-C does not wait for its end.
_LONG_SECONDS = 1.0

_was_forked_late = False


def _note_fork() -> None:
  """Notes, in a forked child, whether its parent had started TensorFlow."""
  global _was_forked_late
  context = eager_context.context_safe()
  if context is not None and context._initialized:  # pylint: disable=protected-access
    _was_forked_late = True


os.register_at_fork(after_in_child=_note_fork)


def check_process() -> None:
  """Raises an error if computations would never end in this process.

  Raises:
    RuntimeError: If it was forked after its parent had started TensorFlow.
  """
  if _was_forked_late:
    raise RuntimeError(
        'This process was forked from one that had started TensorFlow, whose '
        'threads a fork does not copy: the computation would never end. Start '
        "processes with `multiprocessing.get_context('spawn')`."
    )


class Runner:
  """Calls functions; Ctrl-C ends a long call between two steps of its loops.

  In the main thread, a call waits in Python if the first or the previous one
  was long. An exception of a signal handler, such as KeyboardInterrupt, then
  cancels the call, and with it those that other threads began meanwhile, as
  TensorFlow has one such manager. Otherwise a call costs nothing more.
  """

  def __init__(self):
    self._expects_long = True

  def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
    """Returns the result of a TensorFlow function of tensors."""
    start = time.monotonic()
    try:
      if self._expects_long and _is_main_thread():
        return _wait_for(function, arguments)
      return function(*arguments)
    finally:
      self._expects_long = time.monotonic() - start > _LONG_SECONDS


def _is_main_thread() -> bool:
  return threading.current_thread() is threading.main_thread()


def _wait_for(function: Callable[..., Any], arguments: Any) -> Any:
  """Runs a function in a thread; cancels it if a signal raises an error."""
  manager = cancellation.CancellationManager()
  outcome: futures.Future = futures.Future()

  def run():
    try:
      outcome.set_result(manager.get_cancelable_function(function)(*arguments))
    except BaseException as error:  # pylint: disable=broad-exception-caught
      outcome.set_exception(error)

  thread = threading.Thread(target=run, daemon=True)
  try:
    thread.start()
    return outcome.result()
  except BaseException:
    # If the function itself failed, calls of other threads go on.
    if not outcome.done():
      manager.start_cancel()
    if thread.is_alive():
      thread.join()
    raise


class NeedsDatasetsError(Exception):
  """The graph being built needs a dataset where there are rows."""


def leaf_spec(leaf_type: tff.Type) -> tf.TensorSpec:
  """Returns the spec of a leaf as a tensor."""
  if isinstance(leaf_type, tff.SequenceType):
    return tf.TensorSpec([], tf.variant)
  return values.tensor_spec(leaf_type)


def _stacked(spec: tf.TensorSpec) -> tf.TensorSpec:
  """Returns the spec of such tensors with a first axis of clients."""
  return tf.TensorSpec([None, *spec.shape], spec.dtype)


class GraphCall:
  """A function of leaves, whose graph is built for each layout of sequences.

  Attributes:
    path: How the latest call ran, see `CompiledContext.path_of`.
  """

  def __init__(
      self,
      add: Callable[..., list[tf.Tensor]],
      types: Sequence[tff.Type],
      others: Sequence[tf.TensorSpec],
      columns: Collection[int] = (),
      cache: Optional[dataset_cache.DatasetCache] = None,
      are_reread: bool = False,
  ):
    """Initializes the call; the graph is built at the first one.

    Args:
      add: Adds the function to the graph that is being built. It takes tensors
        and, for sequences, variants of datasets or `PackedClients` of one
        client; it may raise `NeedsDatasetsError` for the latter.
      types: The types of the leaves.
      others: The specs of other tensors.
      columns: The places of the leaves that are stacked. Defaults to none.
      cache: The cache of datasets. None (the default) reads none.
      are_reread: Whether a sequence may be read more than once. Defaults to
        False.
    """
    self._add = add
    self._types = types
    self._specs = [
        _stacked(leaf_spec(leaf)) if place in columns else leaf_spec(leaf)
        for place, leaf in enumerate(types)
    ]
    self._others = list(others)
    self._cache = cache
    self._are_reread = are_reread
    self._may_be_rows = (
        client_tensors.why_no_rows(tff.StructType(list(types))) is None
    )
    self._functions: dict[Any, Callable[..., list[tf.Tensor]]] = {}
    self._run = Runner()
    self.path = plans.COMPILED

  def __call__(
      self,
      leaves: Sequence[Any],
      others: Callable[[], Sequence[tf.Tensor]],
      key: Optional[round_keys.RoundKey] = None,
  ) -> list[tf.Tensor]:
    """Calls the function.

    Args:
      leaves: The leaves: tensors, or sequences as given.
      others: Returns other tensors, after the graph was built.
      key: The key of what datasets draw. Without one, sequences are not read.

    Returns:
      The leaves of the result.

    Raises:
      TypeError: If a sequence does not match its type.
    """
    rows, path = self._read(leaves, key), plans.COMPILED
    if rows is not None:
      found, path = rows
      try:
        function = self._build(found)
      except NeedsDatasetsError:
        self._may_be_rows, rows = False, None
    if rows is None:
      found, path = self._run_datasets(leaves, key)
      function = self._build(found)
    result = self._run(function, *tf.nest.flatten(found), *others())
    self.path = path
    return result

  def _read(
      self, leaves: Sequence[Any], key: Optional[round_keys.RoundKey]
  ) -> Optional[tuple[list[Any], str]]:
    """Returns leaves with sequences as rows, and the path; None if none is."""
    if not self._may_be_rows or self._cache is None or key is None:
      return None
    found, path = list(leaves), plans.COMPILED
    for place, leaf_type in enumerate(self._types):
      if not isinstance(leaf_type, tff.SequenceType):
        continue
      if not isinstance(leaves[place], elements.Given):
        return None  # Made by an earlier step.
      try:
        found[place], of_leaf = client_tensors.pack_one(
            leaves[place].value,
            leaf_type,
            key.draw_at_server(place),
            self._cache,
            self._are_reread,
            place,
        )
      except dataset_rows.NotRowsError:
        return None
      path = max(path, of_leaf, key=plans.PATHS.index)
    return found, path

  def _run_datasets(
      self, leaves: Sequence[Any], key: Optional[round_keys.RoundKey]
  ) -> tuple[list[tf.Tensor], str]:
    """Returns leaves with sequences as datasets, and the path."""
    found, path = list(leaves), plans.COMPILED
    for place, (leaf, leaf_type) in enumerate(zip(leaves, self._types)):
      if not isinstance(leaf, elements.Given):
        continue
      path = plans.THREADS
      if key is None:
        found[place] = elements.to_leaf_tensor(leaf, leaf_type)
        continue
      dataset = elements.as_dataset_to_run(
          leaf.value, leaf_type, key.draw_at_server(place)(0, 0)
      )
      found[place] = tf.data.experimental.to_variant(dataset)
    return found, path

  def _build(self, leaves: Sequence[Any]) -> Callable[..., list[tf.Tensor]]:
    """Returns the function for leaves, built at its first use."""
    layouts = [
        client_tensors.layout_of(leaf)
        if isinstance(leaf, batching.PackedClients)
        else spec
        for leaf, spec in zip(leaves, self._specs)
    ]
    form = tuple(
        layout if isinstance(layout, batching.PackedClients) else None
        for layout in layouts
    )
    if form not in self._functions:
      arguments = [*layouts, *self._others]

      def run(*flat):
        packed = tf.nest.pack_sequence_as(arguments, flat)
        return self._add(*map(_pick_only, packed))

      self._functions[form] = graph_functions.build(
          run, tf.nest.flatten(arguments)
      )
    return self._functions[form]


def _pick_only(leaf: Any) -> Any:
  """Returns a sequence as that of its only client; other leaves as they are."""
  if isinstance(leaf, batching.PackedClients):
    return client_tensors.pick(leaf, 0)
  return leaf

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A whole federated round as one TensorFlow graph."""

import abc
from collections.abc import Callable, Iterable, Sequence
import functools
from typing import Any, Optional

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime import chunks
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import running
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import client_tensors
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.datasets import elements
from tff_adaptive.runtime.graphs import graph_functions
from tff_adaptive.runtime.graphs import variables


class Setting:
  """Where the clients of a program run, and what their data go through.

  Attributes:
    plan: The plan of the clients' work.
    cache: The cache of client data.
  """

  def __init__(
      self,
      plan: plans.Plan,
      cache: dataset_cache.DatasetCache,
      note_pipelines: Callable[[str], None],
  ):
    """Initializes the setting.

    Args:
      plan: The plan of the clients' work.
      cache: The cache of client data.
      note_pipelines: Called with the reason if clients' `tf.data` pipelines
        have to run; may raise an error.
    """
    self.plan = plan
    self.cache = cache
    self._note_pipelines = note_pipelines

  def on_cpu(self) -> 'Setting':
    """Returns the setting for rounds that TensorFlow runs, on the CPU."""
    if not self.plan.runs_xla:
      return self
    return Setting(plans.choose('CPU:0'), self.cache, self._note_pipelines)

  def note(self, pipelines: Optional[str]) -> None:
    """Reports the first reason why clients' pipelines have to run, if any."""
    if pipelines is not None and self.plan.pipelines is None:
      self._note_pipelines(pipelines)
      self.plan = attrs.evolve(self.plan, pipelines=pipelines)


class Program(abc.ABC):
  """The compiled form of a computation.

  Attributes:
    takes_clients: Whether it takes a value at the clients.
    takes_seed: Whether it draws random numbers.
    takes_sequences: Whether it takes sequences.
    add_datasets: Adds to an argument the datasets that clients make of it, see
      `rewrites.prepare`; None if they make none.
    path: How the latest run was executed, see `CompiledContext.path_of`.
  """

  takes_clients: bool
  takes_seed: bool
  takes_sequences: bool
  add_datasets: Optional[Callable[[Any], Any]] = None
  path: Optional[str] = None

  @property
  def plan(self) -> Optional[plans.Plan]:
    """The plan of the clients' work; None without clients."""
    return None

  @abc.abstractmethod
  def split(self, argument: Any) -> tuple[Any, Optional[Sequence[Any]]]:
    """Splits an argument.

    Args:
      argument: The argument; None if there is none.

    Returns:
      What to call the program with, and the clients, which may bring the key of
      random numbers; None if the argument does not tell their number.
    """

  @abc.abstractmethod
  def __call__(
      self, given: Any, clients: Sequence[Any], key: round_keys.RoundKey
  ) -> Any:
    """Runs the computation.

    Args:
      given: What `split` returned.
      clients: The values at the clients.
      key: The key of random numbers.

    Returns:
      The computation's result, with NumPy arrays for tensors.

    Raises:
      TypeError: If a value does not match its type.
      UnsupportedComputationError: If the program does not take the clients.
      ValueError: If TensorFlow rejects the data, for example because labels
        are out of range.
    """


class Round(Program):
  """A computation over clients; subclasses choose where its parts run.

  Attributes:
    takes_client_seeds: Whether random numbers are drawn for each client.
    in_steps: The same computation for clients that do not fit a round, as a
      `steps.Steps`; None until it is needed.
  """

  takes_clients = True

  def __init__(self, form: computations.RoundForm, setting: Setting):
    """Converts the computation; no graph is built yet.

    Args:
      form: The computation's parts.
      setting: Where its clients run.

    Raises:
      UnsupportedComputationError: If a part cannot be compiled.
    """
    self._form = form
    self._setting = setting
    parts = dict(form.parts)
    self._work = graph_functions.build_graph_function(parts.pop('work'))
    if not setting.plan.num_parallel_clients:
      specs = values.tensor_specs(form.state_type)
      setting.plan = setting.plan.for_model(
          {node.op for node in self._work.nodes()},
          sum(spec.shape.num_elements() or 0 for spec in specs),
      )
    self._pipelines = client_tensors.why_pipelines(
        self._work, self._form.clients_type
    )
    self._parts = chunks.ServerParts(parts)
    self.takes_client_seeds = (
        self._work.takes_seed or self._parts['accumulate'].takes_seed
    )
    self._convert_state = elements.build_conversion(self._form.state_type)
    self._pack = values.build_pack(self._form.result_type)
    self.in_steps: Optional[Any] = None

  @property
  def plan(self) -> plans.Plan:
    """The plan of the clients' work."""
    return self._setting.plan

  def split(self, argument):
    return self._form.split(argument)

  def untrained(self) -> list[str]:
    """Returns the names of trainable weights that clients do not train."""
    return variables.find_untrained(self._work.serialized)

  def _collect(
      self, clients: Sequence[Any], key: round_keys.RoundKey
  ) -> client_tensors.Clients:
    """Collects the data of the clients."""
    collected = client_tensors.collect(
        clients,
        self._form.clients_type,
        self._setting.cache,
        self._pipelines,
        key,
        self._work.reread,
    )
    self.path = collected.path
    return collected

  def _seeds(
      self, num_clients: int, key: round_keys.RoundKey
  ) -> round_keys.Seeds:
    """Returns the seeds of a round."""
    return key.seeds(num_clients if self.takes_client_seeds else 0)

  def _to_result(self, arrays: Iterable[Any]) -> Any:
    """Returns the computation's result of its leaves, NumPy arrays."""
    packed = self._pack(iter(arrays))
    return packed if self._form.returns_state else packed[1]


class CompiledRound(Round):
  """A computation over clients, compiled to one graph."""

  def __init__(self, form: computations.RoundForm, setting: Setting):
    """Converts the computation; the graph is built in the first round."""
    super().__init__(form, setting)
    self._merges_chunks = self._parts.has_neutral_zero
    self._functions: dict[Any, Any] = {}
    self._run = running.Runner()

  def _build(self, layouts: client_tensors.Layouts) -> Any:
    """Builds the function of a round for clients of a layout."""
    arguments = (
        values.tensor_specs(self._form.state_type),
        layouts,
        tf.TensorSpec([], tf.int32),
        tf.TensorSpec([], tf.int32),
        tf.TensorSpec([2], tf.int32),
        tf.TensorSpec([None, 2], tf.int32),
    )

    def run(*flat):
      return self._whole(*tf.nest.pack_sequence_as(arguments, flat))

    return graph_functions.build(run, tf.nest.flatten(arguments))

  def _whole(
      self,
      state: Sequence[tf.Tensor],
      clients: Sequence[client_tensors.Leaf],
      num_clients: tf.Tensor,
      chunk_size: tf.Tensor,
      server_seed: tf.Tensor,
      client_seeds: tf.Tensor,
  ) -> list[tf.Tensor]:
    """Adds the round to the graph being built; returns its result's leaves."""
    part = functools.partial(self._parts.with_seed, seed=server_seed)
    with tf.device(f'/device:{self.plan.device}'):
      chunk_sum = chunks.ChunkSum(
          work=self._work.for_leaves(clients),
          parts=self._parts,
          clients=clients,
          broadcast=part('prepare')(*state),
          server_seed=server_seed,
          client_seeds=client_seeds,
      )
      total = self._merge_chunks(
          chunk_sum, server_seed, num_clients, chunk_size
      )
    return part('update')(*state, *part('report')(*total))

  def _merge_chunks(
      self,
      chunk_sum: chunks.ChunkSum,
      seed: tf.Tensor,
      num_clients: tf.Tensor,
      chunk_size: tf.Tensor,
  ) -> list[tf.Tensor]:
    """Returns the sum over all clients, in the graph being built.

    Args:
      chunk_sum: The sum over a chunk.
      seed: The seed of the server.
      num_clients: The number of clients.
      chunk_size: The number of clients in a chunk.
    """
    if not self._merges_chunks:
      return chunk_sum(tf.zeros([], tf.int32), num_clients)

    def sum_chunk(start):
      return chunk_sum(start, tf.minimum(start + chunk_size, num_clients))

    def add_chunk(start, total):
      merge = self._parts.with_seed('merge', seed, start)
      return start + chunk_size, merge(*total, *sum_chunk(start))

    return chunk_sum.loop(
        tf.zeros([], tf.int32),
        num_clients,
        add_chunk,
        appends=self._parts['merge'].appends,
        # Chunks run at the same time; only merging their sums is sequential.
        num_parallel=self.plan.num_parallel_clients,
    )

  def __call__(self, state, clients, key):
    collected = self._collect(clients, key)
    self._setting.note(collected.pipelines)
    layouts = collected.layouts()
    num_clients = len(clients)
    chunk_size = self.plan.chunk_size_of(num_clients)
    if layouts not in self._functions:
      self._functions[layouts] = self._build(layouts)
    with chunks.errors_of_round(self._work, self._parts):
      result = self._run(
          self._functions[layouts],
          *self._convert_state(state),
          *tf.nest.flatten(collected.leaves),
          tf.constant(num_clients),
          tf.constant(chunk_size),
          *map(tf.constant, self._seeds(num_clients, key)),
      )
    return self._to_result(map(values.to_array, result))


class CompiledFunction(Program):
  """A compiled computation without clients."""

  takes_clients = False

  def __init__(
      self,
      computation: tff.framework.ConcreteComputation,
      type_signature: tff.FunctionType,
      cache: dataset_cache.DatasetCache,
  ):
    """Converts the computation; the graph is built at its first run.

    Args:
      computation: A pure TensorFlow computation.
      type_signature: The type that determines the result's containers.
      cache: The cache of datasets.

    Raises:
      UnsupportedComputationError: If the computation cannot be compiled.
    """
    self._types = values.leaf_types(computation.type_signature.parameter)
    self.takes_sequences = any(
        isinstance(leaf, tff.SequenceType) for leaf in self._types
    )
    self._function = graph_functions.build_graph_function(
        computation, tensor_sequences=self.takes_sequences
    )
    self.takes_seed = self._function.takes_seed
    self._call = running.GraphCall(
        self._add,
        self._types,
        [tf.TensorSpec([2], tf.int32)],
        cache=cache if self._function.reads_tensors else None,
        are_reread=bool(self._function.reread),
    )
    self._flatten = values.build_flatten(type_signature.parameter)
    self._pack = values.build_pack(type_signature.result)

  def _add(self, *tensors: Any) -> list[tf.Tensor]:
    """Adds the computation to the graph being built; the seed comes last."""
    *leaves, seed = tensors
    return self._function.for_leaves(leaves)(*leaves, seed=seed)

  def split(self, argument):
    return argument, None

  def __call__(self, argument, clients, key):
    del clients
    leaves = map(elements.to_leaf, self._flatten(argument), self._types)
    seeds = [tf.constant(key.server_seed())]
    result = self._call(list(leaves), lambda: seeds, key=key)
    self.path = self._call.path
    return self._pack(map(values.to_array, result))

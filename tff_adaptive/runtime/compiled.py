# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The compiled runtime: runs TFF computations inside this process.

TFF's native runtime serializes each client's data and model to another process
and builds a pipeline for each client. Here a whole round is one TensorFlow
graph of this process: the clients' data are tensors, and a loop over the
clients runs their work and sums their results.
"""

import asyncio
from collections.abc import Sequence
import functools
import os
import sys
import threading
from typing import Any, Optional
import warnings
import weakref

from absl import logging
import tensorflow_federated as tff

from tff_adaptive import _error_texts
from tff_adaptive import _tff_internals
from tff_adaptive.data import random_streams
from tff_adaptive.data import specs
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import contexts
from tff_adaptive.runtime import native
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime import running
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.steps import rewrites

# The most characters of a type in a message.
_MAX_TYPE_LENGTH = 100


def _warn(message: str) -> None:
  """Warns at the line of the user's code that called a computation."""
  frame, stacklevel = sys._getframe(), 1  # pylint: disable=protected-access
  while frame.f_back and _is_library(frame.f_globals.get('__name__', '')):
    frame, stacklevel = frame.f_back, stacklevel + 1
  warnings.warn(message, RuntimeWarning, stacklevel=stacklevel)


def _is_library(module: str) -> bool:
  """Returns whether a module belongs to this library or to TFF."""
  return module.partition('.')[0] in ('tff_adaptive', 'tensorflow_federated')


def _check_awaits_nothing(caller: Any) -> None:
  """Raises if the frame of the caller is that of TFF's program context."""
  if caller.f_globals.get('__name__') == _tff_internals.PROGRAM_CONTEXT:
    raise TypeError(
        '`tff.program.NativeFederatedContext` takes an asynchronous context, '
        'found a `CompiledContext`: pass it `runtime.AsyncCompiledContext()`, '
        'which takes the same arguments.'
    )


def _forget(context: Any, key: int) -> None:
  """Drops the program of a computation that was garbage-collected."""
  if context() is not None:
    context()._programs.pop(key, None)  # pylint: disable=protected-access


def _hand_over(
    computation: tff.framework.ConcreteComputation, reason: str
) -> tff.framework.ConcreteComputation:
  """Warns that TFF's runtime takes over; returns the computation for it."""
  signature = computation.type_signature
  _warn(
      f"TFF's native runtime takes over, because {reason}. Its random numbers "
      f'are new in each run. Its type: {_cut(signature)}'
  )
  # A copy, so that the table of programs does not keep the computation alive.
  return tff.framework.ConcreteComputation.with_type(computation, signature)


def _cut(signature: tff.FunctionType) -> str:
  """Returns the text of a type, cut to one line."""
  text = signature.compact_representation()
  if len(text) <= _MAX_TYPE_LENGTH:
    return text
  return text[:_MAX_TYPE_LENGTH] + ' ...'


class _PipelinesError(computations.UnsupportedComputationError):
  """Clients' pipelines would have to run in a strict context."""


def _note_pipelines(is_strict: bool, reason: str) -> None:
  """Warns that clients' pipelines have to run; raises if `is_strict`."""
  if is_strict:
    raise _PipelinesError(
        "Each client's `tf.data` pipeline would have to run in each round, "
        f'because {reason}; change that, or do not pass `strict=True`.'
    )
  _warn(
      "Each client's `tf.data` pipeline runs in each round, which takes 10 to "
      f'30 ms per client, because {reason}.'
  )


class _NoXlaError(computations.UnsupportedComputationError):
  """TensorFlow would have to run a round in a strict context."""


def _note_no_xla(is_strict: bool, reason: str) -> None:
  """Warns that a round cannot be a program of XLA; raises if `is_strict`."""
  if is_strict:
    raise _NoXlaError(
        f'The round cannot be a program of XLA, because {reason}; change that, '
        "pass `devices='CPU'`, or do not pass `strict=True`."
    )
  _warn(f'TensorFlow runs the round on the CPU, because {reason}.')


class CompiledContext(contexts.OwnContext):
  """Runs TFF computations in this process.

  Results equal those of TFF's native runtime up to rounding, except for random
  numbers, which follow the seed (those of some aggregators of TFF follow the
  clock). Clients' data may be given as TFF takes them (a list with a
  `tf.data.Dataset` or a list of batches for each client) or as a
  `tff_adaptive.data.Cohort`, which is faster.

  Example:
    ```python
    import tensorflow_federated as tff
    from tff_adaptive import runtime

    runtime.CompiledContext().install()  # TFF's default from here on.
    process = tff.learning.algorithms.build_weighted_fed_avg(...)

    with runtime.CompiledContext(strict=True, seed=1):  # In this block alone.
      state = process.initialize()
      output = process.next(state, client_datasets)
    ```
  """

  def __init__(
      self,
      *,
      devices: str = plans.AUTO,
      num_parallel_clients: Optional[int] = None,
      strict: bool = False,
      seed: Optional[int] = None,
      default_num_clients: int = 1,
      max_cache_bytes: int = dataset_cache.DEFAULT_MAX_BYTES,
  ):
    """Initializes the context; nothing is compiled yet.

    Args:
      devices: Where rounds run: `'CPU'`, `'GPU'`, `'TPU'`, or a name such as
        `'GPU:1'`. On an accelerator JAX runs each round as one program of XLA,
        on `'XLA:CPU'` likewise, for tests and comparisons; `'GPUs'` shares
        the clients of a round out among all GPUs, `'GPU:0-1'` among some.
        Defaults to the first accelerator that JAX sees, else the CPU.
      num_parallel_clients: The number of clients that run at once, a positive
        integer. Defaults to the number of cores on a CPU; on a device of JAX to
        16 or 1, by the model.
      strict: Whether to raise if a computation cannot be compiled or clients'
        data cannot be kept as arrays. Otherwise, the default, a warning gives
        the reason, and TFF's native runtime takes over, whose random numbers
        are new in each run, or each client's `tf.data` pipeline runs in each
        round.
      seed: The seed of random numbers if neither a `Cohort` nor `begin_round`
        sets one. Defaults to a random seed.
      default_num_clients: The number of clients if the argument does not tell,
        for example if it is equal at all clients. Defaults to 1; TFF's default
        is 0, for which means are undefined.
      max_cache_bytes: The size of the cache of client data that were read:
        datasets, and sources of cohorts. The least recently used data are
        dropped first. Defaults to 4 GiB; 0 disables the cache.

    Raises:
      TypeError: If the seed, or a number of clients or of bytes, is not an
        integer.
      ValueError: If one of them is negative or `num_parallel_clients` is 0, or
        if a device is unknown.
    """
    specs.check_not_negative('default_num_clients', default_num_clients)
    specs.check_not_negative('max_cache_bytes', max_cache_bytes)
    super().__init__()
    self._plan = self._choose_plan(devices, num_parallel_clients)
    seed = _choose_seed(seed)
    self._default_num_clients = default_num_clients
    self._strict = strict
    self._log_once = functools.cache(logging.info)
    self._warn_once = functools.cache(_warn)
    # Not a method: programs must not hold a reference to the context.
    self._note_pipelines = functools.partial(_note_pipelines, strict)
    self._note_no_xla = functools.partial(_note_no_xla, strict)
    self._keys = round_keys.RoundKeys(seed)
    self._cache = dataset_cache.DatasetCache(max_cache_bytes)
    # By the id of a computation. The value is a computation where the native
    # runtime has taken over.
    self._programs: dict[int, Any] = {}
    self._native: Optional[native.NativeContext] = None
    self._lock = threading.RLock()

  def _choose_plan(
      self, devices: str, num_parallel_clients: Optional[int]
  ) -> plans.Plan:
    return plans.choose_plan(devices, num_parallel_clients)

  @property
  def device(self) -> str:
    """The device of the clients' work, such as 'CPU:0'."""
    return self._plan.device

  @property
  def num_cache_bytes(self) -> int:
    """The size of the cached client data, see the constructor."""
    return self._cache.num_bytes

  def begin_round(
      self,
      seed: int,
      round_num: int,
      client_ids: Optional[Sequence[str]] = None,
  ) -> None:
    """Sets the seed, round and client ids that key all random draws.

    They are those of the next round alone: each later one draws numbers of its
    own, which depend on these arguments and on the number of rounds since this
    call. A `tff_adaptive.data.Cohort` brings its own key. Without either,
    random numbers depend on the seed of the context and the number of
    computations over clients that it has run.

    Computations without clients, such as `initialize`, depend on the key of the
    latest round that began and on the number of such draws since.

    Args:
      seed: The seed of the experiment, a non-negative integer.
      round_num: The round number, a non-negative integer.
      client_ids: The client ids in the order of the argument. Defaults to the
        clients' positions.

    Raises:
      TypeError: If a number is not an integer.
      ValueError: If a number is negative.
    """
    specs.check_not_negative('round_num', round_num)
    self._keys.begin(
        round_keys.RoundKey(
            random_streams.check_seed(seed),
            int(round_num),
            None if client_ids is None else list(client_ids),
        )
    )

  def invoke(self, comp: tff.framework.ConcreteComputation, arg: Any) -> Any:
    """Runs a computation, see `tff.framework.SyncContext`.

    Args:
      comp: The computation.
      arg: Its argument, or None.

    Returns:
      Its result, with NumPy arrays for tensors. They are read-only, because
      they share the tensors' memory.

    Raises:
      UnsupportedComputationError: If the context is strict and cannot compile
        the computation, or run it with this argument.
      TypeError: If the argument does not match the computation, or a
        `tff.program.NativeFederatedContext` awaits the result.
      ValueError: If TensorFlow rejects the clients' data.
      RuntimeError: If this process was forked from one that had started
        TensorFlow.
    """
    running.check_process()
    _check_awaits_nothing(sys._getframe(1))  # pylint: disable=protected-access
    with self._lock:
      try:
        program = self._program(comp)
        if not isinstance(program, tff.framework.ConcreteComputation):
          return self._run_or_take_steps(comp, program, arg)
      except computations.UnsupportedComputationError as e:
        if self._strict:
          raise
        # For all later runs too, so that results do not mix both runtimes.
        program = self._keep(comp, _hand_over(comp, str(e)))
      return self._native_context().invoke(program, arg)

  def plan_of(
      self, computation: tff.framework.ConcreteComputation
  ) -> Optional[plans.Plan]:
    """Returns the plan of the clients' work in a computation.

    Args:
      computation: A computation that ran in this context.

    Returns:
      The plan; None if it has no clients or the native runtime took over.
    """
    return getattr(self._programs.get(id(computation)), 'plan', None)

  def path_of(
      self, computation: tff.framework.ConcreteComputation
  ) -> Optional[str]:
    """Returns how the latest run of a computation was executed.

    Args:
      computation: A computation that ran in this context.

    Returns:
      `'xla'`: as one program of XLA, which JAX runs.
      `'compiled'`: as one graph of this process, sequences from tensors.
      `'cached'`: likewise; `tf.data` datasets are read once and kept.
      `'threads'`: likewise, but datasets run in each round.
      `'steps'`: in this process, one step after the other.
      `'native'`: on TFF's native runtime.
      None if the computation has not run here.

    Example:
      ```python
      with runtime.CompiledContext() as context:
        state = process.initialize()
        process.next(state, client_datasets)
        print(context.path_of(process.next))
      ```
    """
    program = self._programs.get(id(computation))
    if isinstance(program, tff.framework.ConcreteComputation):
      return plans.NATIVE
    return getattr(program, 'path', None)

  def close(self) -> None:
    """Ends the native runtime's worker, if one was started."""
    with self._lock:
      if self._native is not None:
        self._native.close()
        self._native = None

  def _program(self, computation: tff.framework.ConcreteComputation) -> Any:
    """Returns the compiled form of a computation, compiled at its first use."""
    if id(computation) not in self._programs:
      self._keep(computation, self._compile(computation))
    return self._programs[id(computation)]

  def _keep(
      self, computation: tff.framework.ConcreteComputation, program: Any
  ) -> Any:
    """Keeps and returns the compiled form, as long as the computation lives."""
    # The finalizer must not keep the programs of a dead context alive.
    weakref.finalize(computation, _forget, weakref.ref(self), id(computation))
    self._programs[id(computation)] = program
    return program

  def _compile(
      self,
      computation: tff.framework.ConcreteComputation,
      may_be_whole: bool = True,
      may_be_xla: bool = True,
  ) -> rounds.Program:
    """Compiles a computation to one graph if it may and can be, else to steps.

    Args:
      computation: The computation.
      may_be_whole: Whether it may be one graph. Defaults to True.
      may_be_xla: Whether a round may be a program of XLA. Defaults to True.
    """
    if computations.uses_secure_sums(computation):
      self._warn_once(
          'Secure sums are computed in the clear: a simulation provides no '
          'secure aggregation.'
      )
    prepared, add_datasets = rewrites.prepare(computation)
    program: Optional[rounds.Program] = None
    if may_be_whole:
      try:
        program = self._compile_whole(prepared, may_be_xla)
      except _NoXlaError:
        raise
      except computations.UnsupportedComputationError:
        pass  # It is run step by step.
    if program is None:
      # Most programs are rounds alone.
      from tff_adaptive.runtime.steps import steps  # pylint: disable=import-outside-toplevel

      program = steps.Steps(prepared, self._setting().on_cpu())
    program.add_datasets = add_datasets
    return program

  def _compile_whole(
      self, computation: tff.framework.ConcreteComputation, may_be_xla: bool
  ) -> rounds.Program:
    """Compiles a computation to one graph; the arguments are `_compile`'s."""
    signature = computation.type_signature
    if computations.is_tensorflow(computation):
      return rounds.CompiledFunction(computation, signature, self._cache)
    if computations.takes_clients(signature):
      form = computations.get_round_form(computation)
      program = self._compile_to_xla(form) if may_be_xla else None
      if program is None:
        program = self._compile_round(form, self._setting().on_cpu())
      if names := program.untrained():
        self._warn_once(_error_texts.untrained_weights(names))
      self._log_once(
          "The clients' work runs on %s, %d at once.",
          program.plan.device,
          program.plan.num_parallel_clients,
      )
      return program
    if signature.parameter is None:
      return rounds.CompiledFunction(
          computations.get_initialization(computation), signature, self._cache
      )
    raise computations.UnsupportedComputationError('it is not one graph')

  def _compile_to_xla(
      self, form: computations.RoundForm
  ) -> Optional[rounds.Round]:
    """Compiles a computation over clients for JAX; None if that cannot be."""
    if not self._plan.runs_xla:
      return None
    try:
      return self._compile_round(form, self._setting())
    except computations.NoLoweringError as error:
      self._note_no_xla(str(error))
      return None

  def _compile_round(
      self, form: computations.RoundForm, setting: rounds.Setting
  ) -> rounds.Round:
    """Compiles a computation over clients for where they run."""
    if not setting.plan.runs_xla:
      return rounds.CompiledRound(form, setting)
    # Most programs need no JAX.
    from tff_adaptive.runtime.accelerators import xla_rounds  # pylint: disable=import-outside-toplevel

    return xla_rounds.XlaRound(form, setting)

  def _setting(self) -> rounds.Setting:
    """Returns the setting of a program."""
    return rounds.Setting(self._plan, self._cache, self._note_pipelines)

  def _run_or_take_steps(
      self,
      computation: tff.framework.ConcreteComputation,
      program: Any,
      arg: Any,
  ) -> Any:
    """Runs a program; step by step if a round does not take the argument."""
    try:
      return self._run(program, arg)
    except _PipelinesError:
      raise
    except computations.NoLoweringError as error:
      self._note_no_xla(str(error))
      # For all later rounds too, so that results do not mix both.
      program = self._compile(computation, may_be_xla=False)
      self._keep(computation, program)
      return self._run_or_take_steps(computation, program, arg)
    except computations.UnsupportedComputationError:
      if not isinstance(program, rounds.Round):
        raise
    # For this argument only, so that others have the same bits after it.
    if program.in_steps is None:
      program.in_steps = self._compile(computation, may_be_whole=False)
    result = self._run(program.in_steps, arg)
    program.path = program.in_steps.path
    return result

  def _run(self, program: Any, arg: Any) -> Any:
    """Runs a `rounds.Program`."""
    if program.add_datasets is not None:
      arg = program.add_datasets(arg)
    given, clients = program.split(arg)
    if clients is None:
      clients = [()] * self._default_num_clients
    key_of = (
        self._keys.of_round(clients)
        if program.takes_clients
        else self._keys.of_call(program.takes_seed, program.takes_sequences)
    )
    with key_of as key:
      return program(given, clients, key)

  def _native_context(self) -> tff.framework.SyncContext:
    if self._native is None:
      self._native = native.NativeContext(
          secure_sums_in_clear=True,
          default_num_clients=self._default_num_clients,
      )
    return self._native


def _choose_seed(seed: Optional[int]) -> int:
  """Returns a checked seed; a random one for None."""
  if seed is None:
    seed = int.from_bytes(os.urandom(4), 'little')
  return random_streams.check_seed(seed)


class AsyncCompiledContext(tff.framework.AsyncContext):
  """Runs computations in this process, as coroutines for `tff.program`.

  The programs of TFF, such as `tff.learning.programs.train_model`, run in a
  `tff.program.FederatedContext` around an asynchronous context.

  Attributes:
    context: The `CompiledContext` that runs them, with `begin_round` and
      `plan_of`.

  Example:
    ```python
    import asyncio
    import tensorflow_federated as tff
    from tff_adaptive import runtime

    tff.framework.set_default_context(
        tff.program.NativeFederatedContext(runtime.AsyncCompiledContext())
    )
    asyncio.run(tff.learning.programs.train_model(...))
    ```
  """

  def __init__(self, **kwargs: Any):
    """Initializes the context.

    Args:
      **kwargs: See `CompiledContext`, also for errors.
    """
    self.context = CompiledContext(**kwargs)

  async def invoke(
      self, comp: tff.framework.ConcreteComputation, arg: Any
  ) -> Any:
    """Runs a computation, see `CompiledContext.invoke`.

    Computations run one after the other in another thread, while the event loop
    goes on.

    Args:
      comp: The computation.
      arg: Its argument, or None; or a coroutine that returns it.

    Returns:
      Its result.
    """
    if asyncio.iscoroutine(arg):
      arg = await arg
    return await asyncio.to_thread(self.context.invoke, comp, arg)

  def close(self) -> None:
    """Ends the native runtime's worker, if one was started."""
    self.context.close()

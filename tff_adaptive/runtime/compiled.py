# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The compiled runtime: TFF computations inside this TensorFlow process.

TFF's native runtime serializes each client's data and model to another process
and sets up a pipeline for each. Here a whole round is one TensorFlow graph of
this process: the clients' data are tensors, and a loop over clients runs their
work and sums up what they report.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import functools
import os
import sys
import threading
from typing import Any, NamedTuple, Optional
import warnings
import weakref

from absl import logging
import numpy as np
import tensorflow_federated as tff

from tff_adaptive import _random_ops
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import random_streams
from tff_adaptive.data import specs
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import dataset_cache
from tff_adaptive.runtime import native
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import rounds


def _warn(message: str) -> None:
  """Warns of the line that called a computation."""
  frame, stacklevel = sys._getframe(), 1  # pylint: disable=protected-access
  while frame.f_back and _is_library(frame.f_globals.get('__name__', '')):
    frame, stacklevel = frame.f_back, stacklevel + 1
  warnings.warn(message, RuntimeWarning, stacklevel=stacklevel)


def _is_library(module: str) -> bool:
  """Whether a module is of this library or of TFF."""
  return module.partition('.')[0] in ('tff_adaptive', 'tensorflow_federated')


def _forget(context: Any, key: int) -> None:
  """Drops the program of a computation that is gone."""
  if context() is not None:
    context()._programs.pop(key, None)  # pylint: disable=protected-access


def _hand_over(
    computation: tff.framework.ConcreteComputation, reason: str
) -> tff.framework.ConcreteComputation:
  """Warns that the native runtime takes over; returns what it is to run."""
  message = (
      "TFF's native runtime takes over a computation of type "
      f'{computation.type_signature}, because {reason}'
  )
  try:
    handed_over = native.with_seeds(computation)
  except _random_ops.UnsupportedRandomOpError as e:
    message += f'; clients draw numbers anew in each run, because {e}'
    # A copy: what runs must not keep the computation from vanishing.
    handed_over = tff.framework.ConcreteComputation.with_type(
        computation, computation.type_signature
    )
  _warn(message)
  return handed_over


def _note_pipelines(is_strict: bool, reason: str) -> None:
  """Warns that clients' pipelines have to run, or raises if that is strict."""
  if is_strict:
    raise computations.UnsupportedComputationError(
        "Each client's `tf.data` pipeline would have to run in each round, "
        f'because {reason}; change that, or let it run without `strict=True`.'
    )
  _warn(
      "Each client's `tf.data` pipeline runs in each round, which takes 10 to "
      f'30 ms a client, because {reason}.'
  )


class RoundKey(NamedTuple):
  """What random numbers of a round depend on.

  Attributes:
    seed: The seed of the experiment.
    round_num: The number of the round.
    client_ids: The ids of the clients in their order; None for their places.
  """

  seed: int
  round_num: int
  client_ids: Optional[Sequence[str]] = None

  def server_seed(self) -> np.ndarray:
    """Returns the seed of what happens at the server, int32 of shape [2]."""
    return random_streams.stateless_seed(
        self.seed, random_streams.SERVER_NOISE, self.round_num
    )

  def client_seeds(self, num_clients: int) -> np.ndarray:
    """Returns the seeds of the first clients, int32 of shape [num_clients, 2].

    Args:
      num_clients: How many clients get one.
    """
    ids: Sequence[random_streams.Key] = self.client_ids or range(num_clients)
    seeds = [
        random_streams.stateless_seed(
            self.seed, random_streams.DROPOUT, self.round_num, client_id
        )
        for client_id in list(ids)[:num_clients]
    ]
    return np.asarray(seeds, np.int32).reshape([-1, 2])


class CompiledContext(tff.framework.SyncContext):
  """Executes TFF computations here; see `create_compiled_context`."""

  def __init__(
      self,
      plan: plans.Plan,
      *,
      strict: bool,
      seed: int,
      default_num_clients: int = 1,
      max_cache_bytes: int = dataset_cache.DEFAULT_MAX_BYTES,
  ):
    """Initializes the context; nothing is compiled yet.

    Args:
      plan: How and where the clients' work runs.
      strict: See `create_compiled_context`.
      seed: What random numbers depend on where nothing else says so, a
        non-negative integer.
      default_num_clients: See `create_compiled_context`.
      max_cache_bytes: See `create_compiled_context`.
    """
    self._plan = plan
    self._default_num_clients = default_num_clients
    self._strict = strict
    self._log_once = functools.cache(logging.info)
    self._warn_once = functools.cache(_warn)
    # No method of the context, which programs must not keep.
    self._note_pipelines = functools.partial(_note_pipelines, strict)
    self._seed = seed
    # What `begin_round` was told.
    self._told: Optional[RoundKey] = None
    self._num_rounds = 0
    self._cache = dataset_cache.DatasetCache(max_cache_bytes)
    # By the id of a computation; another computation where the native runtime
    # has taken it over.
    self._programs: dict[int, Any] = {}
    self._native: Optional[tuple[Any, Callable[[], None]]] = None
    self._lock = threading.RLock()

  @property
  def device(self) -> str:
    """Where the clients' work runs, such as 'CPU:0'."""
    return self._plan.device

  @property
  def num_cache_bytes(self) -> int:
    """How much is kept of clients' data, see `create_compiled_context`."""
    return self._cache.num_bytes

  def begin_round(
      self,
      seed: int,
      round_num: int,
      client_ids: Optional[Sequence[str]] = None,
  ) -> None:
    """Sets what the random numbers of the next computations depend on.

    A `tff_adaptive.simulation.Cohort` says so itself. Without either, random
    numbers depend on the seed of the context and on how many computations over
    clients it has run.

    Args:
      seed: The seed of the experiment, a non-negative integer.
      round_num: The number of the round, a non-negative integer.
      client_ids: The ids of the clients in the order of the argument; their
        places in it by default.

    Raises:
      TypeError: If a number is not an integer.
      ValueError: If a number is negative.
    """
    self._told = RoundKey(
        random_streams.check_seed(seed),
        random_streams.check_seed(round_num),
        None if client_ids is None else list(client_ids),
    )

  def invoke(self, comp: tff.framework.ConcreteComputation, arg: Any) -> Any:
    """Runs a computation, see `tff.framework.SyncContext`.

    Args:
      comp: The computation.
      arg: Its argument, None without one.

    Returns:
      Its result, with NumPy arrays for tensors. They share the memory of the
      tensors and cannot be written to, but for copies of them.

    Raises:
      UnsupportedComputationError: If the context is strict and cannot compile
        the computation, or run it with this argument.
      TypeError: If the argument does not fit the computation.
      ValueError: If an op of it does not take the clients' data.
    """
    with self._lock:
      try:
        program = self._program(comp)
        if not isinstance(program, tff.framework.ConcreteComputation):
          return self._run(program, arg)
      except computations.UnsupportedComputationError as e:
        if self._strict:
          raise
        # From now on, so that a run does not change between the two.
        program = self._programs[id(comp)] = _hand_over(comp, str(e))
      return self._native_context().invoke(program, arg)

  def plan_of(
      self, computation: tff.framework.ConcreteComputation
  ) -> Optional[plans.Plan]:
    """Tells how the clients of a computation work.

    Args:
      computation: A computation that ran in this context.

    Returns:
      The plan; None if it has no clients or the native runtime took it over.
    """
    return getattr(self._programs.get(id(computation)), 'plan', None)

  def close(self) -> None:
    """Ends the worker of the native runtime, if one was started."""
    with self._lock:
      if self._native is not None:
        self._native[1]()
        self._native = None

  def _program(self, computation: tff.framework.ConcreteComputation) -> Any:
    """The compiled form of a computation, made when it is first met."""
    key = id(computation)
    if key not in self._programs:
      # The finalizer must not keep the programs of a context that is gone.
      weakref.finalize(computation, _forget, weakref.ref(self), key)
      self._programs[key] = self._compile(computation)
    return self._programs[key]

  def _compile(self, computation: tff.framework.ConcreteComputation) -> Any:
    if computations.is_tensorflow(computation):
      return rounds.CompiledFunction(computation, computation.type_signature)
    if computations.takes_clients(computation.type_signature):
      if computations.uses_secure_sums(computation):
        self._warn_once(
            'Secure sums are computed in the clear: nothing is secure in a '
            'simulation.'
        )
      program = self._compile_round(computation)
      self._log_once(
          "The clients' work runs on %s, plan %s.",
          program.plan.device,
          program.plan.name,
      )
      return program
    if computation.type_signature.parameter is None:
      return rounds.CompiledFunction(
          computations.get_initialization(computation),
          computation.type_signature,
      )
    raise computations.UnsupportedComputationError(
        'it is not TensorFlow alone and takes nothing at the clients'
    )

  def _compile_round(
      self, computation: tff.framework.ConcreteComputation
  ) -> Any:
    """The compiled form of a computation over clients."""
    return rounds.CompiledRound(
        computation, self._plan, self._cache, self._note_pipelines
    )

  def _run(self, program: Any, arg: Any) -> Any:
    if isinstance(program, rounds.CompiledFunction):
      return program(arg, self._current_key().server_seed())
    return self._run_round(program, arg)

  def _current_key(self) -> RoundKey:
    return self._told or RoundKey(self._seed, self._num_rounds)

  def _next_key(self, clients: Sequence[Any]) -> RoundKey:
    """Returns the key of the round that begins.

    A `Cohort` brings its key. Without one it is what `begin_round` was told, or
    else the seed of the context and how many rounds it has run.
    """
    if isinstance(clients, cohort_lib.Cohort):
      return RoundKey(clients.seed, clients.round_num, clients.client_ids)
    key = self._current_key()
    if self._told is None:
      self._num_rounds += 1
    elif key.client_ids is not None and len(key.client_ids) != len(clients):
      raise ValueError(
          f'`begin_round` was told of {len(key.client_ids)} clients, found '
          f'{len(clients)}.'
      )
    return key

  def _run_round(self, program: Any, arg: Any) -> Any:
    state, clients = program.split(arg)
    if clients is None:
      clients = [()] * self._default_num_clients
    key = self._next_key(clients)
    seeds = rounds.Seeds(
        key.server_seed(),
        key.client_seeds(len(clients) if program.takes_client_seeds else 0),
    )
    return program(state, clients, seeds)

  def _native_context(self) -> tff.framework.SyncContext:
    if self._native is None:
      self._native = native.create_native_context(
          secure_sums_in_clear=True,
          default_num_clients=self._default_num_clients,
      )
    return self._native[0]


def choose_plan(
    devices: plans.Devices = plans.AUTO, plan: str = plans.AUTO
) -> plans.Plan:
  """Chooses how clients work.

  Args:
    devices: See `create_compiled_context`.
    plan: See `create_compiled_context`.

  Returns:
    The plan of a context with the same arguments.

  Raises:
    ValueError: If a device or a plan is not known.
  """
  return plans.choose(plan, plans.choose_device(devices))


def create_compiled_context(
    *,
    devices: plans.Devices = plans.AUTO,
    plan: str = plans.AUTO,
    strict: bool = False,
    seed: Optional[int] = None,
    default_num_clients: int = 1,
    max_cache_bytes: int = dataset_cache.DEFAULT_MAX_BYTES,
) -> CompiledContext:
  """Creates a context that runs computations inside this process.

  Results equal those of TFF's native runtime up to rounding, except where
  random numbers are drawn: they follow the seed. Clients' data may be given as
  TFF takes them (a list with a `tf.data.Dataset`, or a list of batches, for
  each client) or as a `tff_adaptive.simulation.Cohort`, the fast way.

  Args:
    devices: Where the clients' work runs: `'CPU'`, `'GPU'`, or a name such as
      `'/device:GPU:1'`. By default the first GPU that TensorFlow sees, else the
      CPU.
    plan: How the clients' work runs: one after the other (`'loop'`), or several
      at once (`'parallel'`). By default what suits the device, see
      `plans.choose`.
    strict: Whether it is an error if a computation cannot be compiled, or
      clients' data cannot be kept as arrays. Otherwise, the default, TFF's
      native runtime takes the computation over, or each client's `tf.data`
      pipeline runs in each round, after a warning that says why. What clients
      draw in their training (dropout) on the native runtime depends on their
      data and on what they received, not on the seed.
    seed: What random numbers depend on where neither a `Cohort` nor
      `begin_round` says so. By default drawn anew.
    default_num_clients: How many clients there are where the argument does not
      tell, as of a value that is equal at all of them. Defaults to 1; TFF's
      default is 0, of which there is no mean and no value.
    max_cache_bytes: How much is kept of the clients' data that were read:
      datasets, and sources of cohorts. What was not used for the longest time
      has to go first, and is read again. Defaults to 4 GiB; 0 for nothing.

  Returns:
    The context, for `tff.framework.set_default_context`.

  Raises:
    TypeError: If the seed, or the number of clients or of bytes, is not an
      integer.
    ValueError: If one of them is negative, or a device or a plan is not known.

  Example:

    ```python
    import tensorflow_federated as tff
    from tff_adaptive import runtime

    context = runtime.create_compiled_context(strict=True, seed=1)
    tff.framework.set_default_context(context)
    ```
  """
  specs.check_not_negative('default_num_clients', default_num_clients)
  specs.check_not_negative('max_cache_bytes', max_cache_bytes)
  chosen = choose_plan(devices, plan)
  native.free_default_context_at_exit()
  return CompiledContext(
      chosen,
      strict=strict,
      seed=check_seed(seed),
      default_num_clients=default_num_clients,
      max_cache_bytes=max_cache_bytes,
  )


def check_seed(seed: Optional[int]) -> int:
  """Returns the seed of a context, drawn anew if there is none."""
  if seed is None:
    seed = int.from_bytes(os.urandom(4), 'little')
  return random_streams.check_seed(seed)


def set_compiled_context(**kwargs: Any) -> CompiledContext:
  """Runs TFF computations inside this process from here on.

  Args:
    **kwargs: See `create_compiled_context`.

  Returns:
    The context, which is TFF's default context now.

  Raises:
    TypeError: See `create_compiled_context`.
    ValueError: See `create_compiled_context`.

  Example:

    ```python
    import tensorflow_federated as tff
    from tff_adaptive import runtime

    runtime.set_compiled_context()
    process = tff.learning.algorithms.build_weighted_fed_avg(...)
    ```
  """
  context = create_compiled_context(**kwargs)
  native.set_default_context(context)
  return context


@contextlib.contextmanager
def compiled_context(
    *,
    devices: plans.Devices = plans.AUTO,
    plan: str = plans.AUTO,
    strict: bool = False,
    seed: Optional[int] = None,
    default_num_clients: int = 1,
    max_cache_bytes: int = dataset_cache.DEFAULT_MAX_BYTES,
) -> Iterator[CompiledContext]:
  """Runs TFF computations inside this process within a `with` block.

  Args:
    devices: See `create_compiled_context`.
    plan: See `create_compiled_context`.
    strict: See `create_compiled_context`.
    seed: See `create_compiled_context`.
    default_num_clients: See `create_compiled_context`.
    max_cache_bytes: See `create_compiled_context`.

  Yields:
    The context, which is installed for the calling thread.

  Raises:
    TypeError: See `create_compiled_context`.
    ValueError: See `create_compiled_context`.

  Example:

    ```python
    from tff_adaptive import runtime

    with runtime.compiled_context():
      state = process.initialize()
      output = process.next(state, client_datasets)
    ```
  """
  context = create_compiled_context(
      devices=devices,
      plan=plan,
      strict=strict,
      seed=seed,
      default_num_clients=default_num_clients,
      max_cache_bytes=max_cache_bytes,
  )
  with (
      contextlib.closing(context),
      tff.framework.get_context_stack().install(context),
  ):
    yield context

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The training loop: rounds, evaluation, metrics, checkpoints, resume."""

import collections
from collections.abc import Callable, Collection, Mapping, Sequence
import contextlib
import functools
import inspect
import time
from typing import Any, Optional

import attrs
import numpy as np
import tensorflow_federated as tff

from tff_adaptive import _files
from tff_adaptive.data import specs
from tff_adaptive.simulation import callbacks as callbacks_lib
from tff_adaptive.simulation import checkpoints as checkpoints_lib
from tff_adaptive.simulation import client_states as client_states_lib
from tff_adaptive.simulation import cohorts
from tff_adaptive.simulation import interruptions
from tff_adaptive.simulation import metrics_writers
from tff_adaptive.simulation import progress as progress_lib
from tff_adaptive.simulation import structures

# By then, graphs are compiled and caches are full.
_ROUNDS_BEFORE_PROFILE = 2
_REJECTED_ROUNDS_KEY = 'rejected_rounds'
_CALLBACKS_KEY = 'callbacks'
_WEIGHTS_KEY = 'weights'


class TrainingInterrupted(KeyboardInterrupt):
  """Ctrl-C or SIGTERM ended a run; the text says how to continue."""


@attrs.frozen
class TrainingResult:
  """The result of a run.

  Attributes:
    state: The final state of the learning process.
    round_num: The number of finished rounds.
    num_new_rounds: The number of rounds that this call has trained.
    evaluation: The central evaluation of the final weights, or None without
      an evaluation function.
    stopped: Whether a callback ended the run. Defaults to False.
    seconds: The seconds of the new rounds by part: `rounds` for the work of
      clients and server, `input` for waiting for the clients' data,
      `evaluation`, `metrics` for callbacks and writers, and `checkpoints`.
      Empty by default.
  """

  state: Any
  round_num: int
  num_new_rounds: int
  evaluation: Optional[Mapping[str, float]]
  stopped: bool = False
  seconds: Mapping[str, float] = attrs.field(factory=dict)


def _parameters(function: Callable[..., Any]) -> Collection[str]:
  """Returns the names of a function's parameters; none if it has no list."""
  try:
    return inspect.signature(function).parameters
  except ValueError:  # Of a function in C.
    return ()


def _leaf_names(state: Any) -> frozenset[str]:
  """Returns the names of the leaves in a callback's state."""
  leaves = structures.flatten_with_path(state)
  return frozenset('/'.join(path) for path, _ in leaves)


def _build_initial_state(
    process: tff.learning.templates.LearningProcess,
    initial_state_fn: Any,
) -> Any:
  """Returns the state before the first round, in the types of the process."""
  if initial_state_fn in (None, process.initialize):
    return process.initialize()
  state = initial_state_fn()
  signature = getattr(process.initialize, 'type_signature', None)
  if signature is None:
    return state
  # Rounds take numbers of Python and float64, but return their own dtypes.
  state_type = signature.result.member
  return tff.tensorflow.computation(lambda given: given, state_type)(state)


def _sequence_of(kind: type) -> Any:
  return attrs.validators.deep_iterable(
      specs.instance_of(kind), specs.instance_of(Sequence)
  )


@attrs.define(kw_only=True)
class _Run:
  """A run between two rounds: its state, and how to advance and record it.

  Attributes: those of `run_training`, followed by the mutable ones.
  """

  process: tff.learning.templates.LearningProcess
  cohort_fn: Callable[[int], Any]
  total_rounds: int = attrs.field(validator=specs.positive_integer)
  evaluate_fn: Optional[Callable[..., Mapping[str, float]]]
  rounds_per_evaluation: int = attrs.field(validator=specs.positive_integer)
  rounds_per_checkpoint: int = attrs.field(validator=specs.positive_integer)
  checkpoints: Optional[checkpoints_lib.CheckpointManager] = attrs.field(
      validator=attrs.validators.optional(
          specs.instance_of(checkpoints_lib.CheckpointManager)
      )
  )
  writers: Sequence[metrics_writers.MetricsWriter] = attrs.field(
      validator=_sequence_of(metrics_writers.MetricsWriter)
  )
  callbacks: Sequence[callbacks_lib.Callback] = attrs.field(
      validator=_sequence_of(callbacks_lib.Callback)
  )
  get_weights: Callable[[Any], Any]
  client_states: Optional[client_states_lib.ClientStates]
  adjust_state_fn: Optional[Callable[[Any, int], Any]]
  health: interruptions.RunHealth
  state: Any = None
  round_num: int = 0
  saved_round: int = 0
  is_recorded: bool = True
  stopped: bool = False
  evaluation: Optional[Mapping[str, float]] = None
  callback_leaves: Sequence[Collection[str]] = ()
  stopwatch: progress_lib.Stopwatch = attrs.field(
      factory=progress_lib.Stopwatch
  )

  def start(self, state: Any):
    """Starts from the initial state of the process."""
    self.state = state
    start = callbacks_lib.TrainingStart(
        state=state,
        get_weights=functools.partial(self.get_weights, state),
        get_evaluation=functools.cache(
            functools.partial(self.evaluate, state, self.round_num)
        ),
    )
    for callback in self.callbacks:
      callback.on_training_start(start)

  def _callback_states(self):
    return [callback.get_state() for callback in self.callbacks]

  def _check_callbacks(self):
    """Raises if a callback has other leaves than at the start of the run."""
    if self.checkpoints is None:
      return
    for callback, before, state in zip(
        self.callbacks, self.callback_leaves, self._callback_states()
    ):
      found = _leaf_names(state)
      if found != before:
        raise ValueError(
            f'`get_state` of {type(callback).__name__} must return the same '
            'structure during the run, or no checkpoint could be restored; '
            f'only the start, or only round {self.round_num}, has '
            f'`{min(found ^ before)}`. An unknown value can be NaN, and a list '
            'an array.'
        )

  def _snapshot(self):
    """Returns everything that a resumed run needs as one structure."""
    snapshot = collections.OrderedDict(
        process=self.state,
        callbacks=self._callback_states(),
        stopped=np.bool_(self.stopped),
    )
    snapshot[_REJECTED_ROUNDS_KEY] = np.int64(self.health.num_rejected_rounds)
    if self.client_states:
      index = self.client_states.index()
      snapshot[client_states_lib.SNAPSHOT_KEY] = index
    if self.get_weights != self.process.get_model_weights:
      # What is evaluated, for those who read the file without the process.
      snapshot[_WEIGHTS_KEY] = self.get_weights(self.state)
    return snapshot

  def restore(self):
    """Restores the newest checkpoint, or the start without one."""
    checkpoints = self.checkpoints
    if self.client_states:
      self.client_states.load()
    snapshot = self._snapshot()
    if checkpoints is not None:
      checkpoints_lib.check_storable(snapshot)
    self.callback_leaves = list(map(_leaf_names, snapshot[_CALLBACKS_KEY]))
    names = (_REJECTED_ROUNDS_KEY, _WEIGHTS_KEY)
    newer = {name: snapshot[name] for name in names if name in snapshot}
    loaded = checkpoints and checkpoints.load_latest(
        snapshot,
        {
            '/'.join(path): np.asarray(leaf)
            for path, leaf in structures.flatten_with_path(newer)
        },
        free_part=_CALLBACKS_KEY,
    )
    if loaded:
      self.round_num, snapshot = loaded
      self.saved_round = self.round_num
      self.state = snapshot['process']
      self.stopped = bool(snapshot['stopped'])
      self.health.num_rejected_rounds = int(snapshot[_REJECTED_ROUNDS_KEY])
      for callback, state in zip(self.callbacks, snapshot[_CALLBACKS_KEY]):
        callback.set_state(state)
      if self.client_states:
        index = snapshot[client_states_lib.SNAPSHOT_KEY]
        self.client_states.load(index)
      # A run killed right after writing its newest checkpoint did not do this.
      checkpoints.drop_old(self.round_num)
    if self.client_states:
      self.client_states.drop_unused()

  @property
  def finished(self) -> bool:
    return self.stopped or self.round_num >= self.total_rounds

  def evaluate(self, state, round_num):
    """Returns the central evaluation of a state, or None."""
    if self.evaluate_fn is None:
      return None
    return self._evaluate_of_round(round_num)(self.get_weights(state))

  def _evaluate_of_round(self, round_num):
    """Returns the function that evaluates weights after a round, or None."""
    function = self.evaluate_fn
    if function is None:
      return None
    if 'round_num' in _parameters(function):
      function = functools.partial(function, round_num=round_num)

    def evaluate(weights):
      found = function(weights)
      if found is None:
        return None
      return metrics_writers.to_scalars(found, '`evaluate_fn`')

    return self.stopwatch.measure('evaluation')(evaluate)

  def train_one_round(self):
    """Runs the next round; returns cohort, output, evaluation and seconds.

    Does not change the run, so it may be interrupted at any point.
    """
    start = time.perf_counter()
    with self.stopwatch.measure('input'):
      cohort = self.cohort_fn(self.round_num)
      clients = cohort
      if self.client_states:
        clients = self.client_states.add_to(cohort)
    with self.stopwatch.measure('rounds'):
      state = self.state
      if self.adjust_state_fn is not None:
        state = self.adjust_state_fn(state, self.round_num)
      output = self.process.next(state, clients)
    seconds = time.perf_counter() - start
    round_num = self.round_num + 1
    is_due = round_num % self.rounds_per_evaluation == 0
    evaluation = None
    if is_due or round_num == self.total_rounds:
      evaluation = self.evaluate(output.state, round_num)
    return cohort, output, evaluation, seconds

  def record(self, cohort, output, evaluation, seconds):
    """Makes the output of a round the run's state; returns its row."""
    self.is_recorded = False
    self.state = output.state
    self.round_num += 1
    self.evaluation = evaluation
    metrics = output.metrics
    rejected = metrics_writers.find_rejected(cohort, metrics)
    if self.client_states:
      metrics = self.client_states.keep(self.round_num, metrics, rejected)
    row = self._call_callbacks(cohort, metrics)
    self._check_callbacks()
    row[metrics_writers.SECONDS_KEY] = round(seconds, 6)
    num_clients = metrics_writers.count_reported(metrics)
    self.health.observe(num_clients, rejected, row)
    for writer in self.writers:
      writer.write(self.round_num, row)
      writer.write_rejected(self.round_num, rejected)
    self.is_recorded = True
    is_due = self.round_num % self.rounds_per_checkpoint == 0
    if is_due or self.finished:
      self.save()
    return row

  def _call_callbacks(self, cohort, metrics):
    """Passes the round to every callback; returns its row."""
    round_end = self._new_round_end(cohort, metrics)
    stops = []
    # All of them run, even if an earlier one stops the run.
    for callback in self.callbacks:
      stops.append(callback.on_round_end(round_end))
      _measure(callback, round_end)
    self.stopped = any(stops)
    if self.stopped and self.evaluation is None:
      self.evaluation = self.evaluate(self.state, self.round_num)
      round_end = self._new_round_end(cohort, metrics)
      for callback in self.callbacks:
        _measure(callback, round_end)
    return round_end.metrics

  def _new_round_end(self, cohort, metrics):
    """Returns the callbacks' view of the newest round."""
    return callbacks_lib.RoundEnd(
        round_num=self.round_num,
        state=self.state,
        get_weights=functools.partial(self.get_weights, self.state),
        metrics=metrics_writers.flatten_metrics(metrics, self.evaluation),
        evaluation=self.evaluation,
        evaluate=self._evaluate_of_round(self.round_num),
        cohort=cohort,
    )

  def save(self):
    """Saves a checkpoint, after the files that it relies on."""
    is_saved = self.saved_round == self.round_num
    # A callback that raises a KeyboardInterrupt leaves a round half recorded.
    if self.checkpoints is None or is_saved or not self.is_recorded:
      return
    with self.stopwatch.measure('checkpoints'):
      for writer in self.writers:
        writer.flush()
      if self.client_states:
        self.client_states.save(self.round_num)
      self.checkpoints.save(self.round_num, self._snapshot())
      self.saved_round = self.round_num
      if self.client_states:
        self.client_states.drop_unused()


def _measure(callback, round_end):
  """Adds a callback's measurements to the row of a round."""
  owner = type(callback).__name__
  found = metrics_writers.to_scalars(
      callback.measure(round_end), f'`measure` of {owner}'
  )
  for name, value in found.items():
    if name in round_end.metrics or name in metrics_writers.LOOP_COLUMNS:
      raise ValueError(
          f'{owner} measures {name!r}, but the round already has a metric of '
          'that name; give it another name.'
      )
    round_end.metrics[name] = value


def _train(run: _Run, profile_path: Optional[_files.PathLike]):
  """Trains until the run is finished, or raises an error that ends it."""
  for writer in run.writers:
    writer.resume(run.round_num)
  progress = progress_lib.Progress(run.total_rounds, run.round_num)
  before_profile = min(
      run.round_num + _ROUNDS_BEFORE_PROFILE, run.total_rounds - 1
  )
  with interruptions.InterruptGuard() as guard:
    try:
      while not run.finished:
        run.health.check(run.round_num)
        with contextlib.ExitStack() as stack:
          if profile_path is not None and run.round_num == before_profile:
            stack.enter_context(progress_lib.profile(profile_path))
          start = time.perf_counter()
          outcome = run.train_one_round()
          with guard.shielded(), run.stopwatch.measure('metrics'):
            row = run.record(*outcome)
            del outcome  # Its cohort and client states are not needed longer.
            progress.update(run.round_num, row, time.perf_counter() - start)
    except interruptions.AllClientsRejectedError:
      with guard.shielded():
        run.save()
      raise
    except KeyboardInterrupt:
      with guard.shielded(raise_at_end=False):
        progress.close()
        run.save()
      rest = 'run the same command again to continue.'
      if run.checkpoints is None:
        rest = 'no checkpoints are kept.'
      raise TrainingInterrupted(
          f'Interrupted after round {run.round_num} of {run.total_rounds}; '
          f'{rest}'
      ) from None
    finally:
      progress.close()


def run_training(
    process: tff.learning.templates.LearningProcess,
    *,
    cohort_fn: Callable[[int], Any],
    total_rounds: int,
    evaluate_fn: Optional[Callable[..., Mapping[str, float]]] = None,
    rounds_per_evaluation: int = 1,
    rounds_per_checkpoint: int = 10,
    checkpoints: Optional[checkpoints_lib.CheckpointManager] = None,
    writers: Sequence[metrics_writers.MetricsWriter] = (),
    callbacks: Sequence[callbacks_lib.Callback] = (),
    get_weights: Optional[Callable[[Any], Any]] = None,
    initial_state_fn: Optional[Callable[[], Any]] = None,
    client_store: Optional[client_states_lib.ClientStateStore] = None,
    adjust_state_fn: Optional[Callable[[Any, int], Any]] = None,
    read_ahead: bool = False,
    profile_path: Optional[_files.PathLike] = None,
    max_rejected_rounds: Optional[int] = (
        interruptions.DEFAULT_MAX_REJECTED_ROUNDS
    ),
) -> TrainingResult:
  """Trains a learning process, starting from its newest checkpoint.

  Every writer gets a row for each finished round. Rows are on disk before the
  checkpoint of their round, and rows beyond the newest checkpoint are dropped
  on resume: a run that is killed at any instant and started again with the same
  arguments ends with the state and the metrics of an uninterrupted one, if
  `cohort_fn` and `process` are deterministic.

  Ctrl-C and SIGTERM end the run with a checkpoint of the last finished round;
  the unfinished round is discarded.

  Args:
    process: The learning process to train.
    cohort_fn: Maps the number of finished rounds (0 for the first round) to the
      client data of the next one, for `process.next`. It must be a pure
      function, or a resumed run will differ.
    total_rounds: The rounds of the whole run, at least 1.
    evaluate_fn: Maps the global model weights to named metrics: numbers, or
      vectors, whose entries become `f1_0`, `f1_1` and so on. If it has a
      parameter `round_num`, it is also given the number of finished rounds, see
      `evaluation.build_sampled_evaluation`. None (the default) for no
      evaluation.
    rounds_per_evaluation: The number of rounds between evaluations; the last
      round is always evaluated. Defaults to 1.
    rounds_per_checkpoint: The number of rounds between checkpoints; the last
      round is always saved. Defaults to 10.
    checkpoints: The manager of the checkpoints; None (the default) saves none.
      Its folder belongs to one run: a checkpoint also restores learning rates
      and other hyperparameters, so a process with other ones needs another
      folder.
    writers: The writers of the rounds' metrics. Defaults to none.
    callbacks: See `Callback`; called in order.
    get_weights: Maps the state of the process to its global model weights.
      Defaults to `process.get_model_weights`.
    initial_state_fn: Returns the state of the process before the first round.
      Defaults to `process.initialize`.
    client_store: The store of client states, for a process that has them, see
      `client_states`; checkpoints include it. It must be empty, and `cohort_fn`
      must return a `Cohort`.
    adjust_state_fn: Maps the state of the process and the number of finished
      rounds to the state that the next round starts from, such as one with
      other learning rates. It must be a pure function. Defaults to the state
      itself.
    read_ahead: Whether to prepare the next round's cohort in another thread,
      see `CohortPrefetcher`. It does not affect the results, but `cohort_fn`
      must not run TFF computations. Defaults to False.
    profile_path: The file for a Chrome trace of the third round that is
      trained, or of the last one if there are fewer; see `profile`. None (the
      default) for none.
    max_rejected_rounds: The number of rounds in a row that end the run if every
      client is rejected in them, because its results are not finite or its
      update is too large. Rounds without clients, or with empty ones only,
      neither count nor end such a series. Checkpoints include the count.
      Defaults to 5; None continues such a run.

  Returns:
    A `TrainingResult`. A run that is already finished is only evaluated; its
    writers keep any rows beyond a smaller `total_rounds`.

  Raises:
    ValueError: If a number of rounds is not positive, a callback measures an
      existing metric or its state changes its structure, or the process has
      client states and there is no `client_store`, or vice versa.
    TypeError: If a number of rounds is not an integer, `evaluate_fn` or a
      callback measures something else than numbers, the state of the process or
      of a callback cannot be saved, or the process does not take or return
      client states as required.
    UnknownMetricError: If a callback monitors a metric that does not exist.
    TrainingInterrupted: After Ctrl-C or SIGTERM; a KeyboardInterrupt.
    AllClientsRejectedError: If every client was rejected in
      `max_rejected_rounds` rounds in a row. The last finished round is saved.
    CheckpointError: If a checkpoint does not match the process, or the file of
      a client state is missing or damaged.
    ClientStoreMemoryError: If `client_store` has no folder and its states do
      not fit into memory.
    OSError: If a file cannot be read or written.
    MetricsFileError: If a metrics file lacks rounds of the checkpoint.
    TrackerError: If a tracker refuses to start a run, or to take its metrics.

  Example:
    >>> result = run_training(
    ...     process,
    ...     cohort_fn=cohort_fn,
    ...     total_rounds=3,
    ...     evaluate_fn=evaluation.build_central_evaluation(
    ...         model, digits.central_test),
    ...     checkpoints=CheckpointManager('runs/sgd/checkpoints'),
    ...     writers=[CSVMetricsWriter('runs/sgd/metrics.csv')],
    ... )
    >>> result.round_num, list(result.evaluation)
    (3, ['loss', 'accuracy'])
  """
  run = _Run(
      process=process,
      cohort_fn=cohort_fn,
      total_rounds=total_rounds,
      evaluate_fn=evaluate_fn,
      rounds_per_evaluation=rounds_per_evaluation,
      rounds_per_checkpoint=rounds_per_checkpoint,
      checkpoints=checkpoints,
      writers=writers,
      callbacks=callbacks,
      get_weights=get_weights or process.get_model_weights,
      client_states=client_states_lib.bind(process, client_store, checkpoints),
      adjust_state_fn=adjust_state_fn,
      health=interruptions.RunHealth(max_rejected_rounds),
  )
  run.start(_build_initial_state(process, initial_state_fn))
  run.restore()
  initial_round = run.round_num
  with contextlib.ExitStack() as stack:
    for writer in writers:
      stack.callback(writer.close)
    if run.finished:
      run.evaluation = run.evaluate(run.state, run.round_num)
    else:
      if read_ahead:
        prefetcher = cohorts.CohortPrefetcher(cohort_fn, total_rounds)
        run.cohort_fn = stack.enter_context(prefetcher).get
      _train(run, profile_path)
  return TrainingResult(
      state=run.state,
      round_num=run.round_num,
      num_new_rounds=run.round_num - initial_round,
      evaluation=run.evaluation,
      stopped=run.stopped,
      seconds=dict(run.stopwatch.seconds),
  )

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the trials of a sweep, shows progress and updates its files."""

from collections.abc import Callable, Sequence
import contextlib
import io
import pathlib
import sys
from typing import Any, Optional, TextIO

import tqdm

from experiments import command_line
from experiments import folders
from experiments import formatting
from experiments import hparams
from experiments import registry
from experiments.run_results import run_folder
from experiments.sweep import processes
from experiments.sweep import scores
from experiments.sweep import trials as trials_lib

# The program that takes the flags of a trial.
TRAIN = (*processes.PYTHON, 'experiments.train')
# A trial that diverges ends like any other, with a bad score.
_OF_TRIALS = ('--max_rejected_rounds=0',)
_GPUS = pathlib.Path('/proc/driver/nvidia/gpus')


class TrialsFailed(command_line.EnvironmentalError):
  """Some trials failed; all others have ended.

  Attributes:
    results: The results of all trials.
  """

  def __init__(self, results: Sequence[scores.RunResult]):
    failed = scores.with_status(results, scores.FAILED)
    logs = ', '.join(f'{trial.name} ({trial.log})' for trial in failed)
    super().__init__(
        f'{len(failed)} of {len(results)} trials failed, see their logs: {logs}'
    )
    self.results = results


_OVERALL = '{desc}:{percentage:4.0f}%|{bar:20}| {elapsed}<{remaining}'
_OF_TRIAL = '  {desc}:{percentage:4.0f}%|{bar:10}| {elapsed}{postfix}'
_ACCURACIES = ('evaluation/accuracy', 'train/accuracy')


def glance(trial: trials_lib.Trial) -> tuple[float, str]:
  """Returns the progress of a run, read from its files.

  Args:
    trial: The trial, which may be running.

  Returns:
    The fraction of its rounds that are trained, and a text such as 'round 3 of
    10, evaluation/accuracy 0.8100'.
  """
  row = run_folder.read_last_row(trial.folder)
  recorded = run_folder.read_hparams(trial.folder) or {}
  # A run that is being extended still has the old number recorded.
  total = trial.hparams['total_rounds'] or recorded.get('total_rounds')
  if not total or 'round_num' not in row:
    return 0.0, 'starting'
  shown = [f'{name} {row[name]:.4f}' for name in _ACCURACIES if name in row]
  text = ', '.join([f'round {row["round_num"]:.0f} of {total}', *shown[:1]])
  return row['round_num'] / total, text


_Measure = Callable[[trials_lib.Trial], scores.RunResult]
_Write = Callable[[Sequence[scores.RunResult]], Any]


class Keeper:
  """Updates the records and results of trials, and shows their progress.

  Attributes:
    results: The results of all trials, in order.
    waiting: The trials to run.
  """

  def __init__(
      self,
      trials: Sequence[trials_lib.Trial],
      measure_fn: _Measure,
      write: _Write,
      stream: TextIO,
  ):
    """Measures the trials that are finished.

    Args:
      trials: The trials.
      measure_fn: Measures a finished trial.
      write: Writes the results of all trials, called when one has changed.
      stream: The stream for progress: bars on a terminal, otherwise lines.
    """
    self._measure_fn = measure_fn
    self._write_fn = write
    self._records = {
        home: trials_lib.Record(home)
        for home in dict.fromkeys(trial.home for trial in trials)
    }
    self.results: dict[trials_lib.Trial, scores.RunResult] = {}
    for trial in trials:
      if self._records[trial.home].is_finished(trial):
        self._finish(trial)
      else:
        self._set(trial, scores.WAITING)
    self.waiting = self.with_status(scores.WAITING)
    self._stream = stream
    self._on_terminal = stream.isatty()
    # Rounds trained by an earlier call do not count towards progress.
    self._to_do = {trial: 1.0 - glance(trial)[0] for trial in self.waiting}
    self._bars: dict[trials_lib.Trial, tqdm.tqdm] = {}
    self._bar = self._build_bar(_OVERALL, sum(self._to_do.values()))
    self._last_shown = 0.0
    self._write()

  def started(self, trial: trials_lib.Trial):
    """Marks a trial as running."""
    self._set(trial, scores.RUNNING)
    name = f'{trial.home.name}/{trial.name}'
    if not self._on_terminal:
      self._print(f'start {name}')
    self._bars[trial] = self._build_bar(_OF_TRIAL, 1.0, desc=name)

  def ended(self, trial: trials_lib.Trial, code: int):
    """Records the end of a trial, and updates the tables."""
    bar = self._bars.pop(trial)
    took = formatting.format_seconds(_elapsed(bar))
    bar.close()
    if code:
      self._set(trial, scores.FAILED)
      reason = f'{processes.read_last_line(trial.log)} ({trial.log})'
      self._print(f'failed {bar.desc} after {took} with {code}: {reason}')
    else:
      self._finish(trial)
      if not self._on_terminal:
        self._print(f'end   {bar.desc} after {took}')
    self._write()

  def tick(self):
    """Shows progress every second on a terminal, otherwise every minute."""
    elapsed = _elapsed(self._bar)
    if elapsed - self._last_shown < (1.0 if self._on_terminal else 60.0):
      return
    self._last_shown = elapsed
    self._bar.n = 0.0
    for trial, to_do in self._to_do.items():
      if trial in self._bars:
        bar = self._bars[trial]
        bar.n, text = glance(trial)
        bar.set_postfix_str(text)
        self._bar.n += bar.n - (1.0 - to_do)
      elif self.results[trial].status != scores.WAITING:
        self._bar.n += to_do
    counts = ', '.join(
        f'{len(self.with_status(status))} {status}'
        for status in scores.STATUSES
    )
    self._bar.set_description_str(counts)
    if not self._on_terminal:
      self._print(str(self._bar))

  def interrupted(self):
    """Marks the running trials as waiting, to be continued later."""
    for trial in self.with_status(scores.RUNNING):
      self._set(trial, scores.WAITING)
    self._write()

  def close(self):
    """Removes the progress bars from the terminal."""
    for bar in (*self._bars.values(), self._bar):
      bar.close()

  def with_status(self, status: str) -> list[trials_lib.Trial]:
    """Returns the trials with a status."""
    return scores.with_status(self.results.values(), status)

  def _finish(self, trial: trials_lib.Trial):
    # Raises before recording a run with damaged files.
    self.results[trial] = self._measure_fn(trial)
    self._records[trial.home].add(trial)

  def _set(self, trial: trials_lib.Trial, status: str):
    self.results[trial] = scores.RunResult(trial, status)

  def _write(self):
    self._write_fn(list(self.results.values()))

  def _build_bar(self, bar_format: str, total: float, **options) -> tqdm.tqdm:
    """Returns a progress bar; without a terminal it only keeps the time."""
    return tqdm.tqdm(
        total=total,
        file=self._stream if self._on_terminal else io.StringIO(),
        bar_format=bar_format,
        leave=False,
        dynamic_ncols=True,
        **options,
    )

  def _print(self, line: str):
    tqdm.tqdm.write(line, file=self._stream)
    self._stream.flush()


def _elapsed(bar: tqdm.tqdm) -> float:
  return bar.format_dict['elapsed']


def _may_use_gpu(trial: trials_lib.Trial) -> bool:
  devices = trial.hparams.get('devices')
  if devices is None:  # Other runtimes use the CPU by default.
    return trial.hparams.get(registry.RUNTIME) == registry.COMPILED
  return not devices.startswith('CPU')


def default_jobs(trials: Sequence[trials_lib.Trial]) -> int:
  """Returns the default number of parallel trials.

  Args:
    trials: The trials to run.

  Returns:
    One per core, at most the number of trials; only one on a machine with a
    GPU, unless all trials run on the CPU.
  """
  if _GPUS.is_dir() and any(map(_may_use_gpu, trials)):
    return 1
  return max(1, min(len(processes.available_cores()), len(trials)))


def run_trials(
    trials: Sequence[trials_lib.Trial],
    *,
    measure_fn: _Measure = lambda trial: scores.RunResult(
        trial, scores.FINISHED
    ),
    write: _Write = lambda results: None,
    num_at_once: Optional[int] = None,
    may_start: Callable[[], bool] = lambda: True,
) -> list[scores.RunResult]:
  """Runs the trials that are not finished.

  Args:
    trials: The trials, already checked.
    measure_fn: Measures a finished trial. Default: measures nothing.
    write: Writes the results of all trials, in order, called when one changed.
      Default: writes nothing.
    num_at_once: The number of parallel trials. Default: `default_jobs` of the
      unfinished ones.
    may_start: Returns whether another trial may start. Default: always.

  Returns:
    The results; all are finished, unless `may_start` kept some from starting.

  Raises:
    TrialsFailed: If trials failed, after the others have ended.
    EnvironmentalError: If another sweep runs in the same folder, or a file
      cannot be written.
    UserError: If a record or a finished run is damaged.
    KeyboardInterrupt: After a signal; the text says how to continue.
  """
  with contextlib.ExitStack() as stack:
    stack.enter_context(
        command_line.errors_as(command_line.EnvironmentalError, OSError)
    )
    homes = dict.fromkeys(trial.home for trial in trials)
    locks = {home: stack.enter_context(folders.locked(home)) for home in homes}
    keeper = Keeper(trials, measure_fn, write, sys.stdout)
    stack.callback(keeper.close)
    for trial in keeper.waiting:
      hparams.check_data_files(trial.hparams[registry.TASK], trial.data_dir)
    jobs = {
        trial: processes.Job(
            (*TRAIN, *_OF_TRIALS, *trial.arguments),
            trial.log,
            [locks[trial.home]],
        )
        for trial in keeper.waiting
    }
    try:
      processes.run_jobs(
          jobs,
          num_at_once=num_at_once or default_jobs(keeper.waiting),
          observer=keeper,
          may_start=may_start,
      )
    except processes.Interrupted:
      keeper.interrupted()
      num_finished = len(keeper.with_status(scores.FINISHED))
      raise KeyboardInterrupt(
          f'Interrupted: {num_finished} of {len(trials)} trials are finished; '
          'run the same command again to continue.'
      ) from None
  results = list(keeper.results.values())
  if keeper.with_status(scores.FAILED):
    raise TrialsFailed(results)
  return results

# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""What a sweep shows while it works: a table in place, or lines."""

from collections.abc import Callable, Mapping, Sequence
import shutil
import time
from typing import TextIO

from experiments import pages
from experiments.run_results import run_folder
from experiments.sweep import result_tables
from experiments.sweep import trials as trials_lib

_REDRAW_SECONDS = 1.0
_LINE_SECONDS = 60.0
_ACCURACIES = ('evaluation/accuracy', 'train/accuracy')


def read_last_line(trial: trials_lib.Trial) -> str:
  """Returns the last line of a trial's log that is not empty."""
  try:
    text = trial.log.read_text(encoding='utf-8', errors='replace')
  except OSError:
    return ''
  lines = [line.strip() for line in text.splitlines()]
  return next((line for line in reversed(lines) if line), '')


class Progress:
  """Shows how the trials come along."""

  def __init__(
      self,
      trials: Sequence[trials_lib.Trial],
      num_finished_before: int,
      stream: TextIO,
      now: Callable[[], float] = time.monotonic,
  ):
    """Initializes it; nothing is shown yet.

    Args:
      trials: Those that are to run.
      num_finished_before: How many others need no start.
      stream: Where to show it; redrawn in place on a terminal.
      now: Returns the seconds of a clock.
    """
    self._statuses = {trial: result_tables.WAITING for trial in trials}
    # What an earlier call has trained of them took none of this one's time.
    self._parts_before = {trial: glance(trial)[0] for trial in trials}
    self._num_before = num_finished_before
    self._stream = stream
    self._in_place = stream.isatty()
    self._now = now
    self._start = now()
    self._starts: dict[trials_lib.Trial, float] = {}
    self._last_shown = self._start
    self._num_drawn = 0

  def started(self, trial: trials_lib.Trial):
    """Takes a trial that has been started."""
    self._statuses[trial] = result_tables.RUNNING
    self._starts[trial] = self._now()
    if not self._in_place:
      self._print(f'start {_describe(trial)}')

  def ended(self, trial: trials_lib.Trial, code: int):
    """Takes a trial that has ended, and its exit status."""
    status = result_tables.FAILED if code else result_tables.FINISHED
    self._statuses[trial] = status
    took = pages.format_seconds(self._now() - self._starts[trial])
    if code:
      self._print(
          f'failed {_describe(trial)} after {took} with {code}: '
          f'{read_last_line(trial)} ({trial.log})'
      )
    elif not self._in_place:
      self._print(f'end   {_describe(trial)} after {took}')

  def tick(self):
    """Shows the state again, if it is time."""
    period = _REDRAW_SECONDS if self._in_place else _LINE_SECONDS
    if self._now() - self._last_shown < period:
      return
    self._last_shown = self._now()
    glances = {trial: glance(trial) for trial in self._running()}
    if not self._in_place:
      self._print(self._summary(glances))
      return
    width = shutil.get_terminal_size().columns - 1
    lines = [self._summary(glances)]
    for trial, (_, text) in glances.items():
      took = pages.format_seconds(self._now() - self._starts[trial])
      lines.append(f'  {took}  {text}  {_describe(trial)}')
    self._erase()
    self._stream.write(''.join(f'{line[:width]}\n' for line in lines))
    self._stream.flush()
    self._num_drawn = len(lines)

  def close(self):
    """Leaves the terminal to others."""
    self._erase()
    self._stream.flush()

  def _running(self) -> list[trials_lib.Trial]:
    return [
        trial
        for trial, status in self._statuses.items()
        if status == result_tables.RUNNING
    ]

  def _summary(
      self, glances: Mapping[trials_lib.Trial, tuple[float, str]]
  ) -> str:
    """Returns the line of counts and times."""
    statuses = list(self._statuses.values())
    num_failed = statuses.count(result_tables.FAILED)
    num_done = statuses.count(result_tables.FINISHED)
    elapsed = self._now() - self._start
    done, to_do = self._count_parts(glances)
    left = elapsed * to_do / done if done > 0 else None
    return (
        f'{num_done + self._num_before} finished, {len(glances)} running, '
        f'{num_failed} failed, {statuses.count(result_tables.WAITING)} waiting;'
        f' {pages.format_seconds(elapsed)} so far, '
        f'{pages.format_seconds(left)} to go'
    )

  def _count_parts(
      self, glances: Mapping[trials_lib.Trial, tuple[float, str]]
  ) -> tuple[float, float]:
    """Returns how many trials' rounds this call has done, and has to do."""
    done = to_do = 0.0
    for trial, status in self._statuses.items():
      part = before = self._parts_before[trial]
      if trial in glances:
        part, _ = glances[trial]
      elif status != result_tables.WAITING:
        part = 1.0
      done += part - before
      to_do += 1.0 - part
    return done, to_do

  def _print(self, line: str):
    self._erase()
    print(line, file=self._stream, flush=True)

  def _erase(self):
    """Takes back what was drawn: up so many lines, clear what is below."""
    if self._num_drawn:
      self._stream.write(f'\x1b[{self._num_drawn}F\x1b[J')
      self._num_drawn = 0


def glance(trial: trials_lib.Trial) -> tuple[float, str]:
  """Returns how far a run has come, from its files.

  Args:
    trial: The trial, which may be at work.

  Returns:
    The part of its rounds that is trained, and a text such as 'round 3 of 10,
    accuracy 0.81'.
  """
  row = run_folder.read_last_row(trial.folder)
  recorded = run_folder.read_hparams(trial.folder) or {}
  # What is recorded may be fewer, until the run has begun to go on.
  total = trial.hparams['total_rounds'] or recorded.get('total_rounds')
  if not total or 'round_num' not in row:
    return 0.0, 'starting'
  text = f'round {row["round_num"]:.0f} of {total}'
  for name in _ACCURACIES:
    if name in row:
      text += f', {name} {row[name]:.4f}'
      break
  return row['round_num'] / total, text


def _describe(trial: trials_lib.Trial) -> str:
  return f'{trial.home.name}/{trial.name}'

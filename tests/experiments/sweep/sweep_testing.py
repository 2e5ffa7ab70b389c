# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trials whose runs are made up, for the tests of sweeps."""

from collections.abc import Mapping, Sequence
import pathlib
import sys

from experiments.sweep import scores
from experiments.sweep import trials as trials_lib

FAKE_TRAIN = (
    sys.executable,
    '-S',
    str(pathlib.Path(__file__).with_name('fake_train.py')),
)


def build_trials(
    output_dir: pathlib.Path,
    rates: tuple[str, ...] = ('0.01', '0.1'),
    *,
    seeds: tuple[int, ...] = (0,),
    **given: str,
) -> list[trials_lib.Trial]:
  """Returns the trials of a search for SGD's rate, with further flags."""
  flags = {'client_optimizer': 'sgd', **given}
  return trials_lib.build_search_trials(
      [(('client_learning_rate', rate),) for rate in rates],
      {name: f'--{name}={value}' for name, value in flags.items()},
      seeds=seeds,
      output_dir=str(output_dir),
      sweep_name='rates',
  )


def build_results(
    scores_of_rates: Mapping[str, Sequence[float]],
    seeds: tuple[int, ...] = (0, 1),
    output_dir: str = 'out',
) -> list[scores.RunResult]:
  """Returns finished runs with scores of each seed, by the learning rate."""
  trials = build_trials(
      pathlib.Path(output_dir), tuple(scores_of_rates), seeds=seeds
  )
  values = [score for found in scores_of_rates.values() for score in found]
  measured = dict.fromkeys(scores.MEASURED, 2.5)
  return [
      scores.RunResult(
          trial,
          scores.FINISHED,
          metric='accuracy',
          score=score,
          measured={**measured, 'last_10_evaluations': score / 2},
      )
      for trial, score in zip(trials, values)
  ]


def count_starts(trial: trials_lib.Trial) -> int:
  """Returns how often the made-up program was started for a trial."""
  path = trial.folder.parent / f'{trial.folder.name}.starts'
  return path.read_text().count('started') if path.exists() else 0

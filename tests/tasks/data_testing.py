# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds published data for tests, which are skipped without them."""

import os
import pathlib
from typing import Optional
import unittest

from tasks import catalogue

# A small sample of real data, part of the repository; its README says of what.
SAMPLE = pathlib.Path(__file__).resolve().parents[1] / 'data'

_VARIABLE = 'TFF_ADAPTIVE_DATA'
# The first file of a task's data, where its synthetic data are written, too;
# only the published CIFAR-10 is elsewhere.
_FILES = {
    name: next(iter(task.data.synthetic_files))
    for name, task in catalogue.TASKS.items()
    if task.data.reads_files
} | {'cifar10': 'tfds/cifar10'}


def _find_data_dir(task: str) -> Optional[pathlib.Path]:
  """Returns the folder that the environment names, if it has a task's data."""
  folder = os.environ.get(_VARIABLE)
  if folder and (pathlib.Path(folder) / _FILES[task]).exists():
    return pathlib.Path(folder)
  return None


def real_data(task: str) -> pathlib.Path:
  """Returns the folder of the complete data sets, or skips the test."""
  folder = _find_data_dir(task)
  if folder is None:
    raise unittest.SkipTest(
        f'needs published data: {_VARIABLE} names no folder with {_FILES[task]}'
    )
  return folder


def data_flags(task: str) -> tuple[str, ...]:
  """Returns the flags for a task's data: published if found, else made up."""
  if task not in _FILES:
    return ()
  folder = _find_data_dir(task)
  return (f'--data_dir={folder}',) if folder else ('--use_synthetic_data',)


def prepare(data_dir: pathlib.Path, name: str, *versions: str):
  """Makes the folders of versions of a data set of tensorflow-datasets."""
  for version in versions:
    folder = data_dir / 'tfds' / name / version
    folder.mkdir(parents=True)
    (folder / 'dataset_info.json').write_text('{}')

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs for the tests of the conformance kit: a tiny one, those of a file."""

import pathlib
import shlex
import sys

from experiments import conformance

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDENS = ROOT / 'tests/goldens/goldens.json'
TUNING_FREE = ROOT / 'tests/goldens/tuning_free.json'
METHODS_2026 = ROOT / 'tests/goldens/methods_2026.json'
NUMPY_COMMAND = shlex.join(
    [sys.executable, str(ROOT / 'experiments/conformance/numpy_adapter.py')]
)


def create_tiny_run(**config):
  """Returns a run that differs from FedAvg by `config`, and the problems.

  x = (0, 0, 0, 0), one example X = (1, 0, 0, 0), y = 1: the gradient is x - y
  in the first coordinate, so SGD with 0.5 moves to 0.5, then to 0.75.
  """
  problem = {
      'name': 'quadratic',
      'x0': [0.0] * 4,
      'clients': [{'X': [[1.0, 0.0, 0.0, 0.0]], 'y': [1.0]}],
  }
  run = {
      'config': {
          'name': 'tiny',
          'client': {'name': 'sgd', 'lr': 0.5},
          'server': {'name': 'sgd', 'lr': 1.0},
          'weighting': 'uniform',
          'rounds': 2,
          'problem': 'quadratic',
          'batch_size': 1,
          'epochs': 1,
          **config,
      },
      'float32_error': 0.0,
      'trajectory': [
          {
              'clients': [{'id': 0, 'etas': [0.5]}],
              'server': {'x': [x, 0.0, 0.0, 0.0]},
          }
          for x in (0.5, 0.75)
      ],
  }
  return run, {'quadratic': problem}


def name_parameters(problem, names):
  """Returns tuples of name, run and problems for runs of the goldens."""
  runs, problems = conformance.read_goldens(GOLDENS)
  found = {
      run['config']['name']: run
      for run in runs
      if run['config']['problem'] == problem
  }
  return [(name, found[name], problems) for name in names]

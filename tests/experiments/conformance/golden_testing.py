# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs for the tests of the conformance kit: a tiny one, those of a file."""

import pathlib

from experiments import conformance

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDENS = ROOT / 'tests/goldens/goldens.json'
TUNING_FREE = ROOT / 'tests/goldens/tuning_free.json'


def create_tiny_run(**config):
  """Returns a run on one weight's worth of data; its reference is made by hand.

  x = (0, 0, 0, 0), one example X = (1, 0, 0, 0), y = 1: the gradient is x - y
  in the first coordinate, so SGD with 0.5 moves to 0.5, then to 0.75.

  Args:
    **config: What is other than in FedAvg.

  Returns:
    The run, and the problems by name.
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
  """Returns parameters of a test: the runs of the goldens with these names.

  Args:
    problem: The name of their problem.
    names: The names of runs.

  Returns:
    Tuples of name, run and problems.
  """
  runs, problems = conformance.read_goldens(GOLDENS)
  found = {
      run['config']['name']: run
      for run in runs
      if run['config']['problem'] == problem
  }
  return [(name, found[name], problems) for name in names]

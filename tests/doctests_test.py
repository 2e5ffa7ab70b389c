# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the examples in docstrings run, and print what they show.

Code blocks, which stand where an example would take a cluster, a download or a
long time, are not run: they compile, and what they name is there.
"""

import ast
import doctest
import functools
import importlib
import inspect
import os
import pathlib
import re
import shutil
import tempfile
import textwrap
from typing import Any

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from experiments import published
from tasks import catalogue
from tasks import digits as digits_lib
from tests import folder_testing
import tff_adaptive
from tff_adaptive import algorithms
from tff_adaptive import data
from tff_adaptive import evaluation
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive import simulation
from tff_adaptive.data import partition

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_LIBRARY = {
    'np': np,
    'partition': partition,
    'pathlib': pathlib,
    'published': published,
    'tf': tf,
    'tff': tff,
    **{
        path.stem: importlib.import_module(f'tff_adaptive.{path.stem}')
        for path in pathlib.Path(tff_adaptive.__file__).parent.iterdir()
        if path.stem[0] != '_' and (path.is_dir() or path.suffix == '.py')
    },
}
# The example of this module's docstring needs another process, and its own test
# runs it.
_RUN_ELSEWHERE = 'tff_adaptive.simulation.callbacks'
# How examples read the folder in which there are made-up data here. They show
# what comes of the original ones.
_READS_DATA = re.compile("'data['/]")
# The tasks with which the folder `data` is made up.
_MADE_UP = (
    'ag_news',
    'cifar10',
    'cifar100',
    'dbpedia',
    'emnist_cr',
    'fashion_mnist',
    'mnist',
    'shakespeare',
    'stackoverflow_nwp',
)
# Modules whose examples compile their own rounds.
_LONG = (
    'tff_adaptive.analysis.round_trace',
    'tff_adaptive.evaluation.evaluations',
)
_CODE_BLOCK = re.compile(r'^( *)```python\n(.*?)^\1```$', re.M | re.S)


def _modules_with(text: str, *packages: str) -> list[str]:
  """Returns the names of the modules that have a text."""
  return [
      '.'.join(path.relative_to(_ROOT).with_suffix('').parts)
      for package in packages
      for path in sorted((_ROOT / package).rglob('*.py'))
      if text in path.read_text(encoding='utf-8')
  ]


@functools.cache
def _shared() -> dict[str, Any]:
  """Makes what examples take for granted, once.

  Returns:
    The task `digits`, its `model`, a `process` that trains it, its first
    `state` and `weights`, the clients of the rounds: `cohort_fn`, and the first
    `cohort`, as datasets `client_datasets`.
  """
  digits = digits_lib.DIGITS.create(model_id='logistic', seed=1)
  cohort_fn = data.build_cohort_fn(
      digits.train_data,
      digits.protocol.clients_per_round,
      digits.protocol.batch_plan(),
      seed=1,
  )
  process = algorithms.build_fed_opt(
      digits.functional_model, optimizers.build_delta_sgd()
  )
  state = process.initialize()
  return {
      'digits': digits,
      'model': digits.functional_model,
      'process': process,
      'state': state,
      'weights': process.get_model_weights(state),
      'cohort_fn': cohort_fn,
      'cohort': cohort_fn(0),
      'client_datasets': list(cohort_fn(0)),
  }


def _names_of(module_name: str) -> dict[str, Any]:
  """Returns the names that the examples of a module may use."""
  names = {**_LIBRARY, **_shared()}
  parts = module_name.split('.')
  for end in range(1, len(parts)):
    package = importlib.import_module('.'.join(parts[:end]))
    exported = vars(package).items()
    names.update((k, v) for k, v in exported if not inspect.ismodule(v))
  return {**names, **vars(importlib.import_module(module_name))}


@functools.cache
def _write_run(folder: pathlib.Path):
  """Trains the run that examples find as runs/demo."""
  shared = _shared()
  simulation.run_training(
      shared['process'],
      cohort_fn=shared['cohort_fn'],
      total_rounds=2,
      evaluate_fn=evaluation.build_central_evaluation(
          shared['model'], shared['digits'].central_test
      ),
      checkpoints=simulation.CheckpointManager(folder / 'checkpoints'),
      writers=[simulation.CSVMetricsWriter(folder / 'metrics.csv')],
      callbacks=[simulation.BestCheckpoint(folder / 'checkpoints')],
  )


@functools.cache
def _write_data(folder: pathlib.Path):
  for name in _MADE_UP:
    catalogue.TASKS[name].write_synthetic_data(folder)


class _AnyResult(doctest.OutputChecker):
  """Accepts any output: an example only has to run."""

  def check_output(self, want, got, optionflags):
    del want, got, optionflags  # Unused.
    return True


class ExamplesTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.templates = folder_testing.new(cls)
    # Examples need no other process, and are compiled once.
    cls.enterClassContext(runtime.CompiledContext(seed=1))

  def _enter_folder(self, with_data):
    """Enters a new folder for an example, with the run runs/demo."""
    _write_run(self.templates / 'demo')
    folder = self.enter_context(tempfile.TemporaryDirectory())
    shutil.copytree(self.templates / 'demo', pathlib.Path(folder, 'runs/demo'))
    if with_data:
      _write_data(self.templates / 'data')
      pathlib.Path(folder, 'data').symlink_to(self.templates / 'data')
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(folder)

  def _assert_examples(self, name):
    module = importlib.import_module(name)
    tests = doctest.DocTestFinder().find(module, name, globs=_names_of(name))
    tests = [t for t in tests if t.examples and t.name != _RUN_ELSEWHERE]
    self.assertNotEmpty(tests)
    messages = []
    for test in tests:
      code = ''.join(example.source for example in test.examples)
      reads_data = bool(_READS_DATA.search(code))
      runner = doctest.DocTestRunner(
          checker=_AnyResult() if reads_data else None,
          optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
      )
      self._enter_folder(reads_data)
      runner.run(test, out=messages.append)
    self.assertEqual(''.join(messages), '')

  @parameterized.parameters(
      name
      for name in _modules_with('>>> ', 'tff_adaptive', 'experiments')
      if name not in _LONG
  )
  def test_examples(self, name):
    self._assert_examples(name)

  @parameterized.parameters(*_LONG, *_modules_with('>>> ', 'tasks'))
  @pytest.mark.slow
  def test_long_examples_and_those_of_the_tasks(self, name):
    self._assert_examples(name)

  @parameterized.parameters(
      *_modules_with('```python\n', 'tff_adaptive', 'tasks', 'experiments')
  )
  def test_code_blocks(self, name):
    known = _names_of(name)
    text = (_ROOT / f'{name.replace(".", "/")}.py').read_text(encoding='utf-8')
    for match in _CODE_BLOCK.finditer(text):
      for node in ast.walk(ast.parse(textwrap.dedent(match[2]))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
          exec(ast.unparse(node), known)  # pylint: disable=exec-used
        elif isinstance(node, ast.Attribute):
          owner = known.get(ast.unparse(node.value))
          if inspect.ismodule(owner):
            self.assertTrue(hasattr(owner, node.attr), ast.unparse(node))

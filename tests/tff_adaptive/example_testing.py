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
"""What the examples in docstrings run with: names, and a folder with files."""

import ast
import builtins
from collections.abc import Iterator
import contextlib
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

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tasks import digits as digits_lib
from tasks import synthetic_data
from tff_adaptive import aggregators
from tff_adaptive import algorithms
from tff_adaptive import analysis
from tff_adaptive import client_works
from tff_adaptive import data
from tff_adaptive import finalizers
from tff_adaptive import layers
from tff_adaptive import losses
from tff_adaptive import optimizers
from tff_adaptive import privacy
from tff_adaptive import runtime
from tff_adaptive import simulation
from tff_adaptive.data import partition

_LIBRARY = {
    'np': np,
    'pathlib': pathlib,
    'tf': tf,
    'tff': tff,
    'aggregators': aggregators,
    'algorithms': algorithms,
    'analysis': analysis,
    'client_works': client_works,
    'finalizers': finalizers,
    'layers': layers,
    'losses': losses,
    'optimizers': optimizers,
    'partition': partition,
    'privacy': privacy,
    'runtime': runtime,
    'simulation': simulation,
}
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
_CODE_BLOCK = re.compile(r'^( *)```python\n(.*?)^\1```$', re.M | re.S)


@functools.lru_cache(maxsize=None)
def _create_shared() -> dict[str, Any]:
  """Makes what examples take for granted, once.

  Returns:
    The task `digits`, its `model`, a `process` that trains it, the `state` that
    this begins with and the `weights` of that, and the clients of the rounds:
    `cohort_fn`, and the first `cohort`, as datasets `client_datasets`.
  """
  digits = digits_lib.create_digits_task(model_id='logistic', seed=1)
  sample = data.build_client_sampling(
      digits.train_data.client_ids, digits.protocol.clients_per_round, seed=1
  )

  def cohort_fn(round_index: int) -> data.Cohort:
    return data.Cohort(
        digits.train_data,
        sample(round_index),
        round_num=round_index,
        seed=1,
        plan=digits.protocol.batch_plan(),
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


def names_of(module_name: str) -> dict[str, Any]:
  """Returns the names that the examples of a module may use.

  Args:
    module_name: The name of the module.

  Returns:
    NumPy, TensorFlow, TFF and the packages of the library; what
    `_create_shared` makes; what the packages around the module export; and what
    is in the module.
  """
  names = {**_LIBRARY, **_create_shared()}
  parts = module_name.split('.')
  for end in range(1, len(parts)):
    package = importlib.import_module('.'.join(parts[:end]))
    exported = vars(package).items()
    names.update((k, v) for k, v in exported if not inspect.ismodule(v))
  names.update(vars(importlib.import_module(module_name)))
  return names


@functools.lru_cache(maxsize=None)
def _write_run(folder: pathlib.Path) -> None:
  """Trains the run that examples find as runs/demo."""
  shared = _create_shared()
  simulation.run_training(
      shared['process'],
      cohort_fn=shared['cohort_fn'],
      total_rounds=2,
      evaluate_fn=simulation.build_central_evaluation(
          shared['model'], shared['digits'].central_test
      ),
      checkpoints=simulation.CheckpointManager(folder / 'checkpoints'),
      writers=[simulation.CSVMetricsWriter(folder / 'metrics.csv')],
      callbacks=[simulation.BestCheckpoint(folder / 'checkpoints')],
  )


@functools.lru_cache(maxsize=None)
def _write_data(folder: pathlib.Path) -> None:
  for name in _MADE_UP:
    synthetic_data.write_synthetic_data(name, folder)


class Folders:
  """The folders that examples run in: a new one for each docstring.

  In each is the run `runs/demo`. Examples that read the folder `data` are shown
  with the results of the original data; here, it holds made-up ones.
  """

  def __init__(self, templates: pathlib.Path):
    """Initializes the folders; nothing is written yet.

    Args:
      templates: An empty folder for what is made once.
    """
    self._templates = templates

  @contextlib.contextmanager
  def enter(self, *, needs_data: bool) -> Iterator[None]:
    """Runs the code of a `with` block in a new folder.

    Args:
      needs_data: Whether there is the folder `data`.

    Yields:
      Nothing.
    """
    _write_run(self._templates / 'demo')
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
      shutil.copytree(
          self._templates / 'demo', pathlib.Path(folder, 'runs/demo')
      )
      if needs_data:
        _write_data(self._templates / 'data')
        pathlib.Path(folder, 'data').symlink_to(self._templates / 'data')
      os.chdir(folder)
      try:
        yield
      finally:
        os.chdir(before)


def find_code_blocks(docstring: str) -> list[str]:
  """Returns the code of the Python blocks in a docstring."""
  return [
      textwrap.dedent(match[2]) for match in _CODE_BLOCK.finditer(docstring)
  ]


def find_problems(code: str, names: dict[str, Any]) -> list[str]:
  """Checks code that is not run: its syntax, names and arguments.

  Args:
    code: The code. Its imports are executed.
    names: The names that it may use without importing them.

  Returns:
    What would raise an error: names that are unknown, attributes that modules
    and classes do not have, and arguments that what is called does not take.
  """
  tree = ast.parse(code)
  names = dict(names)
  for node in ast.walk(tree):
    if isinstance(node, (ast.Import, ast.ImportFrom)):
      exec(ast.unparse(node), names)  # pylint: disable=exec-used
  local = {
      node.id
      for node in ast.walk(tree)
      if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
  }
  known = {k: v for k, v in names.items() if k not in local}
  problems = []
  for node in ast.walk(tree):
    if isinstance(node, ast.Name) and node.id not in local:
      if node.id not in known and not hasattr(builtins, node.id):
        problems.append(f'{node.id} is not known.')
    elif isinstance(node, ast.Attribute):
      owner = _resolve(node.value, known)
      if _is_static(owner) and not hasattr(owner, node.attr):
        problems.append(f'{ast.unparse(node)} does not exist.')
    elif isinstance(node, ast.Call):
      problems += _find_bad_arguments(node, _resolve(node.func, known))
  return problems


def _resolve(node: ast.expr, known: dict[str, Any]) -> Any:
  """What a name with dots stands for, None if that is not known."""
  if isinstance(node, ast.Name):
    return known.get(node.id)
  if isinstance(node, ast.Attribute):
    owner = _resolve(node.value, known)
    return getattr(owner, node.attr, None) if _is_static(owner) else None
  return None


def _is_static(value: Any) -> bool:
  """Whether all attributes are there without anything being run."""
  return inspect.ismodule(value) or inspect.isclass(value)


def _find_bad_arguments(call: ast.Call, called: Any) -> list[str]:
  if not inspect.isfunction(called) and not inspect.isclass(called):
    return []
  try:
    parameters = dict(inspect.signature(called).parameters)
  except ValueError:
    return []  # Not written in Python.
  kinds = {parameter.kind for parameter in parameters.values()}
  if 'options' in parameters:  # Handed on, as the docstring says.
    parameters.update(inspect.signature(algorithms.build_fed_opt).parameters)
  elif inspect.Parameter.VAR_KEYWORD in kinds:
    return []
  return [
      f'{ast.unparse(call.func)} has no argument {keyword.arg}.'
      for keyword in call.keywords
      if keyword.arg is not None and keyword.arg not in parameters
  ]

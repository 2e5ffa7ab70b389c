# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the example programs and notebooks run, and give what is shown."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from unittest import mock
import uuid

from absl.testing import parameterized
import psutil
import pytest

from tests import folder_testing
from tests import page_testing
from tests.docs import notebook_runner
from tff_adaptive import _run_metrics
from tff_adaptive import _stack

_FOLDER = page_testing.ROOT / 'docs/examples'
_README = page_testing.read('docs/examples/README.md')
_TIMEOUT_SECONDS = 1800
# Tells the processes of a program from all others; they inherit it.
_MARK = 'TFF_ADAPTIVE_EXAMPLES_TEST'
_NUMBER = re.compile(r'\d+\.\d+')
# They depend on the machine.
_TIME = re.compile(r'\d+\.\d+(?= s per round| times)')
_SPEED_UP = re.compile(r'(\d+\.\d+) times')


def _processes_with(mark: str) -> list[psutil.Process]:
  """Returns the processes of a program that are still there."""
  found = []
  for process in psutil.process_iter():
    try:
      if process.environ().get(_MARK) == mark:
        found.append(process)
    except psutil.Error:
      pass  # It is gone, or another user's.
  return found


def _run(*command: str) -> str:
  """Runs a program for this Python to its end; returns what it printed."""
  mark = uuid.uuid4().hex
  result = subprocess.run(
      [sys.executable, *command],
      env={
          **os.environ,
          _MARK: mark,
          'PYTHONPATH': str(page_testing.ROOT),
          'TF_CPP_MIN_LOG_LEVEL': '3',
          'CUDA_VISIBLE_DEVICES': '-1',
      },
      # A process that stays behind would hold the pipe open.
      timeout=_TIMEOUT_SECONDS,
      capture_output=True,
      text=True,
      check=False,
  )
  assert not result.returncode, result.stderr
  assert 'Traceback' not in result.stderr, result.stderr
  assert not _processes_with(mark)
  return result.stdout


class ProgramsTest(parameterized.TestCase):
  """The examples that put one line into a program on stock TFF."""

  @parameterized.parameters('one_line_optimizer.py', 'one_line_runtime.py')
  @pytest.mark.slow
  def test_prints_what_the_page_shows(self, name):
    (shown,) = [
        command.shown
        for command in page_testing.commands_of(_README)
        if name in command.text
    ]
    printed = _run(str(_FOLDER / name))
    # Numbers differ between machines.
    self.assertEqual(_NUMBER.sub('N', printed), _NUMBER.sub('N', shown))
    first, second = (float(n) for n in re.findall(r'\d+\.\d+\S*', printed)[-2:])
    if name == 'one_line_optimizer.py':
      self.assertGreater(first, 0.5)
      self.assertGreater(second, max(first, 0.8))
    else:
      self.assertLess(second, 1e-5)

  @pytest.mark.slow
  def test_experiment_in_one_file_trains_as_the_program_does(self):
    with tempfile.TemporaryDirectory() as folder:
      table = pathlib.Path(folder, 'one_file.csv')
      flags = ('--client_optimizer=sgd', '--seed=3')
      printed = _run(
          str(_FOLDER / 'train_one_file.py'),
          *flags,
          '--rounds=2',
          f'--csv={table}',
      )
      _run(
          *'-m experiments.train --task=digits --total_rounds=2'.split(),
          *('--rounds_per_evaluation=1', '--client_learning_rate=0.1'),
          *flags,
          *(f'--output_dir={folder}', '--experiment_name=program'),
      )
      ours = _run_metrics.read_columns(table)
      theirs = _run_metrics.read_columns(f'{folder}/program/metrics.csv')
    # Up to the rounding of float32, which may move an example's prediction.
    for name, tolerance in (('loss', 1e-4), ('accuracy', 0.01)):
      rounds, values = ours[f'test_{name}']
      self.assertEqual(rounds, theirs[f'evaluation/{name}'][0])
      for value, expected in zip(values, theirs[f'evaluation/{name}'][1]):
        self.assertAlmostEqual(value, expected, delta=tolerance)
    self.assertRegex(printed, r'(?m)^round 2: loss \d\.\d+, accuracy 0\.\d+$')

  def test_pipeline_is_stock_tff(self):
    text = (_FOLDER / 'stock_pipeline.py').read_text(encoding='utf-8')
    self.assertNotRegex(text, '(?m)^(import|from) tff_adaptive')

  def test_every_file_is_described(self):
    paths = [*_FOLDER.glob('*.py'), *_FOLDER.glob('*.ipynb')]
    self.assertNotEmpty(paths)
    for path in paths:
      self.assertIn(f'`{path.name}`', _README)


class NotebookTest(parameterized.TestCase):

  @parameterized.parameters('first_steps.ipynb', 'colab.ipynb')
  def test_names_no_machine(self, name):
    text = (_FOLDER / name).read_text(encoding='utf-8')
    self.assertLess(len(text), 300_000)
    self.assertNotRegex(text, r'/(home|root|tmp|Users)/')
    for link in re.findall(r'\]\(([^:)]+)\)', text):
      self.assertTrue((_FOLDER / link).exists(), link)

  @pytest.mark.slow
  def test_gives_what_is_stored(self):
    with tempfile.TemporaryDirectory() as folder:
      copy = shutil.copy(_FOLDER / 'first_steps.ipynb', folder)
      printed = _run(notebook_runner.__file__, copy)
      figure = pathlib.Path(folder, 'runs/comparison.pdf').read_bytes()
    self.assertStartsWith(figure, b'%PDF')
    results = json.loads(printed.splitlines()[-1])
    cells = notebook_runner.read_code(_FOLDER / 'first_steps.ipynb')
    num_pictures = 0
    for cell, result in zip(cells, results, strict=True):
      outputs = cell['outputs']
      stored = ''.join(''.join(o.get('text', '')) for o in outputs)
      pictures = sum('image/png' in o.get('data', ()) for o in outputs)
      self.assertEqual(result['pictures'], pictures)
      num_pictures += pictures
      new, old = (_TIME.sub('T', text) for text in (result['text'], stored))
      self.assertEqual(_NUMBER.sub('N', new), _NUMBER.sub('N', old))
      # Another processor rounds otherwise.
      for new_number, old_number in zip(
          _NUMBER.findall(new), _NUMBER.findall(old)
      ):
        self.assertAlmostEqual(float(new_number), float(old_number), delta=0.1)
    self.assertEqual(num_pictures, 2)
    (speed_up,) = _SPEED_UP.findall(''.join(r['text'] for r in results))
    self.assertGreater(float(speed_up), 2)

  def test_notebooks_install_alike(self):
    installs = []
    for name in ('first_steps.ipynb', 'colab.ipynb'):
      text = (_FOLDER / name).read_text(encoding='utf-8')
      self.assertIn('not on the package index yet', text)
      first_cell, *_ = notebook_runner.read_code(_FOLDER / name)
      lines = map(str.strip, first_cell['source'].splitlines())
      installs.append([line for line in lines if line.startswith('%pip ')])
    tutorial, colab = installs
    self.assertLen(colab, 2)
    self.assertEndsWith(colab[1], _stack.TFF_COMMAND[len('pip install') :])
    self.assertEqual(tutorial, colab)

  @pytest.mark.slow
  def test_colab_notebook_installs_and_trains(self):
    folder = folder_testing.new(self)
    python = folder / 'venv/bin/python'
    subprocess.run(
        [sys.executable, '-m', 'venv', str(folder / 'venv')], check=True
    )
    command = [str(python), '-m', 'pip', 'download', '-q', '--no-deps', 'six']
    if subprocess.run(command, cwd=folder, check=False).returncode:
      self.skipTest('No package index can be reached.')
    copy = self.enter_context(page_testing.copied_project())
    self.assertEqual(page_testing.run('make wheel', copy).returncode, 0)
    for path in (_FOLDER / 'colab.ipynb', notebook_runner.__file__):
      shutil.copy(path, folder)
    # As if the release were in the index.
    links = f'{os.environ.get("PIP_FIND_LINKS", "")} {copy / "dist"}'
    with mock.patch.dict(os.environ, PIP_FIND_LINKS=links):
      os.environ.pop('PYTHONPATH', None)
      result = subprocess.run(
          [str(python), 'notebook_runner.py', 'colab.ipynb'],
          cwd=folder,
          capture_output=True,
          text=True,
          check=False,
      )
    self.assertEqual(result.returncode, 0, result.stderr)
    _, trained = json.loads(result.stdout.splitlines()[-1])
    self.assertEqual(trained['pictures'], 1)
    title, accuracy = trained['text'].split(': ')
    self.assertEqual(title, 'test accuracy after 100 rounds')
    self.assertGreater(float(accuracy), 0.9)

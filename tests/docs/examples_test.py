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
"""Tests of docs/examples: they run, print what they should, and end."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple
from unittest import mock
import uuid

from absl.testing import absltest
import psutil
import pytest

from tests import page_testing
from tests.docs import notebook_runner
from tests.packaging import wheel_testing
from tff_adaptive import _stack

_FOLDER = pathlib.Path(__file__).resolve().parents[2] / 'docs/examples'
_NOTEBOOK = _FOLDER / 'first_steps.ipynb'
_README = 'docs/examples/README.md'
_INTEGRATIONS = ('one_line_optimizer.py', 'one_line_runtime.py')
_TIMEOUT_SECONDS = 1800
# Tells the processes of a program from all others; they inherit it.
_MARK = 'TFF_ADAPTIVE_EXAMPLES_TEST'
_NUMBER = re.compile(r'\d+\.\d+')

# Runs programs one after the other, to import TFF only once.
_RUN_ALL = """
import runpy, sys
_, folder, *names = sys.argv
sys.path[0] = folder
for name in names:
  print(f'== {name}', flush=True)
  runpy.run_path(f'{folder}/{name}', run_name='__main__')
"""


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


class _Finished(NamedTuple):
  """A program that has ended.

  Attributes:
    status: Its exit status.
    output: What it has printed.
    errors: What it has written to the standard error.
    left_behind: Processes that it has started and that have not ended.
  """

  status: int
  output: str
  errors: str
  left_behind: list[psutil.Process]


def _run(*command: str) -> _Finished:
  """Runs a program for this Python to its end."""
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
  return _Finished(
      result.returncode, result.stdout, result.stderr, _processes_with(mark)
  )


def _without_numbers(text: str) -> str:
  return _NUMBER.sub('N', text)


class IntegrationTest(absltest.TestCase):
  """The examples that put one line into a program on stock TFF."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.finished = _run('-c', _RUN_ALL, str(_FOLDER), *_INTEGRATIONS)

  def _output(self, name):
    """What one of the programs has printed."""
    parts = re.split('^== (.*)\n', self.finished.output, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))[name]

  def test_they_end_and_leave_no_process_behind(self):
    self.assertEqual(self.finished.status, 0, self.finished.errors)
    self.assertNotIn('Traceback', self.finished.errors)
    self.assertEmpty(self.finished.left_behind)

  def test_delta_sgd_is_better_than_sgd_with_that_rate(self):
    output = self._output('one_line_optimizer.py')
    lines = dict(line.split(': test accuracy ') for line in output.splitlines())
    self.assertEqual(
        list(lines), ['SGD, learning rate 0.02', 'Delta-SGD, nothing tuned']
    )
    sgd, delta_sgd = map(float, lines.values())
    self.assertGreater(sgd, 0.5)
    self.assertGreater(delta_sgd, 0.8)
    self.assertGreater(delta_sgd, sgd)

  def test_weights_of_both_runtimes_agree(self):
    first, second = self._output('one_line_runtime.py').splitlines()
    # How much faster depends on the machine and on what else it does.
    self.assertRegex(first, r'^speed-up of a round: \d+\.\d times$')
    title, difference = second.split(': ')
    self.assertEqual(title, 'largest difference of the weights')
    self.assertBetween(float(difference), 0.0, 1e-5)

  def test_page_shows_what_they_print(self):
    """But for the numbers, which differ between machines."""
    blocks = page_testing.commands_of(page_testing.read(_README))
    for block, name in zip(blocks, _INTEGRATIONS, strict=True):
      self.assertEqual(
          _without_numbers(block.shown), _without_numbers(self._output(name))
      )


class OneLineTest(absltest.TestCase):
  """What the examples are there to show."""

  def _lines_with(self, name, word):
    lines = (_FOLDER / name).read_text(encoding='utf-8').splitlines()
    code = [line for line in lines if not line.lstrip().startswith('#')]
    return [line for line in code if re.search(word, line)]

  def test_pipeline_is_stock_tff(self):
    imports = self._lines_with('stock_pipeline.py', '^(import|from) ')
    self.assertNotEmpty(imports)
    for line in imports:
      self.assertNotIn('tff_adaptive', line)

  def test_one_line_has_our_optimizer(self):
    lines = self._lines_with('one_line_optimizer.py', r'\boptimizers\.build_')
    ours = [line for line in lines if 'tff.learning' not in line]
    self.assertLen(ours, 1)

  def test_one_line_has_our_runtime(self):
    lines = self._lines_with('one_line_runtime.py', r'\bruntime\.')
    self.assertLen(lines, 1)


class PageTest(absltest.TestCase):

  def test_commands_are_those_of_the_examples(self):
    commands = page_testing.commands_of(page_testing.read(_README))
    self.assertEqual(
        [block.text for block in commands],
        [
            f'PYTHONPATH=. .venv/bin/python docs/examples/{name}'
            for name in _INTEGRATIONS
        ],
    )

  def test_links_lead_somewhere(self):
    self.assertEmpty(page_testing.broken_links(_README))

  def test_every_file_is_described(self):
    page = page_testing.read(_README)
    for path in _FOLDER.iterdir():
      if path.suffix in ('.py', '.ipynb'):
        self.assertIn(f'`{path.name}`', page)


class NotebookTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.cells = notebook_runner.read_code(_NOTEBOOK)

  def _stored(self, cell):
    """What a cell has given when the notebook was stored."""
    text, pictures = '', 0
    for output in cell['outputs']:
      text += ''.join(output.get('text', ''))
      pictures += 'image/png' in output.get('data', ())
    return text, pictures

  def test_is_stored_as_it_ran_from_top_to_bottom(self):
    counts = [cell['execution_count'] for cell in self.cells]
    self.assertEqual(counts, list(range(1, len(self.cells) + 1)))
    for cell in self.cells:
      for output in cell['outputs']:
        self.assertNotIn(output['output_type'], ('error',))
        self.assertNotEqual(output.get('name'), 'stderr')
    self.assertEqual(sum(self._stored(cell)[1] for cell in self.cells), 3)

  def test_is_small_and_names_no_machine(self):
    text = _NOTEBOOK.read_text(encoding='utf-8')
    self.assertLess(len(text), 300_000)
    self.assertNotRegex(text, r'/(home|root|tmp|Users)/')

  def test_links_lead_somewhere(self):
    links = re.findall(r'\]\((\S+?)\)', _NOTEBOOK.read_text(encoding='utf-8'))
    self.assertNotEmpty(links)
    for link in links:
      self.assertTrue((_FOLDER / link).exists(), link)

  @pytest.mark.slow
  def test_gives_what_is_stored(self):
    with tempfile.TemporaryDirectory() as folder:
      # Of its own, for what the notebook writes into runs/.
      copy = pathlib.Path(folder, 'docs/examples')
      copy.mkdir(parents=True)
      for name in ('tff_adaptive', 'tasks'):
        os.symlink(page_testing.ROOT / name, pathlib.Path(folder, name))
      (copy / _NOTEBOOK.name).write_bytes(_NOTEBOOK.read_bytes())
      finished = _run(notebook_runner.__file__, str(copy / _NOTEBOOK.name))
    self.assertEqual(finished.status, 0, finished.errors)
    self.assertNotIn('Traceback', finished.errors)
    self.assertEmpty(finished.left_behind)
    found = json.loads(finished.output.splitlines()[-1])
    for cell, result in zip(self.cells, found, strict=True):
      text, pictures = self._stored(cell)
      self.assertEqual(_without_numbers(result['text']), _without_numbers(text))
      self.assertEqual(result['pictures'], pictures)
      # Another processor rounds otherwise.
      for new, old in zip(
          _NUMBER.findall(result['text']), _NUMBER.findall(text)
      ):
        self.assertAlmostEqual(float(new), float(old), delta=0.1)


class ColabNotebookTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(
        self.enter_context(tempfile.TemporaryDirectory())
    )

  def _new_environment(self):
    """Makes an environment with nothing but pip, and returns its Python."""
    python = self.folder / 'venv/bin/python'
    subprocess.run(
        [sys.executable, '-m', 'venv', str(self.folder / 'venv')], check=True
    )
    command = [str(python), '-m', 'pip', 'download', '-q', '--no-deps', 'six']
    done = subprocess.run(command, cwd=self.folder, check=False)
    if done.returncode:
      raise absltest.SkipTest('No package index can be reached.')
    return python

  @pytest.mark.slow
  @absltest.skipIf(
      sys.version_info < (3, 11) or _stack.installed() is _stack.TF214,
      'The notebook installs the current stack.',
  )
  def test_installs_and_trains_in_a_new_environment(self):
    python = self._new_environment()
    wheels = self.folder / 'wheels'
    wheels.mkdir()
    wheel_testing.build_wheel(wheels)
    notebook = shutil.copy(_FOLDER / 'colab.ipynb', self.folder)
    runner = shutil.copy(notebook_runner.__file__, self.folder)
    with mock.patch.dict(os.environ):
      # As if the release were in the index.
      links = os.environ.get('PIP_FIND_LINKS', '')
      os.environ['PIP_FIND_LINKS'] = f'{links} {wheels}'
      result = wheel_testing.run(python, runner, notebook, cwd=self.folder)
    self.assertEqual(result.returncode, 0, result.stderr)
    _, trained = json.loads(result.stdout.splitlines()[-1])
    self.assertEqual(trained['pictures'], 1)
    accuracy = re.fullmatch(
        r'test accuracy after 100 rounds: (0\.\d\d)\n', trained['text']
    )
    self.assertIsNotNone(accuracy, trained['text'])
    self.assertGreater(float(accuracy[1]), 0.9)

  def test_is_stored_without_outputs_and_names_no_machine(self):
    text = (_FOLDER / 'colab.ipynb').read_text(encoding='utf-8')
    for cell in notebook_runner.read_code(_FOLDER / 'colab.ipynb'):
      self.assertEmpty(cell['outputs'])
    self.assertNotRegex(text, r'/(home|root|tmp|Users)/')


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the Python blocks of README and docs run as the pages show.

Of a `diff` the new lines run.
"""

from collections.abc import Sequence
import dataclasses
import linecache
import os
import re
import tempfile

from absl.testing import parameterized
import pytest

from experiments import published
from tests import page_testing
from tests import program_testing

_GOOGLE = 'docs/migration/google_research_federated.md'
_OLDER_TFF = 'docs/migration/older_tff.md'
_SIMULATORS = 'docs/migration/simulators.md'
_TFF = 'docs/migration/tff_learning.md'
# The names that pages assume: "a model and the clients that you have".
_GIVEN = """
import collections
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from tests.tff_adaptive import testing

def make_examples(seed):
  generator = np.random.default_rng(seed)
  return collections.OrderedDict(
      x=generator.normal(size=[8, testing.NUM_FEATURES]).astype(np.float32),
      y=generator.integers(testing.NUM_CLASSES, size=8).astype(np.int32))

def preprocess(dataset):
  return dataset.batch(4)

model = testing.functional_model()
train_data = tff.simulation.datasets.TestClientData(
    {f'client_{seed}': make_examples(seed) for seed in range(3)})
client_datasets = [
    preprocess(train_data.create_tf_dataset_for_client(name))
    for name in train_data.client_ids]
test_examples = make_examples(3)
cohort = client_datasets
process = tff.learning.algorithms.build_weighted_fed_avg(
    model, tff.learning.optimizers.build_sgdm(0.1))
"""
_TAKE_A_MODEL = (
    'docs/guide/gpu.md',
    'docs/write_your_own.md',
    'docs/scale_out.md',
    _GOOGLE,
    _TFF,
)
# The pages whose blocks build several processes, or train on both runtimes.
_LONG = (
    'README.md',
    'docs/conformance.md',
    'docs/write_your_own.md',
    'docs/scale_out.md',
    'docs/guide/one_optimizer.md',
    'docs/guide/use_the_model.md',
    'docs/guide/the_runtime.md',
    'docs/guide/your_own_data.md',
    'docs/guide/your_own_model.md',
    'docs/models.md',
    _OLDER_TFF,
    _SIMULATORS,
    _TFF,
)
_END_OF_BLOCK = '\0'


def _blocks(page: str) -> list[page_testing.Block]:
  found = page_testing.find_blocks(page_testing.read(page))
  return [
      _after(block) for block in found if block.language in ('python', 'diff')
  ]


def _after(block: page_testing.Block) -> page_testing.Block:
  """Returns Python: of a `diff` the new version, with its lines in place."""
  if block.language == 'python':
    return block
  lines = block.text.splitlines()
  new = ['' if line.startswith('-') else line[1:] for line in lines]
  return dataclasses.replace(block, text='\n'.join(new) + '\n')


_PAGES = tuple(page for page in page_testing.PAGES if _blocks(page))


def run_blocks(name: str, given: str, blocks: Sequence[page_testing.Block]):
  """Runs the blocks of a page, after the code that is given."""
  from tff_adaptive import runtime

  if 'set_threads' not in ''.join(block.text for block in blocks):
    runtime.set_threads()
  lines: list[str] = []
  for block in blocks:
    lines += ['\n'] * (block.line - 1 - len(lines))
    lines += block.text.splitlines(keepends=True)
  # For tracebacks, and for AutoGraph.
  linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
  with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    namespace = {'__name__': 'page'}
    exec(given, namespace)  # pylint: disable=exec-used
    for block in blocks:
      code = compile('\n' * (block.line - 1) + block.text, name, 'exec')
      exec(code, namespace)  # pylint: disable=exec-used
      print(_END_OF_BLOCK, end='')
    os.chdir('/')


class BlocksTest(parameterized.TestCase):

  def _assert_run(self, page):
    """Runs the blocks of a page; returns what each printed."""
    blocks = _blocks(page)
    given = _GIVEN if page in _TAKE_A_MODEL else ''
    program = program_testing.Program(run_blocks, page, given, blocks)
    result = program.wait()
    self.assertEqual(result.returncode, 0, result.stderr)
    outputs = result.stdout.split(_END_OF_BLOCK)[:-1]
    for block, output in zip(blocks, outputs, strict=True):
      self.assertTrue(
          (not block.shown and page in _TAKE_A_MODEL)
          or page_testing.is_shown(block.shown, output),
          f'line {block.line} prints\n{output}\nand shows\n{block.shown}',
      )
    return outputs

  @parameterized.parameters(page for page in _PAGES if page not in _LONG)
  def test_blocks_run(self, page):
    outputs = self._assert_run(page)
    if page == _GOOGLE:
      # A table of factors is a flag that a run takes.
      choices, _ = published.parse_flags(outputs[0].split())
      factors = choices['client_schedule'].hparams()['client_schedule_table']
      self.assertStartsWith(factors, '0:0.1,1:0.2,')
      self.assertIn('110:0.666667', factors)

  @parameterized.parameters(page for page in _PAGES if page in _LONG)
  @pytest.mark.slow
  def test_long_blocks_run(self, page):
    outputs = self._assert_run(page)
    if page == 'README.md':
      self.assertLen(outputs[0].splitlines(), 10)  # The rounds.

  def test_rules_of_ones_own_are_short(self):
    blocks = _blocks('docs/write_your_own.md')
    self.assertNotEmpty(blocks)
    for block in blocks:
      self.assertLess(sum(bool(line) for line in block.text.splitlines()), 30)

  def test_public_names_of_the_migration_exist(self):
    migration = (_GOOGLE, _OLDER_TFF, _SIMULATORS, _TFF)
    pages = ''.join(map(page_testing.read, migration))
    code = '\n'.join(
        f'import tff_adaptive.{module} as module; module.{name}'
        for module, name in sorted(
            set(re.findall(r'`(algorithms|optimizers)\.(build_\w+)[`(]', pages))
        )
    )
    self.assertGreater(code.count('\n'), 5)
    exec(code, {})  # pylint: disable=exec-used

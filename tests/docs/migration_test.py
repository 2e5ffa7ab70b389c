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
"""Tests that the pages for those who come from elsewhere are true."""

import contextlib
import functools
import importlib.util
import io
import json
import pathlib
import pkgutil
import re
import shlex
import tempfile

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized

from experiments import hparam_flags
from experiments import registry
from experiments.published import commands
from experiments.sweep import __main__ as sweep
from tests import page_testing

_GOOGLE = 'docs/migration/google_research_federated.md'
_TFF = 'docs/migration/tff_learning.md'
_PAGES = (_GOOGLE, _TFF)

# A row of a table of flags: there, default, here, default, what differs.
_FLAG_COLUMNS = '| there | default | here | default | what differs |'
_NONE = 'none'
# A value in backticks, with the rows that it is the default of, if there are
# several.
_VALUE = re.compile(r'`([^`]+)`(?: \(([^)]*)\))?')

# What the pages say is no longer in TFF.
_GONE = ('tff.learning.build_federated_evaluation', 'tff.learning.Model')
_ROOTS = (
    'algorithms',
    'analysis',
    'client_works',
    'experiments',
    'optimizers',
    'privacy',
    'runtime',
    'simulation',
    'tasks',
    'tff',
)
# Where names are that the page for TFF has without a module.
_NAMESPACES = (
    'tensorflow_federated.learning.algorithms',
    'tensorflow_federated.learning.optimizers',
    'tensorflow_federated.learning',
    'tensorflow_federated.aggregators',
    'tensorflow_federated.program',
    'tensorflow_federated.simulation',
    'tensorflow_federated.simulation.baselines',
    'tff_adaptive.algorithms',
    'tff_adaptive.optimizers',
    'tff_adaptive.simulation',
    'tff_adaptive.simulation.client_evaluation',
)

# What the page for TFF takes for granted.
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
"""


def _flag_rows():
  """The rows of all tables of flags, with the page's line for a name."""
  rows, is_inside = [], False
  for number, line in enumerate(
      page_testing.read(_GOOGLE).splitlines(), start=1
  ):
    if line == _FLAG_COLUMNS:
      is_inside = True
    elif not line.startswith('|'):
      is_inside = False
    elif is_inside and not line.startswith('|---'):
      cells = [cell.strip() for cell in line.split('|')[1:-1]]
      rows.append((f'line_{number}', *cells))
  return rows


@functools.cache
def _flag_values():
  values = flags.FlagValues()
  hparam_flags.define(values)
  return values


def _show(value):
  return value if isinstance(value, str) else json.dumps(value)


def _defaults(flag):
  """The defaults of a flag as text, by the rows that have one of their own."""
  if flag in hparam_flags.DEFAULT_ROWS:
    return {flag: hparam_flags.DEFAULT_ROWS[flag]}
  uses = hparam_flags.flags_of_rows().get(flag)
  if uses is None:
    return {flag: _show(_flag_values()[flag].default)}
  return {row.name: _show(argument.default) for _, row, argument in uses}


def _names_of(page):
  """What stands in backticks on a page."""
  return page_testing.names_in(page_testing.read(page).splitlines())


def _commands(name):
  """The modules that the commands of a page run, with their arguments."""
  lines = page_testing.commands_of(page_testing.read(name))
  return [page_testing.module_and_flags(block.text) for block in lines]


def _exists(name):
  """Whether a name of Python can be found, by its full path or in a place."""
  root, _, rest = name.partition('.')
  if root == 'experiments':
    # Its binaries define flags when they are imported.
    return importlib.util.find_spec(name) is not None
  places = {'tff': f'tensorflow_federated.{rest}', 'tasks': name}
  candidates = [places.get(root, f'tff_adaptive.{name}')]
  candidates += [f'{namespace}.{name}' for namespace in _NAMESPACES]
  for candidate in candidates:
    with contextlib.suppress(ImportError, AttributeError):
      pkgutil.resolve_name(candidate)
      return True
  return False


class FlagsTest(parameterized.TestCase):

  @parameterized.named_parameters(*_flag_rows())
  def test_default_is_that_of_the_flag(
      self, there, there_default, here, default, differs
  ):
    self.assertTrue(page_testing.names_in([there]), there)
    if here == _NONE:
      self.assertEmpty(default)
      return
    self.assertTrue(there_default or differs)
    (name,) = page_testing.names_in([here])
    flag = name[2:]
    self.assertIn(flag, _flag_values())
    found = _defaults(flag)
    if default == "the task's":
      self.assertEqual(found, {flag: 'null'})
      self.assertIn("Default: the task's", _flag_values()[flag].help)
      return
    if default == 'unset':
      self.assertEqual(set(found.values()), {'null'})
      return
    values = _VALUE.findall(default)
    self.assertNotEmpty(values)
    for value, rows in values:
      for row in page_testing.names_in([rows]) or found:
        self.assertEqual(found[row], value, row)

  def test_page_has_every_flag_of_protocols_and_of_its_rules(self):
    flags_on_page = set(re.findall(r'--(\w+)', page_testing.read(_GOOGLE)))
    rules = [
        registry.ROWS[kind][name]
        for kind, names in (
            ('client_optimizer', ('sgd', 'adam', 'adagrad', 'yogi')),
            ('server_optimizer', ('fedavg', 'fedavgm')),
        )
        for name in names
    ]
    expected = {row.flag_name(a) for row in rules for a in row.arguments}
    expected |= {
        name
        for name in _flag_values()
        if "Default: the task's" in _flag_values()[name].help
        and name != 'initial_weights'
    }
    self.assertEmpty(expected - flags_on_page)

  @parameterized.parameters(*_PAGES)
  def test_every_flag_is_one_of_here_or_of_there(self, name):
    there = {f for row in _flag_rows() for f in re.findall(r'\w+', row[1])}
    there.add('help')
    for span in _names_of(name):
      for flag in re.findall(r'--(\w+)', span):
        self.assertTrue(flag in _flag_values() or flag in there, flag)

  @parameterized.parameters(
      *(
          row[1]
          for row in page_testing.table_rows(
              page_testing.read(_GOOGLE).partition('## Optimizers of the s')[2],
              'there',
          )
      )
  )
  def test_translated_server_rule_is_taken(self, cell):
    (given,) = page_testing.names_in([cell])
    choices, _ = commands.parse_flags(shlex.split(given))
    self.assertEqual(
        choices['server_optimizer'].row.name,
        given.split()[0].partition('=')[2],
    )


class NamesTest(parameterized.TestCase):

  @parameterized.parameters(*_PAGES)
  def test_every_python_name_exists(self, name):
    dotted = re.compile(rf'({"|".join(_ROOTS)})(\.\w+)+$')
    bare = re.compile(r'(build_\w+|[A-Z]\w+(Manager|Writer|Source|Factory))$')
    checked = 0
    for span in _names_of(name):
      stem = re.sub(r'(\.\*|\(.*\))$', '', span)
      if stem in _GONE or stem.endswith(('.md', '.py')):
        continue
      if dotted.match(stem) or (bare.match(stem) and '_*' not in span):
        self.assertTrue(_exists(stem), span)
        checked += 1
    self.assertGreater(checked, 5)

  @parameterized.parameters(*_GONE)
  def test_what_the_page_says_is_gone_is_gone(self, name):
    self.assertIn(f'`{name}`', page_testing.read(_GOOGLE))
    self.assertFalse(_exists(name))

  @parameterized.parameters(*_PAGES)
  def test_links_lead_somewhere(self, name):
    self.assertEmpty(page_testing.broken_links(name))


class CommandsTest(absltest.TestCase):

  def test_commands_are_taken(self):
    self.assertEmpty(_commands(_TFF))
    *trainings, (module, arguments) = _commands(_GOOGLE)
    self.assertEqual(module, 'experiments.sweep')
    values = flags.FlagValues()
    sweep.define(values)
    values(['sweep', *arguments, '--dry_run'])
    with contextlib.redirect_stdout(io.StringIO()) as printed:
      sweep.main(values)
    # Five rates of clients by five of the server.
    self.assertEqual(printed.getvalue().count('experiments.train'), 25)
    self.assertLen(trainings, 2)
    for module, arguments in trainings:
      self.assertEqual(module, 'experiments.train')
      commands.parse_flags(arguments)

  def test_translated_command_is_what_it_is_said_to_be(self):
    (_, arguments), *_ = _commands(_GOOGLE)
    choices, _ = commands.parse_flags(arguments)
    protocol = registry.resolve(choices['task'].row.protocol)
    there = page_testing.blocks_of(page_testing.read(_GOOGLE), '')[0]
    for flag, value in (
        ('total_rounds', protocol.total_rounds),
        ('clients_per_round', protocol.clients_per_round),
        ('client_batch_size', protocol.client_batch_size),
        ('max_elements_per_client', protocol.max_examples),
    ):
      self.assertIn(f'--{flag}={value}', there)


class BlocksTest(absltest.TestCase):

  def test_python_blocks_run(self):
    found = page_testing.run_python_blocks(_PAGES, _GIVEN)
    for name in _PAGES:
      self.assertEmpty(found[name]['error'])
      blocks = [
          block
          for block in page_testing.find_blocks(page_testing.read(name))
          if block.language == 'python'
      ]
      for block, output in zip(blocks, found[name]['outputs'], strict=True):
        if block.shown:
          self.assertTrue(
              page_testing.is_shown(block.shown, output),
              f'{name}:{block.line}\n{output}',
          )
    # A table of factors is a flag that a run takes.
    printed = found[_GOOGLE]['outputs'][0].split()
    choices, _ = commands.parse_flags(printed)
    factors = choices['client_schedule'].hparams()['client_schedule_table']
    self.assertStartsWith(factors, '0:0.1,1:0.2,')
    self.assertContainsSubsequence(factors.split(','), ['9:1', '10:1'])
    self.assertIn('110:0.666667', factors)

  def test_reader_reads_runs_of_both_kinds(self):
    *_, read_both, _ = page_testing.blocks_of(
        page_testing.read(_GOOGLE), 'python'
    )
    namespace = {}
    exec(read_both, namespace)  # pylint: disable=exec-used
    for column in namespace['ACCURACY']:
      with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'metrics.csv'
        path.write_text(f'round_num,loss,{column}\n1,0.5,\n2,0.4,0.75\n')
        self.assertEqual(
            namespace['read_column'](path, *namespace['ACCURACY']),
            [(2, 0.75)],
        )


if __name__ == '__main__':
  absltest.main()

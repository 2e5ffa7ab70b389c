# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the registry says what the builders say."""

import inspect

from absl.testing import parameterized

from experiments import hparams
from experiments import registry
from experiments.registry import signatures
from tff_adaptive.optimizers.client import fedcada

_ROWS = [
    (f'{kind}_{row.name}', kind, row)
    for kind, rows in registry.ROWS.items()
    for row in rows.values()
    if row.task is None  # Its arguments follow from the value.
]


class RegistryTest(parameterized.TestCase):

  @parameterized.named_parameters(*_ROWS)
  def test_row_has_the_signature_of_its_builder(self, kind, row):
    if row.builder is None:
      self.assertEmpty(row.arguments)
      return
    builder = registry.resolve(row.builder)
    parameters = inspect.signature(builder).parameters
    flagged = {argument.name: argument for argument in row.arguments}
    self.assertCountEqual([*flagged, *row.supplied], parameters)
    for name, argument in flagged.items():
      if argument.is_required:
        self.assertIs(parameters[name].default, inspect.Parameter.empty)
        continue
      self.assertEqual(
          argument.to_builder_value(argument.default),
          parameters[name].default,
          f'{kind} {row.name} {name}',
      )

  @parameterized.named_parameters(*_ROWS)
  def test_row_is_complete(self, kind, row):
    for argument in row.arguments:
      self.assertIn(argument.type, (float, int, bool, str))
      if argument.default is not None:
        self.assertIsInstance(argument.default, argument.type)
      self.assertEndsWith(argument.help, '.')
      if argument.references:
        self.assertLen(argument.references, len(argument.choices))
        for choice in argument.choices:
          self.assertIsNotNone(argument.to_builder_value(choice))
      if argument.choices:
        # None stands for what the task has.
        self.assertIn(argument.default, (None, *argument.choices))
    self.assertEqual(kind == registry.TASK, row.task is not None)

  @parameterized.parameters(
      (
          registry.CLIENT_OPTIMIZER,
          'fedcada_adam',
          'option',
          fedcada.CORRECTIONS,
      ),
      (registry.CLIENT_OPTIMIZER, 'fedcada_adam', 'time', fedcada.TIMES),
  )
  def test_choices_are_those_of_the_builder(self, kind, row, name, known):
    arguments = registry.ROWS[kind][row].arguments
    argument = next(a for a in arguments if a.name == name)
    self.assertEqual(argument.choices, tuple(known))

  def test_parts_of_algorithms_are_there(self):
    for row in registry.ROWS[registry.ALGORITHM].values():
      for part in row.parts:
        self.assertIn(part.name, registry.ROWS[part.kind])
      kinds = [part.kind for part in row.parts]
      self.assertLen(set(kinds), len(kinds))

  def test_default_rows_are_there(self):
    self.assertCountEqual(hparams.DEFAULT_ROWS, registry.ROWS)
    for kind, name in hparams.DEFAULT_ROWS.items():
      self.assertIn(name, registry.ROWS[kind])

  def test_runtimes_are_there(self):
    for reference in registry.RUNTIMES.values():
      self.assertTrue(callable(registry.resolve(reference)))

  def test_a_flag_means_one_type_and_one_kind(self):
    uses = {}
    for kind, rows in registry.ROWS.items():
      for row in rows.values():
        for argument in row.arguments:
          use = (kind, argument.type, argument.choices)
          flag = row.flag_name(argument)
          self.assertEqual(uses.setdefault(flag, use), use, flag)


class ParsersTest(parameterized.TestCase):

  def test_parses_tables(self):
    self.assertEqual(
        signatures.parse_factors('0:1, 100:0.5'), {0: 1.0, 100: 0.5}
    )
    for text in ('', '0', '0:1:2', 'a:1', '0:b'):
      with self.assertRaisesRegex(ValueError, f"0:1,100:0.5.*found '{text}'"):
        signatures.parse_factors(text)
    with self.assertRaisesRegex(ValueError, "once, found '0:1,0:2'"):
      signatures.parse_factors('0:1,0:2')

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the registry and its flags say and take what the builders do."""

import inspect
import math
from unittest import mock

from absl.testing import parameterized
import tensorflow_federated as tff

from experiments import hparams
from experiments import published
from experiments import registry
from experiments.registry import signatures
from tests.tff_adaptive import testing
from tff_adaptive import optimizers
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


# Other algorithms have the builder of the first.
_ALGORITHMS = ('fed_opt', 'centralized')
_KINDS = (
    registry.ALGORITHM,
    *registry.RULES,
    registry.CLIENT_SCHEDULE,
    registry.SERVER_SCHEDULE,
)
_ROWS_WITH_NUMBERS = [
    (f'{kind}_{row.name}', kind, row)
    for kind in _KINDS
    for row in registry.ROWS[kind].values()
    if any(a.type in (float, int) for a in row.arguments)
    and (kind != registry.ALGORITHM or row.name in _ALGORITHMS)
]
_NUMBERS = {
    float: (
        -math.inf,
        -1.0,
        0.0,
        1e-50,
        0.5,
        1 - 1e-9,
        1.0,
        math.inf,
        math.nan,
    ),
    int: (-1, 0, 1, 2),
}
# Arguments without flags.
_SUPPLIED = {
    'num_clients': 5,
    'total_rounds': 10,
    'representation_fn': lambda *args: None,
    'model': testing.functional_model(),
    'client_optimizer': optimizers.build_sgd(),
}
# The values of arguments without defaults.
_REQUIRED = {'factors': '0:1'}


class _TracedError(Exception):
  """A builder has begun to trace computations."""


def _flag_takes(kind, row, argument, value):
  """Returns whether the flag of an argument takes a number."""
  flag = row.flag_name(argument)
  given = [
      f'--{row.flag_name(a)}={_REQUIRED[a.name]}'
      for a in row.arguments
      if a.is_required
  ]
  try:
    published.parse_flags([f'--{kind}={row.name}', *given, f'--{flag}={value}'])
  except hparams.HparamError as error:
    return not str(error).startswith(f'--{flag} must be ')
  return True


def _builder_takes(row, argument, value):
  """Returns whether the builder of a rule takes a number."""
  values = {
      **{n: _SUPPLIED[n] for n in row.supplied if n in _SUPPLIED},
      **{
          a.name: a.to_builder_value(_REQUIRED[a.name])
          for a in row.arguments
          if a.is_required
      },
  }
  # Arguments are checked before anything is traced, which would take long.
  traced = mock.Mock(side_effect=_TracedError)
  try:
    with mock.patch.object(tff.tensorflow, 'computation', traced):
      registry.resolve(row.builder)(**{**values, argument.name: value})
  except _TracedError:
    return True
  except ValueError as error:
    return f'`{argument.name}` must be ' not in str(error)
  return True


class FlagRangesTest(parameterized.TestCase):

  @parameterized.named_parameters(*_ROWS_WITH_NUMBERS)
  def test_flag_and_builder_take_the_same_numbers(self, kind, row):
    for argument in row.arguments:
      for value in _NUMBERS.get(argument.type, ()):
        with self.subTest(f'{argument.name}={value}'):
          self.assertEqual(
              _flag_takes(kind, row, argument, value),
              _builder_takes(row, argument, value),
          )

  @parameterized.named_parameters(*_ROWS_WITH_NUMBERS)
  def test_a_number_of_a_rule_has_a_range_and_takes_its_default(self, _, row):
    for argument in row.arguments:
      if argument.type in (float, int) and argument.default is not None:
        self.assertIn(argument.default, argument.range)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a flag and the builder of its rule take the same numbers."""

import math
from unittest import mock

from absl.testing import parameterized
import tensorflow_federated as tff

from experiments import hparams
from experiments import published
from experiments import registry
from tests.tff_adaptive import testing
from tff_adaptive import optimizers

# Other algorithms have the builder of the first.
_ALGORITHMS = ('fed_opt', 'centralized')
_KINDS = (
    registry.ALGORITHM,
    *registry.RULES,
    registry.CLIENT_SCHEDULE,
    registry.SERVER_SCHEDULE,
)
_ROWS = [
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

  @parameterized.named_parameters(*_ROWS)
  def test_flag_and_builder_take_the_same_numbers(self, kind, row):
    for argument in row.arguments:
      for value in _NUMBERS.get(argument.type, ()):
        with self.subTest(f'{argument.name}={value}'):
          self.assertEqual(
              _flag_takes(kind, row, argument, value),
              _builder_takes(row, argument, value),
          )

  @parameterized.named_parameters(*_ROWS)
  def test_a_number_of_a_rule_has_a_range_and_takes_its_default(self, _, row):
    for argument in row.arguments:
      if argument.type in (float, int) and argument.default is not None:
        self.assertIn(argument.default, argument.range)

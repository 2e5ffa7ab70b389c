# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of flags that are the fields of a class."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Literal, Optional

from absl import flags
from absl.testing import parameterized

from experiments import flag_table
from experiments.flag_table import field


@dataclasses.dataclass
class _Flags:
  """Some flags.

  Attributes:
    run: The folder
      of a run: {example}.
    rounds: Rounds.
    rate: A rate.
    is_on: Whether it is on.
    names: Names.
    bounds: Bounds.
    mode: A mode.
    format: A format.
  """

  run: str = field(required=True)
  rounds: Optional[int] = field(lower_bound=1)
  rate: float = 0.5
  is_on: bool = False
  names: Sequence[str] = ('a', 'b')
  bounds: Optional[Mapping[str, float]] = None
  mode: Optional[Literal['max', 'min']] = field(is_hparam=False)
  format: str = field('npz', enum_values={'npz': 1, 'keras': 2})


def _parse(*arguments):
  values = flags.FlagValues()
  flag_table.define(_Flags, values, example='runs/demo')
  values(['program', *arguments])
  return values


class FlagTableTest(parameterized.TestCase):

  def test_nan_is_no_number(self):
    with self.assertRaisesRegex(
        flags.IllegalFlagValueError, 'flag --rate=nan: must be a number$'
    ):
      _parse('--run=x', '--rate=nan')

  def test_types_and_defaults_are_those_of_the_fields(self):
    values = _parse('--run=x')
    self.assertEqual(
        {name: values[name].value for name in values},
        {
            'run': 'x',
            'rounds': None,
            'rate': 0.5,
            'is_on': False,
            'names': ['a', 'b'],
            'bounds': None,
            'mode': None,
            'format': 'npz',
        },
    )
    values = _parse('--run=x', '--rounds=2', '--is_on', '--bounds=a:1,b:2')
    self.assertEqual(values.rounds, 2)
    self.assertTrue(values.is_on)
    self.assertEqual(values.bounds, ['a:1', 'b:2'])

  def test_help_is_that_of_the_docstring(self):
    values = _parse('--run=x')
    self.assertEqual(values['run'].help, 'The folder of a run: runs/demo.')
    self.assertEndsWith(values['mode'].help, ': A mode.')

  def test_a_flag_may_be_required(self):
    with self.assertRaisesRegex(flags.IllegalFlagValueError, '--run='):
      _parse()

  @parameterized.parameters(
      '--rounds=0', '--rate=x', '--mode=best', '--format=h5'
  )
  def test_invalid_values_of_a_field_are_refused(self, argument):
    with self.assertRaisesRegex(flags.Error, argument[2:6]):
      _parse('--run=x', argument)

  def test_flags_are_those_of_the_module_that_defines_them(self):
    values = _parse('--run=x')
    names = [flag.name for flag in values.get_key_flags_for_module(__name__)]
    self.assertContainsSubset(['run', 'rounds'], names)

  @parameterized.parameters(
      (2e18, 'at most 1e+18'), (-2e18, 'at least -1e+18'), (2**31, 'at most 2')
  )
  def test_numbers_beyond_float32_or_int32_are_refused(self, value, bound):
    with self.assertRaises(flag_table.HparamError) as caught:
      flag_table.check_size('x', value)
    self.assertStartsWith(str(caught.exception), f'--x must be {bound}')

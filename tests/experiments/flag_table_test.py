# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of flags that are the fields of a class, or of a paper."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Literal, Optional

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized

from experiments import flag_table
from experiments import preset_flags
from experiments import yaml_files
from experiments.flag_table import field
from tests import folder_testing


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


_SPECIFIED = preset_flags.Origin.SPECIFIED
_ASSUMED = preset_flags.Origin.ASSUMED
_LOST = preset_flags.Origin.LOST
_FILE = """
sgd:
  - reason: Section 4
    specified: [--client_optimizer=sgd, --nokeep_best]
  - {reason: ours, assumed: [--client_epochs=1]}
"""


class PresetFlagsTest(folder_testing.FolderTestCase):

  def _write(self, text, paper='paper'):
    path = self.folder / paper / preset_flags.FILE
    path.parent.mkdir()
    path.write_text(text, encoding='utf-8')

  def test_flags_have_origins_and_reasons(self):
    self._write(_FILE)
    self._write('sgd: []', 'another')
    found = preset_flags.load(self.folder)
    self.assertEqual(list(found), ['another/sgd', 'paper/sgd'])
    self.assertEqual(
        [(f.name, f.value, f.origin, f.reason) for f in found['paper/sgd']],
        [
            ('client_optimizer', 'sgd', _SPECIFIED, 'Section 4'),
            ('nokeep_best', '', _SPECIFIED, 'Section 4'),
            ('client_epochs', '1', _ASSUMED, 'ours'),
        ],
    )

  def test_an_entry_has_flags_by_origin(self):
    entry = preset_flags.FlagsByOrigin(
        lost=('--sgd_momentum=0.9',),
        specified=('--client_optimizer=sgd', '--client_epochs=1'),
    )
    self.assertEqual(
        [(flag.name, flag.origin) for flag in entry.given],
        [
            ('client_optimizer', _SPECIFIED),
            ('client_epochs', _SPECIFIED),
            ('sgd_momentum', _LOST),
        ],
    )
    assumed = entry.with_origin('assumed').given
    self.assertEqual({flag.origin for flag in assumed}, {_ASSUMED})
    self.assertLen(assumed, 3)

  def test_expand_puts_flags_in_the_place_of_the_preset(self):
    self._write(_FILE)
    texts = ('--task=mnist', '--preset=paper/sgd', '--client_epochs=2')
    given = preset_flags.FlagsByOrigin(lost=texts).given
    self.assertEqual(
        [
            (flag.text, flag.origin)
            for flag in preset_flags.expand(given, self.folder)
        ],
        [
            ('--task=mnist', _LOST),
            ('--client_optimizer=sgd', _SPECIFIED),
            ('--nokeep_best', _SPECIFIED),
            ('--client_epochs=1', _ASSUMED),
            ('--client_epochs=2', _LOST),
        ],
    )
    with self.assertRaisesRegex(flag_table.HparamError, 'mean paper/sgd'):
      unknown = preset_flags.GivenFlag('--preset=paper/sg', _LOST)
      preset_flags.expand([unknown], self.folder)

  def test_a_file_without_reasons_is_refused_with_the_place(self):
    self._write('sgd: [{lost: [--client_epochs=1]}]')
    with self.assertRaisesRegex(
        yaml_files.DataFileError, r"paper/flags.yaml\['sgd'\]\[0\].reason"
    ):
      preset_flags.load(self.folder)


class FlagTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.values = flags.FlagValues()
    flags.DEFINE_string('client_optimizer', None, '', flag_values=self.values)
    flags.DEFINE_float('sgd_momentum', 0.0, '', flag_values=self.values)
    for name in ('client_learning_rate', 'client_schedule'):
      flags.DEFINE_string(name, None, '', flag_values=self.values)
    preset_flags.define(self.values)

  def _parse(self, *arguments):
    self.values(['train', *arguments])
    return self.values

  def test_a_preset_stands_for_its_flags_and_later_flags_win(self):
    self._parse('--sgd_momentum=0.5', '--preset=delta_sgd/sgdm')
    self.assertEqual(self.values.sgd_momentum, 0.9)
    self.assertEqual(self.values.client_optimizer, 'sgd')
    self.assertTrue(self.values['sgd_momentum'].present)
    self.assertFalse(self.values['preset'].present)
    self._parse('--preset=delta_sgd/sgdm', '--sgd_momentum=0.5')
    self.assertEqual(self.values.sgd_momentum, 0.5)
    self._parse('--preset=delta_sgd/sgdm', '--preset=delta_sgd/sgd')
    self.assertEqual(self.values.sgd_momentum, 0.0)

  def test_an_unknown_preset_is_an_error_with_similar_names(self):
    with self.assertRaisesRegex(flags.Error, 'or delta_sgd/sgdm'):
      self._parse('--preset=delta_sgd/sgdn')

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
"""Tests of the flags that make clients fail."""

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized

from experiments import hparam_flags
from experiments import hparams


def _read(*arguments):
  values = flags.FlagValues()
  hparam_flags.define(values)
  values(['train', *arguments])
  return hparams.read_settings(hparams.read_choices(values), values)


@parameterized.parameters('drop_clients', 'straggler_fraction')
class FaultFlagsTest(parameterized.TestCase):

  def test_value_is_recorded(self, flag):
    settings = _read(f'--{flag}=0.25')
    self.assertEqual(getattr(settings, flag), 0.25)
    self.assertEqual(settings.hparams()[flag], 0.25)

  def test_none_is_recorded_as_in_a_run_of_before_there_was_the_flag(
      self, flag
  ):
    for arguments in ([], [f'--{flag}=0']):
      self.assertIsNone(_read(*arguments).hparams()[flag])

  def test_all_clients_may_fail(self, flag):
    self.assertEqual(getattr(_read(f'--{flag}=1'), flag), 1.0)

  def test_no_probability_is_refused(self, flag):
    for value in ('-0.1', '1.1'):
      with self.assertRaisesRegex(flags.IllegalFlagValueError, flag):
        _read(f'--{flag}={value}')
    with self.assertRaisesRegex(
        hparams.HparamError, f'^--{flag} must be from 0 to 1, found nan$'
    ):
      _read(f'--{flag}=nan')

  def test_pooled_clients_cannot_fail(self, flag):
    with self.assertRaisesRegex(
        hparams.HparamError,
        f'^--algorithm=centralized pools .*, drop --{flag}$',
    ):
      _read('--algorithm=centralized', f'--{flag}=0.1')
    self.assertIsNone(
        getattr(_read('--algorithm=centralized', f'--{flag}=0'), flag)
    )


if __name__ == '__main__':
  absltest.main()

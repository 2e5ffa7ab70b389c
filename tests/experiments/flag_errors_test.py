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
"""Tests of `flag_errors`."""

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized

from experiments import flag_errors
from experiments import hparam_flags
from experiments.trace import __main__ as trace


def _sentence(module, *arguments):
  """Returns what is said of flags that cannot be parsed."""
  values = flags.FlagValues()
  module.define(values)
  try:
    values(['run', *arguments])
  except flags.Error as error:
    return flag_errors.describe(error, values)
  return None


class DescribeTest(parameterized.TestCase):

  @parameterized.parameters(
      (['--run=here'], '--round is missing, see --help'),
      ([], '--run and --round are missing, see --help'),
      (
          ['--run=here', '--round=1.5'],
          "--round must be an integer, found '1.5'",
      ),
  )
  def test_required_flags(self, arguments, sentence):
    self.assertEqual(_sentence(trace, *arguments), sentence)

  @parameterized.parameters(
      ('--total_rounds=2.5', "--total_rounds must be an integer, found '2.5'"),
      ('--total_rounds=', "--total_rounds must be an integer, found ''"),
      ('--seed=0xz', "--seed must be an integer, found '0xz'"),
      (
          '--client_learning_rate=abc',
          "--client_learning_rate must be a number, found 'abc'",
      ),
      ('--keep_best=maybe', "--keep_best must be true or false, found 'maybe'"),
      (
          '--total_rounds=0',
          'flag --total_rounds=0: 0 is not a positive integer',
      ),
  )
  def test_values(self, argument, sentence):
    self.assertEqual(_sentence(hparam_flags, argument), sentence)

  @parameterized.parameters(
      (
          '--learning_rate=0.1',
          "Unknown command line flag 'learning_rate'; did you mean "
          '--client_learning_rate, --server_learning_rate or '
          '--dp_adaptive_clip_learning_rate?',
      ),
      (
          '--batch_size=1',
          "Unknown command line flag 'batch_size'; did you mean "
          '--client_batch_size?',
      ),
      (
          '--total_round=1',
          "Unknown command line flag 'total_round'. Did you mean: total_rounds "
          '?',
      ),
      (
          '--lr=0.1',
          "Unknown command line flag 'lr'; did you mean "
          '--client_learning_rate, --server_learning_rate or '
          '--dp_adaptive_clip_learning_rate?',
      ),
      (
          '--rounds=3',
          "Unknown command line flag 'rounds'; did you mean --total_rounds or "
          '--weights_average_rounds?',
      ),
      ('--qqq=1', "Unknown command line flag 'qqq'"),
  )
  def test_unknown_flags(self, argument, sentence):
    self.assertEqual(_sentence(hparam_flags, argument), sentence)


if __name__ == '__main__':
  absltest.main()

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
"""Tests of the flags of differential privacy."""

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized

from experiments import hparam_flags
from experiments import hparams

_PRIVATE = (
    '--client_weighting=uniform',
    '--dp_noise_multiplier=1.0',
)
_FIXED = (*_PRIVATE, '--dp_clip_norm=0.5')
_ADAPTIVE = (*_PRIVATE, '--dp_adaptive_clip_quantile=0.5')


def _read(*arguments):
  values = flags.FlagValues()
  hparam_flags.define(values)
  values(['train', *arguments])
  return hparams.read_settings(hparams.read_choices(values), values)


class PrivacyFlagsTest(parameterized.TestCase):

  def test_by_default_runs_are_those_of_before(self):
    recorded = _read().hparams()
    names = [name for name in recorded if name.startswith('dp_')]
    self.assertLen(names, 7)
    for name in ('sampling', *names):
      self.assertIsNone(recorded[name])

  def test_fixed_clipping(self):
    settings = _read(
        *_FIXED,
        '--dp_payload_clip_norms=control:2, squared_norm:0.1',
        '--dp_delta=1e-5',
        '--sampling=poisson',
    )
    recorded = settings.hparams()
    self.assertEqual(recorded['sampling'], 'poisson')
    self.assertEqual(recorded['dp_noise_multiplier'], 1.0)
    self.assertEqual(recorded['dp_clip_norm'], 0.5)
    self.assertEqual(
        recorded['dp_payload_clip_norms'],
        {'control': 2.0, 'squared_norm': 0.1},
    )
    self.assertEqual(recorded['dp_delta'], 1e-5)
    self.assertIsNone(recorded['dp_adaptive_clip_learning_rate'])

  def test_adaptive_clipping_has_the_defaults_of_its_paper(self):
    settings = _read(*_ADAPTIVE)
    self.assertEqual(settings.dp_clip_norm, 0.1)
    self.assertEqual(settings.dp_adaptive_clip_learning_rate, 0.2)
    self.assertIsNone(settings.dp_adaptive_clip_count_stddev)
    settings = _read(*_ADAPTIVE, '--dp_adaptive_clip_learning_rate=0')
    self.assertEqual(settings.dp_adaptive_clip_learning_rate, 0.0)

  @parameterized.named_parameters(
      (
          'no_noise',
          ['--dp_clip_norm=1'],
          '--dp_clip_norm needs --dp_noise_multiplier',
      ),
      (
          'no_bound',
          _PRIVATE,
          '--dp_noise_multiplier needs --dp_clip_norm, or '
          '--dp_adaptive_clip_quantile for bounds that adapt',
      ),
      (
          'not_adaptive',
          [*_FIXED, '--dp_adaptive_clip_count_stddev=1'],
          '--dp_adaptive_clip_count_stddev needs --dp_adaptive_clip_quantile',
      ),
      (
          'weights_by_examples',
          ['--dp_noise_multiplier=1', '--dp_clip_norm=1'],
          '--dp_noise_multiplier needs --client_weighting=uniform: weights by '
          'examples do not bound what a client adds',
      ),
      (
          'negative_noise',
          [*_FIXED, '--dp_noise_multiplier=-1'],
          '--dp_noise_multiplier must be at least 0, found -1',
      ),
      (
          'far_too_much_noise',
          [*_FIXED, '--dp_noise_multiplier=1e300'],
          '--dp_noise_multiplier must be at most 1e+18, found 1e+300',
      ),
      (
          'nan',
          [*_FIXED, '--dp_clip_norm=nan'],
          '--dp_clip_norm must be above 0, found nan',
      ),
      (
          'quantile',
          [*_PRIVATE, '--dp_adaptive_clip_quantile=50'],
          '--dp_adaptive_clip_quantile must be from 0 to 1, found 50',
      ),
      (
          'delta',
          [*_FIXED, '--dp_delta=1'],
          '--dp_delta must be between 0 and 1, found 1',
      ),
      (
          'no_pair',
          [*_FIXED, '--dp_payload_clip_norms=control=1'],
          '--dp_payload_clip_norms takes name:bound, separated by commas, '
          "found 'control=1'",
      ),
      (
          'bound_of_a_payload',
          [*_FIXED, '--dp_payload_clip_norms=control:0'],
          '--dp_payload_clip_norms must be above 0, found 0',
      ),
      (
          'no_cohorts',
          ['--algorithm=centralized', '--sampling=poisson'],
          '--algorithm=centralized trains on the pooled examples of all '
          'clients and has no cohorts, drop --sampling',
      ),
      (
          'no_clients',
          [
              '--algorithm=centralized',
              '--dp_noise_multiplier=1',
              '--dp_clip_norm=1',
          ],
          '--algorithm=centralized trains on the pooled examples of all '
          'clients and has no cohorts, drop --dp_noise_multiplier',
      ),
  )
  def test_what_does_not_fit_is_one_sentence(self, arguments, sentence):
    with self.assertRaises(hparams.HparamError) as caught:
      _read(*arguments)
    self.assertEqual(str(caught.exception), sentence)


if __name__ == '__main__':
  absltest.main()

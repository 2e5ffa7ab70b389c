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
"""Tests of defining the flags of a training run."""

import subprocess
import sys

from absl import flags
from absl.testing import parameterized

from tests.experiments import hparams_testing


class HparamFlagsTest(parameterized.TestCase):

  @parameterized.parameters(
      '--client_learning_rate=fast',
      '--total_rounds=0',
      '--total_rounds=1.5',
      '--seed=-1',
      '--seed=4294967296',
      '--bad_clients=ignore',
      '--delta_sgd_previous_gradient=guess',
      '--client_weighting=some',
      '--delta_sgd_gama=2',
      '--clients_per_round=-3',
      '--checkpoints_to_keep=0',
      '--early_stopping_patience=0',
      '--monitored_mode=best',
      '--weights_average_decay=1.5',
      '--weights_average_rounds=0',
      '--weights_average_rounds=1001',
      '--client_states_memory_mb=-1',
      '--fedcada_adam_option=5',
  )
  def test_absl_refuses(self, argument):
    name = argument.partition('=')[0].lstrip('-')
    with self.assertRaisesRegex(flags.Error, name):
      hparams_testing.parse(argument)

  def test_help_shows_defaults(self):
    values = hparams_testing.parse()
    self.assertIn('Default 2.0.', values['delta_sgd_gamma'].help)
    self.assertIn('sgd: ', values['client_learning_rate'].help)
    self.assertIn('delta_sgd: ', values['client_learning_rate'].help)

  def test_help_shows_what_rows_have_in_common_once(self):
    text = hparams_testing.parse()['client_weighting'].help
    self.assertIn('>: fed_opt, fedli_ls, fedli_lu: Whether ', text)
    self.assertIn('Default examples. fedcada, scaffold, ', text)
    self.assertEndsWith(text, 'Default uniform.')

  def test_optimizers_have_no_default_but_help_tells_it(self):
    values = hparams_testing.parse()
    for side, default in (('client', 'delta_sgd'), ('server', 'fedavg')):
      flag = values[f'{side}_optimizer']
      self.assertIsNone(flag.value)
      self.assertEndsWith(
          flag.help, f"Default: the algorithm's; {default} where it has none."
      )

  def test_defining_flags_imports_no_tensorflow(self):
    code = (
        'import sys\n'
        'from experiments import hparam_flags, hparams\n'
        'hparam_flags.define()\n'
        'assert "tensorflow" not in sys.modules\n'
        'assert "numpy" not in sys.modules\n'
    )
    subprocess.run([sys.executable, '-c', code], check=True)

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
"""The flags of what watches a run; all of it is off by default.

No TensorFlow is imported here.
"""

from typing import Any

from absl import flags

from experiments import hparam_errors

# What --early_stopping_patience and --keep_best watch, if nothing else is said.
DEFAULT_METRIC = 'evaluation/accuracy'

_MAX_AVERAGED_ROUNDS = 1000


def define(flag_values: flags.FlagValues):
  """Defines the flags.

  Args:
    flag_values: Where to define them.
  """
  flags.DEFINE_integer(
      'early_stopping_patience',
      None,
      'End the training after this many evaluations in a row without a better '
      '--monitored_metric. Default: train all rounds.',
      lower_bound=1,
      flag_values=flag_values,
  )
  flags.DEFINE_boolean(
      'keep_best',
      False,
      'Keep the weights of the round with the best --monitored_metric in '
      'checkpoints/best.npz.',
      flag_values=flag_values,
  )
  flags.DEFINE_string(
      'monitored_metric',
      None,
      'The column of metrics.csv that --early_stopping_patience and '
      f'--keep_best watch. Default: {DEFAULT_METRIC}.',
      flag_values=flag_values,
  )
  flags.DEFINE_enum(
      'monitored_mode',
      None,
      ['max', 'min'],
      'Whether the largest or the smallest value is the best. Default: min '
      'for a loss, max for others.',
      flag_values=flag_values,
  )
  flags.DEFINE_float(
      'weights_average_decay',
      None,
      'Evaluate also the moving average of the global weights over rounds, '
      'with this decay; 1 is the mean of all rounds. Default: no average.',
      lower_bound=0.0,
      upper_bound=1.0,
      flag_values=flag_values,
  )
  flags.DEFINE_integer(
      'weights_average_rounds',
      None,
      'Evaluate also the mean of the global weights of this many last rounds, '
      'all of which are kept. Default: no average.',
      lower_bound=1,
      upper_bound=_MAX_AVERAGED_ROUNDS,
      flag_values=flag_values,
  )


def complete(values: dict[str, Any]):
  """Fills in what is watched.

  Args:
    values: The values of all flags that belong to no row.

  Raises:
    HparamError: If two flags do not fit.
  """
  if None not in (
      values['weights_average_decay'],
      values['weights_average_rounds'],
  ):
    raise hparam_errors.HparamError(
        '--weights_average_decay and --weights_average_rounds are two averages '
        'of the same name, give one of them'
    )
  if values['early_stopping_patience'] is None and not values['keep_best']:
    for name in ('monitored_metric', 'monitored_mode'):
      if values[name] is not None:
        raise hparam_errors.HparamError(
            f'--{name} needs --early_stopping_patience or --keep_best'
        )
    return
  if values['monitored_metric'] is None:
    values['monitored_metric'] = DEFAULT_METRIC
  if values['monitored_mode'] is None:
    is_loss = values['monitored_metric'].rpartition('/')[2] == 'loss'
    values['monitored_mode'] = 'min' if is_loss else 'max'

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
"""The flags of what is evaluated, during the training and after it.

No TensorFlow is imported here.
"""

from collections.abc import Mapping
from typing import Any

from absl import flags

from experiments import hparam_errors

# What --evaluations and --final_evaluations can name.
CENTRAL = 'central'
PER_CLIENT = 'per_client'
PERSONALIZED = 'personalized'
EVALUATIONS = (CENTRAL, PER_CLIENT, PERSONALIZED)
# What --evaluation_data can name.
TEST = 'test'
VALIDATION = 'validation'
TRAIN = 'train'

_DEFAULT_EVALUATIONS = (CENTRAL,)
# Flags that say how to evaluate, and what they are about.
_USERS = {
    'evaluation_data': (CENTRAL,),
    'evaluation_examples': (CENTRAL,),
    'evaluation_clients': (PER_CLIENT, PERSONALIZED),
    'personalization_epochs': (PERSONALIZED,),
}


def define(flag_values: flags.FlagValues):
  """Defines the flags.

  Args:
    flag_values: Where to define them.
  """
  flags.DEFINE_list(
      'evaluations',
      None,
      f'What is evaluated during the training, of {CENTRAL}: all examples '
      f"together; {PER_CLIENT}: each client's own test examples, with mean, "
      f'median and worst tenth of the clients; {PERSONALIZED}: the same before '
      f'and after fine-tuning. Default: {CENTRAL}.',
      flag_values=flag_values,
  )
  flags.DEFINE_list(
      'final_evaluations',
      [],
      'The same after the training, and of a run that is finished, into '
      'evaluation.json and pictures. Default: none.',
      flag_values=flag_values,
  )
  flags.DEFINE_enum(
      'evaluation_data',
      None,
      [TEST, VALIDATION, TRAIN],
      f'The examples of --evaluations={CENTRAL}; {TRAIN} is a sample of those '
      f'that are trained on. Default: {TEST}.',
      flag_values=flag_values,
  )
  for name, text in (
      (
          'evaluation_examples',
          f'Of --evaluations={CENTRAL}: how many examples, drawn by --seed; '
          'after the last round all test examples count. Default: all of up to '
          f'100,000, else 10,000; of {TRAIN} 10,000.',
      ),
      (
          'evaluation_clients',
          f'Of {PER_CLIENT} and {PERSONALIZED}: how many clients at most, '
          'drawn by --seed. Default: all.',
      ),
      (
          'personalization_epochs',
          f'Of {PERSONALIZED}: passes of a client over its training examples, '
          "with the run's client optimizer. Default: 1.",
      ),
  ):
    flags.DEFINE_integer(
        name, None, text, lower_bound=1, flag_values=flag_values
    )


def complete(values: dict[str, Any]):
  """Fills in what is evaluated.

  Args:
    values: The values of all flags that belong to no row.

  Raises:
    HparamError: If an evaluation is unknown, or two flags do not fit.
  """
  if values['evaluations'] is None:
    values['evaluations'] = _DEFAULT_EVALUATIONS
  for flag in ('evaluations', 'final_evaluations'):
    for name in values[flag]:
      hparam_errors.check_name(flag, name, EVALUATIONS)
    # In one order, however they were named.
    values[flag] = tuple(name for name in EVALUATIONS if name in values[flag])
  if not values['evaluations']:
    raise hparam_errors.HparamError(
        '--evaluations must name one or more of '
        f'{", ".join(EVALUATIONS)}, found none'
    )
  for flag, users in _USERS.items():
    chosen = set(values['evaluations'])
    # The final central evaluation takes all there is.
    chosen.update(set(values['final_evaluations']) - {CENTRAL})
    if values[flag] is not None and not chosen & set(users):
      raise hparam_errors.HparamError(
          f'--{flag} needs --evaluations={" or ".join(users)}'
      )


def to_hparams(values: Mapping[str, Any]) -> dict[str, Any]:
  """Returns what a resumed run must have in common with the first one.

  Args:
    values: Completed values of the flags.

  Returns:
    The values of these flags for `hparams.json`; None, as in a run of before
    there were these flags, for the default and for what only the final
    evaluations use.
  """
  evaluations = values['evaluations']
  used = {
      flag: values[flag] if set(users) & set(evaluations) else None
      for flag, users in _USERS.items()
  }
  is_default = evaluations == _DEFAULT_EVALUATIONS
  return {'evaluations': None if is_default else list(evaluations), **used}

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
"""Arguments that several optimizers have."""

from typing import Optional

from experiments.registry import rows

AVERAGE = 'Share of the average of gradients that is kept.'
SQUARES = 'Share of the accumulator of squares that is kept.'

BIAS_CORRECTION = rows.Argument(
    'bias_correction',
    bool,
    False,
    'Whether both moments are corrected for their start.',
)


def _learning_rate(flag: str, default: float, what: str) -> rows.Argument:
  return rows.Argument(
      'learning_rate', float, default, what, flag=flag, minimum=0.0
  )


def client_learning_rate(
    default: float, what: str = 'Step size.'
) -> rows.Argument:
  """Returns the learning rate of a client's rule; all share one flag."""
  return _learning_rate('client_learning_rate', default, what)


def server_learning_rate(
    default: float, what: str = 'Step size.'
) -> rows.Argument:
  """Returns the learning rate of a server's rule; all share one flag."""
  return _learning_rate('server_learning_rate', default, what)


def beta(index: int, default: float, what: str) -> rows.Argument:
  """Returns the decay of the first or the second moment."""
  return number(f'beta_{index}', default, what)


def epsilon(default: float, what: str = 'Added to the root.') -> rows.Argument:
  """Returns what keeps a divisor from zero."""
  return number('epsilon', default, what)


def initial_second_moment(default: Optional[float], what: str) -> rows.Argument:
  """Returns where an accumulator of squares starts."""
  return number('initial_second_moment', default, what)


def number(name: str, default: Optional[float], what: str) -> rows.Argument:
  """Returns a number that is not negative."""
  return rows.Argument(name, float, default, what, minimum=0.0)

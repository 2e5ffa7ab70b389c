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
"""The schedules of a learning rate over the rounds, the same for both sides."""

from experiments.registry import rows


def create_rows(kind: str) -> tuple[rows.Row, ...]:
  """Returns the rows of the schedules of a placement's learning rate.

  Args:
    kind: The flag that chooses one, with which the names of the others begin.

  Returns:
    One row a schedule.
  """
  module = 'tff_adaptive.optimizers.schedules'
  decay_rate = rows.Argument(
      'decay_rate',
      float,
      0.1,
      'What each step multiplies.',
      flag=f'{kind}_decay_rate',
      minimum=0.0,
  )
  return (
      rows.Row('constant', None),
      rows.Row(
          'step_decay',
          f'{module}:build_step_decay',
          (decay_rate,),
          supplied=('total_rounds',),
      ),
      rows.Row(
          'exp_decay',
          f'{module}:build_exp_decay',
          (
              decay_rate,
              rows.Argument(
                  'rounds_per_decay',
                  int,
                  500,
                  'Rounds between two steps.',
                  flag=f'{kind}_rounds_per_decay',
                  minimum=1,
              ),
          ),
      ),
      rows.Row('inverse_sqrt', f'{module}:build_inverse_sqrt'),
      rows.Row(
          'table',
          f'{module}:build_table',
          (
              rows.Argument(
                  'factors',
                  str,
                  None,
                  'Factors by the round from which they hold, as 0:1,100:0.5.',
                  flag=f'{kind}_table',
                  parser=f'{module}:parse_table',
                  is_required=True,
              ),
          ),
      ),
  )

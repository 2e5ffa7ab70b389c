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
"""How numbers stand in the texts of a leaderboard.

No TensorFlow is imported here.
"""

import math
from typing import Optional

from experiments.run_results import seed_statistics
from experiments.sweeps import search_spaces

NONE = '-'


def format_number(value: float) -> str:
  """Returns a quantity: three digits, thousands apart; 'never' of infinity."""
  if math.isnan(value):
    return NONE
  if math.isinf(value):
    return 'never'
  if abs(value) >= 100:
    return f'{value:,.0f}'
  return f'{value:.3g}'


def format_score(mean: float, std: Optional[float] = None) -> str:
  """Returns a score in percent with its spread; 'diverged' of infinity."""
  if math.isinf(mean):
    return 'diverged'
  return f'{mean:.2f}' if std is None else f'{mean:.2f} ± {std:.2f}'


def format_interval(interval: seed_statistics.Interval) -> str:
  """Returns a difference with its interval, which one seed does not have."""
  if math.isnan(interval.mean):
    return 'both diverged'
  if math.isinf(interval.mean):
    return 'diverged' if interval.mean < 0 else 'the other diverged'
  if math.isinf(interval.low):
    return f'{interval.mean:+.2f} (one seed)'
  return f'{interval.mean:+.2f} [{interval.low:+.2f}, {interval.high:+.2f}]'


def format_assignment(assignment: search_spaces.Assignment) -> str:
  """Returns flags with their values; 'defaults' of none."""
  if not assignment:
    return 'defaults'
  return ' '.join(f'`--{flag}={value}`' for flag, value in assignment)

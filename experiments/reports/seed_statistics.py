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
"""Mean and spread over the seeds of a run.

No TensorFlow is imported here.
"""

from collections.abc import Collection
import math
import statistics
from typing import Optional


def mean(values: Collection[float]) -> Optional[float]:
  """Returns the mean; None of nothing, no number if a run diverged."""
  return math.fsum(values) / len(values) if values else None


def std(values: Collection[float]) -> Optional[float]:
  """Returns the standard deviation, divided by n - 1.

  Args:
    values: A number a seed.

  Returns:
    The deviation; None of less than two numbers, or if a run diverged.
  """
  if len(values) < 2 or not all(map(math.isfinite, values)):
    return None
  return statistics.stdev(values)

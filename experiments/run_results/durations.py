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
"""Times in words.

No TensorFlow is imported here.
"""

import math
from typing import Optional

UNKNOWN = 'unknown'


def format_seconds(seconds: Optional[float]) -> str:
  """Returns a time in its two largest units, rounded up.

  Args:
    seconds: The time; None, or not a number, if it is not known.

  Returns:
    As '45 s', '3 min 20 s', '2 h 5 min' or 'unknown'.

  Example:

    >>> format_seconds(199.5)
    '3 min 20 s'
  """
  if seconds is None or not math.isfinite(seconds):
    return UNKNOWN
  total = math.ceil(seconds)
  if total < 60:
    return f'{total} s'
  if total < 3600:
    return f'{total // 60} min {total % 60} s'
  return f'{total // 3600:,} h {total % 3600 // 60} min'

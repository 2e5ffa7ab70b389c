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
"""What errors of other libraries say, as part of a sentence of ours."""

import re


def first_line(error: BaseException) -> str:
  """Returns what an error says in its first line, without a full stop.

  Args:
    error: The error.

  Returns:
    The line, without what TensorFlow puts around it: the name of the operation
    in braces and in brackets. The name of the error's type if it says nothing.
  """
  text = re.sub(r'\{\{.*?\}\}|\[Op:\w*\]|Name: <unknown>, ', '', str(error))
  lines = text.strip().splitlines() or [type(error).__name__]
  return lines[0].strip().rstrip('.')

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
"""Names of folders, made of texts.

No TensorFlow is imported here.
"""

import re


def to_slug(text: str, kept: str = '') -> str:
  """Returns a text as the name of a folder.

  Args:
    text: The text.
    kept: Characters that stay, besides letters, digits, '_', '.', '+' and '-'.

  Returns:
    The text with a '_' in the place of all others that stand together.

  Example:

    >>> to_slug('alpha = 0.1')
    'alpha_0.1'
  """
  return re.sub(rf'[^\w.+{re.escape(kept)}-]+', '_', text, flags=re.ASCII)

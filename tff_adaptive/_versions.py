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
"""The versions that this release was made and tested with.

The wheel does not hold requirements.txt, hence this excerpt from it; a test
compares the two.
"""

# Of Python, as (major, minor): the lock's, and the range that TFF supports.
LOCKED_PYTHON = (3, 11)
OLDEST_PYTHON = (3, 9)
NEWEST_PYTHON = (3, 11)

# Of the packages on which numbers or the import of TFF depend.
LOCKED_PACKAGES = {
    'tensorflow': '2.14.1',
    'tensorflow-federated': '0.87.0',
    'keras': '2.14.0',
    'jax': '0.4.20',
    'jaxlib': '0.4.20',
    'numpy': '1.25.2',
}

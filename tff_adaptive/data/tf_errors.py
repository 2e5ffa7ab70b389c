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

# Lines around what an op says.
_IS_ABOUT_THE_GRAPH = re.compile(
    r'\[\[|Graph execution error|Detected at node|<stack traces|'
    r'\d+ (root error|successful op|derived error)'
).match


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


def graph_error_line(error: BaseException) -> str:
  """Returns what an op says that has failed in a graph, without a full stop.

  Args:
    error: The error of the graph.

  Returns:
    The sentence of the op, without where it stands in the graph and without
    the values that follow it; the name of the error's type if it says nothing.
  """
  lines = [
      re.sub(r'\{\{.*?\}\} *|^\(\d+\) *[A-Z_]+: *', '', line.strip())
      for line in str(error).splitlines()
  ]
  said = [line for line in lines if line and not _IS_ABOUT_THE_GRAPH(line)]
  text = said[-1] if said else type(error).__name__
  return text.partition('  ')[0].rstrip('.')

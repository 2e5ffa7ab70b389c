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
"""What happens at the server in a MapReduce round, part by part."""

from collections.abc import Mapping
import functools
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime import graph_functions

# The parts of a `tff.backends.mapreduce.MapReduceForm` that are not the
# clients' work. Their places set their random numbers.
NAMES = ('prepare', 'zero', 'accumulate', 'merge', 'report', 'update')
# Those that add to a sum.
_ADDING = ('accumulate', 'merge')


class ServerParts:
  """Parts of a round as functions of flat tensors, for a graph to be built.

  Where `accumulate` and `merge` only append rows to a leaf of a sum, they
  return these rows, see `graph_functions.GraphFunction.appending`.
  """

  def __init__(
      self, computations: Mapping[str, tff.framework.ConcreteComputation]
  ):
    """Converts the parts.

    Args:
      computations: The parts by their names, some or all of `NAMES`.

    Raises:
      UnsupportedComputationError: If one cannot be compiled.
    """
    self._functions = {
        name: graph_functions.build_graph_function(computation)
        for name, computation in computations.items()
    }
    for name in _ADDING:
      if name in self._functions:
        self._functions[name] = self._functions[name].appending()

  def __getitem__(self, name: str) -> graph_functions.GraphFunction:
    """Returns a part."""
    return self._functions[name]

  def with_seed(self, name: str, seed: tf.Tensor) -> Any:
    """Returns a part, its random numbers fixed.

    Args:
      name: The name of the part.
      seed: The seed of the server in this round, int32 of shape [2].

    Returns:
      A function of the part's tensors; each part draws numbers of its own.
    """
    part = self._functions[name]
    if not part.takes_seed:
      return part
    return functools.partial(part, seed=seed + (NAMES.index(name) + 1))

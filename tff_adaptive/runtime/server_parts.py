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
from typing import Any, Optional

import numpy as np
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
    self._full_merge = self._functions.get('merge')
    for name in _ADDING:
      if name in self._functions:
        self._functions[name] = self._functions[name].appending()

  def __getitem__(self, name: str) -> graph_functions.GraphFunction:
    """Returns a part."""
    return self._functions[name]

  def with_seed(
      self, name: str, seed: tf.Tensor, number: Optional[tf.Tensor] = None
  ) -> Any:
    """Returns a part, its random numbers fixed.

    Args:
      name: The name of the part.
      seed: The seed of the server in this round, or of a client for
        `accumulate`, int32 of shape [2].
      number: Which of several runs this is, a scalar of int32.

    Returns:
      A function of the part's tensors; each part draws numbers of its own.
    """
    part = self._functions[name]
    if not part.takes_seed:
      return part
    if number is not None:
      seed = tf.random.experimental.stateless_fold_in(seed, number)
    return functools.partial(part, seed=seed + (NAMES.index(name) + 1))

  @functools.cached_property
  def has_neutral_zero(self) -> bool:
    """Whether sums that begin with zero can be merged: it adds nothing.

    TFF takes the zero of `tff.federated_aggregate` once in all, and so must a
    sum over chunks.
    """

    def add_zeros(seed):
      zero = self.with_seed('zero', seed)()
      merge_seed = seed if self._full_merge.takes_seed else None
      return [*zero, *self._full_merge(*zero, *zero, seed=merge_seed)]

    spec = tf.TensorSpec([2], tf.int32)
    try:
      tensors = graph_functions.build(add_zeros, [spec])(
          tf.zeros([2], tf.int32)
      )
    except tf.errors.OpError:
      return False  # What cannot be merged with itself adds something.
    arrays = [tensor.numpy() for tensor in tensors]
    half = len(arrays) // 2
    return all(map(_are_equal, arrays[:half], arrays[half:]))


def _are_equal(left: np.ndarray, right: np.ndarray) -> bool:
  """Whether arrays are equal, NaN to NaN."""
  if np.shape(left) != np.shape(right):
    return False
  return bool(np.all((left == right) | ((left != left) & (right != right))))  # pylint: disable=comparison-with-itself

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
"""Results as NumPy arrays that become tensors again without a copy.

The state of a process leaves a round as arrays and comes back in the next one:
of a large model, copying it out and in takes longer than a client's training.
"""

from typing import Any
import weakref

import numpy as np
import tensorflow as tf

_SHARED_DTYPES = frozenset(
    {tf.float32, tf.float64, tf.int32, tf.int64, tf.bool}
)
# The tensors of the arrays that are alive, by the id of the array.
_tensors: dict[int, tuple[weakref.ref[np.ndarray], tf.Tensor]] = {}


def to_array(tensor: tf.Tensor) -> Any:
  """Returns what a tensor holds.

  Args:
    tensor: An eager tensor.

  Returns:
    A scalar; or an array, which cannot be written to, for it shares the memory
    of the tensor. Its `copy` can.
  """
  if tensor.shape.rank == 0 or tensor.dtype not in _SHARED_DTYPES:
    return tensor.numpy()
  array = np.asarray(memoryview(tensor))
  key = id(array)
  reference = weakref.ref(array, lambda _: _tensors.pop(key, None))
  _tensors[key] = (reference, tensor)
  return array


def to_tensor(value: Any, dtype: tf.DType) -> tf.Tensor:
  """Returns a tensor of a value, the one that an array was made of.

  Args:
    value: What `tf.convert_to_tensor` takes.
    dtype: The dtype of the tensor.

  Returns:
    The tensor.

  Raises:
    TypeError: If the value cannot be of the dtype.
    ValueError: Likewise.
  """
  if id(value) in _tensors:
    reference, tensor = _tensors[id(value)]
    if reference() is value and tensor.dtype == dtype:
      return tensor
  return tf.convert_to_tensor(value, dtype)

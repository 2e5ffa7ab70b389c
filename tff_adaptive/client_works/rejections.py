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
"""Why a client counts for nothing in a round."""

import enum
from typing import Optional

import tensorflow as tf

from tff_adaptive.client_works import model_adapter
from tff_adaptive.optimizers import vectors


class Rejection(enum.IntEnum):
  """Whether a client is rejected, and why.

  Attributes:
    NONE: It is healthy, and counts.
    NO_EXAMPLE: It has seen no example.
    NOT_FINITE: Its training has come to a NaN or an infinity.
    TOO_LARGE: The norm of its change is beyond the limit.
  """

  NONE = 0
  NO_EXAMPLE = 1
  NOT_FINITE = 2
  TOO_LARGE = 3


def judge_client(
    num_examples: tf.Tensor,
    is_finite: tf.Tensor,
    update: model_adapter.Weights,
    max_update_norm: Optional[float],
) -> tf.Tensor:
  """Judges whether a client counts, in the current graph.

  Args:
    num_examples: How many examples it has seen.
    is_finite: Whether all is finite that comes of its training.
    update: The change of its model, a tuple of tensors.
    max_update_norm: The largest norm of a healthy client's change, or `None`.

  Returns:
    A value of `Rejection`, an int64 scalar.
  """

  def choose(condition, rejection, otherwise):
    return tf.where(condition, tf.constant(rejection, tf.int64), otherwise)

  verdict = tf.constant(Rejection.NONE, tf.int64)
  if max_update_norm is not None:
    # In the dtype of steps: sums of squares overflow early in half precision.
    norm = vectors.norm(update, vectors.step_dtype(update))
    is_large = norm > tf.cast(max_update_norm, norm.dtype)
    verdict = choose(is_large, Rejection.TOO_LARGE, verdict)
  verdict = choose(~is_finite, Rejection.NOT_FINITE, verdict)
  return choose(num_examples <= 0, Rejection.NO_EXAMPLE, verdict)

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
"""What happens to a gradient before a client's optimizer sees it."""

from typing import Any, Optional

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vectors


@attrs.frozen
class GradientOptions:
  """Clipping by global norm, then weight decay; both are off by default.

  ```
  g = g * min(1, clip_norm / |g|)                   (|g| over all weights)
  g = g + weight_decay * x
  ```

  This is what PyTorch's `clip_grad_norm_` does, but for the 1e-6 that it adds
  to the norm, and the `weight_decay` of its SGD. Neither is part of the loss
  that is reported.

  Attributes:
    clip_norm: The largest global norm, above zero, or `None`: no clipping.
    weight_decay: The factor of the weights, not negative.
  """

  clip_norm: Optional[float] = None
  weight_decay: float = 0.0

  def __attrs_post_init__(self):
    if self.clip_norm is not None:
      optimizer.check_positive('clip_norm', self.clip_norm, 'Gradient')
    optimizer.check_rate('weight_decay', self.weight_decay, 'Gradient')

  def apply(self, weights: Any, gradients: Any) -> Any:
    """The gradients that the optimizer sees.

    Args:
      weights: A structure of tensors.
      gradients: A structure like it; `None` stays `None`.

    Returns:
      A structure of dense gradients.
    """
    if self.clip_norm is None and not self.weight_decay:
      return gradients
    gradients = tff.learning.optimizers.handle_indexed_slices_gradients(
        gradients
    )
    scale = self._clip_scale(gradients)

    def adjust(w, g):
      if g is None:
        return None
      if scale is not None:
        g = g * tf.cast(scale, g.dtype)
      return g + tf.cast(self.weight_decay, w.dtype) * w

    return tf.nest.map_structure(adjust, weights, gradients)

  def _clip_scale(self, gradients: Any) -> Optional[tf.Tensor]:
    if self.clip_norm is None:
      return None
    present = [g for g in tf.nest.flatten(gradients) if g is not None]
    dtype = vectors.step_dtype(present)
    norm = vectors.norm(present, dtype)
    clip_norm = tf.cast(self.clip_norm, dtype)
    # The larger of the two is never zero, and a NaN stays one.
    return clip_norm / tf.maximum(norm, clip_norm)

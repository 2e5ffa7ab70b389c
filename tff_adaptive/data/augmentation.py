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
"""Random changes of a client's examples, drawn anew in every epoch."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping
from typing import Optional, TYPE_CHECKING

import attrs
import numpy as np

from tff_adaptive.data import feature_arrays
from tff_adaptive.data import specs

if TYPE_CHECKING:
  pass

AugmentFn = Callable[
    [feature_arrays.Examples, np.random.Generator], Mapping[str, np.ndarray]
]
EvaluationFn = Callable[[feature_arrays.Examples], Mapping[str, np.ndarray]]


@attrs.frozen(eq=False)
class Augmentation:
  """What happens to the examples of a client on their way into training.

  It runs in NumPy, outside of the model, so that every runtime sees the same
  examples. A cohort gives it a random stream of its own for every client and
  round, a function of the seed, the round and the client's id.

  Attributes:
    fn: From features, arrays of shape [n, ...], and a random generator to the
      features that the model takes. An example comes as often as there are
      epochs, in the order of training.
    element_spec: Names and `tf.TensorSpec`s of one example of what comes out.
    evaluation_fn: What becomes of examples that are evaluated on and not
      trained on: `fn` without chance. None (the default) if the training
      examples cannot be evaluated on.

  Example:

    >>> def flip(examples, generator):
    ...   is_flipped = generator.random(len(examples['x'])) < 0.5
    ...   x = np.where(
    ...       is_flipped[:, None], examples['x'][:, ::-1], examples['x'])
    ...   return {'x': x}
    >>> flips = Augmentation(flip, {'x': tf.TensorSpec([2], tf.float32)})
    >>> flips({'x': np.ones([3, 2], np.float32)}, np.random.default_rng())['x']
    array([[1., 1.],
           [1., 1.],
           [1., 1.]], dtype=float32)
  """

  fn: AugmentFn = attrs.field(validator=specs.is_callable)
  element_spec: feature_arrays.ElementSpec = attrs.field(
      converter=collections.OrderedDict
  )
  evaluation_fn: Optional[EvaluationFn] = attrs.field(
      default=None, validator=attrs.validators.optional(specs.is_callable)
  )

  def __call__(
      self,
      examples: feature_arrays.Examples,
      generator: np.random.Generator,
      client_id: str = '',
  ) -> feature_arrays.Examples:
    """Returns the changed examples.

    Args:
      examples: Feature names and arrays of shape [n, ...].
      generator: Where random numbers come from.
      client_id: Whose examples they are, for the error's sentence.

    Returns:
      As many examples, with the features of `element_spec`.

    Raises:
      ValueError: If names, types, shapes or the number of examples are others
        than declared.
    """
    return self._check(examples, self.fn(examples, generator), client_id)

  def for_evaluation(
      self, examples: feature_arrays.Examples
  ) -> feature_arrays.Examples:
    """Returns examples as they are evaluated on.

    Args:
      examples: Feature names and arrays of shape [n, ...], as clients hold
        them.

    Returns:
      As many examples, with the features of `element_spec`.

    Raises:
      ValueError: If there is no `evaluation_fn`, or names, types, shapes or the
        number of examples are others than declared.
    """
    if self.evaluation_fn is None:
      raise ValueError(
          'The augmentation has no `evaluation_fn`, so the examples that it '
          'changes at random cannot be evaluated on.'
      )
    return self._check(examples, self.evaluation_fn(examples), 'evaluation')

  def _check(
      self,
      examples: feature_arrays.Examples,
      augmented: Mapping[str, np.ndarray],
      client_id: str,
  ) -> feature_arrays.Examples:
    """Returns what a function has made, if it is what was declared."""
    changed = feature_arrays.as_examples(
        augmented, f'Augmented client {client_id!r}'
    )
    before = len(next(iter(examples.values())))
    after = len(next(iter(changed.values())))
    if before != after:
      raise ValueError(
          f'An augmentation must return as many examples as it was given, '
          f'{before} of client {client_id!r}, found {after}.'
      )
    return feature_arrays.check_match(changed, self.element_spec, client_id)

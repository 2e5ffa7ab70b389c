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
"""What differential privacy asks of an algorithm: nothing goes past it."""

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import reports as reports_lib
from tff_adaptive.aggregators import weighting
from tff_adaptive.privacy import differential_privacy

# Of the state of `tff.aggregators.DifferentiallyPrivateFactory`.
_DP_EVENT = 'dp_event'

_Aggregators = tuple[
    Optional[weighting.Aggregator], Mapping[str, weighting.Aggregator]
]


def choose_aggregators(
    privacy: Optional[differential_privacy.DifferentialPrivacy],
    model_aggregator: Optional[weighting.Aggregator],
    payload_aggregators: Mapping[str, weighting.Aggregator],
    *,
    payloads: Sequence[str],
    trainable_type: Any,
    weighs_examples: bool,
) -> _Aggregators:
  """Chooses what aggregates the change of the model, and each payload.

  Args:
    privacy: See `build_fed_opt`.
    model_aggregator: See `build_fed_opt`.
    payload_aggregators: See `build_fed_opt`.
    payloads: The names of what clients send besides the change.
    trainable_type: The type of the change.
    weighs_examples: Whether clients are weighted by their examples.

  Returns:
    Those of `privacy`, or else those that were given.

  Raises:
    TypeError: If `privacy` is no `DifferentialPrivacy`, or does not take the
      dtypes of the model.
    ValueError: If something that clients send would not be private, or an
      aggregator is given for what no client sends.
  """
  weighting.check_names(payload_aggregators, payloads, '`payload_aggregators`')
  if privacy is None:
    _check_payloads_are_covered(
        model_aggregator,
        [name for name in payloads if name not in payload_aggregators],
        trainable_type,
        weighs_examples,
    )
    return model_aggregator, payload_aggregators
  if not isinstance(privacy, differential_privacy.DifferentialPrivacy):
    raise TypeError(
        '`privacy` must be a `tff_adaptive.privacy.DifferentialPrivacy`, found '
        f'{type(privacy)}.'
    )
  if model_aggregator is not None or payload_aggregators:
    raise ValueError(
        '`privacy` brings the aggregators of all that clients send: leave out '
        '`model_aggregator` and `payload_aggregators`.'
    )
  if weighs_examples:
    raise ValueError(
        'Differential privacy bounds what a client adds, and weights by '
        'examples do not: pass '
        '`client_weighting=tff.learning.ClientWeighting.UNIFORM`.'
    )
  _check_dtypes(trainable_type)
  _check_no_maximum(payloads)
  return privacy.build_aggregators(payloads)


def _check_dtypes(trainable_type: Any) -> None:
  specs = tf.nest.flatten(tff.types.type_to_tf_tensor_specs(trainable_type))
  for spec in specs:
    if spec.dtype != tf.float32:
      raise TypeError(
          'TFF clips and noises float32 alone for differential privacy, and '
          f'the model has trainable weights of dtype {spec.dtype.name}: keep '
          'them in float32.'
      )


def _check_no_maximum(payloads: Sequence[str]) -> None:
  """Raises if clients report what is not summed."""
  for report in reports_lib.ClientReport:
    if report.is_maximum and report.value in payloads:
      raise ValueError(
          f'Of the report {report.value!r} the largest counts, which is no '
          'sum, so that no noise makes it private: choose a server rule that '
          'needs no maximum.'
      )


def _check_payloads_are_covered(
    model_aggregator: Optional[weighting.Aggregator],
    in_clear: Sequence[str],
    trainable_type: Any,
    weighs_examples: bool,
) -> None:
  """Raises if the change is private, and something beside it is not."""
  if model_aggregator is None or not in_clear:
    return
  process = weighting.to_weighted(
      model_aggregator, weighs_examples, '`model_aggregator`'
  ).create(trainable_type, tff.TensorType(np.float32))
  if _has_field(process.initialize.type_signature.result.member, _DP_EVENT):
    raise ValueError(
        '`model_aggregator` is differentially private, and clients would send '
        f'{list(in_clear)} past it: use `privacy` instead, or give them '
        'aggregators in `payload_aggregators`.'
    )


def _has_field(type_spec: Any, name: str) -> bool:
  """Whether a structure has a field of a name at any depth."""
  if not isinstance(type_spec, tff.StructType):
    return False
  return any(
      field == name or _has_field(member, name)
      for field, member in tff.structure.iter_elements(type_spec)
  )

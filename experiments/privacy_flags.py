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
"""The flags of differential privacy, and of how cohorts are drawn.

No TensorFlow is imported here.
"""

from collections.abc import Callable, Mapping
import math
from typing import Any, NamedTuple

from absl import flags

from experiments import hparam_errors
from experiments import registry

FIXED = 'fixed'
POISSON = 'poisson'

_NOISE = 'dp_noise_multiplier'
_CLIP_NORM = 'dp_clip_norm'
_PAYLOAD_CLIP_NORMS = 'dp_payload_clip_norms'
_QUANTILE = 'dp_adaptive_clip_quantile'
_CLIP_LEARNING_RATE = 'dp_adaptive_clip_learning_rate'
_COUNT_STDDEV = 'dp_adaptive_clip_count_stddev'
_DELTA = 'dp_delta'

# Where TFF's adaptive clipping starts, and the rate of its paper.
_INITIAL_CLIP_NORM = 0.1
_DEFAULT_CLIP_LEARNING_RATE = 0.2


class _Number(NamedTuple):
  """A flag that takes a number.

  Attributes:
    is_valid: Whether a number is in its range.
    expected: The range.
    help: Its help.
  """

  is_valid: Callable[[float], bool]
  expected: str
  help: str


_NUMBERS = {
    _NOISE: _Number(
        lambda value: value >= 0,
        'at least 0',
        'Differential privacy of clients: all that they send for the model is '
        'clipped and summed, with normal noise of this many times the bound; '
        'privacy/epsilon is in the metrics. Default: no privacy.',
    ),
    _CLIP_NORM: _Number(
        lambda value: value > 0,
        'above 0',
        "The bound of the norm of a client's change of the model; adaptive "
        f'clipping starts there, by default at {_INITIAL_CLIP_NORM}.',
    ),
    _QUANTILE: _Number(
        lambda value: 0 <= value <= 1,
        'from 0 to 1',
        "Adaptive clipping: bounds follow this quantile of the clients' norms; "
        'the paper has 0.5. Default: bounds are fixed.',
    ),
    _CLIP_LEARNING_RATE: _Number(
        lambda value: value >= 0,
        'at least 0',
        'Of adaptive clipping: how fast bounds move. Default '
        f'{_DEFAULT_CLIP_LEARNING_RATE}.',
    ),
    _COUNT_STDDEV: _Number(
        lambda value: value > 0,
        'above 0',
        'Of adaptive clipping: the standard deviation of the noise on how many '
        'clients are below a bound. Default: --clients_per_round / 20.',
    ),
    _DELTA: _Number(
        lambda value: 0 < value < 1,
        'between 0 and 1',
        'The delta of privacy/epsilon. Default: 1 / (number of clients)^1.1.',
    ),
}
_OF_ADAPTIVE_CLIPPING = (_CLIP_LEARNING_RATE, _COUNT_STDDEV)
_OF_NOISE = (
    *(name for name in _NUMBERS if name != _NOISE),
    _PAYLOAD_CLIP_NORMS,
)


def define(flag_values: flags.FlagValues):
  """Defines the flags.

  Args:
    flag_values: Where to define them.
  """
  flags.DEFINE_enum(
      'sampling',
      FIXED,
      [FIXED, POISSON],
      'How the cohort of a round is drawn: exactly --clients_per_round '
      'clients, or every client with the same probability, so that it is as '
      'many in the mean.',
      flag_values=flag_values,
  )
  for name, number in _NUMBERS.items():
    flags.DEFINE_float(name, None, number.help, flag_values=flag_values)
  flags.DEFINE_list(
      _PAYLOAD_CLIP_NORMS,
      None,
      'The bounds of what clients send besides the change, such as '
      'first_moment:0.5,second_moment:0.1. With adaptive clipping they start '
      f'there, or at --{_CLIP_NORM} if they are not named.',
      flag_values=flag_values,
  )


def _check_number(flag: str, number: _Number, value: float):
  hparam_errors.check_size(flag, value)
  if not (math.isfinite(value) and number.is_valid(value)):
    raise hparam_errors.HparamError(
        f'--{flag} must be {number.expected}, found {value:g}'
    )


def _parse_bounds(items: list[str]) -> dict[str, float]:
  """Returns the bounds of payloads by name."""
  bounds = {}
  for item in items:
    name, _, text = item.partition(':')
    try:
      bounds[name.strip()] = float(text)
    except ValueError:
      raise hparam_errors.HparamError(
          f'--{_PAYLOAD_CLIP_NORMS} takes name:bound, separated by commas, '
          f'found {item!r}'
      ) from None
    _check_number(_PAYLOAD_CLIP_NORMS, _NUMBERS[_CLIP_NORM], float(text))
  return bounds


def complete(values: dict[str, Any], choices: Mapping[str, Any]):
  """Fills in the defaults of the flags.

  Args:
    values: The values of all flags that belong to no row.
    choices: The chosen rows, see `hparams.read_choices`.

  Raises:
    HparamError: If a number is out of its range, a flag lacks another one, or
      the algorithm has no cohorts or weighs clients by their examples.
  """
  _check_needs(values)
  _check_algorithm(values, choices[registry.ALGORITHM])
  for flag, number in _NUMBERS.items():
    if values[flag] is not None:
      _check_number(flag, number, values[flag])
  if values[_PAYLOAD_CLIP_NORMS] is not None:
    values[_PAYLOAD_CLIP_NORMS] = _parse_bounds(values[_PAYLOAD_CLIP_NORMS])
  if values[_QUANTILE] is not None:
    if values[_CLIP_NORM] is None:
      values[_CLIP_NORM] = _INITIAL_CLIP_NORM
    if values[_CLIP_LEARNING_RATE] is None:
      values[_CLIP_LEARNING_RATE] = _DEFAULT_CLIP_LEARNING_RATE


def _check_algorithm(values: Mapping[str, Any], algorithm: Any):
  """Raises if an algorithm has no cohorts, or weighs clients by examples."""
  if algorithm.row.pools_clients:
    for flag, off in (('sampling', FIXED), (_NOISE, None)):
      if values[flag] != off:
        raise hparam_errors.HparamError(
            f'--{registry.ALGORITHM}={algorithm.row.name} trains on the pooled '
            f'examples of all clients and has no cohorts, drop --{flag}'
        )
  elif values[_NOISE] is not None:
    if algorithm.hparams()['client_weighting'] != 'uniform':
      raise hparam_errors.HparamError(
          f'--{_NOISE} needs --client_weighting=uniform: weights by examples '
          'do not bound what a client adds'
      )


def _check_needs(values: Mapping[str, Any]):
  """Raises if a flag was given without the one that it belongs to."""
  for needed, users in (
      (_NOISE, _OF_NOISE),
      (_QUANTILE, _OF_ADAPTIVE_CLIPPING),
  ):
    for flag in users:
      if values[flag] is not None and values[needed] is None:
        raise hparam_errors.HparamError(f'--{flag} needs --{needed}')
  if (
      values[_NOISE] is not None
      and values[_CLIP_NORM] is None
      and values[_QUANTILE] is None
  ):
    raise hparam_errors.HparamError(
        f'--{_NOISE} needs --{_CLIP_NORM}, or --{_QUANTILE} for bounds that '
        'adapt'
    )


def to_hparams(values: Mapping[str, Any]) -> dict[str, Any]:
  """Returns what a resumed run must have in common with the first one.

  Args:
    values: Completed values of the flags.

  Returns:
    The values of these flags for `hparams.json`; None, as in a run of before
    there were these flags, for the default of `sampling`.
  """
  names = ('sampling', *_NUMBERS, _PAYLOAD_CLIP_NORMS)
  found = {name: values[name] for name in names}
  return {**found, 'sampling': None if found['sampling'] == FIXED else POISSON}

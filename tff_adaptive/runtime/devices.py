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
"""The device of the clients' work."""

from collections.abc import Sequence
from typing import Union

import tensorflow as tf

from tff_adaptive.runtime import plans

Devices = Union[str, Sequence[str]]


def choose(devices: Devices) -> str:
  """Chooses where the clients' work runs, and lets GPUs' memory grow.

  Args:
    devices: `'CPU'`, `'GPU'`, a name such as `'/device:GPU:1'`, or a list of
      one of them; `'auto'` for the first GPU that TensorFlow sees, else the
      CPU.

  Returns:
    The short name of the device, such as 'CPU:0'.

  Raises:
    ValueError: If there is no such device, or there are several.
  """
  gpus = tf.config.list_physical_devices('GPU')
  for gpu in gpus:
    try:
      tf.config.experimental.set_memory_growth(gpu, True)
    except RuntimeError:  # It is in use already, as its owner wanted it.
      pass
  if devices == plans.AUTO:
    return 'GPU:0' if gpus else 'CPU:0'
  chosen = [devices] if isinstance(devices, str) else list(devices)
  names = ['CPU:0', *(f'GPU:{number}' for number in range(len(gpus)))]
  short = [_short_name(name) for name in chosen]
  if len(short) != 1 or short[0] not in names:
    raise ValueError(
        f'`devices` must name one of {names}, or be {plans.AUTO!r}, found '
        f'{devices!r}.'
    )
  return short[0]


def _short_name(device: str) -> str:
  """'CPU:0' for 'cpu', 'CPU:0' and '/device:CPU:0'."""
  name = device.upper().split('/')[-1].removeprefix('DEVICE:')
  return name if ':' in name else f'{name}:0'

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The devices of JAX, by the names that `CompiledContext` takes."""

from collections.abc import Collection
import importlib.util
from typing import Any, Optional

# The names of devices on which JAX runs whole rounds begin so.
PREFIX = 'XLA:'
# The kinds of devices that run whole rounds wherever JAX has them.
ACCELERATORS = ('GPU', 'TPU')
_CPU = 'CPU'
# JAX's names of the kinds.
_PLATFORMS = {_CPU: 'cpu', 'GPU': 'gpu', 'TPU': 'tpu'}

_INSTALL = (
    'install it: `pip install jax` for the CPU, `pip install "jax[cuda13]"` '
    'for a GPU, `pip install "jax[tpu]"` for a TPU'
)


def is_installed() -> bool:
  """Returns whether JAX is installed; imports nothing."""
  return importlib.util.find_spec('jax') is not None


def _may_see_accelerators() -> bool:
  """Returns whether JAX has support for a GPU or a TPU; imports nothing."""
  packages = ('jax_plugins', 'libtpu')
  return is_installed() and any(map(importlib.util.find_spec, packages))


def find_accelerator() -> Optional[str]:
  """Returns the full name of the first accelerator that JAX sees, if any."""
  if not _may_see_accelerators():
    return None
  return next(
      (f'{PREFIX}{kind}:0' for kind in ACCELERATORS if _devices_of(kind)), None
  )


def is_of_jax(name: str, others: Collection[str]) -> bool:
  """Returns whether a name is that of a device of JAX.

  Args:
    name: The name.
    others: The names of TensorFlow's devices, which come second.
  """
  upper = name.upper()
  if upper.startswith((PREFIX[:-1], 'TPU')):
    return True
  if not upper.startswith('GPU'):
    return False
  return _may_see_accelerators() or not any('GPU' in one for one in others)


def _devices_of(kind: str) -> list[Any]:
  """Returns JAX's devices of a kind; none if JAX has no such platform."""
  import jax  # pylint: disable=import-outside-toplevel

  try:
    return jax.devices(_PLATFORMS[kind])
  except RuntimeError:
    return []


def choose(name: str) -> str:
  """Returns the full name of a device of JAX.

  Args:
    name: A name such as `'GPU'`, `'TPU:1'` or `'XLA:CPU'`.

  Returns:
    Its name, such as `'XLA:GPU:0'`.

  Raises:
    ValueError: If JAX is not installed, or has no such device.
  """
  find(name)
  kind, number = _split(name)
  return f'{PREFIX}{kind}:{number}'


def find(name: str) -> Any:
  """Returns JAX's device with a name; errors as those of `choose`."""
  kind, number = _split(name)
  if not is_installed():
    raise ValueError(
        f'`devices={name!r}` needs JAX, which is not installed; {_INSTALL}.'
    )
  found = _devices_of(kind)
  if number < len(found):
    return found[number]
  import jax  # pylint: disable=import-outside-toplevel

  seen = ', '.join(str(device) for device in jax.devices())
  raise ValueError(
      f'`devices={name!r}` names no device that JAX sees ({seen}); for another '
      f'kind of device, {_INSTALL}.'
  )


def _split(name: str) -> tuple[str, int]:
  """Returns the kind and the number of a device."""
  kind, _, number = name.upper().removeprefix(PREFIX).partition(':')
  if kind not in _PLATFORMS or not (number or '0').isdigit():
    raise ValueError(
        "`devices` must be 'XLA:CPU', 'GPU' or 'TPU', with a number behind a "
        f'colon if it is not the first one; found {name!r}.'
    )
  return kind, int(number or 0)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The devices of JAX, by the names that `CompiledContext` takes."""

import importlib.util
import re
from typing import Any, Optional

from tff_adaptive import _compile_cache

# The names of devices on which JAX runs whole rounds begin so.
PREFIX = 'XLA:'
# The kinds of devices that run whole rounds wherever JAX has them.
ACCELERATORS = ('GPU', 'TPU')
_CPU = 'CPU'
# JAX's names of the kinds.
_PLATFORMS = {_CPU: 'cpu', 'GPU': 'gpu', 'TPU': 'tpu'}

_NAME = re.compile(
    rf'({PREFIX}{_CPU}|(?:{PREFIX})?(?:{"|".join(ACCELERATORS)}))'
    r'(?:(S)|:(\d+)(?:-(\d+))?)?'
)
_FORCE = (
    'for tests, XLA_FLAGS=--xla_force_host_platform_device_count=4 makes four '
    'of a CPU'
)
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


def _devices_of(kind: str) -> list[Any]:
  """Returns JAX's devices of a kind; none if JAX has no such platform."""
  import jax  # pylint: disable=import-outside-toplevel

  _compile_cache.use(jax)
  try:
    return jax.devices(_PLATFORMS[kind])
  except RuntimeError:
    return []


def choose(name: str) -> str:
  """Returns the full name of one or several devices of JAX.

  Args:
    name: A name such as `'GPU'`, `'TPU:1'`, `'GPUs'` for all of them,
      `'GPU:0-1'` for some, or `'XLA:CPU'`.

  Returns:
    Their name, such as `'XLA:GPU:0'` or `'XLA:GPU:0-3'`.

  Raises:
    ValueError: If JAX is not installed, or does not have such devices.
  """
  kind, first, _ = _split(name)
  last = first + len(find(name)) - 1
  to_last = f'-{last}' if last > first else ''
  return f'{PREFIX}{kind}:{first}{to_last}'


def find(name: str) -> list[Any]:
  """Returns JAX's devices with a name; errors as those of `choose`."""
  kind, first, last = _split(name)
  if not is_installed():
    raise ValueError(
        f'`devices={name!r}` needs JAX, which is not installed; {_INSTALL}.'
    )
  found = _devices_of(kind)
  if last is None:
    _check_several(name, kind, len(found))
    last = len(found) - 1
  if first <= last < len(found):
    return found[first : last + 1]
  import jax  # pylint: disable=import-outside-toplevel

  seen = ', '.join(str(device) for device in jax.devices())
  raise ValueError(
      f'`devices={name!r}` names no device that JAX sees ({seen}); for another '
      f'kind of device, {_INSTALL}.'
  )


def _check_several(name: str, kind: str, number: int) -> None:
  """Raises an error if JAX sees one device, where several are asked for."""
  if number != 1:
    return
  one = f'{PREFIX if kind == _CPU else ""}{kind}'
  hint = f'; {_FORCE}' if kind == _CPU else ''
  raise ValueError(
      f'`devices={name!r}` shares the clients out among several devices, but '
      f'JAX sees one: pass `devices={one!r}`{hint}.'
  )


def _split(name: str) -> tuple[str, int, Optional[int]]:
  """Returns the kind and the first and last number; None as last for all."""
  match = _NAME.fullmatch(name.upper())
  if match is None:
    raise ValueError(
        "`devices` must be 'auto', 'CPU', 'GPU', 'TPU' or 'XLA:CPU', with a "
        "number behind a colon for another one than the first, 'GPUs' for all "
        f"of them, or 'GPU:0-1' for some; found {name!r}."
    )
  kind, are_all, first, last = match.groups()
  kind = kind.removeprefix(PREFIX)
  if are_all:
    return kind, 0, None
  return kind, int(first or 0), int(last or first or 0)

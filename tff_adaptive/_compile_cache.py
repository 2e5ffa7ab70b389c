# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The folder in which JAX keeps compiled programs for later processes.

Needs only the standard library, as the doctor does.
"""

import os
from typing import Any, Optional


def _default_folder() -> str:
  caches = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
  return os.path.join(caches, 'tff_adaptive', 'xla')


def find(jax: Any) -> Optional[str]:
  """Returns the folder; None if JAX is told to keep nothing.

  Args:
    jax: The module.
  """
  if not jax.config.jax_enable_compilation_cache:
    return None
  return jax.config.jax_compilation_cache_dir or _default_folder()


def use(jax: Any) -> None:
  """Has JAX keep compiled programs, unless it is told where to, or not to.

  Args:
    jax: The module; it has compiled nothing yet.
  """
  folder = find(jax)
  if folder is not None:
    jax.config.update('jax_compilation_cache_dir', folder)

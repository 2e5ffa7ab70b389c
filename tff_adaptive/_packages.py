# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Packages that are optional."""

from importlib import util
import sys


def check_installed(package: str):
  """Raises unless a package can be imported; does not import it.

  Args:
    package: The name of the package.

  Raises:
    ImportError: If it is missing; says how to install it.
  """
  found = util.find_spec(package)
  # A folder of this name, such as that of a tracker's runs, is no package.
  if found is None or found.origin is None:
    raise ImportError(
        f'the package {package} is not installed; install it with '
        f'{sys.executable} -m pip install {package}'
    )

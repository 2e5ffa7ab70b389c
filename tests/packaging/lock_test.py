# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the lock files."""

import pathlib
import re

from absl.testing import parameterized
from packaging import requirements
from packaging import utils

from tests.packaging import imports_testing
from tff_adaptive import _stack

_ROOT = pathlib.Path(__file__).resolve().parents[2]
# Locks of packages that are added to those of the base.
_EXTRAS = tuple(
    f'requirements-{name}' for name in ('jax', 'pretrained', 'ray', 'trackers')
)
_LOCKS = (
    'requirements',
    'requirements-test',
    'requirements-cuda',
    *_EXTRAS,
    'requirements-check',
    'requirements-docs',
    'requirements-coverage',
)
_PIN = re.compile(r'([a-z0-9][a-z0-9.-]*)==([^ ;]+)(?: ; [^\\]+)? \\')


def _lines(name: str) -> list[str]:
  """Returns the lines of a file without comments and blank ones."""
  lines = (_ROOT / name).read_text(encoding='utf-8').splitlines()
  lines = [line.split('  #')[0] for line in lines]
  return [line for line in lines if line and not line.startswith('#')]


def _pins(lock: str) -> dict[str, str]:
  """Returns the versions of a lock by package."""
  matches = [_PIN.fullmatch(line) for line in _lines(lock)]
  return {match[1]: match[2] for match in matches if match}


def _requirements(name: str) -> list[requirements.Requirement]:
  """Returns the requirements of a file, and of those that it includes."""
  found = []
  for line in _lines(name):
    if line.startswith('-r '):
      found += _requirements(line.removeprefix('-r '))
    else:
      found.append(requirements.Requirement(line))
  return found


def _names(*inputs: str) -> set[str]:
  """Returns the packages that files ask for."""
  return {
      utils.canonicalize_name(requirement.name)
      for name in inputs
      for requirement in _requirements(f'{name}.in')
  }


class LockTest(parameterized.TestCase):

  @parameterized.parameters(*_LOCKS)
  def test_holds_no_address_and_no_path(self, name):
    text = (_ROOT / f'{name}.txt').read_text(encoding='utf-8')
    for trace in ('://', 'index-url', 'find-links', '/', ' @ '):
      self.assertNotIn(trace, text)

  @parameterized.parameters(*_LOCKS)
  def test_requirements_are_locked(self, name):
    pins = _pins(f'{name}.txt')
    if name in _EXTRAS:
      base = _pins('requirements.txt')
      self.assertNoCommonElements(base, pins)
      pins |= base
    for requirement in _requirements(f'{name}.in'):
      if (name, requirement.name) == ('requirements-cuda', 'tensorflow'):
        continue  # Its build for CPUs takes its place.
      package = utils.canonicalize_name(requirement.name)
      self.assertIn(package, pins)
      self.assertTrue(requirement.specifier.contains(pins[package]), package)

  def test_shared_packages_have_one_version(self):
    found = _pins('requirements-test.txt')
    self.assertContainsSubset(_pins('requirements.txt').items(), found.items())
    for name in _EXTRAS:
      for package, version in _pins(f'{name}.txt').items():
        self.assertEqual(found.setdefault(package, version), version, package)

  @parameterized.parameters(
      ((), 'tff_adaptive', 'tasks', 'experiments', 'tools/audit'),
      (('requirements-test',), 'tests'),
  )
  def test_what_is_imported_is_required(self, more, *folders):
    required = _names('requirements', *_EXTRAS, *more)
    imported = imports_testing.imported_distributions(*folders)
    self.assertNotEmpty(imported)
    for package, path in imported.items():
      self.assertIn(package, required, f'imported by {path}')

  def test_table_of_the_wheel_equals_the_lock(self):
    pins = _pins(_stack.LOCK)
    for package, version in _stack.PACKAGES.items():
      self.assertEqual(version, pins[package], package)
    for pin in _stack.TFF_COMMAND.split()[-2:]:
      package, version = pin.split('==')
      self.assertEqual(version, pins[package], package)

  def test_cuda_comes_with_jax_alone(self):
    base, found = _pins('requirements.txt'), _pins('requirements-cuda.txt')
    self.assertEqual(found.pop('tensorflow-cpu'), base.pop('tensorflow'))
    self.assertNotIn('tensorflow', found)
    self.assertContainsSubset(base.items(), found.items())
    of_jax = _pins('requirements-jax.txt')
    self.assertEqual(found['jax-cuda13-plugin'], of_jax['jax'])

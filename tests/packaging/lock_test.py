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
_LOCKS = (
    ('current', 'requirements'),
    ('check', 'requirements-check'),
    ('docs', 'requirements-docs'),
    ('coverage', 'requirements-coverage'),
)
# Trackers. Their tests use stand-ins, or are skipped, where they are missing.
_OPTIONAL = ('mlflow', 'wandb')
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
  return [requirements.Requirement(line) for line in _lines(name)]


class LockTest(parameterized.TestCase):

  @parameterized.named_parameters(*_LOCKS)
  def test_holds_no_address_and_no_path(self, name):
    text = (_ROOT / f'{name}.txt').read_text(encoding='utf-8')
    for trace in ('://', 'index-url', 'find-links', '/', ' @ '):
      self.assertNotIn(trace, text)

  @parameterized.named_parameters(*_LOCKS)
  def test_requirements_are_locked(self, name):
    pins = _pins(f'{name}.txt')
    for requirement in _requirements(f'{name}.in'):
      package = utils.canonicalize_name(requirement.name)
      self.assertIn(package, pins)
      self.assertTrue(requirement.specifier.contains(pins[package]), package)

  def test_what_is_imported_is_required(self):
    required = {
        utils.canonicalize_name(requirement.name)
        for requirement in _requirements('requirements.in')
    }
    imported = imports_testing.imported_distributions(
        'tff_adaptive', 'tasks', 'experiments', 'tests'
    )
    for package, path in imported.items():
      if package not in _OPTIONAL:
        self.assertIn(package, required, f'imported by {path}')

  def test_table_of_the_wheel_equals_the_lock(self):
    pins = _pins(_stack.LOCK)
    for package, version in _stack.PACKAGES.items():
      self.assertEqual(version, pins[package], package)

  def test_page_names_the_locked_tensorflow(self):
    version = _stack.PACKAGES['tensorflow']
    text = (_ROOT / 'docs/guide/gpu.md').read_text(encoding='utf-8')
    found = re.findall(r'tensorflow\[and-cuda\]==([\d.]+)', text)
    self.assertEqual(set(found), {version})

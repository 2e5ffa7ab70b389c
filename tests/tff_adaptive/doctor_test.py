# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for doctor.py."""

import contextlib
import importlib
from importlib import metadata
import io
import os
import subprocess
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import psutil

from tff_adaptive import _stack
from tff_adaptive import doctor

_GIB = 2.0**30


def _run_doctor() -> tuple[int, str]:
  """Returns the exit status and what was printed."""
  out = io.StringIO()
  with contextlib.redirect_stdout(out):
    status = doctor.main()
  return status, out.getvalue()


class DoctorTest(parameterized.TestCase):
  """Runs the doctor on environments that are made up."""

  def setUp(self):
    super().setUp()
    self.versions = dict(_stack.PACKAGES)
    self.enter_context(
        mock.patch.object(metadata, 'version', side_effect=self._find_version)
    )
    self.enter_context(mock.patch.object(doctor, '_silence_tensorflow'))
    self.tf, self.tff, self.jax = mock.Mock(), mock.Mock(), mock.Mock()
    packages = {
        'tensorflow': self.tf,
        'tensorflow_federated': self.tff,
        'jax': self.jax,
    }
    self.jax.side_effect = ModuleNotFoundError
    self.enter_context(
        mock.patch.object(
            importlib, 'import_module', side_effect=lambda n: packages[n]()
        )
    )
    self._set_space(memory=8.0, disk=8.0)

  def _find_version(self, package):
    if package not in self.versions:
      raise metadata.PackageNotFoundError(package)
    return self.versions[package]

  def _set_space(self, memory, disk):
    self.enter_context(
        mock.patch.object(doctor, '_free_memory_gib', return_value=memory)
    )
    self.enter_context(
        mock.patch.object(doctor, '_free_disk_gib', return_value=disk)
    )

  def _assert_one_problem(self, status, out, regex):
    """Asserts failure, with a last paragraph of one line that matches."""
    self.assertEqual(status, 1)
    sentences = out.split('\n\n')[-1].splitlines()
    self.assertLen(sentences, 1, out)
    self.assertRegex(sentences[0], regex)
    self.assertEndsWith(sentences[0], '.')

  def test_environment_like_the_lock_is_in_order(self):
    status, out = _run_doctor()
    self.assertEqual(status, 0)
    self.assertEndsWith(out, '\nEverything is in order.\n')
    for package, version in _stack.PACKAGES.items():
      self.assertRegex(out, rf'{package} +{version}')

  @parameterized.named_parameters(
      (package, package) for package in _stack.PACKAGES
  )
  def test_wrong_version_is_named(self, package):
    self.versions[package] = '0.0.1'
    locked = _stack.PACKAGES[package]
    self._assert_one_problem(
        *_run_doctor(),
        rf'^{package} is version 0\.0\.1, .* {locked}: .*make venv.*'
        rf'-m pip install --no-deps .*{package}=={locked}',
    )

  def test_a_newer_tensorflow_that_was_tested_is_in_order(self):
    self.versions['tensorflow'] = '2.22.0rc0'
    status, out = _run_doctor()
    self.assertEqual(status, 0)
    self.assertIn(f'(locked: {_stack.PACKAGES["tensorflow"]})', out)

  def test_missing_package_is_named(self):
    del self.versions['tf-keras']
    self._assert_one_problem(*_run_doctor(), '^tf-keras is not installed, .*')

  def test_failing_import_of_tff_is_explained(self):
    self.tff.side_effect = AttributeError('no attribute `load`\nsecond line')
    self._assert_one_problem(
        *_run_doctor(),
        'tensorflow_federated fails with "AttributeError: no attribute `load`"',
    )

  def test_failing_import_of_tensorflow_is_explained(self):
    self.tf.side_effect = ImportError('libfoo.so is missing')
    self._assert_one_problem(
        *_run_doctor(), 'ImportError: libfoo.so is missing'
    )

  @parameterized.named_parameters(
      ('too_old', (3, 10)), ('too_new', (3, 14)), ('next_major', (4, 0))
  )
  def test_unsupported_python_is_a_problem(self, version):
    _, problems = doctor._check_python(version)
    self.assertLen(problems, 1)
    self.assertIn('This is Python {}.{}, but'.format(*version), problems[0])

  @parameterized.named_parameters(('oldest', (3, 11)), ('newest', (3, 13)))
  def test_supported_python_is_fine(self, version):
    _, problems = doctor._check_python(version)
    self.assertEmpty(problems)

  @parameterized.named_parameters(
      ('memory', 0.5, 8.0, 'Only 0.5 GiB of memory'),
      ('disk', 8.0, 0.25, 'Only 0.2 GiB of disk'),
  )
  def test_lack_of_space_is_a_problem(self, memory, disk, regex):
    self._set_space(memory, disk)
    self._assert_one_problem(*_run_doctor(), regex)

  def test_unknown_memory_is_no_problem(self):
    self._set_space(None, 8.0)
    status, out = _run_doctor()
    self.assertEqual(status, 0)
    self.assertRegex(out, 'free memory +unknown')

  def test_missing_jax_can_be_added(self):
    self.assertRegex(_run_doctor()[1], 'JAX +none +.*make venv EXTRAS=jax')

  @parameterized.parameters(
      ({}, '/caches/tff_adaptive/xla'),
      ({'jax_compilation_cache_dir': '/elsewhere'}, '/elsewhere'),
      ({'jax_enable_compilation_cache': False}, 'none'),
  )
  def test_devices_and_compiled_programs_of_jax(self, config, folder):
    jax = self.jax.return_value
    self.jax.side_effect = None
    jax.devices.return_value = ['cuda:0', 'cuda:1']
    jax.default_backend.return_value = 'gpu'
    jax.config = mock.Mock(
        **{
            'jax_compilation_cache_dir': None,
            'jax_enable_compilation_cache': True,
            **config,
        }
    )
    with mock.patch.dict(os.environ, XDG_CACHE_HOME='/caches'):
      _, out = _run_doctor()
    self.assertRegex(out, r'JAX +cuda:0, cuda:1\n')
    self.assertRegex(out, rf'compiled programs +{folder}\n')


class RealEnvironmentTest(absltest.TestCase):

  def test_space_is_measured(self):
    self.assertBetween(
        doctor._free_memory_gib(), 0.0, psutil.virtual_memory().total / _GIB
    )
    self.assertGreaterEqual(doctor._free_disk_gib(), 0.0)

  def test_importing_tff_starts_no_process(self):
    before = set(psutil.Process().children(recursive=True))
    lines, problems = doctor._check_import('tensorflow_federated')
    self.assertEmpty(problems)
    self.assertRegex(lines[0], 'import tensorflow_federated +works')
    after = set(psutil.Process().children(recursive=True))
    self.assertEmpty(after - before)

  def test_runs_without_any_package(self):
    root = os.path.dirname(os.path.dirname(doctor.__file__))
    # -S hides site-packages, so that nothing of the lock can be imported.
    result = subprocess.run(
        [sys.executable, '-S', '-m', 'tff_adaptive.doctor'],
        cwd=root,
        env={'PATH': os.environ['PATH']},
        capture_output=True,
        text=True,
        check=False,
    )
    self.assertEqual(result.returncode, 1)
    self.assertEmpty(result.stderr)
    self.assertIn('tensorflow-federated is not installed', result.stdout)

  def test_help_and_typos_look_at_nothing(self):
    for argument, status in (('--help', 0), ('--verbose', 2)):
      out = io.StringIO()
      with (
          self.subTest(argument),
          mock.patch.object(doctor, '_check_import') as check_import,
          contextlib.redirect_stdout(out),
          contextlib.redirect_stderr(out),
          self.assertRaises(SystemExit) as end,
      ):
        doctor.main([argument])
      self.assertEqual(end.exception.code, status)
      self.assertIn('usage: python -m tff_adaptive.doctor', out.getvalue())
      check_import.assert_not_called()

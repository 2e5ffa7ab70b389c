# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the script that makes the environments, on made-up Pythons."""

import pathlib
import shutil
import subprocess

from absl.testing import parameterized

from tests import folder_testing
from tests import page_testing

_ROOT = pathlib.Path(__file__).resolve().parents[2]

# The commands that the script uses besides Python.
_COMMANDS = (
    *('awk', 'cat', 'chmod', 'cmp', 'cp', 'dirname', 'mkdir', 'mv', 'sed'),
    'sh',
)

# A Python that knows its version and the few calls of the script, and writes
# down what it is called for. `-m venv` copies it into the new environment.
_FAKE_PYTHON = """#!/bin/sh
case "$*" in
  *version_info*) echo '{version}' ;;
  *ensurepip*) exit {venv_status} ;;
  '-m venv'*)
    for folder; do :; done
    echo "venv" >> '{log}'
    /bin/rm -rf "$folder"
    mkdir -p "$folder/bin"
    cp "$0" "$folder/bin/python" ;;
  '-m pip install'*)
    echo "pip $*" >> '{log}'
    echo 'Collecting numpy==1.0 (from -r a file)'
    echo 'Installing collected packages: numpy'
    [ ! -e '{log}.fail' ] ;;
esac
"""

_LOCK = """# A comment.
numpy==1.0 \\
    --hash=sha256:00
setuptools==80.0 \\
    --hash=sha256:01 \\
    --hash=sha256:02
wheel==1.0 \\
    --hash=sha256:03
"""


class MakefileTest(parameterized.TestCase):

  def test_venv_says_what_is_there(self):
    copy = self.enter_context(page_testing.copied_project())
    (copy / 'tools/make_venv.sh').write_text('#!/bin/sh\n')
    result = page_testing.run('make venv', copy)
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertRegex(
        result.stdout,
        r'^\.venv is up to date: run \.venv/bin/python SCRIPT, or .*\n$',
    )
    # Of other targets it is a means.
    result = page_testing.run('make demo VENV=/nowhere', copy)
    self.assertEmpty(result.stdout)


class MakeVenvTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.bin = self.folder / 'bin'
    self.bin.mkdir()
    for command in _COMMANDS:
      (self.bin / command).symlink_to(shutil.which(command))
    self.log = self.folder / 'log'
    self.lock = self.folder / 'lock.txt'
    self.lock.write_text(_LOCK)

  def _add_python(self, name, version, venv_status=0):
    path = self.bin / name
    path.write_text(
        _FAKE_PYTHON.format(
            version=version, venv_status=venv_status, log=self.log
        )
    )
    path.chmod(0o755)

  def _run(self, *more_locks, **variables):
    """Returns the finished process of the script."""
    return subprocess.run(
        [str(_ROOT / 'tools/make_venv.sh'), 'env', 'lock.txt', *more_locks],
        cwd=self.folder,
        env={'PATH': str(self.bin), **variables},
        capture_output=True,
        text=True,
        check=False,
    )

  def _calls(self):
    """Returns what Pythons were called for since the last time."""
    calls = self.log.read_text().splitlines() if self.log.exists() else []
    self.log.unlink(missing_ok=True)
    return calls

  def _assert_one_sentence(self, process, regex):
    self.assertEqual(process.returncode, 1)
    self.assertEmpty(process.stdout)
    self.assertRegex(process.stderr, regex)
    self.assertEqual(process.stderr.count('\n'), 1)
    self.assertEndsWith(process.stderr, '.\n')
    self.assertEmpty(self._calls())

  @parameterized.parameters(('python3.11', '3.11'), ('python', '3.12'))
  def test_first_call_installs_what_the_lock_says(self, name, version):
    self._add_python(name, version)
    process = self._run()
    self.assertEqual(process.returncode, 0, process.stderr)
    self.assertEmpty(process.stderr)
    creating, *progress, ready = process.stdout.splitlines()
    self.assertStartsWith(creating, 'Creating env from lock.txt')
    unpacking = '  All are here; unpacking them ...'
    self.assertEqual(
        progress,
        [
            *('  1 of 2: numpy==1.0', unpacking),  # The build tools.
            *('  1 of 3: numpy==1.0', unpacking),
        ],
    )
    self.assertEqual(ready, 'env is ready.')
    venv, build_tools, packages = self._calls()
    self.assertEqual(venv, 'venv')
    self.assertEndsWith(build_tools, '--requirement env/build-tools.lock')
    self.assertEndsWith(packages, '--requirement lock.txt')
    self.assertIn('--no-deps', packages)
    self.assertEqual(
        (self.folder / 'env/build-tools.lock').read_text(),
        _LOCK[_LOCK.index('setuptools') :],
    )
    # There is nothing left to do, and no Python on the path is needed for it.
    (self.bin / name).unlink()
    process = self._run()
    self.assertEqual(process.returncode, 0)
    self.assertEmpty(process.stdout + process.stderr)
    self.assertEmpty(self._calls())

  @parameterized.parameters('lock.txt', 'env/bin/python')
  def test_a_change_installs_again(self, changed):
    self._add_python('python3', '3.11')
    self._run()
    self._calls()
    if changed == 'lock.txt':
      self.lock.write_text(_LOCK.replace('numpy==1.0', 'numpy==1.1'))
    else:
      (self.folder / changed).unlink()
    self.assertEqual(self._run().returncode, 0)
    self.assertIn('venv', self._calls())

  def test_another_lock_is_added_once(self):
    self._add_python('python3', '3.11')
    (self.folder / 'locks').mkdir()
    (self.folder / 'locks/test.txt').write_text('pytest==1.0 \\\n')
    self._run()
    self._calls()
    process = self._run('locks/test.txt')
    self.assertEqual(process.returncode, 0, process.stderr)
    (packages,) = self._calls()
    self.assertEndsWith(packages, '--requirement locks/test.txt')
    self.assertStartsWith(process.stdout, 'Adding locks/test.txt to env ...\n')
    for locks in ((), ['locks/test.txt']):
      self.assertEqual(self._run(*locks).returncode, 0)
      self.assertEmpty(self._calls())
    # An environment that is made anew has only what is asked for.
    self.lock.write_text(_LOCK.replace('numpy==1.0', 'numpy==1.1'))
    self.assertLen((self._run(), self._calls())[1], 3)
    self.assertLen((self._run('locks/test.txt'), self._calls())[1], 1)

  def test_environment_of_another_checkout_is_left_alone(self):
    self._add_python('python3', '3.11')
    (self.folder / 'theirs').mkdir()
    (self.folder / 'env').symlink_to('theirs')
    self._assert_one_sentence(self._run(), 'env is a link to an environment')

  @parameterized.parameters(
      ([], 'the next make venv starts over', 3),
      (['test.txt'], 'the same command tries again', 1),
  )
  def test_failed_installation_is_done_again(self, locks, told, num_calls):
    self._add_python('my python', '3.11')
    python = str(self.bin / 'my python')
    (self.folder / 'test.txt').write_text('pytest==1.0 \\\n')
    if locks:
      self._run(PYTHON=python)
    failure = pathlib.Path(f'{self.log}.fail')
    failure.touch()
    process = self._run(*locks, PYTHON=python)
    self.assertEqual(process.returncode, 1)
    self.assertIn(told, process.stderr)
    failure.unlink()
    self._calls()
    self.assertEqual(self._run(*locks, PYTHON=python).returncode, 0)
    self.assertLen(self._calls(), num_calls)

  def test_another_python_of_the_caller_starts_over(self):
    self._add_python('python3.12', '3.12')
    self._add_python('python3.13', '3.13')
    self._run()
    self._calls()
    self.assertEqual(self._run(PYTHON='python3.13').returncode, 0)
    self.assertEmpty(self._calls())
    self.assertEqual(self._run(PYTHON='python3.12').returncode, 0)
    self.assertIn('venv', self._calls())

  @parameterized.named_parameters(
      ('by_its_name', 'bin/python3.13'),
      ('by_a_name_without_version', 'bin/python'),
      ('of_pyenv', 'pyenv/versions/3.13.0/bin/python'),
  )
  def test_newest_python_is_taken(self, newest):
    self._add_python('python3.11', '3.11')
    self._add_python('python3', '3.12')
    self._add_python('newest', '3.13')
    path = self.folder / newest
    path.parent.mkdir(parents=True, exist_ok=True)
    (self.bin / 'newest').rename(path)
    self._run(PYENV_ROOT=str(self.folder / 'pyenv'))
    self.assertIn("echo '3.13'", (self.folder / 'env/bin/python').read_text())

  def test_python_that_does_not_run_is_passed_over(self):
    shim = self.bin / 'python3.13'
    shim.write_text(
        '#!/bin/sh\necho "python3.13: command not found" >&2\nexit 127\n'
    )
    shim.chmod(0o755)
    self._add_python('python3.12', '3.12')
    process = self._run()
    self.assertEqual(process.returncode, 0, process.stderr)
    self.assertEmpty(process.stderr)

  @parameterized.named_parameters(('newer', '3.14'), ('older', '3.10'))
  def test_only_another_python_is_one_sentence(self, version):
    self._add_python('python3', version)
    self._assert_one_sentence(
        self._run(),
        r'Python 3\.13, 3\.12 or 3\.11 is needed to make env, but python3 is '
        rf'{version}: install it .*apt-get install python3\.12 ',
    )

  def test_missing_venv_module_is_one_sentence(self):
    self._add_python('python3', '3.11', venv_status=1)
    self._assert_one_sentence(
        self._run(),
        'has no venv module: .* apt-get install python3.11-venv',
    )

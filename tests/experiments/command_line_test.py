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
"""Tests of how the binaries start and end."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
from unittest import mock

from absl import flags
from absl.testing import absltest
from absl.testing import flagsaver
from absl.testing import parameterized
import numpy as np

from experiments import command_line

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def _run(main, *arguments):
  """Returns the exit code and what was written to the standard error."""
  err = io.StringIO()
  with contextlib.ExitStack() as stack:
    stack.enter_context(flagsaver.flagsaver())
    stack.enter_context(mock.patch.object(sys, 'argv', ['run', *arguments]))
    stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
    stack.enter_context(contextlib.redirect_stderr(err))
    # The process goes on, and so do its other tests.
    stack.enter_context(mock.patch.object(command_line, 'free_default_context'))
    try:
      command_line.run(main)
    except SystemExit as end:
      return end.code, err.getvalue()
  return 0, err.getvalue()


def _raiser(error):
  def raise_error():
    raise error

  return raise_error


def _library_error():
  np.zeros(3).reshape(2)


class RunTest(parameterized.TestCase):

  def test_success_is_silent(self):
    self.assertEqual(_run(lambda: None), (0, ''))

  @parameterized.named_parameters(
      ('user', command_line.UserError('No such task'), 2, 'No such task.'),
      ('flag', flags.Error('--a is wrong.'), 2, '--a is wrong.'),
      ('question', command_line.UserError('mean x?'), 2, 'mean x?'),
      (
          'machine',
          command_line.EnvironmentalError('The disk\n  is full'),
          1,
          'The disk is full.',
      ),
  )
  def test_errors_are_one_line(self, error, code, sentence):
    self.assertEqual(_run(_raiser(error)), (code, f'error: {sentence}\n'))

  def test_an_interruption_is_one_sentence(self):
    self.assertEqual(
        _run(_raiser(KeyboardInterrupt('After round 3.'))),
        (130, 'After round 3.\n'),
    )
    self.assertEqual(
        _run(_raiser(KeyboardInterrupt())),
        (
            130,
            'Interrupted; run the same command again to go on.\n',
        ),
    )

  def test_a_bug_keeps_its_traceback(self):
    with self.assertRaisesRegex(ValueError, 'a bug'):
      _run(_raiser(ValueError('a bug')))

  def test_bad_command_lines_run_nothing(self):
    main = mock.Mock()
    code, err = _run(main, '--no_such_flag_at_all=1')
    self.assertEqual(code, 2)
    self.assertRegex(err, "^error: .*'no_such_flag_at_all'.*\n$")
    code, err = _run(main, 'one', 'two')
    self.assertEqual(code, 2)
    self.assertEqual(err, "error: flags begin with --, found 'one two'.\n")
    main.assert_not_called()

  def test_help_is_no_failure(self):
    # In a process of its own: absl defines the help flags only once.
    code = (
        'from experiments import command_line\n'
        'command_line.run(lambda: print("ran"))\n'
    )
    done = subprocess.run(
        [sys.executable, '-c', code, '--help'],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    self.assertEqual((done.returncode, done.stderr), (0, ''))
    self.assertIn('--help', done.stdout)
    self.assertNotIn('ran\n', done.stdout)

  @parameterized.named_parameters(
      ('help', 'main = None', ['--help']),
      ('long', 'main = lambda: [print(n) for n in range(10**6)]', []),
      (
          'machine',
          'def main():\n'
          '  with command_line.errors_as(command_line.EnvironmentalError, '
          'OSError):\n'
          '    [print(n) for n in range(10**6)]',
          [],
      ),
  )
  def test_output_that_nobody_reads_ends_quietly(self, code, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [
            sys.executable,
            '-c',
            f'from experiments import command_line\n{code}\n'
            'command_line.run(main)\n',
            *arguments,
        ],
        cwd=_ROOT,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    self.assertEqual((done.returncode, done.stderr), (141, ''))

  def test_a_pipe_that_is_not_the_output_keeps_its_traceback(self):
    with self.assertRaises(BrokenPipeError):
      _run(_raiser(BrokenPipeError(32, 'Broken pipe')))


class ErrorsAsTest(absltest.TestCase):

  def test_turns_the_errors_that_are_named(self):
    with self.assertRaisesRegex(command_line.UserError, 'no file') as caught:
      with command_line.errors_as(command_line.UserError, OSError):
        raise FileNotFoundError('no file')
    self.assertIsInstance(caught.exception.__cause__, FileNotFoundError)
    with self.assertRaises(KeyError):
      with command_line.errors_as(command_line.UserError, OSError):
        raise KeyError('other')

  def test_a_value_error_of_a_library_stays_what_it_is(self):
    with self.assertRaisesRegex(ValueError, 'reshape'):
      with command_line.errors_as(command_line.UserError, ValueError):
        _library_error()

  def test_a_value_error_of_ours_is_turned(self):
    namespace = {'__name__': 'tff_adaptive.some_module'}
    exec('def fail():\n  raise ValueError("mine")', namespace)
    with self.assertRaisesRegex(command_line.UserError, 'mine'):
      with command_line.errors_as(command_line.UserError, ValueError):
        namespace['fail']()


class SilenceLibrariesTest(absltest.TestCase):

  def test_keeps_what_the_user_has_set(self):
    with mock.patch.dict(os.environ, TF_CPP_MIN_LOG_LEVEL='0'):
      command_line.prepare_libraries()
      self.assertEqual(os.environ['TF_CPP_MIN_LOG_LEVEL'], '0')
    with mock.patch.dict(os.environ):
      os.environ.pop('TF_CPP_MIN_LOG_LEVEL', None)
      command_line.prepare_libraries()
      self.assertEqual(os.environ['TF_CPP_MIN_LOG_LEVEL'], '3')


if __name__ == '__main__':
  absltest.main()

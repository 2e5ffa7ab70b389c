# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of how the binaries start and end, and of what they say of flags."""

import os
import pathlib
import subprocess
import sys
from unittest import mock

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from experiments import command_line
from experiments import hparams
from experiments.trace import __main__ as trace
from tests import folder_testing
from tests.experiments import binary_testing

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def _run(main, *arguments):
  """Returns the exit code and what was written to the standard error."""
  code, _, err = binary_testing.run_here(main, *arguments)
  return code, err


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

  def test_a_module_of_the_user_that_exits_is_no_success(self):
    def define_more(arguments):
      del arguments  # Unused.
      sys.exit('cannot find its data')

    with self.assertRaisesRegex(SystemExit, 'cannot find its data'):
      command_line._parse_flags(['run'], define_more)

  def test_an_interruption_is_one_sentence(self):
    self.assertEqual(
        _run(_raiser(KeyboardInterrupt('After round 3.'))),
        (130, 'After round 3.\n'),
    )
    self.assertEqual(
        _run(_raiser(KeyboardInterrupt())),
        (130, 'Interrupted; run the same command again.\n'),
    )

  def test_a_bug_keeps_its_traceback(self):
    with self.assertRaisesRegex(ValueError, 'a bug'):
      _run(_raiser(ValueError('a bug')))

  def test_bad_command_lines_run_nothing(self):
    main = mock.Mock()
    code, err = _run(main, '--no_such_flag_at_all=1')
    self.assertEqual(code, 2)
    self.assertRegex(err, "^error: .*'no_such_flag_at_all'.*\n$")
    code, err = _run(main, '--nologtostderr=false')
    self.assertEqual(code, 2)
    self.assertEqual(
        err, 'error: --nologtostderr=false does not take an argument.\n'
    )
    code, err = _run(main, 'one', 'two')
    self.assertEqual(code, 2)
    self.assertEqual(err, "error: flags begin with --, found 'one two'.\n")
    main.assert_not_called()

  def test_a_flagfile_that_is_not_text_is_one_sentence(self):
    path = folder_testing.new(self) / 'best.npz'
    path.write_bytes(b'PK\x93')
    code, err = _run(lambda: None, f'--flagfile={path}')
    self.assertEqual(code, 2)
    self.assertRegex(
        err,
        r"^error: the --flagfile cannot be read \('utf-8' .*\); give a text "
        r'file with one flag per line\.\n$',
    )

  def test_a_module_that_cannot_decode_its_text_keeps_its_traceback(self):
    with mock.patch.object(sys, 'argv', ['train']):
      with self.assertRaises(UnicodeDecodeError):
        command_line.run(lambda: None, lambda arguments: b'\x93'.decode())

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

  def test_files_and_the_errors_that_are_named_are_reported(self):
    for error, kind in (
        (PermissionError('no access'), command_line.EnvironmentalError),
        (FileNotFoundError('no file'), command_line.UserError),
        (ZeroDivisionError('other'), ZeroDivisionError),
    ):
      with self.assertRaisesRegex(kind, str(error)):
        with command_line.reporting(FileNotFoundError):
          raise error

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


class CheckRunTest(absltest.TestCase):

  def test_a_name_that_is_too_long_is_not_a_run(self):
    with self.assertRaisesRegex(
        command_line.UserError, 'it has no hparams.json$'
    ):
      command_line.check_run(pathlib.Path('a' * 256))


def _sentence(module, *arguments):
  """Returns what is said of flags that cannot be parsed."""
  values = flags.FlagValues()
  module.define(values)
  try:
    values(['run', *arguments])
  except flags.Error as error:
    return command_line.describe(error, values)
  return None


class DescribeTest(parameterized.TestCase):

  @parameterized.parameters(
      (['--run=here'], '--round is missing, see --help'),
      ([], '--run and --round are missing, see --help'),
      (
          ['--run=here', '--round=1.5'],
          "--round must be an integer, found '1.5'",
      ),
  )
  def test_required_flags(self, arguments, sentence):
    self.assertEqual(_sentence(trace, *arguments), sentence)

  @parameterized.parameters(
      ('--total_rounds=2.5', "--total_rounds must be an integer, found '2.5'"),
      ('--total_rounds=', "--total_rounds must be an integer, found ''"),
      ('--seed=0xz', "--seed must be an integer, found '0xz'"),
      (
          '--client_learning_rate=abc',
          "--client_learning_rate must be a number, found 'abc'",
      ),
      ('--keep_best=maybe', "--keep_best must be true or false, found 'maybe'"),
      (
          '--total_rounds=0',
          'flag --total_rounds=0: 0 is not a positive integer',
      ),
  )
  def test_values(self, argument, sentence):
    self.assertEqual(_sentence(hparams, argument), sentence)

  @parameterized.parameters(
      ('learning_rate', ['client_learning_rate', 'server_learning_rate']),
      ('batch_size', ['client_batch_size']),
      ('total_round', ['total_rounds']),
      ('lr', ['client_learning_rate', 'server_learning_rate']),
      ('num_epochs', ['client_epochs', 'personalization_epochs']),
      ('rounds', ['total_rounds', 'tune_rates_rounds', 'max_rejected_rounds']),
      ('qqq', []),
  )
  def test_unknown_flags(self, name, meant):
    said = _sentence(hparams, f'--{name}=1')
    self.assertStartsWith(said, f"Unknown command line flag '{name}'")
    self.assertEqual('; did you mean --' in said, bool(meant))
    for flag in meant:
      self.assertIn(f'--{flag}', said)

  @parameterized.parameters(
      ('--task=emnist_cr', 'model', '; did you mean --emnist_cr_model?'),
      ('--task=shakespeare', 'mnist_modle', ''),
      ('--client_optimizer=sgd', 'momentum', '; did you mean --sgd_momentum'),
      ('--client_optimizer=adam', 'sgd_momentun', ''),
  )
  def test_flags_of_other_choices_are_not_meant(self, choice, name, end):
    said = _sentence(hparams, f'--{name}=1', choice)
    self.assertStartsWith(said, f"Unknown command line flag '{name}'{end}")
    self.assertEqual('; did you mean --' in said, bool(end))

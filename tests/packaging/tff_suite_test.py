# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `tools/tff_suite.py`, on a small made-up checkout of TFF."""

import contextlib
import io
from unittest import mock
import xml.sax.saxutils

from absl.testing import absltest
import pytest

from tests import folder_testing
from tools import tff_suite

_FOLDER = 'tensorflow_federated/python/aggregators'
_TEST_OF_SUMS = """
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.python.aggregators import for_tests_alone
from tensorflow_federated.python.core.backends.native import execution_contexts


class SumTest(tf.test.TestCase):

  def test_sum(self):
    @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
    def total(x):
      return tff.federated_sum(x)
    self.assertEqual(total(for_tests_alone.NUMBERS), 6)

  def test_context_is_that_of_tff(self):
    context = tff.framework.get_context_stack().current
    self.assertStartsWith(type(context).__module__, 'tensorflow_federated')

  def test_queue(self):
    @tff.tensorflow.computation(np.int32)
    def enqueue(number):
      queue = tf.queue.FIFOQueue(10, [tf.int32], [[]])
      with tf.control_dependencies([queue.enqueue(number)]):
        return queue.size()
    self.assertEqual(enqueue(3), 1)


if __name__ == '__main__':
  execution_contexts.set_sync_local_cpp_execution_context()
  tf.test.main()
"""


_TEST_WITHOUT_END = """
import os
import signal

from absl.testing import absltest


class EndlessTest(absltest.TestCase):

  def test_a_passes(self):
    pass

  def test_b_fails(self):
    self.fail()

  def test_c_is_skipped(self):
    self.skipTest('not here')

  def test_d_is_killed(self):
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == '__main__':
  absltest.main()
"""


class OutcomeTest(absltest.TestCase):

  def test_what_passes_on_the_native_runtime_alone_differs(self):
    native = tff_suite.Outcome({'a': 'passed', 'b': 'passed', 'c': '1 != 2'})
    compiled = tff_suite.Outcome({'a': 'passed', 'b': 'nan', 'c': '1 != 3'})
    self.assertEqual(tff_suite.differences(native, compiled), {'b': 'nan'})
    self.assertEqual(compiled.count(), '1 / 2 / 0')

  def test_a_test_that_is_not_run_differs(self):
    native = tff_suite.Outcome({'a': 'passed'})
    self.assertEqual(
        tff_suite.differences(native, tff_suite.Outcome({})), {'a': 'not run'}
    )


class CheckoutTest(folder_testing.FolderTestCase):

  def _write(self, name, text):
    path = self.folder / _FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding='utf-8')

  def test_examples_import_themselves_by_joined_names(self):
    folder = self.folder / 'examples' / 'mine'
    folder.mkdir(parents=True)
    (folder / 'logic.py').touch()
    finder = tff_suite._FinderInCheckout(self.folder)
    found = finder.find_spec('examplesmine').submodule_search_locations
    self.assertEqual(list(found), [str(folder)])
    module = finder.find_spec('examplesmine.logic')
    self.assertEqual(module.origin, str(folder / 'logic.py'))
    self.assertIsNone(finder.find_spec('examplesother'))
    self.assertIsNone(finder.find_spec('numpy'))

  def test_a_run_continues_with_the_results_of_an_earlier_one(self):
    self._write('a_test.py', '')
    self._write('b_test.py', '')
    page, results = self.folder / 'page.md', self.folder / 'results'
    arguments = [f'--checkout={self.folder}', f'--results={results}']
    arguments.append(f'--output={page}')
    outcome = tff_suite.Outcome({'Test.test': 'passed'}, ['a reason'])
    ended = [outcome, outcome, outcome, KeyboardInterrupt]
    with (
        mock.patch.object(tff_suite, 'run_in_process', side_effect=ended),
        self.assertRaises(KeyboardInterrupt),
    ):
      tff_suite.main(arguments)
    with mock.patch.object(
        tff_suite, 'run_in_process', return_value=outcome
    ) as run:
      code = tff_suite.main(arguments)
    run.assert_called_once_with(
        self.folder.resolve(), f'{_FOLDER}/b_test.py', 'compiled', 1800
    )
    self.assertEqual(code, 0)
    text = page.read_text(encoding='utf-8')
    self.assertEqual(text.count('| 1 / 0 / 0 | 1 / 0 / 0 | 0'), 2)
    self.assertIn('2 files: 2 pass on', text)
    self.assertIn('and 2 of these on the compiled one', text)

  def test_names_are_those_of_another_process(self):
    name = 'Test.test_a0 (fn=<function f at 0x7f677660a0c0>)'
    expected = {'__main__.Test.test_a0 (fn=<function f>)': 'passed'}
    logged = tff_suite._read_log([f'[       OK ] {name}'])
    self.assertEqual(logged, expected)
    report = self.folder / 'report.xml'
    case = xml.sax.saxutils.quoteattr(name.removeprefix('Test.'))
    report.write_text(
        f'<r><testcase classname="__main__.Test" name={case}/></r>'
    )
    self.assertEqual(tff_suite._read_report(report), expected)

  def test_a_folder_without_tests_is_refused(self):
    with self.assertRaisesRegex(SystemExit, 'has no tests of TFF'):
      tff_suite.main([f'--checkout={self.folder}'])

  @pytest.mark.slow
  def test_file_that_is_ended_keeps_the_results_of_finished_tests(self):
    self._write('endless_test.py', _TEST_WITHOUT_END)
    outcome = tff_suite.run_in_process(
        self.folder, f'{_FOLDER}/endless_test.py', 'native', timeout=600
    )
    name = '__main__.EndlessTest.test_'
    self.assertEqual(
        outcome.results,
        {
            f'{name}a_passes': 'passed',
            f'{name}b_fails': 'failed',
            f'{name}c_is_skipped': 'skipped',
            '(the file)': (
                'ended with -9: [ RUN      ] EndlessTest.test_d_is_killed'
            ),
        },
    )
    self.assertEqual(outcome.count(), '1 / 2 / 1')

  def test_file_that_reaches_the_time_limit_counts_as_failed(self):
    self._write('endless_test.py', _TEST_WITHOUT_END)
    outcome = tff_suite.run_in_process(
        self.folder, f'{_FOLDER}/endless_test.py', 'native', timeout=0.01
    )
    self.assertEqual(
        outcome.results, {'(the file)': 'ended with a timeout after 0.01 s: '}
    )

  @pytest.mark.slow
  def test_table_says_what_differs_and_what_is_handed_over(self):
    self._write('sum_test.py', _TEST_OF_SUMS)
    self._write('for_tests_alone.py', 'NUMBERS = [1, 2, 3]\n')
    self._write('broken_test.py', 'raise ValueError("no test")\n')
    page = self.folder / 'page.md'
    with contextlib.redirect_stdout(io.StringIO()) as printed:
      code = tff_suite.main([f'--checkout={self.folder}', f'--output={page}'])
    self.assertEqual(code, 1)
    self.assertIn('sum_test.py native: 3 / 0 / 1', printed.getvalue())
    rows = page.read_text(encoding='utf-8').splitlines()
    (sums,) = [row for row in rows if 'sum_test.py` |' in row]
    self.assertIn('| 3 / 0 / 1 | 2 / 1 / 1 | 1 |', sums)
    self.assertIn('would keep its state between runs', sums)
    (broken,) = [row for row in rows if 'broken_test.py` |' in row]
    self.assertIn('| 0 / 1 / 0 | 0 / 1 / 0 | 0 |', broken)
    (difference,) = [row for row in rows if row.startswith('*')]
    self.assertIn('test_context_is_that_of_tff', difference)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the adapters: commands, names, and stock TFF's."""

import shlex
import sys

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from experiments import conformance
from experiments.conformance import adapters
from experiments.conformance import numpy_adapter
from tests import folder_testing
from tests import program_testing
from tests.experiments.conformance import golden_testing
from tff_adaptive import runtime


def _python(code):
  return shlex.join([sys.executable, '-c', code])


def _numpy_adapter():
  return conformance.CommandAdapter(golden_testing.NUMPY_COMMAND, timeout=60.0)


class CommandAdapterTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('crash', 'import sys; sys.exit("it rains")', 'exited with 1: it rains'),
      ('silent_crash', 'raise SystemExit(3)', 'exited with 3: nothing'),
      ('no_json', 'print("hello")', "'hello\\n' on stdout"),
      ('no_output', '', "found '' on stdout"),
      ('other_json', 'print([1])', 'found [1]'),
      ('no_list', 'print(\'{"iterates": 1}\')', 'found iterates 1'),
      ('few', 'print(\'{"iterates": [[0, 0, 0, 0]]}\')', 'found 1 iterates'),
  )
  def test_broken_command_fails_its_run_with_a_sentence(self, code, reason):
    adapter = conformance.CommandAdapter(_python(code))
    result = conformance.check(adapter, *golden_testing.create_tiny_run())
    self.assertIn(reason, result.reason)
    self.assertNotIn('\n', result.reason)
    self.assertFalse(result.skipped)

  def test_slow_command_fails_its_run(self):
    adapter = conformance.CommandAdapter(
        _python('import time; time.sleep(60)'), timeout=0.1
    )
    result = conformance.check(adapter, *golden_testing.create_tiny_run())
    self.assertEqual(
        result.reason,
        'the command took more than 0.1 s; raise --adapter_timeout',
    )

  @parameterized.parameters(
      ('echo \'{"unsupported": "no quadratic"}\'', 60.0, 'no quadratic'),
      ('wait', 2.0, 'took more than 2 s'),
  )
  def test_processes_left_by_a_command_are_ended(self, end, timeout, reason):
    folder = folder_testing.new(self)
    script = f'sleep 600 & echo $! > {folder / "pid"}; {end}'
    adapter = conformance.CommandAdapter(
        shlex.join(['sh', '-c', script]), timeout
    )
    result = conformance.check(adapter, *golden_testing.create_tiny_run())
    self.assertIn(reason, result.reason)
    left_behind = int((folder / 'pid').read_text())
    self.assertTrue(program_testing.ends(left_behind, 30.0))

  def test_a_run_that_is_larger_than_a_pipe_reaches_the_command(self):
    adapter = conformance.CommandAdapter(
        _python(
            'import json, sys; n = len(json.load(sys.stdin)["problem"]["x0"]); '
            'print(json.dumps({"unsupported": str(n)}))'
        )
    )
    run, problems = golden_testing.create_tiny_run()
    problems['quadratic']['x0'] = [0.0] * 100_000
    result = conformance.check(adapter, run, problems)
    self.assertEqual(result.reason, '100000')

  def test_command_that_reads_nothing_may_answer(self):
    adapter = conformance.CommandAdapter(
        _python('print(\'{"unsupported": "no quadratic"}\')')
    )
    result = conformance.check(adapter, *golden_testing.create_tiny_run())
    self.assertTrue(result.skipped)
    self.assertEqual(result.reason, 'no quadratic')

  @parameterized.named_parameters(
      ('none', '', 'does not begin with an exec'),
      ('unknown', 'no-such-program x', 'does not begin with an exec'),
      ('quotes', 'python "x', 'cannot be split into words'),
  )
  def test_no_command_raises_before_any_run(self, command, message):
    with self.assertRaisesRegex(ValueError, message):
      conformance.CommandAdapter(command)


class NumpyAdapterTest(parameterized.TestCase):

  def _replay(self, **config):
    run, problems = golden_testing.create_tiny_run(**config)
    return conformance.check(_numpy_adapter(), run, problems)

  def test_keys_are_those_that_every_adapter_has(self):
    self.assertEqual(numpy_adapter._KEYS, adapters.COMMON_KEYS)

  def test_fedavg_passes(self):
    self.assertEqual(str(self._replay()), 'tiny quadratic 0 2e-05 ok')

  def test_fedadam_takes_the_step_of_the_paper(self):
    adapter = _numpy_adapter()
    run, problems = golden_testing.create_tiny_run(
        server={'name': 'fedadam', 'lr': 0.1}
    )
    first, _ = adapter.replay(
        conformance.GoldenRun(run['config'], problems['quadratic'], [[0], [0]])
    )
    # D_0 = 0.5, so m = 0.05 and v = 0.99 * 1e-6 + 0.01 * 0.25.
    expected = 0.1 * 0.05 / (np.sqrt(0.00250099) + 1e-3)
    self.assertAlmostEqual(first[0], expected, places=12)

  @parameterized.named_parameters(
      ('server', {'server': {'name': 'fedexp'}}, "server optimizer 'fedexp'"),
      ('key', {'client': {'name': 'sgd', 'lr': 1.0, 'momentum': 0.9}}, 'momen'),
      (
          'key_of_another_server',
          {'server': {'name': 'sgd', 'lr': 1.0, 'beta1': 0.9}},
          "no 'beta1' of 'sgd'",
      ),
      ('loss', {'loss': {'name': 'fedprox', 'mu': 1.0}}, 'no loss'),
      ('compression', {'compression': 'top_k'}, 'no compression'),
      ('weighting', {'weighting': 'loss'}, "no weighting 'loss'"),
  )
  def test_says_what_it_lacks(self, config, reason):
    result = self._replay(**config)
    self.assertTrue(result.skipped)
    self.assertIn(reason, result.reason)

  @parameterized.named_parameters(
      *golden_testing.name_parameters('softmax', ('fedavg', 'fedadam'))
  )
  @pytest.mark.slow
  def test_passes_on_softmax_regression(self, run, problems):
    self.assertTrue(conformance.check(_numpy_adapter(), run, problems).passed)


class CreateAdapterTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('name', 'stock_flower', "unknown adapter 'stock_flower'; give one of"),
      ('module', 'no_such_module:Adapter', 'cannot be imported .*no_such_modu'),
      ('attribute', 'json:Adapter', "cannot be imported .*'Adapter'"),
      ('instance', 'math:pi', 'must be a function .*, found float$'),
      ('command', 'command:no-such-program', 'does not begin with an exec'),
  )
  def test_unknown_adapter_raises(self, value, message):
    with self.assertRaisesRegex(ValueError, message):
      conformance.create_adapter(value)

  def test_module_and_attribute_are_called(self):
    adapter = conformance.create_adapter(
        'experiments.conformance.adapters:HELP.title'
    )
    self.assertEqual(adapter, adapters.HELP.title())

  def test_command_is_the_rest(self):
    adapter = conformance.create_adapter('command:true --x', timeout=1.0)
    self.assertIsInstance(adapter, conformance.CommandAdapter)
    self.assertEqual(adapter.name, 'true --x')

  @parameterized.parameters(
      (None, False), ('stock_tff', False), ('command:true', True)
  )
  def test_is_command(self, value, expected):
    self.assertEqual(adapters.is_command(value), expected)


# The same formulas.
_AGREES = (
    'fedavg_examples',
    'fedavg_server_lr',
    'fedavgm',
    'sgdm_client',
    'adam_client',
    'adagrad_client',
)
# The reason, and the least error that it makes after four rounds.
_DIFFERS = {
    # The bias is corrected, and v starts at 0.
    'fedadam': 0.05,
    # Epsilon stands beside the root of the v that is not corrected.
    'fedadam_bias_correction_v0_zero': 0.01,
    # The bias is corrected.
    'fedyogi': 0.05,
    # Epsilon stands in the root.
    'fedadagrad': 0.01,
    # The proximal term has the other sign.
    'fedprox': 0.005,
}


def _check(name, run, problems):
  with runtime.CompiledContext():
    return conformance.check(conformance.create_adapter(name), run, problems)


class StockTffTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      ('client', {'name': 'delta_sgd', 'eta0': 0.2}, 'delta_sgd'),
      ('server', {'name': 'fedexp'}, 'fedexp'),
      ('loss', {'name': 'moon', 'mu': 1.0}, 'moon'),
      ('schedule', 'step_decay', 'step_decay'),
      ('compression', 'top_k', 'top_k'),
      ('loss', {'name': 'fedprox', 'mu': 1, 'temperature': 2}, 'temperature=2'),
      ('weighting', 'loss', 'weighting'),
      ('server', {'name': 'fedadagrad', 'lr': 1.0, 'beta1': 0.9}, 'beta1=0.9'),
      ('server', {'name': 'fedadam', 'lr': 1.0, 'v0': 1e-6}, 'v0=1e-06'),
  )
  def test_says_what_tff_lacks(self, key, value, named):
    run, problems = golden_testing.create_tiny_run(**{key: value})
    result = conformance.check(
        conformance.create_adapter('stock_tff'), run, problems
    )
    self.assertTrue(result.skipped)
    self.assertIn(named, result.reason)

  @parameterized.named_parameters(
      *golden_testing.name_parameters('quadratic', _AGREES)
  )
  @pytest.mark.slow
  def test_agrees(self, run, problems):
    result = _check('stock_tff', run, problems)
    self.assertTrue(result.passed, result)

  @parameterized.named_parameters(
      (f'{problem}_{name}', run, problems)
      for problem in ('quadratic', 'softmax')
      for name, run, problems in golden_testing.name_parameters(
          problem, _DIFFERS
      )
  )
  @pytest.mark.slow
  def test_differs(self, run, problems):
    result = _check('stock_tff', run, problems)
    self.assertIsNotNone(result.max_error, result.reason)
    self.assertGreater(result.max_error, _DIFFERS[result.name])
    self.assertFalse(result.passed)

  @parameterized.named_parameters(
      *golden_testing.name_parameters('quadratic', ('fedprox', 'scaffold'))
  )
  @pytest.mark.slow
  def test_library_passes_through_the_interface(self, run, problems):
    result = _check('tff_adaptive', run, problems)
    self.assertTrue(result.passed, result)

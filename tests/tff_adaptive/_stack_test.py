# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that TFF can be imported, in any order."""

from importlib import machinery
import os
import pathlib
import subprocess
import sys
import tempfile
import types
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import pytest

from tests import folder_testing
from tff_adaptive import _stack

_SHOW_KERAS = """
import tensorflow_federated as tff
from tensorflow.keras import layers
import tensorflow as tf
same = layers.Dense is tf.keras.layers.Dense
print(tff.__version__, same, issubclass(tf.optimizers.SGD, object))
model = tf.keras.Sequential([layers.Dense(1, input_shape=(2,))])
spec = (tf.TensorSpec([None, 2]), tf.TensorSpec([None, 1]))
loss = tf.keras.losses.MeanSquaredError()
tff.learning.models.from_keras_model(model, loss=loss, input_spec=spec)
"""
_KERAS_3_MODEL = """
import keras
import tensorflow as tf
import tensorflow_federated as tff

class Mine(keras.Model):
  pass

loss = tf.keras.losses.MeanSquaredError()
spec = (tf.TensorSpec([None, 2]), tf.TensorSpec([None, 1]))
models = tff.learning.models
for model in (keras.Sequential([keras.layers.Dense(1)]), Mine()):
  for build in (models.functional_model_from_keras, models.from_keras_model):
    try:
      build(model, loss, input_spec=spec)
    except TypeError as error:
      print(error)
"""
_NO_KERAS_2 = """
import sys

sys.modules['tf_keras'] = None
try:
  import tensorflow_federated
except ImportError as error:
  print(error)
"""
_CHILDREN = """
import multiprocessing

def show(queue):
  import tensorflow_federated as tff
  queue.put(tff.__version__)

if __name__ == '__main__':
  for method in ('fork', 'spawn'):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=show, args=(queue,))
    process.start()
    print(queue.get(timeout=300))
    process.join()
"""
_JAX = """
import sys
import types
sys.modules['jax'] = types.ModuleType('jax')  # The user's own.
import numpy as np
import tensorflow_federated as tff
print(sys.modules['jax'].__spec__, 'jax.lib' in sys.modules)
try:
  tff.jax.computation(np.int32)(lambda x: x)
except ImportError as error:
  print(error)
"""


def _run(code: str, **environment: str) -> subprocess.CompletedProcess:
  """Runs a program in a new interpreter, away from the checkout."""
  with tempfile.TemporaryDirectory() as folder:
    program = pathlib.Path(folder) / 'program.py'
    program.write_text(code, encoding='utf-8')
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ('PYTHONPATH', 'TF_USE_LEGACY_KERAS', 'KERAS_BACKEND')
    }
    return subprocess.run(
        [sys.executable, str(program)],
        cwd=folder,
        env={**inherited, 'TF_CPP_MIN_LOG_LEVEL': '3', **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


class FinderTest(absltest.TestCase):

  def test_other_modules_are_left_alone(self):
    for name in ('json', 'tensorflow.keras', 'tensorflow_federated.python'):
      self.assertIsNone(_stack.find_spec(name))

  def test_is_installed_once(self):
    before = list(sys.meta_path)
    _stack.install()
    self.assertEqual(sys.meta_path, before)
    self.assertEqual(before.count(_stack), 1)

  def test_hook_of_the_environment_finds_the_same(self):
    hook = pathlib.Path(_stack.__file__).with_name('_import_hook.pth')
    line = hook.read_text(encoding='ascii')
    self.assertStartsWith(line, 'import ')  # Or `site` takes it for a path.
    self.assertEqual(line.count('\n'), 1)
    with mock.patch.object(sys, 'meta_path', []):
      exec(line, {})  # pylint: disable=exec-used
      (finder,) = sys.meta_path
    self.assertIsNone(finder.find_spec('json'))
    spec = finder.find_spec('tensorflow_federated')
    self.assertIsInstance(spec.loader, _stack._TffLoader)


class KerasChoiceTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.enter_context(mock.patch.dict(os.environ))
    for name in ('TF_USE_LEGACY_KERAS', 'KERAS_BACKEND'):
      os.environ.pop(name, None)

  @parameterized.parameters({}, {'TF_USE_LEGACY_KERAS': 'True'})
  def test_keras_2_is_fine(self, **environment):
    os.environ.update(environment)
    self.assertIsNone(_stack._check_keras())

  @parameterized.named_parameters(
      (
          'variable',
          {'TF_USE_LEGACY_KERAS': '0'},
          'but TF_USE_LEGACY_KERAS=0 selects Keras 3. Unset '
          'TF_USE_LEGACY_KERAS, or set it to 1.$',
      ),
      (
          'backend',
          {'KERAS_BACKEND': 'jax'},
          'but KERAS_BACKEND=jax selects a backend of Keras 3. Unset '
          'KERAS_BACKEND, or set it to tensorflow.$',
      ),
  )
  def test_environment_that_selects_keras_3_raises(self, environment, regex):
    os.environ.update(environment)
    with self.assertRaisesRegex(ImportError, f'^TFF needs Keras 2 .*{regex}'):
      _stack._check_keras()

  @parameterized.parameters('keras', 'optimizers')
  def test_keras_3_that_was_used_raises(self, part):
    tf, used = types.ModuleType('tensorflow'), types.ModuleType(part)
    used.__file__ = f'/site-packages/keras/_tf_keras/keras/{part}/__init__.py'
    setattr(tf, part, used)
    with (
        mock.patch.dict(sys.modules, {'tensorflow': tf}),
        self.assertRaisesRegex(ImportError, 'already loaded Keras 3.* before'),
    ):
      _stack._check_keras()


class EarlyMessagesTest(absltest.TestCase):

  def test_messages_of_level_info_are_dropped(self):
    code = (
        'import os\n'
        'from tff_adaptive import _stack\n'
        'with _stack._without_early_messages():\n'
        '  os.write(2, b"WARNING: All log messages before absl::InitializeLog()'
        ' is called are written to STDERR\\n")\n'
        '  os.write(2, b"I0000 00:00:1795.24 5861 port.cc:153] oneDNN\\n")\n'
        '  os.write(2, b"E0000 00:00:1795.25 5861 port.cc:154] kept\\n")\n'
        'os.write(2, b"I0000 00:00:1795.26 5861 port.cc:155] later\\n")\n'
    )
    result = _run(code)
    self.assertEqual(result.returncode, 0, result.stderr)
    lines = result.stderr.splitlines()
    self.assertLen(lines, 2)
    self.assertEndsWith(lines[0], 'kept')
    self.assertEndsWith(lines[1], 'later')


class StandInsTest(absltest.TestCase):

  def test_previous_modules_come_back(self):
    jax = types.ModuleType('jax')
    with mock.patch.dict(sys.modules, {'jax': jax}):
      before = dict(sys.modules)
      with _stack._jax_stand_ins():
        self.assertIsNot(sys.modules['jax'], jax)
      self.assertEqual(dict(sys.modules), before)

  def test_use_is_an_error_that_says_why(self):
    modules = _stack._create_stand_ins()
    self.assertTrue(issubclass(modules['jax'].ShapeDtypeStruct, object))
    for use in (
        lambda: modules['jax'].ShapeDtypeStruct((), 'int32'),
        lambda: modules['jax'].jit,
        lambda: modules['jax'].config,
        lambda: modules['jax'].tree_util.tree_flatten,
    ):
      with self.assertRaisesRegex(ImportError, 'TFF 0.87 supports JAX up to'):
        use()


class OptionalPackagesTest(absltest.TestCase):

  def test_a_package_that_is_there_passes_and_is_not_imported(self):
    _stack.check_installed('antigravity')
    self.assertNotIn('antigravity', sys.modules)

  def test_a_folder_of_runs_is_no_package(self):
    folder = folder_testing.new(self)
    (folder / 'tracker_runs_here').mkdir()
    self.enter_context(mock.patch.object(sys, 'path', [folder, *sys.path]))
    with self.assertRaisesRegex(ImportError, 'tracker_runs_here is not inst'):
      _stack.check_installed('tracker_runs_here')


@pytest.mark.slow
class NewInterpreterTest(parameterized.TestCase):
  """Programs in the environment that the tests run in."""

  @parameterized.named_parameters(
      ('tff_first', ''),
      ('library_first', 'import tff_adaptive'),
      ('tensorflow_first', 'import tensorflow as tf'),
      ('keras_by_name_first', 'from tensorflow import keras'),
  )
  def test_any_order_of_imports(self, first):
    result = _run(first + _SHOW_KERAS)
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertEqual(result.stdout.split(), ['0.87.0', 'True', 'True'])

  def test_children(self):
    result = _run(_CHILDREN)
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertEqual(result.stdout.split(), ['0.87.0'] * 2)

  def test_model_of_keras_3_is_one_sentence(self):
    result = _run(_KERAS_3_MODEL)
    self.assertEqual(result.returncode, 0, result.stderr)
    lines = result.stdout.splitlines()
    self.assertLen(lines, 4)
    for line, name in zip(lines, ['Sequential'] * 2 + ['Mine'] * 2):
      self.assertRegex(
          line, rf'a Keras 2 model, found .*\.{name} of Keras 3: .*tf_keras as'
      )

  def test_only_tff_sees_the_stand_in_for_jax(self):
    result = _run(_JAX)
    self.assertEqual(result.returncode, 0, result.stderr)
    kept, error = result.stdout.splitlines()
    self.assertEqual(kept, 'None False')
    self.assertStartsWith(error, 'TFF 0.87 supports JAX up to release 0.4 only')

  def test_missing_tff_is_one_sentence(self):
    find = mock.patch.object(machinery.PathFinder, 'find_spec')
    sentence = (
        '^TensorFlow Federated is not installed, .*: run `.*python.* -m pip '
        'install --no-deps .*tensorflow-federated==.* tensorflow-privacy==.*`$'
    )
    with find as found:
      found.return_value = None
      with self.assertRaisesRegex(ModuleNotFoundError, sentence):
        _stack.find_spec('tensorflow_federated')

  def test_missing_keras_2_is_one_sentence(self):
    result = _run(_NO_KERAS_2)
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertRegex(
        result.stdout,
        r'^TFF needs Keras 2, .*: pip install --no-deps tf-keras~=2\.\d+\.\d+$',
    )

  @parameterized.named_parameters(
      ('used', 'import tensorflow as tf; tf.keras.Model', {}),
      ('imported', 'from tensorflow.keras import layers', {}),
      ('variable', '', {'TF_USE_LEGACY_KERAS': '0'}),
      ('backend', '', {'KERAS_BACKEND': 'jax'}),
  )
  def test_keras_3_is_one_sentence(self, first, environment):
    result = _run(f'{first}\nimport tensorflow_federated', **environment)
    self.assertEqual(result.returncode, 1)
    last = result.stderr.splitlines()[-1]
    self.assertStartsWith(last, 'ImportError: TFF needs Keras 2 (the package ')
    self.assertEndsWith(last, '.')
    self.assertEmpty(result.stdout)

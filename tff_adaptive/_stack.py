# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The software stack, and the shim that imports TFF 0.87 on it.

TFF 0.87.0 was released for TensorFlow 2.14. Its wheel is pure Python plus one
static executable, so it also runs on TensorFlow 2.21 once four obstacles are
removed. While `tensorflow_federated` is imported:

*   `tf.keras` is Keras 2, from the package `tf_keras`;
*   `tensorflow_privacy` is loaded without its estimators, which need a package
    that no longer exists;
*   `jax` is a stand-in: the releases that TFF was written for abort the process
    when TensorFlow 2.21 is loaded, and only `tff.jax` uses it;
*   two of TFF's models may call `random.randint` with floats, which Python 3.12
    no longer allows.

`install` puts a finder on `sys.meta_path`, which acts when TFF is imported.
`import tff_adaptive` calls it; `_import_hook.pth`, which the wheel and `make
venv` install into `site-packages`, does the same for programs that import TFF
first. Nothing here imports TensorFlow before TFF is imported.

The finder also silences the messages of TensorFlow 2.21's import, as
`TF_CPP_MIN_LOG_LEVEL` asks.
"""

from collections.abc import Iterator, Sequence
import contextlib
import functools
import importlib
from importlib import machinery
from importlib import util
import os
import random
import re
import sys
import tempfile
import types
from typing import Any, Optional

# The lock file, with all versions.
LOCK = 'requirements.txt'
# The oldest and the newest Python.
PYTHONS = ((3, 11), (3, 13))
# The versions of the packages that affect numerical results, as in the lock.
PACKAGES = {
    'tensorflow': '2.21.0',
    'tensorflow-federated': '0.87.0',
    'tf-keras': '2.21.0',
    'numpy': '2.4.6',
}
# The lines of releases after those with which the fast tests pass, too.
NEWER = {'tensorflow': '2.22.', 'tf-keras': '2.22.'}

# Installs TFF and a package that it imports. Both require releases that are
# gone, and an older Python than they need.
TFF_COMMAND = (
    'pip install --no-deps --ignore-requires-python'
    ' tensorflow-federated==0.87.0 tensorflow-privacy==0.9.0'
)

_TFF = 'tensorflow_federated'
_LEGACY_KERAS = 'TF_USE_LEGACY_KERAS'
_KERAS_BACKEND = 'KERAS_BACKEND'
# The values that TensorFlow reads as true.
_TRUE = ('true', 'True', '1')
_LOG_LEVEL = 'TF_CPP_MIN_LOG_LEVEL'
# Messages of level INFO, and the line that TensorFlow prints before them.
_EARLY_MESSAGE = re.compile(
    rb'I\d{4} [\d:.]+ |WARNING: All log messages before absl::InitializeLog'
)
_KERAS_PARTS = ('initializers', 'keras', 'losses', 'metrics', 'optimizers')
# The modules of tensorflow_privacy's `dp_query` whose classes TFF uses.
_DP_QUERIES = (
    'distributed_discrete_gaussian_query',
    'distributed_skellam_query',
    'dp_query',
    'gaussian_query',
    'no_privacy_query',
    'normalized_query',
    'quantile_adaptive_clip_sum_query',
    'quantile_adaptive_clip_tree_query',
    'quantile_estimator_query',
    'restart_query',
    'tree_aggregation_query',
    'tree_range_query',
)
_NO_JAX = (
    'TFF 0.87 supports JAX up to release 0.4 only, which cannot be loaded'
    ' together with TensorFlow 2.21: use tff.tensorflow.computation.'
)


def require_packages() -> None:
  """Exits if this Python does not have the project's packages.

  Does nothing unless a program is being started with `python -m`: an importer
  gets the errors of its own imports.
  """
  if sys.argv[:1] == ['-m'] and util.find_spec('absl') is None:
    sys.exit(
        f"error: {sys.executable} does not have this project's packages; run "
        '`make venv`, which installs them, and use .venv/bin/python instead.'
    )


def check_installed(package: str) -> None:
  """Raises unless an optional package can be imported; does not import it.

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


def install() -> None:
  """Makes `import tensorflow_federated` work in this process; idempotent."""
  finder: Any = sys.modules[__name__]  # It has `find_spec`, as a finder must.
  if finder not in sys.meta_path:
    sys.meta_path.insert(0, finder)
  if 'tensorflow' not in sys.modules:
    os.environ.setdefault(_LEGACY_KERAS, '1')


def find_spec(
    name: str, path: Optional[Sequence[str]] = None, target: Any = None
) -> Optional[machinery.ModuleSpec]:
  """Finds TFF and TensorFlow, with loaders that prepare the import.

  Args:
    name: The name of a module.
    path: The search path.
    target: Unused.

  Returns:
    The module's spec, or None for other modules and if TensorFlow is missing.

  Raises:
    ModuleNotFoundError: If TFF is not installed; says how to install it.
  """
  del target
  if name not in _LOADERS:
    return None
  spec = machinery.PathFinder.find_spec(name, path)
  if spec is None and name == _TFF:
    raise ModuleNotFoundError(
        'TensorFlow Federated is not installed, and no resolver can install it:'
        f' run `{sys.executable} -m {TFF_COMMAND}`',
        name=name,
    )
  if spec is not None and isinstance(spec.loader, machinery.SourceFileLoader):
    spec.loader = _LOADERS[name](spec.loader.name, spec.loader.path)
  return spec


class _TffLoader(machinery.SourceFileLoader):
  """Loads TFF after patching the modules that it imports."""

  def exec_module(self, module: types.ModuleType) -> None:
    _check_keras()
    os.environ.setdefault(_LEGACY_KERAS, '1')
    _route_keras(importlib.import_module('tensorflow'))
    _import_privacy()
    with _jax_stand_ins():
      super().exec_module(module)
    _allow_round_floats()
    _refuse_keras_3(sys.modules[f'{_TFF}.python.learning.models'])


class _TensorFlowLoader(machinery.SourceFileLoader):
  """Loads TensorFlow without the messages that the user has switched off."""

  def exec_module(self, module: types.ModuleType) -> None:
    if os.environ.get(_LOG_LEVEL, '0') == '0':
      super().exec_module(module)
      return
    with _without_early_messages():
      super().exec_module(module)


_LOADERS = {_TFF: _TffLoader, 'tensorflow': _TensorFlowLoader}


@contextlib.contextmanager
def _without_early_messages() -> Iterator[None]:
  """Drops TensorFlow's messages from before it reads `TF_CPP_MIN_LOG_LEVEL`.

  C++ code writes them, so the file descriptor has to be redirected. All other
  lines are printed at the end.
  """
  try:
    stderr = os.dup(2)
  except OSError:  # There is no standard error.
    yield
    return
  with tempfile.TemporaryFile() as file:
    os.dup2(file.fileno(), 2)
    try:
      yield
    finally:
      if sys.stderr is not None:
        sys.stderr.flush()
      os.dup2(stderr, 2)
      file.seek(0)
      for line in file:
        if not _EARLY_MESSAGE.match(line):
          os.write(stderr, line)
      os.close(stderr)


def _check_keras() -> None:
  """Raises if the environment or the running program has selected Keras 3."""
  legacy = os.environ.get(_LEGACY_KERAS, '1')
  backend = os.environ.get(_KERAS_BACKEND, 'tensorflow')
  if legacy not in _TRUE:
    found = f'{_LEGACY_KERAS}={legacy} selects Keras 3'
    mend = f'Unset {_LEGACY_KERAS}, or set it to 1'
  elif backend != 'tensorflow':
    found = f'{_KERAS_BACKEND}={backend} selects a backend of Keras 3'
    mend = f'Unset {_KERAS_BACKEND}, or set it to tensorflow'
  elif _has_keras_3():
    found = 'this program has already loaded Keras 3, as `tf.keras`'
    mend = (
        'Import tff_adaptive or tensorflow_federated before `tf.keras` is used,'
        f' or set {_LEGACY_KERAS}=1 before TensorFlow is imported'
    )
  else:
    return
  raise ImportError(
      f'TFF needs Keras 2 (the package tf-keras), but {found}. {mend}.'
  )


def _has_keras_3() -> bool:
  """Returns whether a part of TensorFlow that Keras provides is from Keras 3.

  Until its first use such a part is a lazy loader, which then replaces itself
  by the module. `import tensorflow.keras` loads another copy of the module.
  """
  tf = sys.modules.get('tensorflow')
  if tf is None:
    return False
  modules = [vars(tf).get(name) for name in _KERAS_PARTS]
  modules.append(sys.modules.get('tensorflow.keras'))
  # Not `getattr`, which would trigger the lazy loader.
  files = [vars(module).get('__file__') for module in modules if module]
  folder = os.path.join('', 'keras', '_tf_keras', '')
  return any(folder in file for file in files if file)


def _route_keras(tf: types.ModuleType) -> None:
  """Makes `import tensorflow.keras` find Keras 2, as `tf.keras` does.

  TensorFlow reads the variable when it is imported, perhaps before this module
  could set it.
  """
  # The package first: `find_spec` of a part of it would import it.
  keras = util.find_spec('tf_keras') and util.find_spec('tf_keras.api._v2')
  if keras is None or not keras.submodule_search_locations:
    raise ImportError(
        'TFF needs Keras 2, which TensorFlow no longer contains: pip install'
        f' --no-deps tf-keras~={tf.__version__}'
    )
  (folder,) = keras.submodule_search_locations
  if folder not in tf.__path__:
    tf.__path__.insert(0, folder)


def _import_privacy() -> None:
  """Imports `tensorflow_privacy` with only the names that TFF uses."""
  if 'tensorflow_privacy' in sys.modules:
    return
  if util.find_spec('distutils') is None:
    # TensorFlow Probability imports it. Since Python 3.12 setuptools provides
    # it, automatically unless it was installed after Python had started.
    importlib.import_module('setuptools')
  sys.skip_tf_privacy_import = True  # type: ignore[attr-defined]
  try:
    package = importlib.import_module('tensorflow_privacy')
  finally:
    del sys.skip_tf_privacy_import  # type: ignore[attr-defined]
  for name in _DP_QUERIES:
    module = importlib.import_module(
        f'tensorflow_privacy.privacy.dp_query.{name}'
    )
    setattr(package, name, module)
    for class_name, value in vars(module).items():
      if isinstance(value, type) and value.__module__ == module.__name__:
        setattr(package, class_name, value)


def _allow_round_floats() -> None:
  """Makes TFF's EMNIST and MNIST models accept `random.randint(1, 1e9)`.

  Python 3.12 requires integers there.
  """
  integers = types.SimpleNamespace(
      randint=lambda low, high: random.randint(int(low), int(high))
  )
  for name in ('baselines.emnist.emnist_models', 'models.mnist'):
    module = sys.modules.get(f'{_TFF}.python.simulation.{name}')
    if module is not None:
      setattr(module, 'random', integers)


def _refuse_keras_3(models: types.ModuleType) -> None:
  """Makes `tff.learning.models` reject Keras 3 models with a clear error."""

  def check(build):
    @functools.wraps(build)
    def checked(keras_model, *args, **kwargs):
      kinds = [kind.__module__ for kind in type(keras_model).__mro__]
      if any(kind.startswith('keras.') for kind in kinds):
        raise TypeError(
            f'`keras_model` must be a Keras 2 model, found {kinds[0]}.'
            f'{type(keras_model).__name__} of Keras 3: convert it by'
            ' `tff_adaptive.models.from_keras`, or build it with `tf.keras`, or'
            ' with `import tf_keras as keras`.'
        )
      return build(keras_model, *args, **kwargs)

    return checked

  for name in ('from_keras_model', 'functional_model_from_keras'):
    setattr(models, name, check(getattr(models, name)))


class _Unavailable:
  """A JAX class that can be subclassed and referenced, but not used."""

  def __init__(self, *args, **kwargs):
    raise ImportError(_NO_JAX)


class _StandIn(types.ModuleType):
  """A JAX module whose other attributes raise."""

  def __getattr__(self, name: str):
    if name.startswith('__'):  # Read by the import system and by `inspect`.
      raise AttributeError(name)
    raise ImportError(_NO_JAX)


def _create_stand_ins() -> dict[str, types.ModuleType]:
  """Returns stand-ins for JAX modules, with the names that TFF reads."""
  names = ('jax', 'jax.lib', 'jax.lib.xla_client', 'jax.tree_util')
  modules: dict[str, types.ModuleType] = {
      name: _StandIn(name) for name in names
  }
  for name, module in modules.items():
    parent, _, child = name.rpartition('.')
    if parent:
      setattr(modules[parent], child, module)
  for name in ('Shape', 'XlaComputation'):
    setattr(modules['jax.lib.xla_client'], name, _Unavailable)
  setattr(modules['jax'], 'ShapeDtypeStruct', _Unavailable)
  tree_util = modules['jax.tree_util']
  setattr(tree_util, 'register_pytree_node', lambda *args: None)
  setattr(tree_util, 'register_pytree_node_class', lambda cls: cls)
  return modules


@contextlib.contextmanager
def _jax_stand_ins() -> Iterator[None]:
  """Replaces JAX by stand-ins, and restores it afterwards.

  TFF's modules keep the stand-ins; other modules see the real JAX.
  """
  stand_ins = _create_stand_ins()
  before = {name: sys.modules.pop(name, None) for name in stand_ins}
  sys.modules.update(stand_ins)
  try:
    yield
  finally:
    for name, module in before.items():
      del sys.modules[name]
      if module is not None:
        sys.modules[name] = module

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which formula a framework computes under the name of a method.

    python -m benchmarks.peers.conformance --page=docs/conformance.md

runs the server rules of each framework, in an environment of its own, on the
same mean changes of the weights, compares the weights with each formula, and
writes the section `peer-formulas` of the page. It does the same for FedProx and
SCAFFOLD, see `client_formulas`, and the section `peer-client-formulas`. Let D_t
be the mean change in round t = 0, 1, ..., and s = t + 1. All formulas keep,
coordinate by coordinate,

```
m_t = beta_1 m_{t-1} + (1 - beta_1) D_t                (FedAdagrad: m_t = D_t)
v_t = beta_2 v_{t-1} + (1 - beta_2) D_t^2                            (FedAdam)
v_t = v_{t-1} - (1 - beta_2) D_t^2 sign(v_{t-1} - D_t^2)             (FedYogi)
v_t = v_{t-1} + D_t^2                                             (FedAdagrad)
```

and differ in the initial v and in the step from m_t and v_t.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import json
import pathlib
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers import __main__ as peers
from benchmarks.peers import client_formulas
from experiments import pages

_SECTION = 'peer-formulas'
_CLIENT_SECTION = 'peer-client-formulas'
_Hparams = Mapping[str, float]
# As in Section 4 of the paper, where FedAdagrad has no momentum.
_HPARAMS: _Hparams = {
    'learning_rate': 0.05,
    'beta_1': 0.9,
    'beta_2': 0.99,
    'epsilon': 1e-3,
}
HPARAMS: Mapping[str, _Hparams] = {
    'FedAdam': _HPARAMS,
    'FedYogi': _HPARAMS,
    'FedAdagrad': {**_HPARAMS, 'beta_1': 0.0},
}
# D_t of six rounds, for a weight that grows steadily, a small one that changes
# sign, one that changes only at first, and one that never changes.
CHANGES = (
    (0.30, 0.010, 0.2, 0.0),
    (0.25, -0.020, 0.1, 0.0),
    (0.35, 0.015, 0.0, 0.0),
    (0.30, -0.005, 0.0, 0.0),
    (0.20, 0.020, 0.0, 0.0),
    (0.25, -0.010, 0.0, 0.0),
)
# TFF computes the corrected rate in float32, even for float64 weights.
_TOLERANCE = 5e-6


def _plain(m, v, unused_s, h):
  return h['learning_rate'] * m / (np.sqrt(v) + h['epsilon'])


def _corrected(m, v, s, h):
  return _plain(m / (1 - h['beta_1'] ** s), v / (1 - h['beta_2'] ** s), s, h)


def _corrected_rate(m, v, s, h):
  rate = np.sqrt(1 - h['beta_2'] ** s) / (1 - h['beta_1'] ** s)
  return rate * _plain(m, v, s, h)


def _late_corrected_rate(m, v, s, h):
  return _corrected_rate(m, v, s + 1, h)


def _inner_epsilon(m, v, unused_s, h):
  return h['learning_rate'] * m / np.sqrt(v + h['epsilon'])


_ACCUMULATE: Mapping[str, Callable[..., np.ndarray]] = {
    'FedAdam': lambda v, d, h: h['beta_2'] * v + (1 - h['beta_2']) * d**2,
    'FedYogi': lambda v, d, h: v - (1 - h['beta_2']) * d**2 * np.sign(v - d**2),
    'FedAdagrad': lambda v, d, h: v + d**2,
}


class Formula(NamedTuple):
  """A formula.

  Attributes:
    name: Its name in the table.
    step: Maps m_t, v_t, s and the hyperparameters to the step of a round.
    is_from_zero: Whether v_{-1} is 0; otherwise it is epsilon^2.
    starts_both: Whether m_{-1} is -v_{-1}, as both accumulators of the gradient
      -D_t start alike; otherwise it is 0.
    scales_changes: Whether D_t is multiplied by the learning rate first.
  """

  name: str
  step: Callable[..., np.ndarray]
  is_from_zero: bool = False
  starts_both: bool = False
  scales_changes: bool = False


PAPER = Formula('Reddi', _plain)
_FROM_ZERO = Formula('Reddi, v from 0', _plain, is_from_zero=True)
_KINGMA = Formula('Kingma, v from 0', _corrected, is_from_zero=True)
_RATE = Formula('corrected rate', _corrected_rate)
_RATE_FROM_ZERO = Formula(
    'corrected rate, v from 0', _corrected_rate, is_from_zero=True
)
_LATE = Formula(
    'corrected rate of the next round, v from 0',
    _late_corrected_rate,
    is_from_zero=True,
)
_INNER = Formula('epsilon in the root', _inner_epsilon)
_KINGMA_BOTH = Formula('Kingma, m from v', _corrected, starts_both=True)
_SCALED = Formula(
    'Reddi of eta D_t, v from 0', _plain, is_from_zero=True, scales_changes=True
)
# The columns of the tables.
FORMULAS: Mapping[str, Sequence[Any]] = {
    'FedAdam': (PAPER, _FROM_ZERO, _SCALED, _KINGMA, _RATE_FROM_ZERO, _LATE),
    'FedYogi': (PAPER, _FROM_ZERO, _SCALED, _RATE, _KINGMA_BOTH),
    'FedAdagrad': (PAPER, _FROM_ZERO, _SCALED, _INNER),
    **client_formulas.FORMULAS,
}
_TORCH = peers.PEERS['pytorch'].packages
# The name, the environment and the packages of the frameworks that are run.
PEERS = {
    'optax': ('optax', 'jax', peers.PEERS['jax'].packages),
    'fedjax': ('FedJAX', 'fedjax', peers.PEERS['fedjax'].packages),
    'pytorch': ('PyTorch', 'torch', peers.PEERS['pytorch'].packages),
    'pfl': ('pfl-research, PyTorch', 'pfl', peers.PEERS['pfl'].packages),
    'nvflare': ('NVFlare, PyTorch', 'nvflare', ('nvflare==2.9.0', *_TORCH)),
    'fluke': ('fluke', 'fluke', ('fluke-fl==0.8.1', *_TORCH)),
    'fedlab': ('FedLab', 'fedlab', ('fedlab==1.3.0', *_TORCH)),
    # Without simulations, which need more packages.
    'flower': ('Flower', 'flower_server', ('flwr==1.41.0',)),
}
# Which of them the scripts run.
_SCRIPTS = {
    'server_rules': tuple(name for name in PEERS if name != 'fedlab'),
    'client_rules': ('pfl', 'nvflare', 'fluke', 'fedlab', 'fedjax'),
}
# The formula read in the named source, for frameworks that are not run.
_READ = {
    'FedAdam': (
        ('PyTorch', '`torch/optim/adam.py`', _KINGMA),
        (
            'FedJAX',
            '`fedjax/core/optimizers.py`: the Adam of optax',
            _KINGMA,
        ),
        (
            'google-research/federated',
            '`utils/optimizers/optimizer_utils.py`: the Adam of Keras',
            _RATE_FROM_ZERO,
        ),
        (
            'pfl-research, PyTorch',
            '`benchmarks/lm/pytorch/train.py`: the Adam of PyTorch',
            _KINGMA,
        ),
        (
            'pfl-research, TensorFlow',
            '`benchmarks/lm/tf/train.py`: the Adam of Keras',
            _RATE_FROM_ZERO,
        ),
        (
            'NVFlare, PyTorch',
            '`nvflare/app_opt/pt/fedopt.py`: the Adam of PyTorch',
            _KINGMA,
        ),
        (
            'NVFlare, TensorFlow',
            '`nvflare/app_opt/tf/fedopt_ctl.py` of 2.9.0: the Adam of Keras',
            _RATE_FROM_ZERO,
        ),
        ('fluke', '`fluke/algorithms/fedopt.py`', _SCALED),
        (
            'Flower, before #4362',
            '`flwr/server/strategy/fedadam.py`',
            _FROM_ZERO,
        ),
    ),
    'FedYogi': (
        (
            'google-research/federated',
            '`utils/optimizers/yogi.py`',
            _RATE,
        ),
        ('fluke', '`fluke/algorithms/fedopt.py`', _SCALED),
    ),
    'FedAdagrad': (
        ('PyTorch', '`torch/optim/adagrad.py`', PAPER),
        (
            'FedJAX',
            '`fedjax/core/optimizers.py`: the Adagrad of optax',
            _INNER,
        ),
        (
            'google-research/federated',
            '`utils/optimizers/optimizer_utils.py`: the Adagrad of Keras '
            'before 2.11',
            PAPER,
        ),
        (
            'NVFlare, PyTorch',
            '`nvflare/app_opt/pt/fedopt.py`: the Adagrad of PyTorch',
            PAPER,
        ),
        (
            'NVFlare, TensorFlow',
            '`nvflare/app_opt/tf/fedopt_ctl.py` of 2.9.0: the Adagrad of Keras',
            _INNER,
        ),
        ('fluke', '`fluke/algorithms/fedopt.py`', _SCALED),
    ),
}


def iterate(formula: Any, method: str) -> np.ndarray:
  """Returns the weights after each round.

  Server rules start at 0 and receive `CHANGES`.

  Args:
    formula: One of `FORMULAS[method]`.
    method: A key of `FORMULAS`.

  Example:

    >>> round(float(iterate(PAPER, 'FedAdagrad')[0, 0]), 5)
    0.04983
  """
  if method in client_formulas.FORMULAS:
    return client_formulas.iterate(formula)
  h = HPARAMS[method]
  x = np.zeros(len(CHANGES[0]))
  v = np.full_like(x, 0.0 if formula.is_from_zero else h['epsilon'] ** 2)
  m = -v if formula.starts_both else np.zeros_like(x)
  iterates = []
  changes = np.asarray(CHANGES)
  if formula.scales_changes:
    changes = h['learning_rate'] * changes
  for s, change in enumerate(changes, start=1):
    m = h['beta_1'] * m + (1 - h['beta_1']) * change
    v = _ACCUMULATE[method](v, change, h)
    x = x + formula.step(m, v, s, h)
    iterates.append(x)
  return np.stack(iterates)


def describe(found: Any, formula: Any, method: str) -> str:
  """Returns whether weights are those of a formula, or since when they are not.

  Args:
    found: The weights after each round.
    formula: One of `FORMULAS[method]`.
    method: A key of `FORMULAS`.
  """
  is_client = method in client_formulas.FORMULAS
  tolerance = client_formulas.TOLERANCE if is_client else _TOLERANCE
  apart = np.abs(np.asarray(found) - iterate(formula, method)).max(axis=1)
  differs = ~(apart <= tolerance)  # NaN differs.
  if not differs.any():
    return 'equal'
  return f'from round {np.argmax(differs) + 1} by {apart.max():.1g}'


class Row(NamedTuple):
  """A row of a table.

  Attributes:
    framework: Its name and version.
    method: A key of `FORMULAS`.
    iterates: The weights after each round.
    how: 'run', or 'read'.
    source: The call, or the place in the source.
  """

  framework: str
  method: str
  iterates: Any
  how: str
  source: str


def run_peers(
    folder: pathlib.Path,
    names: Sequence[str],
    python: str = sys.executable,
    script: str = 'server_rules',
) -> Iterator[Row]:
  """Yields the rows of frameworks, each run in its environment.

  Args:
    folder: The folder of the environments.
    names: Keys of `PEERS`; one that cannot be installed or run is left out,
      with a message, and one without the script's rules without a message.
    python: The Python that makes the environments.
    script: `server_rules` or `client_rules`.
  """
  path = pathlib.Path(__file__).with_name(f'{script}.py')
  asked = (
      {'changes': CHANGES, 'hparams': HPARAMS}
      if script == 'server_rules'
      else client_formulas.describe_problem()
  )
  for name in names:
    if name not in _SCRIPTS[script]:
      continue
    label, environment, packages = PEERS[name]
    peer = peers.Peer(script, environment, packages, ())
    try:
      executable = peers.make_environment(folder, peer, python)
      result = subprocess.run(
          [executable, path, name],
          input=json.dumps(asked),
          stdout=subprocess.PIPE,
          text=True,
          check=True,
      )
    except subprocess.CalledProcessError as error:
      print(f'{label} is left out: {error}', file=sys.stderr)
      continue
    reply = json.loads(result.stdout.splitlines()[-1])
    framework = f'{label} {reply["version"]}'
    for method, found in reply['methods'].items():
      for source, iterates in found:
        yield Row(framework, method, iterates, 'run', source)


def run_here() -> Iterator[Row]:
  """Yields the rows of this library and of TFF."""
  # It takes seconds to import.
  # pylint: disable=import-outside-toplevel
  from importlib import metadata

  import tensorflow as tf
  import tensorflow_federated as tff

  from tff_adaptive import optimizers
  # pylint: enable=import-outside-toplevel

  def run(rule):
    x = tf.zeros([len(CHANGES[0])], tf.float64)
    state, iterates = rule.initialize(tf.TensorSpec(x.shape, x.dtype)), []
    for change in CHANGES:
      state, x = rule.next(state, x, -tf.constant(change, tf.float64))
      iterates.append(x.numpy())
    return iterates

  h = _HPARAMS
  adaptive = (h['learning_rate'], h['beta_1'], h['beta_2'], h['epsilon'])
  v = h['epsilon'] ** 2
  ours, theirs = optimizers, tff.learning.optimizers
  tff_name = f'TFF {metadata.version("tensorflow-federated")}'
  rules = {
      'FedAdam': (
          ('tff_adaptive', '`build_fedadam`', ours.build_fedadam(*adaptive)),
          (
              tff_name,
              '`tff.learning.optimizers.build_adam`',
              theirs.build_adam(*adaptive),
          ),
      ),
      'FedYogi': (
          ('tff_adaptive', '`build_fedyogi`', ours.build_fedyogi(*adaptive)),
          (
              tff_name,
              '`tff.learning.optimizers.build_yogi`',
              theirs.build_yogi(*adaptive, v),
          ),
      ),
      'FedAdagrad': (
          (
              'tff_adaptive',
              '`build_fedadagrad`',
              ours.build_fedadagrad(h['learning_rate'], epsilon=h['epsilon']),
          ),
          (
              tff_name,
              '`tff.learning.optimizers.build_adagrad`',
              theirs.build_adagrad(h['learning_rate'], v, h['epsilon']),
          ),
      ),
  }
  for method, found in rules.items():
    for name, source, rule in found:
      yield Row(name, method, run(rule), 'run', source)

  def run_keras(rule):
    x, iterates = tf.Variable(tf.zeros([len(CHANGES[0])], tf.float64)), []
    for change in CHANGES:
      rule.apply_gradients([(-tf.constant(change, tf.float64), x)])
      iterates.append(x.numpy())
    return iterates

  keras_name = f'Keras {metadata.version("tf-keras")}'
  keras = tf.keras.optimizers
  for method, rule in (
      ('FedAdam', keras.Adam(*adaptive)),
      ('FedAdagrad', keras.Adagrad(h['learning_rate'], v, h['epsilon'])),
  ):
    source = f'`tf.keras.optimizers.{type(rule).__name__}`'
    yield Row(keras_name, method, run_keras(rule), 'run', source)


def run_clients_here() -> Iterator[Row]:
  """Yields the rows of FedProx and SCAFFOLD of this library and of TFF."""
  for framework, method, iterates, call in client_formulas.run_here():
    yield Row(framework, method, iterates, 'run', call)


def read_others(rows: Sequence[Row]) -> Iterator[Row]:
  """Yields the rows of frameworks whose formula was read.

  Args:
    rows: The rows of those that were run.
  """
  run = {(row.method, row.framework.rpartition(' ')[0]) for row in rows}
  for method, found in {**_READ, **client_formulas.READ}.items():
    for name, source, formula in found:
      if (method, name) not in run:
        yield Row(name, method, iterate(formula, method), 'read', source)


def format_section(rows: Sequence[Row], methods: Iterable[str]) -> str:
  """Returns one table a method.

  Args:
    rows: The rows.
    methods: Keys of `FORMULAS`.
  """
  tables = []
  for method in methods:
    formulas = FORMULAS[method]
    header = [method, *(formula.name for formula in formulas), 'how', 'where']
    cells = [
        [
            row.framework,
            *(describe(row.iterates, formula, method) for formula in formulas),
            row.how,
            row.source,
        ]
        for row in rows
        if row.method == method
    ]
    tables.append(pages.text_table(header, cells))
  return '\n'.join(tables)


def main() -> None:
  """Runs the frameworks, prints the tables, and writes them to a page."""
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  parser.add_argument('--peers', nargs='*', choices=PEERS, default=list(PEERS))
  parser.add_argument(
      '--environments', type=pathlib.Path, default=pathlib.Path('.venv-peers')
  )
  parser.add_argument(
      '--python',
      default=sys.executable,
      help='the Python that makes the environments; pfl-research and FedJAX '
      'need 3.12 or older (default: the one that runs this)',
  )
  parser.add_argument('--page', type=pathlib.Path, help='the page to write')
  options = parser.parse_args()
  sections: dict[str, Iterable[str]] = {
      _SECTION: HPARAMS,
      _CLIENT_SECTION: client_formulas.FORMULAS,
  }
  if options.page is not None:
    for name in sections:
      peers.find_section(options.page, name)
  rows = [*run_here(), *run_clients_here()]
  for script in _SCRIPTS:
    rows += run_peers(
        options.environments, options.peers, options.python, script
    )
  rows += read_others(rows)
  for name, methods in sections.items():
    section = format_section(rows, methods)
    print(section)
    if options.page is not None:
      peers.replace_section(options.page, name, section)


if __name__ == '__main__':
  main()

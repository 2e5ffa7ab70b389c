# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedAvg and FedAdam in NumPy, as a command that replays reference runs.

It imports nothing from this project, so that it can be copied to another
environment and turned into an adapter of a framework there:

  python -m experiments.conformance --goldens=goldens.json \\
      --adapter='command:python experiments/conformance/numpy_adapter.py'
"""

import json
import sys

import numpy as np


def _quadratic_gradient(x, features, labels):
  return features.T @ (features @ x - labels) / len(labels)


def _softmax_gradient(x, features, labels):
  num_features = features.shape[1]
  weights = x.reshape(num_features + 1, -1)
  logits = features @ weights[:-1] + weights[-1]
  errors = np.exp(logits - logits.max(axis=1, keepdims=True))
  errors /= errors.sum(axis=1, keepdims=True)
  errors[np.arange(len(labels)), labels] -= 1.0
  errors /= len(labels)
  return np.concatenate([(features.T @ errors).ravel(), errors.sum(axis=0)])


# The supported keys: `COMMON_KEYS` of adapters.py.
_KEYS = (
    'name',
    'problem',
    'client',
    'server',
    'weighting',
    'batch_size',
    'epochs',
    'rounds',
    'participants',
)
_OPTIMIZER_KEYS = {
    'client': {'sgd': {'name', 'lr'}},
    'server': {
        'sgd': {'name', 'lr'},
        'fedadam': {'name', 'lr', 'beta1', 'beta2', 'tau'},
    },
}
_GRADIENTS = {'quadratic': _quadratic_gradient, 'softmax': _softmax_gradient}


def _find_gap(config, problem):
  """Returns what this adapter lacks for a run, or `None`."""
  if problem['name'] not in _GRADIENTS:
    return f'no problem {problem["name"]!r}'
  for key in config:
    if key not in _KEYS:
      return f'no {key}'
  if config['weighting'] not in ('uniform', 'examples'):
    return f'no weighting {config["weighting"]!r}'
  for part, known in _OPTIMIZER_KEYS.items():
    name = config[part]['name']
    if name not in known:
      return f'no {part} optimizer {name!r}'
    unknown = sorted(set(config[part]) - known[name])
    if unknown:
      return f'no {unknown[0]!r} of {name!r}'
  return None


def _train_client(x, client, config, gradient):
  """Returns a client's change of the weights and its number of examples."""
  features, labels = np.array(client['X']), np.array(client['y'])
  size, start_weights = config['batch_size'], x
  for _ in range(config['epochs']):
    for start in range(0, len(labels), size):
      batch = slice(start, start + size)
      step = gradient(x, features[batch], labels[batch])
      x = x - config['client']['lr'] * step
  return x - start_weights, len(labels) * config['epochs']


def _replay(configuration, problem, cohorts):
  """Returns the weights after each round."""
  gradient, server = _GRADIENTS[problem['name']], configuration['server']
  beta_1, beta_2 = server.get('beta1', 0.9), server.get('beta2', 0.99)
  tau = server.get('tau', 1e-3)
  x = np.array(problem['x0'])
  m, v, iterates = 0.0, tau**2, []
  for cohort in cohorts:
    changes, counts = zip(
        *[
            _train_client(x, problem['clients'][i], configuration, gradient)
            for i in cohort
        ]
    )
    weights = counts if configuration['weighting'] == 'examples' else None
    step = np.average(changes, axis=0, weights=weights)
    if server['name'] == 'fedadam':
      m = beta_1 * m + (1 - beta_1) * step
      v = beta_2 * v + (1 - beta_2) * step**2
      step = m / (np.sqrt(v) + tau)
    x = x + server['lr'] * step
    iterates.append(x.tolist())
  return iterates


if __name__ == '__main__':
  run = json.load(sys.stdin)
  gap = _find_gap(run['configuration'], run['problem'])
  reply = {'unsupported': gap} if gap else {'iterates': _replay(**run)}
  json.dump(reply, sys.stdout)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hand-sized cases of rules, from the files of reference trajectories."""

import functools
import json
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

from experiments.conformance import replay
from tff_adaptive import optimizers

_GOLDENS = pathlib.Path(__file__).parents[2] / 'goldens/methods_2026.json'


@functools.cache
def cases(name: str) -> list[dict[str, Any]]:
  """Returns the cases under a name; never empty."""
  found = json.loads(_GOLDENS.read_text(encoding='utf-8'))['unit'][name]
  assert found, name
  return found


def build(rule: str, hparams: dict[str, Any]) -> Any:
  """Builds a rule from hyperparameters with the file's names."""
  arguments = {replay._KEYS.get(k, k): value for k, value in hparams.items()}
  return getattr(optimizers, f'build_{rule}')(**arguments)


def sent_by_client(case: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
  """Returns what a client would send after each step, found and expected.

  The losses are linear, with the given gradients and values at 0.
  """
  rule = build(case['rule'], case['hparams'])
  x = tf.constant(case['x0'], tf.float64)
  state = rule.initialize(tf.TensorSpec(x.shape, x.dtype))
  found = []
  for g, loss_at_0 in zip(case['gradients'], case['losses_at_0']):
    value = loss_at_0 + tf.reduce_sum(g * x)
    state, x = rule.next(state, x, tf.constant(g, tf.float64), value=value)
    found.append(rule.final_weights(state, x).numpy())
  return np.array(found), np.array(case['x'])


def server_steps(rule: Any, case: dict[str, Any]):
  """Yields the weights and the state after each step, and the expected ones."""
  steps = case['steps']
  x = tf.zeros([len(steps[0]['D'])], tf.float64)
  state = rule.initialize(tf.TensorSpec(x.shape, x.dtype))
  for step in steps:
    state, x = rule.next(state, x, -tf.constant(step['D'], tf.float64))
    yield x, state, step

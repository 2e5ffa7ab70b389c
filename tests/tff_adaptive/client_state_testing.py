# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A learning process that keeps state for its clients, and its clients."""

import collections
from collections.abc import Sequence
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import aggregators
from tff_adaptive import data

_Dict = collections.OrderedDict

STATE_TYPE = tff.to_type(
    _Dict(
        total=tff.TensorType(np.float32, [2]),
        # Names that are not in order, and a list, which TFF makes a tuple.
        counts=_Dict(rounds=np.int32, examples=[np.int64]),
    )
)
_CLIENT_TYPE = tff.to_type(
    _Dict(
        data=tff.SequenceType(_Dict(x=tff.TensorType(np.float32, [None]))),
        client_id=tff.SequenceType(np.str_),
        client_state=tff.SequenceType(STATE_TYPE),
    )
)
_SERVER_TYPE = tff.to_type(_Dict(weights=np.float32, rounds=np.int32))


@tff.tensorflow.computation(_SERVER_TYPE, _CLIENT_TYPE)
def _work(server, client):
  """Adds the weights and the sum of the data to what the client has kept.

  A client whose sum is not finite reports no state.
  """
  initial = _Dict(
      total=tf.constant([0.0, 100.0]),
      counts=_Dict(rounds=0, examples=(tf.constant(0, tf.int64),)),
  )
  old = client['client_state'].reduce(initial, lambda _, state: state)
  client_id = client['client_id'].reduce('', lambda _, value: value)
  total, count = client['data'].reduce(
      (0.0, tf.constant(0, tf.int64)),
      lambda state, batch: (
          state[0] + tf.reduce_sum(batch['x']),
          state[1] + tf.size(batch['x'], tf.int64),
      ),
  )
  new = _Dict(
      total=old['total'] + total + [0.0, server['weights']],
      counts=_Dict(
          rounds=old['counts']['rounds'] + 1,
          examples=(old['counts']['examples'][0] + count,),
      ),
  )
  rows = tf.nest.map_structure(
      lambda leaf: leaf[tf.newaxis],
      _Dict(client_id=client_id, client_state=new),
  )
  change = tf.reduce_sum(new['total']) / 1000
  is_finite = tf.math.is_finite(change)
  return tf.where(is_finite, change, 0.0), rows, is_finite


@functools.cache
def process() -> tff.learning.templates.LearningProcess:
  """Returns the process; its weights grow with what the clients have kept."""

  @tff.tensorflow.computation
  def initial():
    return _Dict(weights=0.0, rounds=0)

  @tff.tensorflow.computation(_SERVER_TYPE, np.float32)
  def update(state, change):
    return _Dict(weights=state['weights'] + change, rounds=state['rounds'] + 1)

  @tff.tensorflow.computation(np.float32)
  def halve(change):
    return change / 2

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(initial, tff.SERVER)

  @tff.federated_computation(
      tff.FederatedType(_SERVER_TYPE, tff.SERVER),
      tff.FederatedType(_CLIENT_TYPE, tff.CLIENTS),
  )
  def next_fn(state, clients):
    sent = tff.federated_broadcast(state)
    change, rows, is_finite = tff.federated_map(_work, (sent, clients))
    total = tff.federated_sum(change)
    client_work = _Dict(
        half=tff.federated_map(halve, total),
        client_states=aggregators.stack_at_server(rows, is_finite),
    )
    metrics = _Dict(client_work=tff.federated_zip(client_work))
    return tff.learning.templates.LearningProcessOutput(
        tff.federated_map(update, (state, total)), tff.federated_zip(metrics)
    )

  @tff.tensorflow.computation(_SERVER_TYPE)
  def get_model_weights(state):
    return state['weights']

  @tff.tensorflow.computation(_SERVER_TYPE, np.float32)
  def set_model_weights(state, weights):
    return _Dict(weights=weights, rounds=state['rounds'])

  return tff.learning.templates.LearningProcess(
      initialize, next_fn, get_model_weights, set_model_weights
  )


@functools.cache
def source() -> data.PackedClientArrays:
  """Returns clients of all kinds, four of them with two full batches."""
  sizes = dict(a=4, b=4, c=4, d=4, short=3, long=7, none=0, bad=4)
  return data.PackedClientArrays.from_clients(
      {
          name: {'x': _values(name, size, place)}
          for place, (name, size) in enumerate(sizes.items())
      }
  )


def _values(name: str, size: int, place: int) -> np.ndarray:
  values = np.arange(size, dtype=np.float32) + 10 * place
  return np.where(name == 'bad', np.float32(np.nan), values)


def cohort(client_ids: Sequence[str], round_num: int = 0) -> data.Cohort:
  """Returns clients in batches of two."""
  plan = data.BatchPlan(2, shuffle=False)
  return data.Cohort(source(), client_ids, round_num, 1, plan)


def stateful_cohort(
    client_ids: Sequence[str], states: Any
) -> data.StatefulCohort:
  """Returns the same with states by client id."""
  spec = tff.types.type_to_tf_tensor_specs(tff.SequenceType(STATE_TYPE).element)
  return data.StatefulCohort.of(cohort(client_ids), states, spec)

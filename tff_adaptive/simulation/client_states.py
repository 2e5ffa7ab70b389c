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
"""Learning processes that hold state for their clients across rounds.

TFF has no results at clients, so the state of a client passes through the
arguments and metrics of a learning process:

```
next: (<S@SERVER, {<data=B*,client_id=string*,client_state=C*>}@CLIENTS> ->
       <state=S@SERVER, metrics=M@SERVER>)
```

`client_id` is one string. `client_state` is one structure of tensors of known
shapes, or nothing for a client that has none yet. The metrics hold, as
`metrics['client_work']['client_states']`, the states to keep: `client_id`, the
ids, and `client_state`, the structure of C with every tensor stacked to [number
of ids, ...], see `aggregators.stack_at_server`. Clients that are not among them
keep the state that they had.
"""

import collections
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.simulation import checkpoints as checkpoints_lib
from tff_adaptive.simulation import client_store

CLIENT_WORK_KEY = 'client_work'
CLIENT_STATES_KEY = 'client_states'
# The name that a checkpoint gives to the index of the store.
SNAPSHOT_KEY = 'client_states'


def _field(type_spec: Any, name: str) -> Any:
  """The field of a struct, or None if it is none or has no such field."""
  if not isinstance(type_spec, tff.StructType):
    return None
  return dict(tff.structure.iter_elements(type_spec)).get(name)


def _specs_by_path(
    type_spec: Any, path: tuple[str, ...] = ()
) -> dict[tuple[str, ...], tf.TensorSpec]:
  """The tensors of a type by the names on the way to them."""
  if not isinstance(type_spec, tff.StructType):
    return {path: tff.types.type_to_tf_tensor_specs(type_spec)}
  found = {}
  for place, (name, field) in enumerate(tff.structure.iter_elements(type_spec)):
    found.update(_specs_by_path(field, (*path, name or f'{place}')))
  return found


def get_state_spec(
    process: tff.learning.templates.LearningProcess,
) -> Any:
  """Returns what a process keeps for each client.

  Args:
    process: The process.

  Returns:
    A structure of `tf.TensorSpec`, or None if it keeps nothing.

  Raises:
    TypeError: If the state is no structure of numbers of known shapes, or the
      metrics do not hold the states to keep.
  """
  signature = getattr(process.next, 'type_signature', None)
  if signature is None:
    return None
  state_type = _field(signature.parameter[1].member, cohort_lib.STATE_KEY)
  if state_type is None:
    return None
  specs = _specs_by_path(state_type.element)
  for path, spec in specs.items():
    if not spec.shape.is_fully_defined() or spec.dtype == tf.string:
      raise TypeError(
          'The state of a client must be numbers of known shapes, found '
          f'{spec.dtype.name}{spec.shape} as `{"/".join(path)}`.'
      )
  _check_metrics(signature.result, specs)
  return tff.types.type_to_tf_tensor_specs(state_type.element)


def _check_metrics(
    result_type: Any, specs: Mapping[tuple[str, ...], tf.TensorSpec]
) -> None:
  """Raises unless the metrics hold ids and states."""
  metrics_type = _field(result_type, 'metrics')
  found = _field(
      _field(getattr(metrics_type, 'member', None), CLIENT_WORK_KEY),
      CLIENT_STATES_KEY,
  )
  expected: dict[tuple[str, ...], tf.TensorSpec] = {
      (cohort_lib.ID_KEY,): tf.TensorSpec([None], tf.string)
  }
  for path, spec in specs.items():
    expected[(cohort_lib.STATE_KEY, *path)] = tf.TensorSpec(
        [None, *spec.shape], spec.dtype
    )
  if found is None or _specs_by_path(found) != expected:
    raise TypeError(
        f'The metrics of a process that takes `{cohort_lib.STATE_KEY}` must '
        f'hold as `{CLIENT_WORK_KEY}/{CLIENT_STATES_KEY}` the tensors '
        f'{_show(expected)}, found {found}.'
    )


def _show(specs: Mapping[tuple[str, ...], tf.TensorSpec]) -> dict[str, str]:
  return {
      '/'.join(path): f'{spec.dtype.name}{spec.shape}'
      for path, spec in specs.items()
  }


class ClientStates:
  """What the training loop does about the states of clients, see `bind`."""

  def __init__(
      self,
      store: client_store.ClientStateStore,
      spec: Any,
      checkpoints: Optional[checkpoints_lib.CheckpointManager],
  ):
    self._store = store
    self._spec = spec
    self._checkpoints = checkpoints
    # Those of the checkpoints that are kept, by round.
    self._indices: dict[int, str] = {}

  def add_to(self, cohort: Any) -> cohort_lib.StatefulCohort:
    """Returns the clients of a round, with their states.

    Args:
      cohort: A `Cohort`.

    Raises:
      TypeError: If it is anything else.
      CheckpointError: If the file of a state is missing or damaged.
    """
    if not isinstance(cohort, cohort_lib.Cohort):
      raise TypeError(
          'With a `client_store`, `cohort_fn` must return a `Cohort`, which '
          f'knows the ids of its clients, found {type(cohort).__name__}.'
      )
    states = {}
    for client_id in cohort.client_ids:
      state = self._store.get(client_id)
      if state is not None:
        states[client_id] = state
    return cohort_lib.StatefulCohort.of(cohort, states, self._spec)

  def keep(self, round_num: int, metrics: Any) -> Any:
    """Stores the states in the metrics of a round.

    Args:
      round_num: The number of the round, counted from 1.
      metrics: What the process measured.

    Returns:
      The metrics without them.
    """
    client_work = collections.OrderedDict(metrics[CLIENT_WORK_KEY])
    states = client_work.pop(CLIENT_STATES_KEY)
    client_ids = [
        client_id.decode() if isinstance(client_id, bytes) else str(client_id)
        for client_id in states[cohort_lib.ID_KEY]
    ]
    self._store.update(round_num, client_ids, states[cohort_lib.STATE_KEY])
    remaining = collections.OrderedDict(metrics)
    remaining[CLIENT_WORK_KEY] = client_work
    return remaining

  def index(self) -> str:
    """Returns what a checkpoint has to hold."""
    return self._store.index()

  def save(self, round_num: int):
    """Writes the states that the checkpoint of a round will need."""
    self._store.save()
    self._indices[round_num] = self._store.index()

  def load(self, index: str = '{}'):
    """Goes back to the states of a checkpoint, by default to none."""
    zeros = tf.nest.map_structure(
        lambda spec: np.zeros(spec.shape, spec.dtype.as_numpy_dtype), self._spec
    )
    self._store.load(index, zeros)

  def drop_unused(self):
    """Removes what no checkpoint needs, once the newest is on the disk."""
    checkpoints = self._checkpoints
    try:
      self._indices = {
          round_num: (
              self._indices.get(round_num)
              or _read_index(checkpoints, round_num)
          )
          for round_num in (checkpoints.round_nums() if checkpoints else [])
      }
    except (FileNotFoundError, checkpoints_lib.CheckpointError):
      # What a damaged checkpoint needs is unknown. It goes with the next ones.
      return
    self._store.drop_unused(self._indices.values())


def _read_index(
    checkpoints: checkpoints_lib.CheckpointManager, round_num: int
) -> str:
  path = checkpoints.path(round_num)
  return checkpoints_lib.read_leaves(path)[SNAPSHOT_KEY].item()


def bind(
    process: tff.learning.templates.LearningProcess,
    store: Optional[client_store.ClientStateStore],
    checkpoints: Optional[checkpoints_lib.CheckpointManager],
) -> Optional[ClientStates]:
  """Brings a process and the store of its clients' states together.

  Args:
    process: The process.
    store: The store, if one was given.
    checkpoints: Where the checkpoints of the run are kept, if anywhere.

  Returns:
    What the training loop needs, or None if the process keeps no states.

  Raises:
    ValueError: If a process that keeps states has no store, or the other way
      round, or if checkpoints are to be kept and the store has no folder.
    TypeError: If the process does not give or take states as it should.
  """
  spec = get_state_spec(process)
  if spec is None and store is None:
    return None
  if store is None:
    raise ValueError(
        f'The process takes `{cohort_lib.STATE_KEY}`, the state of its clients '
        'across rounds, and there is no `client_store` to keep it: give a '
        '`ClientStateStore`.'
    )
  if spec is None:
    raise ValueError(
        f'The process takes no `{cohort_lib.STATE_KEY}`, found a '
        '`client_store` that would stay empty: leave it out.'
    )
  if checkpoints is not None and store.directory is None:
    raise ValueError(
        'The `client_store` has no `directory`, so that a checkpoint could not '
        'bring the states of the clients back: give it one.'
    )
  return ClientStates(store, spec, checkpoints)

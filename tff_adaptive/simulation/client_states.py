# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learning processes whose clients keep state across rounds.

TFF has no results placed at clients, so a client's state passes through the
arguments and metrics of a learning process:

```
next: (<S@SERVER, {<data=B*,client_id=string*,client_state=C*>}@CLIENTS> ->
       <state=S@SERVER, metrics=M@SERVER>)
```

`client_id` is one string. `client_state` is one structure of tensors of known
shapes, or empty for a client without a state. The metrics hold the states to
keep as `metrics['client_work']['client_states']`: `client_id`, the ids, and
`client_state`, the structure of C with every tensor stacked to [number of ids,
...], see `aggregators.stack_at_server`. Other clients keep their states.

Each file of the store holds the state of one client after one round and never
changes. A checkpoint lists the round of every client's newest file, so that a
checkpoint and its files are always consistent: files are written before the
checkpoint that needs them, and removed after the last one that does.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
import hashlib
import json
import os
import pathlib
import re
from typing import Any, Optional

from absl import logging
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _files
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import specs
from tff_adaptive.simulation import checkpoints as checkpoints_lib
from tff_adaptive.simulation import interruptions
from tff_adaptive.simulation import structures

CLIENT_WORK_KEY = 'client_work'
CLIENT_STATES_KEY = 'client_states'
# The name of the store's index in a checkpoint.
SNAPSHOT_KEY = 'client_states'


DEFAULT_MAX_BYTES = 1024**3
# Two failures can be those of two bad models from the server.
DEFAULT_MAX_REJECTIONS = 3

_FILE_PATTERN = re.compile(r'^[0-9a-f]{32}-\d{8}\.npz$')


class ClientStoreMemoryError(Exception):
  """The states of the clients need more memory than allowed."""


def _file_name(client_id: str, round_num: int) -> str:
  # Hashed, because an id may have any length and contain any character.
  digest = hashlib.sha256(client_id.encode()).hexdigest()
  return f'{digest[:32]}-{round_num:08d}.npz'


def _parse_index(index: str) -> tuple[dict[str, int], dict[str, int]]:
  """Returns the rounds and the rejections of an index; see `index`."""
  rounds, rejections = {}, {}
  for client_id, entry in json.loads(index).items():
    if isinstance(entry, list):
      rounds[client_id], rejections[client_id] = entry
    else:
      rounds[client_id] = entry
  return rounds, rejections


def _read_only(array: np.ndarray) -> np.ndarray:
  array.flags.writeable = False
  return array


def _take(
    found: Mapping[tuple[str, ...], Any], place: int, template: Any
) -> Any:
  """Extracts one client's state from the leaves of stacked states."""

  def take(path, leaf):
    if path not in found:
      raise ValueError(f'The states lack `{"/".join(path)}`.')
    # A copy: a view would keep the states of the whole round alive.
    array = np.array(found[path][place])
    if (array.dtype, array.shape) != (leaf.dtype, leaf.shape):
      raise ValueError(
          f'`{"/".join(path)}` of a client must be {leaf.dtype}'
          f'{list(leaf.shape)}, found {array.dtype}{list(array.shape)}.'
      )
    return _read_only(array)

  return structures.map_with_path(take, template)


class ClientStateStore:
  """The states of the clients of one run, by client id.

  States are structures of arrays, the same for all clients. The most recently
  used ones are in memory, up to `max_bytes`; the others are in files of
  `directory` and are read on demand. This does not affect the run. The states
  of the clients of one round are always in memory.

  A state may itself be the reason why its client fails, as a step size that has
  grown too large. A client that fails `max_rejections` times in a row loses its
  state and starts afresh, like a new client. State that the server has derived
  from it stays, such as the shared control of SCAFFOLD.

  The folder belongs to one run: files of the store that no checkpoint of the
  run needs are removed.

  Attributes:
    directory: The folder of the files, or None.

  Example:
    >>> store = ClientStateStore('runs/demo/client_states')
    >>> store.update(1, ['ann', 'bob'], {'steps': np.array([3, 4])})
    >>> store.get('bob')
    {'steps': array(4)}
    >>> store.get('cid') is None
    True
    >>> store.save()
    >>> store.index()
    '{"ann": 1, "bob": 1}'
  """

  def __init__(
      self,
      directory: Optional[_files.PathLike] = None,
      *,
      max_bytes: int = DEFAULT_MAX_BYTES,
      max_rejections: Optional[int] = DEFAULT_MAX_REJECTIONS,
  ):
    """Initializes an empty store; the folder is created when it is needed.

    Args:
      directory: The folder of the files. None, the default, keeps everything in
        memory, and the store cannot be saved.
      max_bytes: The maximum size of states in memory. Defaults to 1 GiB.
      max_rejections: The number of rejections in a row that discard the state
        of a client, positive. Rejections for a lack of examples do not count.
        Defaults to 3; None keeps all states.

    Raises:
      TypeError: If an argument is not an integer.
      ValueError: If `max_bytes` is negative, or `max_rejections` not positive.
    """
    specs.check_not_negative('max_bytes', max_bytes)
    if max_rejections is not None:
      specs.check_positive('max_rejections', max_rejections)
    self.directory = None if directory is None else pathlib.Path(directory)
    self._max_bytes = max_bytes
    self._max_rejections = max_rejections
    self._clear('{}', None)

  def _clear(self, index: str, template: Any):
    """Resets the store to the states of an index, which are all in files."""
    versions, rejections = _parse_index(index)
    self._template = template
    # The number of times in a row that a client was rejected, if any.
    self._rejections = rejections
    # The round in which each client's state was last updated.
    self._versions = versions
    # The states in memory, most recently used last, and those without a file.
    self._resident: collections.OrderedDict[str, Any] = (
        collections.OrderedDict()
    )
    self._unsaved: set[str] = set()
    # No checkpoint lists a file of a later round.
    self._saved_round = max(versions.values(), default=0)

  def __len__(self) -> int:
    """Returns the number of clients with a state."""
    return len(self._versions)

  def _path(self, client_id: str) -> pathlib.Path:
    assert self.directory is not None
    return self.directory / _file_name(client_id, self._versions[client_id])

  def get(self, client_id: str) -> Any:
    """Returns the state of a client.

    Args:
      client_id: The client.

    Returns:
      The structure, with read-only arrays; None for a client without a state.

    Raises:
      CheckpointError: If the file that holds it is missing or damaged.
      OSError: If another state has to be moved to a file that cannot be
        written.
    """
    if client_id not in self._versions:
      return None
    if client_id in self._resident:
      self._resident.move_to_end(client_id)
      return self._resident[client_id]
    state = self._resident[client_id] = self._read(client_id)
    self._make_room()
    return state

  def update(self, round_num: int, client_ids: Sequence[str], states: Any):
    """Replaces the states of some clients.

    Args:
      round_num: The number of the finished round, larger than in previous
        calls.
      client_ids: The clients. If one occurs twice, its last state is used.
      states: The structure of their states, with every array stacked to
        [num_clients, ...].

    Raises:
      ValueError: If the states differ from earlier ones in structure, dtypes or
        shapes.
      ClientStoreMemoryError: If the store has no folder and the states do not
        fit into memory.
      OSError: If a state has to be moved to a file that cannot be written.
    """
    if self._template is None:
      self._template = structures.map_with_path(
          lambda _, leaf: np.zeros(np.shape(leaf)[1:], np.asarray(leaf).dtype),
          states,
      )
    leaves = dict(structures.flatten_with_path(states))
    for place, client_id in enumerate(client_ids):
      state = _take(leaves, place, self._template)
      self._forget(client_id)
      self._rejections.pop(client_id, None)
      self._versions[client_id] = round_num
      self._unsaved.add(client_id)
      self._resident[client_id] = state
      self._make_room()

  def count_rejections(self, client_ids: Iterable[str]):
    """Counts a rejection of some clients, and discards states of too many.

    Args:
      client_ids: The clients that failed in a round. Those without a state are
        ignored.
    """
    if self._max_rejections is None:
      return
    for client_id in client_ids:
      if client_id not in self._versions:
        continue
      count = self._rejections.get(client_id, 0) + 1
      if count < self._max_rejections:
        self._rejections[client_id] = count
        continue
      logging.warning(
          'The client %r was rejected %d times in a row. Its state is '
          'discarded, and it will start afresh.',
          client_id,
          count,
      )
      self._forget(client_id)
      self._unsaved.discard(client_id)
      self._rejections.pop(client_id, None)
      del self._versions[client_id]

  def _forget(self, client_id: str):
    """Drops a state before its replacement, unless a checkpoint needs it."""
    self._resident.pop(client_id, None)
    is_in_file = client_id in self._versions and client_id not in self._unsaved
    if is_in_file and self._versions[client_id] > self._saved_round:
      self._path(client_id).unlink(missing_ok=True)

  def _make_room(self):
    """Drops the least recently used states from memory."""
    leaves = structures.flatten_with_path(self._template)
    bytes_of_state = sum(leaf.nbytes for _, leaf in leaves)
    while len(self._resident) * bytes_of_state > self._max_bytes:
      client_id = next(iter(self._resident))
      if client_id in self._unsaved:
        if self.directory is None:
          raise ClientStoreMemoryError(
              f'The states of {len(self._versions)} clients take more than '
              f'{self._max_bytes} bytes: give the `ClientStateStore` a '
              '`directory` for its files, or a larger `max_bytes`.'
          )
        self._write(client_id)
      del self._resident[client_id]

  def _write(self, client_id: str):
    """Writes a state to its file, unless it has one."""
    round_num = self._versions[client_id]
    contents = self._contents(client_id, self._resident[client_id])
    checkpoints_lib.write_structure(self._path(client_id), round_num, contents)
    self._unsaved.discard(client_id)

  def _contents(self, client_id: str, state: Any) -> dict[str, Any]:
    return collections.OrderedDict(client_id=client_id, state=state)

  def _read(self, client_id: str) -> Any:
    """Reads a state from its file."""
    path = self._path(client_id)
    try:
      contents = checkpoints_lib.read_structure(
          path, self._contents('', self._template)
      )
      if contents['client_id'] != client_id:
        raise checkpoints_lib.CheckpointError(
            f'{path} belongs to the client {contents["client_id"]!r}'
        )
    except (FileNotFoundError, checkpoints_lib.CheckpointError) as error:
      raise checkpoints_lib.CheckpointError(
          f'{error}, but the run needs it for the state of the client '
          f'{client_id!r} after round {self._versions[client_id]}; restore the '
          'file, or restart the run in another folder'
      ) from error
    return structures.map_with_path(
        lambda _, array: _read_only(array), contents['state']
    )

  def index(self) -> str:
    """Returns the index of the current states, for `load`.

    Returns:
      A JSON object from client ids to the rounds of their states; for a client
      that was rejected since then, to the round and the number of rejections.
    """
    entries = {
        client_id: (
            [round_num, self._rejections[client_id]]
            if client_id in self._rejections
            else round_num
        )
        for client_id, round_num in self._versions.items()
    }
    return json.dumps(entries, sort_keys=True)

  def save(self):
    """Writes all states that have changed to new files.

    Raises:
      ValueError: If the store has no folder.
      OSError: If a file cannot be written, for example because the disk is
        full. All earlier files are kept.
    """
    if self.directory is None:
      raise ValueError('A `ClientStateStore` without `directory` has no files.')
    for client_id in sorted(self._unsaved):
      self._write(client_id)
    self._saved_round = max(self._versions.values(), default=0)

  def load(self, index: str, template: Any):
    """Restores the states of an index.

    All files are read, so that damage is detected now.

    Args:
      index: An earlier result of `index`.
      template: A structure of arrays like one client's state.

    Raises:
      CheckpointError: If a file is missing, damaged, or unlike `template`.
    """
    self._clear(index, template)
    for client_id in self._versions:
      self.get(client_id)

  def drop_unused(self, indices: Iterable[str]):
    """Removes files that are no longer needed.

    Args:
      indices: The indices of all kept checkpoints. The store's current states
        are kept, too.
    """
    if self.directory is None or not self.directory.is_dir():
      return
    used = {
        _file_name(client_id, round_num)
        for index in (*indices, self.index())
        for client_id, round_num in _parse_index(index)[0].items()
    }
    for name in os.listdir(self.directory):
      if _FILE_PATTERN.match(name) and name not in used:
        (self.directory / name).unlink(missing_ok=True)
    _files.remove_temporaries(self.directory)


def _field(type_spec: Any, name: str) -> Any:
  """Returns the field of a struct, or None without such a field."""
  if not isinstance(type_spec, tff.StructType):
    return None
  return dict(tff.structure.iter_elements(type_spec)).get(name)


def get_state_spec(process: tff.learning.templates.LearningProcess) -> Any:
  """Returns the spec of the state that a process keeps for each client.

  None for a process without client states.

  Raises:
    TypeError: If the metrics do not hold the states to keep.
  """
  signature = getattr(process.next, 'type_signature', None)
  if signature is None:
    return None
  state_type = _field(signature.parameter[1].member, cohort_lib.STATE_KEY)
  if state_type is None:
    return None
  spec = tff.types.type_to_tf_tensor_specs(state_type.element)
  stacked = tf.nest.map_structure(
      lambda leaf: tf.TensorSpec([None, *leaf.shape], leaf.dtype), spec
  )
  expected = tff.types.tensorflow_to_type(
      collections.OrderedDict(
          client_id=tf.TensorSpec([None], tf.string), client_state=stacked
      )
  )
  metrics = getattr(_field(signature.result, 'metrics'), 'member', None)
  found = _field(_field(metrics, CLIENT_WORK_KEY), CLIENT_STATES_KEY)
  if found is None or not expected.is_equivalent_to(found):
    raise TypeError(
        f'The metrics of a process that takes `{cohort_lib.STATE_KEY}` must '
        f'hold {expected} as `{CLIENT_WORK_KEY}/{CLIENT_STATES_KEY}`, found '
        f'{found}.'
    )
  return spec


class ClientStates:
  """The part of the training loop that handles client states, see `bind`."""

  def __init__(
      self,
      store: ClientStateStore,
      spec: Any,
      checkpoints: Optional[checkpoints_lib.CheckpointManager],
  ):
    self._store = store
    self._spec = spec
    self._checkpoints = checkpoints
    # The indices of the kept checkpoints, by round.
    self._indices: dict[int, str] = {}

  def add_to(self, cohort: Any) -> cohort_lib.StatefulCohort:
    """Adds the states to the clients of a round.

    Raises:
      TypeError: If it is not a `Cohort`.
      CheckpointError: If the file of a state is missing or damaged.
    """
    if not isinstance(cohort, cohort_lib.Cohort):
      raise TypeError(
          'With a `client_store`, `cohort_fn` must return a `Cohort`, which '
          f'has client ids, found {type(cohort).__name__}.'
      )
    states = {}
    for client_id in cohort.client_ids:
      state = self._store.get(client_id)
      if state is not None:
        states[client_id] = state
    return cohort_lib.StatefulCohort.of(cohort, states, self._spec)

  def keep(
      self, round_num: int, metrics: Any, rejected: Sequence[tuple[str, str]]
  ) -> Any:
    """Stores the states from a round's metrics; returns the other metrics.

    Args:
      round_num: The number of finished rounds.
      metrics: The metrics of the round.
      rejected: The rejected clients with the reasons; see `find_rejected`.
    """
    client_work = collections.OrderedDict(metrics[CLIENT_WORK_KEY])
    states = client_work.pop(CLIENT_STATES_KEY)
    client_ids = [
        client_id.decode() if isinstance(client_id, bytes) else str(client_id)
        for client_id in states[cohort_lib.ID_KEY]
    ]
    self._store.update(round_num, client_ids, states[cohort_lib.STATE_KEY])
    self._store.count_rejections(
        client_id
        for client_id, reason in rejected
        if reason in interruptions.FAILURES
    )
    remaining = collections.OrderedDict(metrics)
    remaining[CLIENT_WORK_KEY] = client_work
    return remaining

  def index(self) -> str:
    """Returns the store's index for a checkpoint."""
    return self._store.index()

  def save(self, round_num: int):
    """Writes the states that the checkpoint of a round needs."""
    self._store.save()
    self._indices[round_num] = self._store.index()

  def load(self, index: str = '{}'):
    """Restores the states of a checkpoint; by default there are none."""
    zeros = tf.nest.map_structure(
        lambda spec: np.zeros(spec.shape, spec.dtype.as_numpy_dtype), self._spec
    )
    self._store.load(index, zeros)

  def drop_unused(self):
    """Removes files that no checkpoint needs, after the newest was written."""
    checkpoints = self._checkpoints
    try:
      self._indices = {
          round_num: (
              self._indices.get(round_num)
              or _read_index(checkpoints, round_num)
          )
          for round_num in (checkpoints.round_nums() if checkpoints else [])
      }
    except (OSError, checkpoints_lib.CheckpointError):
      # The needs of an unreadable checkpoint are unknown. Its files are removed
      # together with the next ones.
      return
    self._store.drop_unused(self._indices.values())


def _read_index(
    checkpoints: checkpoints_lib.CheckpointManager, round_num: int
) -> str:
  path = checkpoints.path(round_num)
  return checkpoints_lib.read_leaves(path)[SNAPSHOT_KEY].item()


def bind(
    process: tff.learning.templates.LearningProcess,
    store: Optional[ClientStateStore],
    checkpoints: Optional[checkpoints_lib.CheckpointManager],
) -> Optional[ClientStates]:
  """Connects a process to the store of its clients' states.

  Returns the handler of client states, or None if the process has none.

  Raises:
    ValueError: If a process with client states has no store, or vice versa, or
      if checkpoints are kept and the store has no folder.
    TypeError: If the process does not take or return states as required.
  """
  spec = get_state_spec(process)
  if spec is None and store is None:
    return None
  if store is None:
    raise ValueError(
        f'The process takes `{cohort_lib.STATE_KEY}`, the state of its clients '
        'across rounds, but there is no `client_store` to keep it: pass a '
        '`ClientStateStore`.'
    )
  if spec is None:
    raise ValueError(
        f'The process does not take `{cohort_lib.STATE_KEY}`, but a '
        '`client_store` was passed: leave it out.'
    )
  if checkpoints is not None and store.directory is None:
    raise ValueError(
        'The `client_store` has no `directory`, so a checkpoint could not '
        'restore the states of the clients: give it one.'
    )
  return ClientStates(store, spec, checkpoints)

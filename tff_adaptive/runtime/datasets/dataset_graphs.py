# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The graph of a `tf.data.Dataset`, with the state of a fresh one.

TFF serializes a dataset, so each of its rounds begins with a fresh one. A
dataset of this process goes on instead: with the seeds of its shuffles, and
with its caches.
"""

from collections.abc import Iterable, Mapping
import functools
import hashlib
import os
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from tff_adaptive import _graph_defs

# External state is that of this process, hence is there.
_IGNORE_EXTERNAL_STATE = 1
# The handles of state that a dataset keeps; a fresh one begins with new state.
_FRESH_STATE = {
    'CacheDatasetV2': 'DummyMemoryCache',
    'RandomDatasetV2': 'DummySeedGenerator',
    'ShuffleAndRepeatDatasetV2': 'DummySeedGenerator',
    'ShuffleDatasetV3': 'DummySeedGenerator',
}
# Parts of the names of dataset ops with random numbers.
_RANDOM_KINDS = ('Random', 'Sampling', 'Shuffle')
# Stateful ops that compute alike: they look up constants, check values, or are
# only as stateful as the functions that they call.
_ALIKE_OPS = (
    *_graph_defs.CALL_OPS,
    'Assert',
    'Case',
    'CheckNumerics',
    'DummyMemoryCache',
    'HashTableV2',
    'If',
    'InitializeTableFromTextFileV2',
    'LookupTableFindV2',
    'LookupTableImportV2',
    'LookupTableSizeV2',
    'While',
)
_READING_OPS = (
    'CSVDataset',
    'ExperimentalCSVDataset',
    'ExperimentalLMDBDataset',
    'FixedLengthRecordDataset',
    'InitializeTableFromTextFile',
    'LMDBDataset',
    'ListSnapshotChunksDataset',
    'LoadDataset',
    'MatchingFiles',
    'ReadFile',
    'SqlDataset',
    'TFRecordDataset',
    'TextLineDataset',
)
_MAX_PATH_LENGTH = 4096
# The file that `save` writes anew in the folder of a dataset.
_SAVED_NAME = 'snapshot.metadata'


class Kind(NamedTuple):
  """What a part of a graph reads besides its inputs.

  Attributes:
    draws: Whether it draws random numbers, seeded or not.
    differs: Whether two fresh runs differ: by random numbers without a seed, by
      Python, or by state that may change.
  """

  draws: bool = False
  differs: bool = False


def _kind_of_op(node: Any, has_seed: bool) -> Kind:
  """Returns the kind of a node itself.

  Args:
    node: The node.
    has_seed: Whether constants give it a seed.
  """
  if node.op == 'GeneratorDataset':
    return Kind(True, True)
  if 'Dataset' in node.op or node.op == 'DummySeedGenerator':
    if any(kind in node.op for kind in _RANDOM_KINDS):
      return Kind(True, not has_seed)
    return Kind()
  if node.op in _ALIKE_OPS or not _graph_defs.is_stateful(node.op):
    return Kind()
  has_seed = any(
      node.attr[name].i for name in ('seed', 'seed2') if name in node.attr
  )
  return Kind(True, not has_seed)


class DatasetGraph:
  """The graph of a fresh dataset.

  Attributes:
    graph_def: The `GraphDef`.
    nodes: Its nodes by name.
    result: The node that returns the dataset.
    root: The name of the node of the dataset.
    reads_files: Whether it reads files or databases.
  """

  def __init__(self, graph_def: Any):
    """Reads a `GraphDef` with one dataset, and gives it fresh state."""
    self.graph_def = graph_def
    self.nodes = {node.name: node for node in graph_def.node}
    (self.result,) = [n for n in graph_def.node if n.op == '_Retval']
    self.root = _graph_defs.node_of(self.result.input[0])
    for node in graph_def.node:
      if node.op in _FRESH_STATE:
        state = self.nodes[_graph_defs.node_of(node.input[-1])]
        state.op = _FRESH_STATE[node.op]
        state.attr.clear()
    self._functions = _graph_defs.functions_of(graph_def)
    self._function_kinds: dict[str, Kind] = {}
    self.reads_files = any(map(reads_files, _graph_defs.all_nodes(graph_def)))

  @classmethod
  def of(cls, dataset: tf.data.Dataset) -> Optional['DatasetGraph']:
    """Returns the graph of a dataset; None if it cannot be serialized."""
    try:
      with tf.device('CPU:0'):
        serialized = tf.raw_ops.DatasetToGraphV2(
            input_dataset=tf.data.experimental.to_variant(dataset),
            external_state_policy=_IGNORE_EXTERNAL_STATE,
            strip_device_assignment=True,
        )
      graph_def = tf.compat.v1.GraphDef.FromString(serialized.numpy())
    # Protocol buffers hold up to 2 GB; not all resources can be stored.
    except (tf.errors.OpError, ValueError, MemoryError):
      return None
    return cls(graph_def)

  def digest(self) -> bytes:
    """Returns 32 bytes that tell its elements, but not their structure.

    Datasets have the same if they are made by the same ops of the same values.
    """
    graph_def = tf.compat.v1.GraphDef()
    graph_def.CopyFrom(self.graph_def)
    _graph_defs.number_functions(graph_def)
    for node in _graph_defs.all_nodes(graph_def):
      node.ClearField('experimental_debug_info')
      if 'Dataset' in node.op:
        # The number of datasets that were made before.
        node.attr.pop('metadata', None)
    serialized = graph_def.SerializeToString(deterministic=True)
    return hashlib.blake2b(serialized, digest_size=32).digest()

  def source_of(self, node: Any) -> Any:
    """Returns the node of a node's first input."""
    return self.nodes[_graph_defs.node_of(node.input[0])]

  def build(self, element_spec: Any) -> tf.data.Dataset:
    """Returns a fresh dataset with elements of a spec."""
    return build(self.graph_def, element_spec)

  def ending_at(self, name: str, nodes: Mapping[str, Any]) -> 'DatasetGraph':
    """Returns the graph of the dataset of a node.

    Args:
      name: The name of the node.
      nodes: All nodes by name, some of them changed or new.
    """
    needed = _graph_defs.in_order(nodes, [name])
    result = type(self.result)()
    result.CopyFrom(self.result)
    result.input[:] = [name]
    library = _graph_defs.select_called(needed, self.graph_def.library)
    return DatasetGraph(
        tf.compat.v1.GraphDef(
            node=[*needed, result],
            library=library,
            versions=self.graph_def.versions,
        )
    )

  def seeded(self, generator: np.random.Generator) -> 'DatasetGraph':
    """Returns the graph with seeds for all draws without one."""
    graph_def = tf.compat.v1.GraphDef()
    graph_def.CopyFrom(self.graph_def)
    graph = DatasetGraph(graph_def)
    graph._seed(generator)
    return graph

  def _seed(self, generator: np.random.Generator) -> None:
    # The order of the library differs from process to process.
    called = _graph_defs.all_called(self.graph_def.node, self._functions)
    for scope in [self.graph_def.node, *(one.node_def for one in called)]:
      nodes = {node.name: node for node in scope}
      for node in scope:
        seeds = _seed_nodes(node, nodes)
        if {scalar(seed) for seed in seeds} == {0}:
          for constant in seeds:
            constant.attr['value'].tensor.CopyFrom(
                tf.make_tensor_proto(generator.integers(1, 2**31), tf.int64)
            )
        if {'seed', 'seed2'} <= set(node.attr):
          has_seed = node.attr['seed'].i or node.attr['seed2'].i
          if not has_seed and self._kind_of(node).draws:
            node.attr['seed'].i = int(generator.integers(1, 2**31))
            node.attr['seed2'].i = int(generator.integers(1, 2**31))

  @property
  def is_parallel(self) -> bool:
    """Whether it shares its work among threads."""
    return any('Parallel' in node.op for node in self.graph_def.node)

  @functools.cached_property
  def differs(self) -> bool:
    """Whether two fresh runs may yield other elements."""
    return self.kinds[self.root].differs

  @functools.cached_property
  def reads_outside(self) -> bool:
    """Whether it reads what its graph does not hold, such as variables."""
    return any(
        node.op not in self._functions
        and 'Dataset' not in node.op
        and node.op not in (*_ALIKE_OPS, *_FRESH_STATE.values(), '_Retval')
        and _graph_defs.is_stateful(node.op)
        and not _graph_defs.takes_seed(node.op)
        for node in _graph_defs.all_nodes(self.graph_def)
    )

  def file_stamps(self) -> dict[str, tuple[int, int]]:
    """Returns the times and sizes of the files that constants name."""
    if not self.reads_files:
      return {}
    found = {}
    for node in _graph_defs.all_nodes(self.graph_def):
      if node.op != 'Const' or node.attr['dtype'].type != _STRING:
        continue
      for text in _texts(node.attr['value'].tensor):
        path = text.decode(errors='replace')
        if len(path) > _MAX_PATH_LENGTH or '\0' in path:
          continue
        for name in (path, os.path.join(path, _SAVED_NAME)):
          if os.path.isfile(name):
            found[name] = stamp(name)
    return found

  @functools.cached_property
  def kinds(self) -> dict[str, Kind]:
    """The kind of each node with all that it depends on, by its name."""
    kinds: dict[str, Kind] = {}
    for node in _graph_defs.in_order(self.nodes, [self.root]):
      sources = map(_graph_defs.node_of, node.input)
      kinds[node.name] = merged(
          [self._kind_of(node), *(kinds[s] for s in sources if s in kinds)]
      )
    return kinds

  def kind_of_function(self, name: str) -> Kind:
    """Returns the kind of a function with all that it calls."""
    if name not in self._function_kinds:
      # Functions of graphs are not recursive.
      function = self._functions.get(name)
      self._function_kinds[name] = (
          Kind(True, True)
          if function is None
          else merged(map(self._kind_of, function.node_def))
      )
    return self._function_kinds[name]

  def _kind_of(self, node: Any) -> Kind:
    """Returns the kind of a node with the functions that it calls.

    A shuffle inside of a function counts as one without a seed.
    """
    called = [f.name for f in _graph_defs.functions_in(node)]
    if node.op in self._functions:
      return self.kind_of_function(node.op)
    seeds = [scalar(constant) for constant in _seed_nodes(node, self.nodes)]
    own = _kind_of_op(node, any(seeds))
    return merged([own, *map(self.kind_of_function, called)])


def _seed_nodes(node: Any, nodes: Mapping[str, Any]) -> list[Any]:
  """Returns the nodes with the seeds of a dataset op, if it has some.

  In a function, these may be other nodes than constants.
  """
  places = _graph_defs.SEED_PLACES.get(node.op, ())
  names = [node.input[place] for place in places]
  found = [nodes.get(_graph_defs.node_of(name)) for name in names]
  return [] if None in found else found


def reads_files(node: Any) -> bool:
  """Returns whether a node reads files or a database."""
  return node.op.startswith(_READING_OPS)


def _texts(tensor: Any) -> Iterable[bytes]:
  """Returns the strings of a `TensorProto`."""
  if not tensor.tensor_content:
    return tensor.string_val
  # TensorFlow packs several strings so, which `tf.make_ndarray` does not read.
  with tf.device('CPU:0'):
    parsed = tf.io.parse_tensor(tensor.SerializeToString(), tf.string)
  return parsed.numpy().ravel()


def shapes_of(node: Any) -> list[tf.TensorShape]:
  """Returns the shapes of the components of a dataset's elements."""
  return [
      tf.TensorShape(shape) for shape in node.attr['output_shapes'].list.shape
  ]


def specs_of(node: Any) -> list[tf.TensorSpec]:
  """Returns the specs of the components of a dataset's elements."""
  name = 'Toutput_types' if 'Toutput_types' in node.attr else 'output_types'
  dtypes = map(tf.as_dtype, node.attr[name].list.type)
  return [tf.TensorSpec(s, d) for s, d in zip(shapes_of(node), dtypes)]


def merged(kinds: Iterable[Kind]) -> Kind:
  """Returns the kind of several parts together."""
  kinds = list(kinds)
  return Kind(
      any(kind.draws for kind in kinds), any(kind.differs for kind in kinds)
  )


def stamp(path: str) -> tuple[int, int]:
  """Returns what tells that a file was changed: its time and size."""
  status = os.stat(path)
  return status.st_mtime_ns, status.st_size


def build(graph_def: Any, element_spec: Any) -> tf.data.Dataset:
  """Returns the dataset of a graph, with elements of a spec."""
  with tf.device('CPU:0'):
    variant = tf.raw_ops.DatasetFromGraph(
        graph_def=graph_def.SerializeToString()
    )
  return tf.data.experimental.from_variant(variant, element_spec)


def scalar(node: Any) -> Any:
  """Returns the value of a scalar constant; None for another node."""
  if node.op != 'Const' or node.attr['dtype'].type not in _SCALARS:
    return None
  tensor = node.attr['value'].tensor
  if tensor.tensor_shape.dim:
    return None
  return tf.make_ndarray(tensor).item()


_STRING = tf.string.as_datatype_enum
_SCALARS = (
    tf.bool.as_datatype_enum,
    tf.int32.as_datatype_enum,
    tf.int64.as_datatype_enum,
    _STRING,
)

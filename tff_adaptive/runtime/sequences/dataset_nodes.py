# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The ops of a graph that make datasets from others, and what they tell."""

from collections.abc import Collection, Mapping
from typing import Any, Optional

import tensorflow as tf

from tff_adaptive import _graph_defs
from tff_adaptive.runtime.sequences import shuffled_sequences

# Ops whose elements are those of their first input.
SAME_OPS = (
    'Identity',
    'ModelDataset',
    'OptionsDataset',
    'PrefetchDataset',
    'RewriteDataset',
)
CACHE_OPS = ('CacheDataset', 'CacheDatasetV2')
# Ops that may not read a dataset to its end.
PARTIAL_OPS = ('TakeDataset', 'TakeWhileDataset', 'ZipDataset')
# Ops that call a function for each element, and its attribute.
FUNCTION_OPS = {
    'FilterDataset': 'predicate',
    'ScanDataset': 'f',
    'TakeWhileDataset': 'predicate',
    **dict.fromkeys(_graph_defs.MAP_OPS, 'f'),
}
# Ops of which elements are found by their numbers, if those of the input are.
_NUMBERED_OPS = (
    *_graph_defs.BATCH_OPS,
    *CACHE_OPS,
    *_graph_defs.SHUFFLE_OPS,
    'RangeDataset',
    'RepeatDataset',
    'ShardDataset',
    'SkipDataset',
    'TakeDataset',
)
_DROPPING_OPS = (
    'FilterDataset',
    'ShardDataset',
    'SkipDataset',
    'TakeWhileDataset',
    'UnbatchDataset',
)
# Ops that make a dataset and need none, if they are read in the same graph.
DERIVING_OPS = frozenset(
    {
        *SAME_OPS[1:],
        *FUNCTION_OPS,
        'RepeatDataset',
        'SkipDataset',
        'TakeDataset',
        *_graph_defs.BATCH_OPS,
        *CACHE_OPS,
        *_graph_defs.SHUFFLE_OPS,
        'RangeDataset',
        'ShardDataset',
        'UnbatchDataset',
        'ZipDataset',
    }
)


def derives(node: Any) -> bool:
  """Returns whether a node makes a dataset that is read as others are."""
  return node.op in SAME_OPS or node.op in DERIVING_OPS


def sources(node: Any) -> list[str]:
  """Returns the names of the datasets of which a node makes another one."""
  data, _ = _graph_defs.split_inputs(node)
  if node.op == 'ZipDataset':
    return data
  return [] if node.op == 'RangeDataset' else data[:1]


def attr_dtypes(node: Any, name: str) -> list[tf.DType]:
  """Returns the dtypes that an attribute of a node lists; none without it."""
  # To read an attribute that is not there would add it.
  if name not in node.attr:
    return []
  return [tf.as_dtype(t) for t in node.attr[name].list.type]


class Function:
  """A function that is called for each element.

  Attributes:
    input_dtypes: The dtypes of its arguments.
    has_effects: Whether the order of its calls may matter.
  """

  def __init__(self, name: str, functions: Mapping[str, Any]):
    self._name = name
    self._function = functions[name]
    signature = self._function.signature
    self.input_dtypes = [tf.as_dtype(arg.type) for arg in signature.input_arg]
    self.has_effects = _graph_defs.has_effects(name, functions)

  @property
  def is_identity(self) -> bool:
    """Whether it does nothing but return its arguments."""
    nodes = {node.name: node for node in self._function.node_def}
    if any(node.op not in ('Identity', 'NoOp') for node in nodes.values()):
      return False
    results = []
    for result in self._function.signature.output_arg:
      name = _graph_defs.node_of(self._function.ret[result.name])
      while name in nodes:
        name = _graph_defs.node_of(nodes[name].input[0])
      results.append(name)
    return results == [a.name for a in self._function.signature.input_arg]

  def __call__(self, *arguments: tf.Tensor) -> list[tf.Tensor]:
    """Adds a call, by the name that is registered with the runtime."""
    signature = self._function.signature
    call = (
        tf.raw_ops.StatefulPartitionedCall
        if signature.is_stateful
        else tf.raw_ops.PartitionedCall
    )
    dtypes = [arg.type for arg in signature.output_arg]
    return list(call(args=list(arguments), Tout=dtypes, f=self._name))

  def shapes(self, count: int) -> list[tf.TensorShape]:
    """Returns what is known of the shapes of the first arguments."""
    found = []
    for place in range(count):
      shapes = None
      if place in self._function.arg_attr:
        attrs = self._function.arg_attr[place].attr
        if '_output_shapes' in attrs:
          shapes = attrs['_output_shapes'].list.shape
      found.append(tf.TensorShape(shapes[0] if shapes else None))
    return found


class DatasetNodes:
  """The nodes of a graph or of a function that make datasets."""

  def __init__(
      self,
      nodes: Mapping[str, Any],
      functions: Mapping[str, Any],
      arguments: Collection[str] = (),
  ):
    """Initializes the nodes.

    Args:
      nodes: The nodes of the graph or of the function by name.
      functions: All functions of the graph by name.
      arguments: The names of nodes whose values may be `PackedClients`.
    """
    self._nodes = nodes
    self._functions = functions
    self._arguments = arguments

  def deriving(self, name: str) -> Optional[Any]:
    """Returns the node that makes a dataset from others; None for others."""
    node = self._nodes.get(_graph_defs.node_of(name))
    return node if node is not None and derives(node) else None

  def is_argument(self, name: str) -> bool:
    """Returns whether a name is that of a client's sequence."""
    return _graph_defs.node_of(name) in self._arguments

  def num_components(self, name: str) -> Optional[int]:
    """Returns the number of components of a dataset, if an op tells it."""
    node = self.deriving(name)
    if node is None:
      return None
    if node.op == 'Identity':
      return self.num_components(node.input[0])
    return len(attr_dtypes(node, 'output_types'))

  def drops(self, name: str) -> bool:
    """Returns whether a dataset drops elements of another one."""
    node = self.deriving(name)
    if node is None:
      return False
    if node.op in _graph_defs.BATCH_OPS:
      if self.constant(_graph_defs.split_inputs(node)[0][-1]) is not False:
        return True
    return node.op in _DROPPING_OPS or any(map(self.drops, sources(node)))

  def is_numbered(self, name: str, through_maps: bool = False) -> bool:
    """Returns whether elements of a dataset are found by their numbers.

    Args:
      name: The name of the dataset.
      through_maps: Whether its elements may be mapped ones.
    """
    node = self.deriving(name)
    if node is None:
      return True
    if self.is_same(node):
      return self.is_numbered(node.input[0], through_maps)
    if node.op == 'ZipDataset':
      return all(map(self.is_numbered, sources(node)))
    if node.op == 'UnbatchDataset':
      return self.is_argument(self.passed_on(node.input[0]))
    if node.op == 'RepeatDataset':
      # An order of endless numbers would be endless.
      count = self.constant(node.input[1])
      if count is None or count < 0 or self.is_shuffled(node.input[0]):
        return False
    is_map = node.op in _graph_defs.MAP_OPS and through_maps
    if not is_map and node.op not in _NUMBERED_OPS:
      return False
    return self.is_numbered(node.input[0], is_map)

  def is_shuffled(self, name: str) -> bool:
    """Returns whether another iteration of a dataset has another order."""
    node = self.deriving(name)
    return node is not None and (
        node.op in _graph_defs.SHUFFLE_OPS
        or any(map(self.is_shuffled, sources(node)))
    )

  def num_readers(self, name: str) -> int:
    """Returns the number of ops that reduce a dataset or what is made of it."""
    names, count = {name}, 0
    for node in _graph_defs.in_order(self._nodes, self._nodes):
      if names.isdisjoint(_graph_defs.sources_of(node)):
        continue
      if derives(node):
        names.add(node.name)
      count += node.op == _graph_defs.REDUCE_OP
    return count

  def counts_epochs(self, name: str) -> bool:
    """Returns whether it matters how often a dataset is iterated.

    It does if a shuffle has a seed and several readers. The end of `repeat`
    begins an epoch more, unless the shuffle is right before it.
    """
    node = self.deriving(name)
    if node is None:
      return False
    if node.op in _graph_defs.SHUFFLE_OPS and self.num_readers(node.name) > 1:
      return not shuffled_sequences.has_drawn_seed(node)
    return any(map(self.counts_epochs, sources(node)))

  def is_same(self, node: Any) -> bool:
    """Returns whether the elements are those of the first input.

    To unbatch a dataset, TensorFlow maps sparse tensors to dense ones and other
    tensors to themselves.
    """
    if node.op not in _graph_defs.MAP_OPS:
      return node.op in SAME_OPS
    return Function(node.attr['f'].func.name, self._functions).is_identity

  def passed_on(self, name: str) -> str:
    """Returns the dataset, or the tensor, that ops pass on as it is."""
    node = self._nodes.get(_graph_defs.node_of(name))
    while node is not None and self.is_same(node):
      name = node.input[0]
      node = self._nodes.get(_graph_defs.node_of(name))
    return name

  def constant(self, name: str) -> Any:
    """Returns the value of a constant scalar; None of another tensor."""
    name = _graph_defs.node_of(self.passed_on(name))
    node = self._nodes.get(name)
    if node is None or node.op != 'Const':
      return None
    return tf.make_ndarray(node.attr['value'].tensor).item()

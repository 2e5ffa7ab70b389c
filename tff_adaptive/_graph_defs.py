# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads and rewrites a `GraphDef`: its nodes, and those of its functions."""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import functools
import itertools
from typing import Any

import tensorflow as tf

# TensorFlow has no public reader of function bodies.
from tensorflow.python.framework import function_def_to_graph

CALL_OPS = ('PartitionedCall', 'StatefulPartitionedCall')
# Ops on datasets.
REDUCE_OP = 'ReduceDataset'
BATCH_OPS = ('BatchDatasetV2', 'ParallelBatchDataset')
MAP_OPS = ('MapDataset', 'ParallelMapDataset', 'ParallelMapDatasetV2')
SHUFFLE_OPS = ('ShuffleDataset', 'ShuffleDatasetV3')
# The places of the seeds of ops on datasets among their inputs.
SEED_PLACES = {
    'RandomDataset': (0, 1),
    'RandomDatasetV2': (0, 1),
    'SamplingDataset': (2, 3),
    'ShuffleAndRepeatDataset': (2, 3),
    'ShuffleAndRepeatDatasetV2': (2, 3),
    **dict.fromkeys(SHUFFLE_OPS, (2, 3)),
}
# The name that TensorFlow gives to a resource that lives as long as its handle.
ANONYMOUS = 'cd2c89b7-88b7-44c8-ad83-06c2a9158347'
# The numbers of added functions, see `add_function`.
_added_numbers = itertools.count()


def is_set(node: Any, name: str) -> bool:
  """Returns whether a node or a function has an attribute that is true."""
  return name in node.attr and node.attr[name].b


def functions_in(node: Any) -> Iterator[Any]:
  """Yields the modifiable `NameAttrList`s in the attributes of a node."""
  # The order of a map of attributes differs from one to the next.
  for _, attr in sorted(node.attr.items()):
    if attr.HasField('func'):
      yield attr.func
    yield from attr.list.func


def called_functions(node: Any, functions: Mapping[str, Any]) -> list[str]:
  """Returns the names of the known functions that a node calls."""
  names = [function.name for function in functions_in(node)]
  # A node may also call a function by using its name as the op.
  return [name for name in [*names, node.op] if name in functions]


def functions_of(graph_def: Any) -> dict[str, Any]:
  """Returns the functions of a graph by name."""
  return {f.signature.name: f for f in graph_def.library.function}


def all_called(
    nodes: Iterable[Any],
    functions: Mapping[str, Any],
    follows: Callable[[Any], bool] = lambda node: True,
) -> Iterator[Any]:
  """Yields the functions that nodes call, directly or through others, once.

  Args:
    nodes: The nodes.
    functions: The known functions by name.
    follows: Returns whether to look at what a node calls. Defaults to yes.
  """
  found: set[str] = set()
  waiting = list(nodes)[::-1]
  while waiting:
    node = waiting.pop()
    for name in called_functions(node, functions) if follows(node) else ():
      if name not in found:
        found.add(name)
        yield functions[name]
        waiting.extend(reversed(functions[name].node_def))


def is_call(node: Any) -> bool:
  """Returns whether a node does nothing but call a function once."""
  return node.op in CALL_OPS


def select_called(nodes: Iterable[Any], library: Any) -> Any:
  """Returns the functions that nodes call, directly or through others.

  The result is a `FunctionDefLibrary` in the order of `library`, with the
  gradients of the functions.
  """
  functions = {f.signature.name: f for f in library.function}
  gradients = {g.function_name: g.gradient_func for g in library.gradient}
  found = {f.signature.name for f in all_called(nodes, functions)}
  while missing := {gradients[n] for n in found & gradients.keys()} - found:
    found |= missing
    for name in missing:
      called = all_called(functions[name].node_def, functions)
      found |= {f.signature.name for f in called}
  return type(library)(
      function=[f for f in library.function if f.signature.name in found],
      gradient=[g for g in library.gradient if g.function_name in found],
  )


# Stateful only so that they are not pruned, or as the functions that they call.
_HARMLESS = ('Assert', 'StatefulPartitionedCall', 'While', 'If', 'Case')


def has_effects(name: str, functions: Mapping[str, Any]) -> bool:
  """Returns whether it may matter in which order calls of a function run.

  Args:
    name: The name of the function.
    functions: The functions of the graph by name. If others are called, whose
      content is unknown, it may matter.
  """
  own = functions[name]
  for function in [own, *all_called(own.node_def, functions)]:
    for node in function.node_def:
      if node.op not in functions and node.op not in _HARMLESS:
        if is_stateful(node.op):
          return True
      if any(f.name not in functions for f in functions_in(node)):
        return True
  return False


@functools.cache
def is_stateful(op: str) -> bool:
  """Returns whether an op has effects or reads other state."""
  return tf.Graph().op_def_for_type(op).is_stateful


@functools.cache
def takes_seed(op: str) -> bool:
  """Returns whether an op has a seed, which a node names if it is not 0."""
  attributes = tf.Graph().op_def_for_type(op).attr
  return any(attribute.name == 'seed' for attribute in attributes)


def scopes(graph_def: Any) -> Iterator[Any]:
  """Yields the nodes of a graph, and of each of its functions."""
  yield graph_def.node
  for function in graph_def.library.function:
    yield function.node_def


def all_nodes(graph_def: Any) -> Iterator[Any]:
  """Yields the nodes of a graph and of its functions."""
  return itertools.chain.from_iterable(scopes(graph_def))


def find(library: Any, name: str) -> Any:
  """Returns the function with a name."""
  return next(f for f in library.function if f.signature.name == name)


def in_order(nodes: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
  """Returns nodes and all of their dependencies, in topological order.

  Args:
    nodes: The nodes of a graph by name. Others count as no dependency.
    names: The names of nodes, or of tensors or control inputs from them.
  """
  found: list[Any] = []
  seen: set[str] = set()
  waiting = [(name, False) for name in names]
  while waiting:
    name, is_next = waiting.pop()
    name = node_of(name)
    if is_next:
      found.append(nodes[name])
    elif name in nodes and name not in seen:
      seen.add(name)
      waiting.append((name, True))
      waiting.extend((source, False) for source in nodes[name].input)
  return found


def rename_functions(graph_def: Any, new_name: Callable[[str], str]) -> None:
  """Renames a graph's functions in place.

  Args:
    graph_def: The graph.
    new_name: Returns the new name of a function, unique in this process.
  """
  names = {
      f.signature.name: new_name(f.signature.name)
      for f in graph_def.library.function
  }
  for function in graph_def.library.function:
    function.signature.name = names[function.signature.name]
    # They name the functions of a gradient, and no gradient is taken any more.
    function.attr.pop('forward_function_name', None)
    function.attr.pop('backward_function_name', None)
  for gradient in graph_def.library.gradient:
    gradient.function_name = names[gradient.function_name]
    gradient.gradient_func = names[gradient.gradient_func]
  for node in all_nodes(graph_def):
    node.op = names.get(node.op, node.op)
    for function in functions_in(node):
      function.name = names.get(function.name, function.name)


def number_functions(graph_def: Any) -> None:
  """Names a graph's functions by the order of their calls, in place.

  Functions that nothing calls are dropped. A function that is traced again has
  another name, but the same number.
  """
  found = list(all_called(graph_def.node, functions_of(graph_def)))
  names = [function.signature.name for function in found]
  library = type(graph_def.library)(function=found)
  graph_def.library.CopyFrom(library)
  numbers = {name: f'function_{i}' for i, name in enumerate(names)}
  rename_functions(graph_def, numbers.__getitem__)


def node_of(tensor: str) -> str:
  """Returns the name of the node of an input or a tensor."""
  return tensor.lstrip('^').split(':')[0]


def with_index(name: str) -> str:
  """Returns the full name of a tensor."""
  return name if ':' in name else f'{name}:0'


def split_inputs(node: Any) -> tuple[list[str], list[str]]:
  """Splits a node's inputs into tensors and control inputs."""
  control = [name for name in node.input if name.startswith('^')]
  return [name for name in node.input if not name.startswith('^')], control


def sources_of(node: Any) -> list[str]:
  """Returns the names of the nodes, or the arguments, that a node reads."""
  return list(map(node_of, split_inputs(node)[0]))


def arguments_of(node: Any, function: Any) -> Iterator[tuple[str, str]]:
  """Yields what a node reads, with the argument of a function that it calls.

  The last inputs of a node are the last arguments of its functions. A condition
  or a dataset may precede them.

  Args:
    node: The node.
    function: The function.

  Yields:
    The name of a node or an argument, and that of the function's argument.
  """
  names = [argument.name for argument in function.signature.input_arg]
  yield from zip(reversed(sources_of(node)), reversed(names))


def keep_nodes(nodes: Any, keeps: Callable[[Any], bool]) -> None:
  """Removes the nodes of a graph or a function that are not kept, in place."""
  kept = list(filter(keeps, nodes))
  if len(kept) < len(nodes):
    del nodes[:]
    nodes.extend(kept)


def remove_nodes(graph_def: Any, tensors: Iterable[str]) -> None:
  """Removes the nodes of tensors that an import maps to others, in place."""
  _remove(graph_def.node, set(map(node_of, tensors)))


def _find_unfed(nodes: Sequence[Any], fed: Collection[str]) -> set[str]:
  """Returns the names of nodes that always fail, see `remove_unfed`."""
  found: set[str] = set()
  num_before = -1
  while len(found) > num_before:
    num_before = len(found)
    for node in nodes:
      if node.name not in fed and (
          node.op == 'Placeholder' or not found.isdisjoint(sources_of(node))
      ):
        found.add(node.name)
  return found


def _remove(nodes: Any, removed: Collection[str]) -> None:
  """Removes nodes of some names, and the control edges from them, in place."""
  keep_nodes(nodes, lambda node: node.name not in removed)
  for node in nodes:
    data, control = split_inputs(node)
    control = [name for name in control if node_of(name) not in removed]
    node.input[:] = [*data, *control]


def forget_controls(function: Any, removed: Collection[str]) -> None:
  """Removes a function's control outputs from nodes of some names."""
  for name, source in list(function.control_ret.items()):
    if source in removed:
      del function.control_ret[name]
      function.signature.control_output.remove(name)


def remove_unfed(
    graph_def: Any, fed: Collection[str], results: Iterable[str]
) -> None:
  """Removes ops that depend on placeholders that nothing feeds, in place.

  TFF clones a Keras model in each call of a functional model, and Keras calls
  the layers of the clone on such placeholders. No result depends on these
  calls, but a function runs all of its ops with effects, such as look-ups and
  assertions, which then fail.

  Args:
    graph_def: The graph, with its functions, whose names must be new: a process
      cannot have two functions of one name.
    fed: The names of the nodes that are fed, in the graph.
    results: The names of the results of the graph.
  """
  for function in graph_def.library.function:
    unfed = _find_unfed(function.node_def, ())
    if not unfed or not unfed.isdisjoint(map(node_of, function.ret.values())):
      continue
    _remove(function.node_def, unfed)
    forget_controls(function, unfed)
  unfed = _find_unfed(graph_def.node, fed)
  if unfed and unfed.isdisjoint(map(node_of, results)):
    _remove(graph_def.node, unfed)


def pass_identities_by(graph_def: Any, tensors: Iterable[str]) -> list[str]:
  """Lets nodes read what identities pass on, in place.

  TFF adds an identity for each tensor that goes into or comes out of one of its
  computations, which makes half of the nodes of a round.

  Args:
    graph_def: The graph, with its functions.
    tensors: The names of tensors of the graph.

  Returns:
    The names of tensors of the same values, which no identity passes on.
  """

  def pass_by(nodes):
    passed = {
        node.name: node.input[0]
        for node in nodes
        # Some wait, and some have a gradient of their own.
        if node.op == 'Identity'
        and len(node.input) == 1
        and '_gradient_op_type' not in node.attr
    }

    def source(name):
      while not name.startswith('^') and node_of(name) in passed:
        name = passed[node_of(name)]
      return name

    for node in nodes:
      node.input[:] = list(map(source, node.input))
    return source

  for function in graph_def.library.function:
    pass_by(function.node_def)
  return [with_index(name) for name in map(pass_by(graph_def.node), tensors)]


def captured(tensor: tf.Tensor) -> tf.Tensor:
  """Returns a tensor in the current graph, which may be that of a function."""
  graph = tf.compat.v1.get_default_graph()
  # Only function graphs have outer graphs to capture from.
  return graph.capture(tensor) if hasattr(graph, 'capture') else tensor


def scope(name: str) -> str:
  """Returns a name for the scope of nodes imported into the current graph.

  A function names the placeholders of captured tensors as the tensors, without
  reserving the scope. Nodes imported into a scope of the same name could
  therefore get the name of another node, so each level of functions has scopes
  of its own.

  Args:
    name: The name of the scope outside of functions.
  """
  graph, level = tf.compat.v1.get_default_graph(), 0
  while hasattr(graph, 'outer_graph'):
    graph, level = graph.outer_graph, level + 1
  return f'{name}{level}' if level else name


def import_with(
    graph_def: Any, given: Mapping[str, tf.Tensor], names: Sequence[str]
) -> list[tf.Tensor]:
  """Imports a graph into the current one.

  Args:
    graph_def: The graph.
    given: Tensors that it reads but does not compute, by name.
    names: The names of tensors.

  Returns:
    The tensors of these names, which may be given.
  """
  read = {
      with_index(name)
      for node in graph_def.node
      for name in split_inputs(node)[0]
  }
  imported = [name for name in names if name not in given]
  tensors = tf.graph_util.import_graph_def(
      graph_def,
      input_map={n: captured(t) for n, t in given.items() if n in read},
      return_elements=imported,
      name=scope('imported'),
  )
  known = {**given, **dict(zip(imported, tensors))}
  return [known[name] for name in names]


def add_function(
    fn: Callable[..., Any], specs: Sequence[tf.TensorSpec], library: Any
) -> Any:
  """Adds a function, and those that it calls, to a library.

  There they have names of their own, so that they may be changed: TensorFlow
  knows those that were traced by their names, and refuses others.

  Args:
    fn: A function of tensors.
    specs: The specs of its arguments.
    library: A `FunctionDefLibrary`, modified in place.

  Returns:
    The `NodeDef` of a call.
  """
  concrete = tf.function(fn, autograph=False).get_concrete_function(*specs)
  graph = tf.Graph()
  with graph.as_default():
    concrete(*(tf.compat.v1.placeholder(s.dtype, s.shape) for s in specs))
  graph_def = graph.as_graph_def()
  suffix = f'_added_{next(_added_numbers)}'
  rename_functions(graph_def, lambda name: name + suffix)
  library.function.extend(graph_def.library.function)
  (call,) = [n for n in graph_def.node if 'PartitionedCall' in n.op]
  return call


class Inliner:
  """Replaces calls in one graph by the bodies of the called functions."""

  def __init__(self, graph_def: Any):
    """Initializes the inliner for a `GraphDef`, which is modified in place."""
    self._graph_def = graph_def
    self._functions = functions_of(graph_def)
    self._scratch = tf.Graph()
    with self._scratch.as_default():
      # A function's callees have to be known while its body is read.
      library = tf.compat.v1.GraphDef(library=graph_def.library)
      tf.graph_util.import_graph_def(library, name='')

  def inline(self, call: Any) -> dict[str, str]:
    """Replaces a call by the body of the called function.

    The call, a node of the graph, stays as a no-op that depends on the body,
    for nodes with a control input from it. Returns the new names of its
    outputs, by their old names.
    """
    function = self._functions[call.attr['f'].func.name]
    with self._scratch.as_default():
      body, names = function_def_to_graph.function_def_to_graph_def(function)
    data, control = split_inputs(call)
    parameters = [arg.name for arg in function.signature.input_arg]
    arguments = dict(zip(parameters, data))

    def inlined(name):
      if node_of(name) in arguments:
        argument = arguments[node_of(name)]
        return f'^{node_of(argument)}' if name.startswith('^') else argument
      if name.startswith('^'):
        return f'^{call.name}/{name[1:]}'
      return f'{call.name}/{name}'

    nodes = [node for node in body.node if node.name not in arguments]
    for node in nodes:
      node.name = f'{call.name}/{node.name}'
      node.input[:] = [*map(inlined, node.input), *control]
    results = [
        inlined(names[function.ret[arg.name]])
        for arg in function.signature.output_arg
    ]
    waited_for = {f'^{call.name}/{n}' for n in function.control_ret.values()}
    waited_for.update(f'^{node_of(name)}' for name in results)
    call.op = 'NoOp'
    call.attr.clear()
    call.input[:] = sorted(waited_for.union(control))
    self._graph_def.node.extend(nodes)
    renamed = {f'{call.name}:{i}': name for i, name in enumerate(results)}
    if results:
      renamed[call.name] = results[0]
    for node in self._graph_def.node:
      node.input[:] = [renamed.get(source, source) for source in node.input]
    return renamed

  def inline_all(
      self, is_inlined: Callable[[Any], bool], tensors: Iterable[str]
  ) -> list[str]:
    """Inlines calls until none is of a kind; returns the tensors' new names."""
    names = list(map(with_index, tensors))
    while calls := list(filter(is_inlined, self._graph_def.node)):
      for call in calls:
        renamed = self.inline(call)
        names = [with_index(renamed.get(name, name)) for name in names]
    return names


def register_functions(library: Any) -> None:
  """Registers functions with the eager runtime.

  An import registers them with the graph alone, but when that graph is a
  `tf.function` called eagerly, the runtime looks for them.
  """
  graph_def = tf.compat.v1.GraphDef(library=library)
  tf.compat.v1.wrap_function(
      lambda: tf.graph_util.import_graph_def(graph_def, name=''), []
  )

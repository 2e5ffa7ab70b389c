# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the leaves of a sum to which a part of a round only appends rows."""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive.runtime import computations


def _source_of(serialized: computations.Serialized) -> Callable[[str], Any]:
  """Returns a function from a tensor to the node of which it is the output.

  Nodes that only pass a tensor on are skipped.
  """
  nodes = {node.name: node for node in serialized.graph_def.node}

  def source(tensor):
    node = nodes[_function_library.node_of(tensor)]
    return source(node.input[0]) if _passes_on(node) else node

  return source


def _passes_on(node: Any) -> bool:
  return node.op == 'Identity' and len(node.input) == 1


def _count_uses(serialized: computations.Serialized) -> dict[str, int]:
  """Returns how often nodes are inputs, results or control inputs."""
  source = _source_of(serialized)
  return collections.Counter(
      source(tensor).name
      for tensors in (
          serialized.results,
          *(
              node.input
              for node in serialized.graph_def.node
              if not _passes_on(node)
          ),
      )
      for tensor in tensors
  )


def find_appended(serialized: computations.Serialized) -> dict[int, str]:
  """Finds the leaves of a sum to which a part only appends rows.

  The part maps a sum and another value to the next sum. Returns the names of
  the appended tensors, by the position of the leaf. Strings are left out:
  TensorFlow has no lists of strings on a GPU.
  """
  source, uses = _source_of(serialized), _count_uses(serialized)

  def is_zero(node):
    return (
        node.op == 'Const'
        and not tf.make_ndarray(node.attr['value'].tensor).any()
    )

  appended = {}
  for place, result in enumerate(serialized.results):
    parameter = source(serialized.parameters[place])
    concat = source(result)
    if (
        concat.op == 'ConcatV2'
        and concat.attr['T'].type != tf.string.as_datatype_enum
        and len(concat.input) == 3
        and is_zero(source(concat.input[2]))
        and source(concat.input[0]) is parameter
        and uses[parameter.name] == uses[concat.name] == 1
    ):
      appended[place] = concat.input[1]
  return appended

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Texts of other libraries' errors, and those that several modules share."""

from collections.abc import Sequence
import re

# Lines that TensorFlow adds around the message of an op.
_IS_ABOUT_THE_GRAPH = re.compile(
    r'\[\[|Graph execution error|Detected at node|<stack traces|'
    r'\d+ (root error|successful op|derived error)'
).match


def first_line(error: BaseException) -> str:
  """Returns the first line of an error message, without a full stop.

  Args:
    error: The error.

  Returns:
    The line, without the operation names in braces and brackets that TensorFlow
    adds. The name of the error's type if the message is empty.
  """
  text = re.sub(r'\{\{.*?\}\}|\[Op:\w*\]|Name: <unknown>, ', '', str(error))
  lines = text.strip().splitlines() or [type(error).__name__]
  return lines[0].strip().rstrip('.')


def graph_error_line(error: BaseException) -> str:
  """Returns the message of an op that failed in a graph, without a full stop.

  Args:
    error: The error of the graph.

  Returns:
    The message, without the op's location in the graph and the values that
    follow it; the name of the error's type if the message is empty.
  """
  lines = [
      re.sub(r'\{\{.*?\}\} *|^\(\d+\) *[A-Z_]+: *', '', line.strip())
      for line in str(error).splitlines()
  ]
  said = [line for line in lines if line and not _IS_ABOUT_THE_GRAPH(line)]
  text = said[-1] if said else type(error).__name__
  return text.partition('  ')[0].rstrip('.')


# What TensorFlow says of indices, labels and shapes that do not fit a model.
_IS_ABOUT_DATA = re.compile(
    r'is not in \[|label value|labels|out of (bound|range)|outside the valid|'
    r'shape|dimension|size-incompatible|rank|same number of',
    re.IGNORECASE,
).search
# Parts of a node's name that tell nothing about a layer or an op.
_IS_SCOPE = re.compile(
    r'(while|cond|(Stateful)?PartitionedCall|computation\w*|imported)(_?\d+)?$'
).match


def is_about_data(error: BaseException) -> bool:
  """Returns whether an op failed because of the values that it was given.

  Args:
    error: The error of a graph.
  """
  return bool(_IS_ABOUT_DATA(graph_error_line(error)))


def failed_node(error: BaseException) -> str:
  """Returns the name of the node that failed in a graph, '' if unknown.

  Args:
    error: The error of the graph.

  Returns:
    The name without the scopes of loops and calls: it begins with the layer.
  """
  # The last one is of the innermost function.
  names = re.findall(r'\{\{node ([^}]+)\}\}', str(error))
  if not names:
    return ''
  parts = names[-1].split('/')
  return '/'.join(part for part in parts if not _IS_SCOPE(part)) or parts[-1]


def untrained_weights(names: Sequence[str]) -> str:
  """Returns the warning of trainable weights without a gradient.

  Args:
    names: The names of the weights, at least one.
  """
  are, others = 'is', ''
  if len(names) > 1:
    are, others = 'are', f' and {len(names) - 1} more'
  return (
      f'The loss does not depend on the trainable weight `{names[0]}`{others}, '
      f'which {are} therefore not trained. If a recurrent layer was copied by '
      '`tf.keras.models.clone_model`, copy the model by '
      '`model.from_config(config)` in the function that returns it, with '
      '`config = model.get_config()` outside of that function. If this is '
      'intended, set `trainable = False` of the layer.'
  )

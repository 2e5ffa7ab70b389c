# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replaces functions of sequences by functions of TensorFlow.

A round takes these as it takes any other work of clients.
"""

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime import computations
from tff_adaptive.runtime import values
from tff_adaptive.runtime.steps import expressions
from tff_adaptive.runtime.steps import local_functions


def _as_tensorflow(
    block: tff.framework.Lambda,
) -> tff.framework.CompiledComputation:
  """Returns a function without placements as one function of TensorFlow.

  Raises:
    UnsupportedComputationError: If it is none.
  """
  pieces = local_functions.Pieces(block)
  parameter, result_type = block.parameter_type, block.result.type_signature
  flatten_argument = values.build_flatten(parameter)

  def run(given):
    leaves = flatten_argument(given)
    tensors = [
        tf.data.experimental.to_variant(leaf)
        if isinstance(leaf, tf.data.Dataset)
        else tf.convert_to_tensor(leaf)
        for leaf in leaves
    ]
    seed = None
    if pieces.takes_seed:
      bounds = {'minval': tf.int32.min, 'maxval': tf.int32.max}
      seed = tf.random.uniform([2], dtype=tf.int32, **bounds)
    graph = local_functions.InGraph(pieces, seed)
    argument = None
    if parameter is not None:
      argument = expressions.pack(iter(tensors), parameter)
    results = graph.leaves_of(
        graph.apply(expressions.Closure(block, {}), argument)
    )
    return values.build_pack(result_type)(
        map(
            expressions.from_tensor,
            results,
            expressions.leaf_types(result_type),
        )
    )

  with computations.errors_as_unsupported('a function of sequences fails'):
    if parameter is None:
      traced = tff.tensorflow.computation(lambda: run(None))
    else:
      traced = tff.tensorflow.computation(run, parameter)
    return traced.to_compiled_building_block()


def _uses_sequences(block: expressions.Block) -> bool:
  return any(
      getattr(part, 'uri', None) in local_functions.SEQUENCE_INTRINSICS
      for part in expressions.walk(block)
  )


def with_tensorflow_loops(
    computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Replaces functions of sequences, such as `tff.sequence_reduce`.

  Args:
    computation: A computation.

  Returns:
    A computation that gives the same, in which a function without placements
    that calls them is one function of TensorFlow, as if it were written so.
  """
  proto = tff.framework.serialize_computation(computation).SerializeToString()
  if not any(
      uri.encode() in proto for uri in local_functions.SEQUENCE_INTRINSICS
  ):
    return computation

  def replace(block):
    if not (
        isinstance(block, tff.framework.Lambda)
        and expressions.has_no_places(block.parameter_type)
        and expressions.has_no_places(block.result.type_signature)
        and _uses_sequences(block)
        and not expressions.find_free(block)
    ):
      return block, False
    try:
      return _as_tensorflow(block), True
    except computations.UnsupportedComputationError:
      return block, False

  block, _ = tff.tensorflow.replace_intrinsics_with_bodies(
      computation.to_building_block()
  )
  block, _ = tff.framework.transform_preorder(
      tff.framework.to_call_dominant(block), replace
  )
  # The original type also names Python's containers.
  return tff.framework.ConcreteComputation.with_type(
      tff.framework.ConcreteComputation.from_building_block(block),
      computation.type_signature,
  )

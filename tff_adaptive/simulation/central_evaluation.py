# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Central evaluation of global weights on a whole test set.

The test set is a single client of the compiled runtime.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _error_texts
from tff_adaptive.client_works import evaluation
from tff_adaptive.client_works import model_adapter
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort
from tff_adaptive.data import specs
from tff_adaptive.models import conversion
from tff_adaptive.runtime import compiled
from tff_adaptive.runtime import plans

_DEFAULT_BATCH_SIZE = 256
_CLIENT_ID = 'test'


def _split_arrays(
    arrays: Any, adapter: model_adapter.ModelAdapter
) -> tuple[dict[str, Any], int]:
  """Returns the parts of `arrays` by name, and the number of examples."""
  element_spec = tff.types.type_to_tf_tensor_specs(adapter.element_type)
  names = conversion.PARTS[: len(element_spec)]
  if isinstance(arrays, Mapping):
    if set(arrays) != set(names):
      raise ValueError(
          f'The arrays of an evaluation must be named {_join(names)}, found '
          f'{list(arrays)}.'
      )
    parts = {name: arrays[name] for name in names}
  elif isinstance(arrays, (list, tuple)) and len(arrays) == len(names):
    parts = dict(zip(names, arrays))
  else:
    raise TypeError(
        f'The arrays of an evaluation must be a mapping with {_join(names)} or '
        f'a tuple of them, found {type(arrays).__name__}; of a dataset, take '
        '`next(iter(dataset.batch(num_examples)))`.'
    )
  if not all(hasattr(leaf, 'shape') for leaf in tf.nest.flatten(parts)):
    raise TypeError(
        'The arrays of an evaluation must be arrays or tensors, found lists: '
        'use `np.asarray`.'
    )
  if isinstance(element_spec, Mapping):
    element_spec = [element_spec[name] for name in names]
  found = tf.nest.map_structure(
      lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), parts
  )
  difference = specs.find_difference(found, dict(zip(names, element_spec)))
  if difference is not None:
    raise ValueError(
        'The arrays of an evaluation must match the model, found '
        f'{difference}.'
    )
  lengths = {len(leaf) for leaf in tf.nest.flatten(parts)}
  if len(lengths) != 1 or 0 in lengths:
    raise ValueError(
        'The arrays of an evaluation must all have the same number of '
        f'examples, at least one; found lengths {sorted(lengths)}.'
    )
  return parts, lengths.pop()


def _join(names: Sequence[str]) -> str:
  *others, last = map(repr, names)
  return f'{", ".join(others)} and {last}'


def build_central_evaluation(
    model: model_adapter.Model,
    arrays: Any,
    batch_size: int = _DEFAULT_BATCH_SIZE,
    *,
    devices: str = plans.AUTO,
) -> Callable[
    [tff.learning.models.ModelWeights], 'collections.OrderedDict[str, float]'
]:
  """Builds a function that evaluates weights on a whole test set.

  The test set is cut into consecutive batches, with a short last batch. The
  loss is the sum over batches of (mean loss of the batch x its examples), in
  float64, divided by all examples: exactly the mean over the test set, also of
  a Keras loss that sums over a batch (`reduction='sum'`). Dropout is off. It
  runs in this process; the graph is built at the first call.

  Args:
    model: A `tff.learning.models.FunctionalModel`, or a function without
      arguments that returns a `tff.learning.models.VariableModel`.
    arrays: A mapping with `x` and `y`, or a pair of them: arrays (or nests of
      arrays) whose first axis is the example.
    batch_size: Examples evaluated at once, a positive integer. Defaults to 256.
    devices: The devices, see `tff_adaptive.runtime.CompiledContext`. Defaults
      to the first GPU, else the CPU.

  Returns:
    A function from `tff.learning.models.ModelWeights` (of arrays) to an ordered
    dictionary of floats: `loss`, then the model's metrics, scalars and the
    entries of vectors (`f1_0`, `f1_1` and so on).

  Raises:
    TypeError: If `model` is neither of the two, or `batch_size` is not an
      integer.
    ValueError: If `batch_size` is not positive, or if the arrays differ in
      length, are empty, or do not have the model's names and types. The
      returned function raises one if TensorFlow rejects the examples, for
      example because labels are out of range; `data.check_central_examples`
      finds them.

  Example:
    >>> evaluate = build_central_evaluation(model, digits.central_test)
    >>> list(evaluate(process.get_model_weights(state)))
    ['loss', 'accuracy']
  """
  evaluator = _Evaluator(model, batch_size, devices)
  return functools.partial(evaluator.run, evaluator.to_clients(arrays))


def build_sampled_evaluation(
    model: model_adapter.Model,
    sample_fn: Callable[[int], Any],
    batch_size: int = _DEFAULT_BATCH_SIZE,
    *,
    devices: str = plans.AUTO,
) -> Callable[
    [tff.learning.models.ModelWeights, int],
    'collections.OrderedDict[str, float]',
]:
  """Builds a function that evaluates weights on other examples in each round.

  It evaluates as `build_central_evaluation` does.

  Args:
    model: As for `build_central_evaluation`.
    sample_fn: From the number of finished rounds to arrays as
      `build_central_evaluation` takes them. It must be a pure function, or a
      resumed run will differ.
    batch_size: As for `build_central_evaluation`.
    devices: As for `build_central_evaluation`.

  Returns:
    A function from `tff.learning.models.ModelWeights` (of arrays) and
    `round_num`, the number of finished rounds, to an ordered dictionary of
    floats, for `run_training`. It raises what `build_central_evaluation` does
    about arrays.

  Raises:
    TypeError: If `model` is not a model, or `batch_size` not an integer.
    ValueError: If `batch_size` is not positive.

  Example:
    >>> evaluate = build_sampled_evaluation(
    ...     model,
    ...     lambda round_num: data.sample_examples_evenly(
    ...         digits.train_data, 100, 0, round_num))
    >>> list(evaluate(process.get_model_weights(state), round_num=1))
    ['loss', 'accuracy']
  """
  evaluator = _Evaluator(model, batch_size, devices)

  def evaluate(weights, round_num):
    return evaluator.run(evaluator.to_clients(sample_fn(round_num)), weights)

  return evaluate


class _Evaluator:
  """Evaluates weights on arrays; see `build_central_evaluation`."""

  def __init__(
      self,
      model: model_adapter.Model,
      batch_size: int,
      devices: str,
  ):
    specs.check_positive('batch_size', batch_size)
    self._batch_size = batch_size
    self._adapter = model_adapter.build_model_adapter(model)
    self._computation = evaluation.build_evaluation_computation(
        model, with_integers=True
    )
    self._context = compiled.CompiledContext(devices=devices)

  def to_clients(self, arrays: Any) -> Sequence[Any]:
    """Returns the only client: a cohort, or its batches in their order."""
    parts, num_examples = _split_arrays(arrays, self._adapter)
    is_tuple = self._adapter.element_type.python_container is tuple
    if not is_tuple and not any(map(tf.nest.is_nested, parts.values())):
      # The context keeps its examples as tensors from one call to the next.
      return cohort.Cohort(
          client_data.PackedClientArrays(
              parts, np.array([0, num_examples]), [_CLIENT_ID]
          ),
          [_CLIENT_ID],
          round_num=0,
          seed=0,
          plan=batching.BatchPlan(self._batch_size, shuffle=False),
      )

    def take(start):
      cut = slice(start, start + self._batch_size)
      batch = tf.nest.map_structure(lambda leaf: leaf[cut], parts)
      return (
          tuple(batch.values()) if is_tuple else collections.OrderedDict(batch)
      )

    return [list(map(take, range(0, num_examples, self._batch_size)))]

  def run(
      self, clients: Sequence[Any], weights: tff.learning.models.ModelWeights
  ) -> 'collections.OrderedDict[str, float]':
    """Returns loss and metrics of weights on the only client."""
    received = model_adapter.pack_weights(self._adapter.weights_spec, weights)
    with tff.framework.get_context_stack().install(self._context):
      try:
        rows = self._computation(received, clients)
      except ValueError as error:
        cause = error.__cause__
        if not isinstance(
            cause, tf.errors.InvalidArgumentError
        ) or not _error_texts.is_about_data(cause):
          raise
        raise ValueError(
            'TensorFlow rejected the examples of the evaluation: '
            f'{_error_texts.graph_error_line(cause)}; '
            '`data.check_central_examples` finds the example.'
        ) from error
    return collections.OrderedDict(
        (name, float(value[0])) for name, value in rows['metrics'].items()
    )

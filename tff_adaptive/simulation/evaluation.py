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
"""Central evaluation of global weights on a whole test set.

The evaluation is one TensorFlow graph of this process, built once. It is a
graph with a session, not a `tf.function`, because the functional form of Keras
models and TFF's metric finalizers work only where nothing is executed eagerly.
"""

import collections
from collections.abc import Callable, Mapping
import contextlib
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2
import tensorflow_federated as tff

from tff_adaptive.client_works import model_adapter
from tff_adaptive.data import tf_errors

_DEFAULT_BATCH_SIZE = 256
_LOSS_KEY = 'loss'

_Evaluation = collections.OrderedDict


def _new_variable(spec: Any) -> tf.Variable:
  """Returns a variable of zeros, with the shape of a tensor or of a spec."""
  return tf.Variable(tf.zeros(spec.shape, spec.dtype), trainable=False)


class _Graph:
  """The graph of an evaluation, and a session with its variables."""

  def __init__(self, adapter: model_adapter.ModelAdapter, x: Any, y: Any):
    # Keras puts the variables of metrics into no collection of the graph.
    self._variables: list[tf.Variable] = []

    def record_variable(next_creator, **kwargs):
      self._variables.append(next_creator(**kwargs))
      return self._variables[-1]

    graph = tf.Graph()
    with graph.as_default(), tf.variable_creator_scope(record_variable):
      self._inputs = tf.nest.map_structure(_placeholder, (x, y))
      self._model = adapter.build_local_model()
      self._weights = tf.nest.map_structure(_new_variable, adapter.weights_spec)
      self._add_start()
      self._add_step(adapter)
      self._add_result(adapter)
    graph.finalize()
    config = tf.compat.v1.ConfigProto()
    config.gpu_options.allow_growth = True
    # It walks over all of a graph once for each layer: minutes for deep models,
    # and there is next to nothing to fold.
    config.graph_options.rewrite_options.constant_folding = (
        rewriter_config_pb2.RewriterConfig.OFF
    )
    self._session = tf.compat.v1.Session(graph=graph, config=config)
    self._initialize_variables()

  def _initialize_variables(self):
    """Gives all variables of the graph their initial values."""
    own = tf.nest.flatten(
        (self._weights, self._metrics, self._loss_sum, self._num_examples)
    )
    self._session.run([variable.initializer for variable in own])
    own_names = {variable.name for variable in own}
    # The model's one by one: an initial value may be read from one before it.
    for variable in self._variables:
      if variable.name not in own_names:
        self._session.run(variable.initializer)

  def _add_start(self):
    """Adds what starts an evaluation: weights from outside, empty metrics."""
    self._new_weights = tf.nest.map_structure(
        lambda v: tf.compat.v1.placeholder(v.dtype, v.shape), self._weights
    )
    self._loss_sum = _new_variable(tf.TensorSpec([], tf.float64))
    self._num_examples = _new_variable(tf.TensorSpec([], tf.int64))
    self._metrics = tf.nest.map_structure(
        _new_variable, self._model.start(self._weights)
    )

    @tf.function
    def start(weights):
      tf.nest.map_structure(lambda v, t: v.assign(t), self._weights, weights)
      metrics = self._model.start(weights)
      tf.nest.map_structure(lambda v, t: v.assign(t), self._metrics, metrics)
      self._loss_sum.assign(0)
      self._num_examples.assign(0)
      return tf.constant(0)

    self._start = start(self._new_weights)

  def _add_step(self, adapter):
    """Adds what a batch does: one function, so that its effects are ordered."""

    @tf.function
    def step(x, y):
      is_pair = adapter.element_type.python_container is tuple
      batch = (x, y) if is_pair else collections.OrderedDict(x=x, y=y)
      trainable = tuple(
          v.read_value() for v in tf.nest.flatten(self._weights.trainable)
      )
      evaluation = self._model.evaluate(trainable, batch)
      metrics = self._model.update_metrics(
          tf.nest.map_structure(tf.convert_to_tensor, self._metrics),
          batch,
          evaluation,
      )
      tf.nest.map_structure(lambda v, t: v.assign(t), self._metrics, metrics)
      self._num_examples.assign_add(evaluation.num_examples)
      self._loss_sum.assign_add(
          tf.cast(evaluation.loss, tf.float64)
          * tf.cast(evaluation.num_examples, tf.float64)
      )
      return tf.constant(0)

    self._step = step(*self._inputs)

  def _add_result(self, adapter):
    """Adds the metrics of all batches; the loss stands first."""

    @tf.function
    def report():
      metrics = tf.nest.map_structure(tf.convert_to_tensor, self._metrics)
      return self._model.report_metrics(metrics, tf.constant(True))

    metrics = adapter.finalize_metrics(report())
    self._result = collections.OrderedDict(
        [
            (
                _LOSS_KEY,
                self._loss_sum / tf.cast(self._num_examples, tf.float64),
            )
        ]
    )
    for name, value in metrics.items():
      is_scalar = tf.is_tensor(value) and value.shape.rank == 0
      if name != _LOSS_KEY and is_scalar:
        self._result[name] = value

  def evaluate(self, weights, batches) -> _Evaluation:
    """Returns the loss and the metrics of all batches as floats."""
    run = self._session.run
    leaves = tf.nest.flatten((weights.trainable, weights.non_trainable))
    placeholders = tf.nest.flatten(
        (self._new_weights.trainable, self._new_weights.non_trainable)
    )
    run(self._start, dict(zip(placeholders, map(np.asarray, leaves))))
    inputs = tf.nest.flatten(self._inputs)
    for batch in batches:
      with _errors_of_data():
        run(self._step, dict(zip(inputs, tf.nest.flatten(batch))))
    result = run(self._result)
    return collections.OrderedDict(
        (name, float(value)) for name, value in result.items()
    )


@contextlib.contextmanager
def _errors_of_data():
  """Turns what ops say of the examples into a `ValueError`."""
  try:
    yield
  except tf.errors.InvalidArgumentError as error:
    raise ValueError(
        'An op of the evaluation does not take the examples: '
        f'{tf_errors.graph_error_line(error)}; '
        '`data.check_central_examples` names the example.'
    ) from error


def _placeholder(array):
  return tf.compat.v1.placeholder(array.dtype, (None, *array.shape[1:]))


def _split_arrays(arrays, adapter: model_adapter.ModelAdapter):
  """Returns the features and labels of `arrays` and the examples they hold."""
  if isinstance(arrays, Mapping) and set(arrays) != {'x', 'y'}:
    raise ValueError(
        "The arrays of an evaluation must be named 'x' and 'y', found "
        f'{list(arrays)}.'
    )
  x, y = model_adapter.features_and_labels(arrays)
  specs = tff.types.type_to_tf_tensor_specs(adapter.element_type)
  for name, found, wanted in zip(
      'xy', (x, y), model_adapter.features_and_labels(specs)
  ):
    _check_type(name, found, wanted)
  lengths = {len(leaf) for leaf in tf.nest.flatten((x, y))}
  if len(lengths) != 1 or 0 in lengths:
    raise ValueError(
        'The arrays of an evaluation must all hold the same number of '
        f'examples, at least one; found lengths {sorted(lengths)}.'
    )
  return x, y, lengths.pop()


def _check_type(name: str, arrays: Any, specs: Any):
  """Raises unless a model with these specs of a batch takes the arrays."""
  found, wanted = tf.nest.flatten(arrays), tf.nest.flatten(specs)
  if len(found) != len(wanted) or not all(
      tf.as_dtype(array.dtype) == spec.dtype
      and spec.shape[1:].is_compatible_with(array.shape[1:])
      for array, spec in zip(found, wanted)
  ):
    described = [f'{array.dtype}{[None, *array.shape[1:]]}' for array in found]
    expected = [f'{spec.dtype.name}{_described(spec.shape)}' for spec in wanted]
    raise ValueError(
        f'The arrays {name!r} of an evaluation must be {", ".join(expected)}, '
        f'as the model takes them, found {", ".join(described)}; cast or '
        'reshape them.'
    )


def _described(shape: tf.TensorShape) -> str:
  return ' of any shape' if shape.rank is None else str(shape.as_list())


def build_central_evaluation(
    model: model_adapter.Model,
    arrays: Any,
    batch_size: int = _DEFAULT_BATCH_SIZE,
) -> Callable[[tff.learning.models.ModelWeights], _Evaluation]:
  """Builds a function that evaluates weights on a whole test set.

  The test set is cut into consecutive batches, the last one as short as it
  comes, so that memory does not grow with it. The loss is the sum over batches
  of (mean loss of the batch x its examples), in float64, divided by all
  examples: exactly the mean over the test set. Dropout is off. Everything is
  traced here, once, and runs in this process.

  Args:
    model: A `tff.learning.models.FunctionalModel`, or a function without
      arguments that returns a `tff.learning.models.VariableModel`.
    arrays: A mapping with `x` and `y`, or a pair of them: arrays (or nests of
      arrays) whose first axis counts examples.
    batch_size: Examples evaluated at once, a positive integer. Defaults to 256.

  Returns:
    A function from `tff.learning.models.ModelWeights` (of arrays) to an ordered
    dictionary of floats: `loss`, then the model's own scalar metrics.

  Raises:
    TypeError: If `model` is neither of the two, or `batch_size` no integer.
    ValueError: If `batch_size` is not positive, if the arrays differ in length,
      are empty, or are not named or typed as the model takes them. What is
      returned raises one if an op does not take the numbers, such as labels out
      of range; `data.check_central_examples` says which.

  Example:
    >>> evaluate = build_central_evaluation(model, digits.central_test)
    >>> list(evaluate(process.get_model_weights(state)))
    ['loss', 'accuracy']
  """
  if not isinstance(batch_size, (int, np.integer)):
    raise TypeError(
        '`batch_size` must be an integer, found '
        f'{type(batch_size).__name__}; examples and labels are one argument.'
    )
  if batch_size < 1:
    raise ValueError(f'`batch_size` must be positive, found {batch_size}.')
  adapter = model_adapter.build_model_adapter(model)
  x, y, num_examples = _split_arrays(arrays, adapter)
  graph = _Graph(adapter, x, y)

  def take(start):
    cut = slice(start, start + batch_size)
    return tf.nest.map_structure(lambda leaf: leaf[cut], (x, y))

  def evaluate(weights):
    starts = range(0, num_examples, batch_size)
    return graph.evaluate(weights, (take(start) for start in starts))

  return evaluate

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions that evaluate global weights on examples or on clients.

All clients go through one graph in this process, many per call: see
`tff_adaptive.runtime`. A whole test set is a single client. Clients in files
are read when they are needed.
"""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
import functools
import itertools
import math
import threading
from typing import Any, Optional, TypeAlias

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _metric_modes
from tff_adaptive.client_works import local_training
from tff_adaptive.client_works import model_adapter
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import random_streams
from tff_adaptive.data import specs
from tff_adaptive.data import transforms
from tff_adaptive.evaluation import client_metrics
from tff_adaptive.evaluation import computations
from tff_adaptive.models import conversion
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.runtime import compiled
from tff_adaptive.runtime import plans
from tff_adaptive.runtime.datasets import elements

_DEFAULT_BATCH_SIZE = 256
_DEFAULT_TRAIN_BATCH_SIZE = 20
# A call takes clients until their batches have this many rows, or there are
# this many clients.
_MAX_ROWS = 16_384
_MAX_CLIENTS = 1024
# Separates the random numbers of an evaluation from those of training.
_USE = 'client_evaluation'
_CENTRAL_ID = 'test'

_Weights: TypeAlias = tff.learning.models.ModelWeights
_Metrics = collections.OrderedDict[str, float]
_lock = threading.RLock()


@functools.cache
def _shared_context(
    devices: str, num_parallel_clients: Optional[int]
) -> compiled.CompiledContext:
  """Returns the context, with one cache of client data, of all evaluations."""
  return compiled.CompiledContext(
      devices=devices, num_parallel_clients=num_parallel_clients
  )


class _Evaluator:
  """Evaluates weights on clients, many per call."""

  def __init__(
      self,
      computation: tff.Computation,
      context: compiled.CompiledContext,
      seed: int = 0,
      modes: Optional[Mapping[str, str]] = None,
  ):
    """Initializes the evaluator.

    Args:
      computation: See `computations.build_evaluation_computation`.
      context: The context that runs it.
      seed: With the client id, it determines dropout.
      modes: The modes of metrics whose names do not tell them, of which there
        must be no other; None (the default) if any name will do.

    Raises:
      ValueError: If a metric has no mode.
    """
    self._computation = computation
    self._context = context
    self._seed = seed
    self._modes = modes or {}
    if modes is not None:
      table_type = computation.type_signature.result.member[0]
      metrics = tff.types.type_to_tf_tensor_specs(table_type)['metrics']
      _metric_modes.check_modes(metrics, modes, '`modes`')

  def __call__(
      self,
      weights: _Weights,
      client_ids: Sequence[str],
      collect: Callable[[Sequence[str]], Sequence[Any]],
      num_rows: Callable[[str], int] = lambda client_id: 0,
  ) -> list[client_metrics.ClientMetrics]:
    """Returns the metrics of each weights that the computation evaluates.

    Args:
      weights: The weights that all clients receive.
      client_ids: The clients. Those without examples are left out.
      collect: Returns the data of some clients.
      num_rows: Returns the number of rows in the batches of a client.
    """
    spec = tff.types.type_to_tf_tensor_specs(
        self._computation.type_signature.parameter[0].member
    )
    received = model_adapter.pack_weights(spec, weights)
    parts = []
    with tff.framework.get_context_stack().install(self._context):
      for chunk in _chunks(client_ids, num_rows):
        clients = collect(chunk)
        with _lock:
          self._context.begin_round(self._seed, 0, chunk)
          parts.append(self._computation(received, clients))
    tables = tf.nest.map_structure(lambda *rows: np.concatenate(rows), *parts)
    return [self._to_metrics(client_ids, table) for table in tables]

  def _to_metrics(
      self, client_ids: Sequence[str], table: Any
  ) -> client_metrics.ClientMetrics:
    found = table['num_examples'] > 0
    return client_metrics.ClientMetrics(
        itertools.compress(client_ids, found),
        table['num_examples'][found],
        {name: values[found] for name, values in table['metrics'].items()},
        self._modes,
    )


def _chunks(
    client_ids: Sequence[str], num_rows: Callable[[str], int]
) -> Iterator[list[str]]:
  """Yields the clients of each call, given each client's number of rows."""
  chunk: list[str] = []
  total = 0
  for client_id in client_ids:
    chunk.append(client_id)
    total += num_rows(client_id)
    if total >= _MAX_ROWS or len(chunk) == _MAX_CLIENTS:
      yield chunk
      chunk, total = [], 0
  if chunk:
    yield chunk


class _CentralEvaluator:
  """Evaluates weights on arrays; see `build_central_evaluation`."""

  def __init__(self, model: model_adapter.Model, batch_size: int, devices: str):
    self._plan = batching.BatchPlan(batch_size, shuffle=False)
    computation = computations.build_evaluation_computation(
        model, with_integers=True
    )
    self._element_type = computation.type_signature.parameter[1].member.element
    self._evaluate = _Evaluator(computation, _shared_context(devices, None))

  def to_clients(self, arrays: Any) -> Sequence[Any]:
    """Returns the only client: a cohort, or its batches in their order."""
    parts = _checked(arrays, self._element_type)
    num_examples = len(tf.nest.flatten(parts)[0])
    examples: Any = tuple(parts.values())
    if self._element_type.python_container is not tuple:
      examples = collections.OrderedDict(parts)
      if not any(map(tf.nest.is_nested, parts.values())):
        # The context keeps its rows as tensors from one call to the next.
        source = client_data.PackedClientArrays(
            examples, [0, num_examples], [_CENTRAL_ID]
        )
        return cohort_lib.Cohort(source, [_CENTRAL_ID], 0, 0, self._plan)

    def take(start):
      cut = slice(start, start + self._plan.batch_size)
      return tf.nest.map_structure(lambda leaf: leaf[cut], examples)

    return [list(map(take, range(0, num_examples, self._plan.batch_size)))]

  def __call__(self, clients: Sequence[Any], weights: _Weights) -> _Metrics:
    """Returns loss and metrics of weights on the only client."""
    (found,) = self._evaluate(weights, [_CENTRAL_ID], lambda _: clients)
    return collections.OrderedDict(
        (name, float(values[0])) for name, values in found.values.items()
    )


def _checked(arrays: Any, element_type: tff.Type) -> dict[str, Any]:
  """Returns the parts of `arrays` by name, if the model takes them."""
  subject = 'The arrays of an evaluation must'
  element_spec = tff.types.type_to_tf_tensor_specs(element_type)
  names = conversion.PARTS[: len(element_spec)]
  all_names = ' and '.join([', '.join(map(repr, names[:-1])), repr(names[-1])])
  if isinstance(arrays, Mapping):
    if set(arrays) != set(names):
      raise ValueError(f'{subject} be named {all_names}, found {list(arrays)}.')
    parts = {name: arrays[name] for name in names}
  elif isinstance(arrays, (list, tuple)) and len(arrays) == len(names):
    parts = dict(zip(names, arrays))
  else:
    raise TypeError(
        f'{subject} be a mapping with {all_names} or a tuple of them, found '
        f'{type(arrays).__name__}; of a dataset, take '
        '`next(iter(dataset.batch(num_examples)))`.'
    )
  leaves = tf.nest.flatten(parts)
  for leaf in leaves:
    if not (hasattr(leaf, 'shape') and hasattr(leaf, '__len__')):
      raise TypeError(
          f'{subject} be arrays or dense tensors, found {type(leaf).__name__}: '
          'use `np.asarray` on lists, and `to_tensor()` on ragged tensors.'
      )
  if isinstance(element_spec, Mapping):
    element_spec = [element_spec[name] for name in names]
  found = tf.nest.map_structure(
      lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), parts
  )
  difference = specs.find_difference(found, dict(zip(names, element_spec)))
  if difference is not None:
    raise ValueError(f'{subject} match the model, found {difference}.')
  lengths = set(map(len, leaves))
  if len(lengths) != 1 or 0 in lengths:
    raise ValueError(
        f'{subject} all have the same number of examples, at least one; found '
        f'lengths {sorted(lengths)}.'
    )
  return parts


def build_central_evaluation(
    model: model_adapter.Model,
    arrays: Any,
    batch_size: int = _DEFAULT_BATCH_SIZE,
    *,
    devices: str = plans.AUTO,
) -> Callable[[_Weights], _Metrics]:
  """Builds a function that evaluates weights on a whole test set.

  The test set is cut into consecutive batches, with a short last batch. The
  loss is the sum over batches of (mean loss of the batch x its examples), in
  float64, divided by all examples: exactly the mean over the test set, also of
  a Keras loss that sums over a batch (`reduction='sum'`) in TFF's forms of a
  Keras model. A model of `models.from_keras` reports its loss as
  `Model.evaluate` does. Dropout is off. It runs in this process; the graph is
  built at the first call.

  Args:
    model: A `tff.learning.models.FunctionalModel`, or a function without
      arguments that returns a `tff.learning.models.VariableModel`.
    arrays: A mapping with `x` and `y`, and `sample_weight` if the model takes
      it, or a tuple of them: arrays (or nests of arrays) whose first axis is
      the example.
    batch_size: Examples evaluated at once, a positive integer. Defaults to 256.
    devices: The devices, see `tff_adaptive.runtime.CompiledContext`. Defaults
      to the first accelerator, else the CPU.

  Returns:
    A function from `tff.learning.models.ModelWeights` (of arrays) to an ordered
    dictionary of floats: `loss`, then the model's metrics, scalars and the
    entries of vectors (`f1_0`, `f1_1` and so on), also of nested metrics
    (`classes/recall`).

  Raises:
    TypeError: If `model` is neither of the two, or `batch_size` is not an
      integer.
    ValueError: If `batch_size` is not positive, or if the arrays differ in
      length, are empty, or do not have the model's names and types. The
      returned function raises one if TensorFlow rejects the examples, the data
      of its only client, for example because labels are out of range;
      `data.check_central_examples` finds them.

  Example:
    >>> evaluate = build_central_evaluation(model, digits.central_test)
    >>> list(evaluate(process.get_model_weights(state)))
    ['loss', 'accuracy']
  """
  evaluator = _CentralEvaluator(model, batch_size, devices)
  return functools.partial(evaluator, evaluator.to_clients(arrays))


def build_sampled_evaluation(
    model: model_adapter.Model,
    sample_fn: Callable[[int], Any],
    batch_size: int = _DEFAULT_BATCH_SIZE,
    *,
    devices: str = plans.AUTO,
) -> Callable[[_Weights, int], _Metrics]:
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
  evaluator = _CentralEvaluator(model, batch_size, devices)
  return lambda weights, round_num: evaluator(
      evaluator.to_clients(sample_fn(round_num)), weights
  )


def _sample(
    client_ids: Sequence[str], num_clients: Optional[int], seed: int
) -> Sequence[str]:
  """Returns a sample of the clients; all of them for None."""
  if num_clients is None:
    return client_ids
  seed = random_streams.derived_seed(seed, _USE)
  return transforms.sample_client_ids(client_ids, num_clients, seed)


def build_client_evaluation(
    model: model_adapter.Model,
    clients: client_data.ClientArrays,
    *,
    num_clients: Optional[int] = None,
    seed: int = 0,
    batch_size: int = _DEFAULT_BATCH_SIZE,
    devices: str = plans.AUTO,
    num_parallel_clients: Optional[int] = None,
    modes: Optional[Mapping[str, str]] = None,
) -> Callable[[_Weights], client_metrics.ClientMetrics]:
  """Builds a function that evaluates weights on every client's examples.

  Each client's examples are cut into consecutive batches, with a short last
  batch; its loss is the mean over its examples, summed in float64. Dropout is
  off. The graph is built at the first call.

  Args:
    model: A `tff.learning.models.FunctionalModel`, or a function without
      arguments that returns a `tff.learning.models.VariableModel`.
    clients: The clients, with features as the model takes them.
    num_clients: The size of a fixed random sample of the clients. None (the
      default) for all.
    seed: The seed of the sample. Defaults to 0.
    batch_size: Examples evaluated at once, a positive integer. Defaults to 256.
    devices: The devices, see `tff_adaptive.runtime.CompiledContext`. Defaults
      to the first accelerator, else the CPU.
    num_parallel_clients: See `CompiledContext`. Defaults to that of the device.
    modes: 'max' or 'min' by metric, for metrics whose name does not tell
      whether larger values are better, as the worst clients depend on that.
      Defaults to none.

  Returns:
    A function from `tff.learning.models.ModelWeights` to `ClientMetrics`: the
    loss and the model's floating-point metrics, scalars and the entries of
    vectors (`f1_0`, `f1_1` and so on). Clients without examples are left out.

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If a number is not positive, there are fewer clients, or the
      name of a metric does not tell its mode and `modes` does not have it.

  Example:
    >>> evaluate = build_client_evaluation(model, digits.train_data)
    >>> 'clients/accuracy_median' in evaluate(weights).summarize('clients/')
    True
  """
  batches = batching.BatchPlan(batch_size, shuffle=False)
  client_ids = _sample(clients.client_ids, num_clients, seed)
  computation = computations.build_evaluation_computation(model)
  context = _shared_context(devices, num_parallel_clients)
  evaluator = _Evaluator(computation, context, seed, modes or {})

  def evaluate(weights):
    collect = lambda ids: cohort_lib.Cohort(clients, ids, 0, seed, batches)
    return evaluator(weights, client_ids, collect, clients.num_examples)[0]

  return evaluate


def build_personalized_evaluation(
    model: model_adapter.Model,
    train_clients: client_data.ClientArrays,
    test_clients: client_data.ClientArrays,
    optimizer: tff.learning.optimizers.Optimizer,
    *,
    num_epochs: int = 1,
    num_steps: Optional[int] = None,
    batch_size: int = _DEFAULT_TRAIN_BATCH_SIZE,
    max_examples: Optional[int] = None,
    gradient_options: local_training.GradientOptions = (
        local_training.GradientOptions()
    ),
    augmentation: Optional[batching.Augmentation] = None,
    num_clients: Optional[int] = None,
    seed: int = 0,
    devices: str = plans.AUTO,
    num_parallel_clients: Optional[int] = None,
    modes: Optional[Mapping[str, str]] = None,
) -> Callable[[_Weights], client_metrics.PersonalizedMetrics]:
  """Builds a function that evaluates the gain of fine-tuning on each client.

  Each client starts from the given weights, trains on its own examples, as in a
  round without loss term, and is evaluated on its held-out examples before and
  after. Nothing is kept: the next call starts over, with the same batches and
  dropout masks, which depend only on the seed and the client id. Dropout is off
  in the evaluation. A client whose training becomes non-finite keeps the
  weights it started from.

  Args:
    model: See `build_client_evaluation`.
    train_clients: The clients' training data.
    test_clients: The clients' test data, as the model takes them. Only clients
      in both are evaluated.
    optimizer: The clients' optimizer: a `tff.learning.optimizers.Optimizer`, or
      an `ExtraArgsOptimizer` of `tff_adaptive.optimizers`, with a new state for
      every client.
    num_epochs: Passes over a client's examples, a positive integer. Defaults
      to 1.
    num_steps: The number of local steps instead, in as many passes as needed.
      None (the default) uses `num_epochs`.
    batch_size: Examples per training batch, a positive integer. Defaults to 20,
      as in FedOpt's tasks.
    max_examples: The maximum number of a client's training examples, the first
      ones in stored order. None (the default) for all.
    gradient_options: The clipping and weight decay of the gradient, see
      `client_works.GradientOptions`. Neither by default.
    augmentation: The augmentation of `train_clients`, as in `Task`; None (the
      default) for none.
    num_clients: See `build_client_evaluation`.
    seed: The seed of the sample of clients, the order of their examples, their
      augmentation and their dropout masks. Defaults to 0.
    devices: See `build_client_evaluation`.
    num_parallel_clients: See `build_client_evaluation`.
    modes: See `build_client_evaluation`.

  Returns:
    A function from `tff.learning.models.ModelWeights` to `PersonalizedMetrics`.

  Raises:
    TypeError: If a number is not an integer, or `optimizer` is not an
      optimizer.
    ValueError: If a number is not positive, no client is in both sources, there
      are fewer than `num_clients`, the optimizer needs values that a server
      shares, as in SCAFFOLD, or the mode of a metric is unknown.

  Example:
    >>> train, test = transforms.split_examples(
    ...     digits.train_data, 0.2, seed=0)
    >>> evaluate = build_personalized_evaluation(
    ...     model, train, test, optimizers.build_delta_sgd())
    >>> found = evaluate(weights)
    >>> gains = found.after.values['accuracy'] - found.before.values['accuracy']
    >>> gains.shape
    (50,)

  References:
    Wang et al., Federated Evaluation of On-device Personalization, 2019,
    https://arxiv.org/abs/1910.10252, and TFF's
    `tff.learning.algorithms.build_personalization_eval_computation`, which
    takes a client's training as a user-defined function.
  """
  train_plan = batching.BatchPlan(batch_size, num_epochs, max_examples)
  if num_steps is not None:
    specs.check_positive('num_steps', num_steps)
    train_plan = attrs.evolve(train_plan, num_epochs=1)
  client_ids = _sample(_in_both(train_clients, test_clients), num_clients, seed)
  train_seed = random_streams.derived_seed(seed, _USE)
  test_plan = batching.BatchPlan(_DEFAULT_BATCH_SIZE, shuffle=False)
  _check_optimizer(optimizer)
  training = local_training.LocalTraining(
      optimizer, gradient_options=gradient_options
  )
  computation = computations.build_evaluation_computation(model, training)
  context = _shared_context(devices, num_parallel_clients)
  evaluator = _Evaluator(computation, context, train_seed, modes or {})

  def train_cohort(client_id):
    plan, limits = train_plan, {}
    if num_steps is not None:
      num_examples = train_clients.num_examples(client_id)
      in_epoch = max(1, len(batching.batch_sizes(plan, num_examples)))
      plan = attrs.evolve(plan, num_epochs=math.ceil(num_steps / in_epoch))
      limits = {client_id: num_steps}
    return cohort_lib.Cohort(
        train_clients,
        [client_id],
        round_num=0,
        seed=train_seed,
        plan=plan,
        augmentation=augmentation,
        step_limits=limits,
    )

  def num_rows(client_id):
    num_trained = sum(train_cohort(client_id).batch_sizes(0))
    return num_trained + test_clients.num_examples(client_id)

  data_type = computation.type_signature.parameter[1].member['test']

  def batches(cohort):
    return [elements.to_element(b, data_type) for b in cohort.batches(0)]

  def collect(client_id):
    test = cohort_lib.Cohort(test_clients, [client_id], 0, seed, test_plan)
    return collections.OrderedDict(
        train=batches(train_cohort(client_id)), test=batches(test)
    )

  def evaluate(weights):
    before, after = evaluator(
        weights, client_ids, lambda ids: list(map(collect, ids)), num_rows
    )
    return client_metrics.PersonalizedMetrics(before, after)

  return evaluate


def _in_both(
    train_clients: client_data.ClientArrays,
    test_clients: client_data.ClientArrays,
) -> Sequence[str]:
  """Returns the clients that have both kinds of examples, or raises."""
  tested = set(test_clients.client_ids)
  ids = [name for name in train_clients.client_ids if name in tested]
  if not ids:
    raise ValueError(
        'No client has both training examples and test examples; hold out a '
        "part of every client's, as `simulation.hold_out_examples` does."
    )
  return ids


def _check_optimizer(optimizer: Any) -> None:
  """Raises unless the optimizer can train a client on its own."""
  optimizer_lib.check_optimizer(optimizer, '`optimizer`')
  if isinstance(optimizer, federated_optimizer.FederatedOptimizer):
    raise ValueError(
        'Personalization trains each client on its own, but the optimizer '
        f'{optimizer_lib.name_of(optimizer)} needs parts that the server '
        'shares in a round, or that clients keep: use one that needs only '
        'gradients, such as `tff_adaptive.optimizers.build_delta_sgd()`.'
    )

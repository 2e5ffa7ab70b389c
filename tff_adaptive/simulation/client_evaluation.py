# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Evaluation per client, also after fine-tuning on the client's own data.

All clients go through one graph in this process, many per call: see
`tff_adaptive.runtime`. Clients in files are read when they are needed.
"""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
import itertools
import math
from typing import Any, NamedTuple, Optional

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _metric_modes
from tff_adaptive.client_works import evaluation
from tff_adaptive.client_works import local_training
from tff_adaptive.client_works import model_adapter
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import random_streams
from tff_adaptive.data import specs
from tff_adaptive.data import transforms
from tff_adaptive.runtime import compiled
from tff_adaptive.runtime import plans


def _as_values(
    values: Mapping[str, Any],
) -> 'collections.OrderedDict[str, np.ndarray]':
  return collections.OrderedDict(
      (name, np.asarray(array, np.float64)) for name, array in values.items()
  )


@attrs.frozen(eq=False)
class ClientMetrics:
  """The metrics of each evaluated client.

  Attributes:
    client_ids: The clients, in the order of their source.
    num_examples: The number of evaluated examples of each client, int64 of
      shape [num_clients].
    values: The values of each metric by name, float64 of shape [num_clients],
      the loss first.
    modes: 'max' or 'min' by metric, for metrics whose name does not tell
      whether larger values are better. Defaults to none.

  Raises:
    ValueError: If an array does not have one value per client, or a mode is
      unknown.

  Example:
    >>> found = ClientMetrics(
    ...     ['a', 'b'], [1, 3], {'accuracy': [1.0, 0.5]})
    >>> found.summarize()['accuracy_weighted_mean']
    0.625
  """

  client_ids: tuple[str, ...] = attrs.field(converter=tuple[str, ...])
  num_examples: np.ndarray = attrs.field(
      converter=lambda array: np.asarray(array, np.int64)
  )
  values: Mapping[str, np.ndarray] = attrs.field(converter=_as_values)
  modes: Mapping[str, str] = attrs.field(factory=dict)

  def __attrs_post_init__(self):
    expected = (len(self.client_ids),)
    arrays = {'num_examples': self.num_examples, **self.values}
    for name, array in arrays.items():
      if array.shape != expected:
        raise ValueError(
            f'`{name}` must have one value for each of {expected[0]} clients, '
            f'found shape {array.shape}.'
        )
    _metric_modes.check_modes(self.modes, self.modes, '`modes`')

  def summarize(
      self, prefix: str = ''
  ) -> 'collections.OrderedDict[str, float]':
    """Returns statistics of every metric over clients.

    With the values v_i of n clients and their examples m_i:

    - `mean`: sum_i v_i / n, every client counts the same;
    - `weighted_mean`: sum_i m_i v_i / sum_i m_i, every example counts the same:
      the value on all examples together, if a metric is a mean over examples;
    - `median`: the median of the v_i;
    - `worst_decile`: the mean of the worst floor(n / 10) of the v_i, at least
      one. The worst are the largest values of a metric whose mode is 'min',
      such as a loss, and the smallest if it is 'max'. Left out for counts, such
      as `num_examples`, and for names without a mode.

    A NaN makes all statistics of its metric NaN, as does a lack of examples.

    Args:
      prefix: A prefix of the names, such as 'clients/'. Defaults to ''.

    Returns:
      An ordered dictionary of floats, named '<prefix><metric>_<statistic>'.

    References:
      Li et al., Fair Resource Allocation in Federated Learning, ICLR 2020,
      https://arxiv.org/abs/1905.10497, reports the worst 10 % of clients in
      this way.
    """
    summary = collections.OrderedDict()
    for metric, values in self.values.items():
      mode = self.modes.get(metric) or _metric_modes.find_mode(metric)
      for name, value in _summarize(values, self.num_examples, mode).items():
        summary[f'{prefix}{metric}_{name}'] = value
    return summary


def _summarize(
    values: np.ndarray, num_examples: np.ndarray, mode: Optional[str]
) -> dict[str, float]:
  """Returns the statistics of one metric; `worst_decile` needs a mode."""
  found = dict.fromkeys(('mean', 'weighted_mean', 'median'), math.nan)
  if mode is not None:
    found['worst_decile'] = math.nan
  if not np.any(num_examples):
    return found
  found['mean'] = float(values.mean())
  found['weighted_mean'] = float(np.average(values, weights=num_examples))
  found['median'] = float(np.median(values))
  if mode is not None:
    sign = -1.0 if mode == _metric_modes.MAX else 1.0
    # Sorting puts NaN last, so that it counts as worst.
    from_best = sign * np.sort(sign * values)
    num_worst = max(1, len(values) // 10)
    found['worst_decile'] = float(from_best[-num_worst:].mean())
  return found


_DEFAULT_BATCH_SIZE = 256
_DEFAULT_TRAIN_BATCH_SIZE = 20
# A call takes clients until their batches have this many rows, or there are
# this many clients.
_MAX_ROWS = 16_384
_MAX_CLIENTS = 1024
# Separates the random numbers of an evaluation from those of training.
_USE = 'client_evaluation'


class PersonalizedMetrics(NamedTuple):
  """The metrics of clients before and after fine-tuning.

  Attributes:
    before: The metrics of the weights that every client received.
    after: The metrics of the fine-tuned weights, for the same clients.
  """

  before: ClientMetrics
  after: ClientMetrics


def _build_evaluator(
    computation: Any,
    client_ids: Sequence[str],
    collect: Callable[[Sequence[str]], Sequence[Any]],
    num_rows: Callable[[str], int],
    *,
    devices: str,
    num_parallel_clients: Optional[int],
    seed: int,
) -> Callable[[tff.learning.models.ModelWeights], Any]:
  """Builds a function from weights to the stacked rows of all clients.

  The computation maps weights and the clients of a chunk, which `collect`
  returns, to rows in the order of the clients. The seed and the client id
  determine dropout.
  """
  context = compiled.CompiledContext(
      devices=devices, num_parallel_clients=num_parallel_clients, strict=True
  )

  def evaluate(weights):
    spec = tff.types.type_to_tf_tensor_specs(
        computation.type_signature.parameter[0].member
    )
    received = model_adapter.pack_weights(spec, weights)
    parts = []
    with tff.framework.get_context_stack().install(context):
      for chunk in _chunks(client_ids, num_rows):
        context.begin_round(seed, 0, chunk)
        part = computation(received, collect(chunk))
        parts.append(tf.nest.map_structure(np.asarray, part))
    return tf.nest.map_structure(lambda *rows: np.concatenate(rows), *parts)

  return evaluate


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


def _check_modes(rows_type: Any, modes: Optional[Mapping[str, str]]):
  """Raises unless every metric of an evaluation has a mode, or counts."""
  names = tff.types.type_to_tf_tensor_specs(rows_type)['metrics']
  _metric_modes.check_modes(names, modes or {}, '`modes`')


def _to_metrics(
    client_ids: Sequence[str],
    rows: Any,
    modes: Optional[Mapping[str, str]] = None,
) -> ClientMetrics:
  """Returns the metrics of the clients with examples."""
  num_examples = rows['num_examples']
  has_examples = num_examples > 0
  return ClientMetrics(
      itertools.compress(client_ids, has_examples),
      num_examples[has_examples],
      {name: values[has_examples] for name, values in rows['metrics'].items()},
      modes or {},
  )


def _extend(
    plan: batching.BatchPlan, num_steps: Optional[int], num_examples: int
) -> batching.BatchPlan:
  """Returns the plan with the epochs that a client needs for its steps."""
  if num_steps is None:
    return plan
  one_epoch = attrs.evolve(plan, num_epochs=1)
  in_epoch = max(1, len(batching.batch_sizes(one_epoch, num_examples)))
  return attrs.evolve(plan, num_epochs=math.ceil(num_steps / in_epoch))


def _num_rows(
    plan: batching.BatchPlan, num_steps: Optional[int], num_examples: int
) -> int:
  """Returns the number of rows of a client's first batches."""
  plan = _extend(plan, num_steps, num_examples)
  return sum(batching.batch_sizes(plan, num_examples)[:num_steps])


def _sample(
    client_ids: Sequence[str], num_clients: Optional[int], seed: int
) -> Sequence[str]:
  if num_clients is None:
    return client_ids
  return transforms.sample_client_ids(
      client_ids, num_clients, random_streams.derived_seed(seed, _USE)
  )


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
) -> Callable[[tff.learning.models.ModelWeights], ClientMetrics]:
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
      to the first GPU, else the CPU.
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

  def collect(chunk):
    return cohort_lib.Cohort(
        clients, chunk, round_num=0, seed=seed, plan=batches
    )

  computation = evaluation.build_evaluation_computation(model)
  _check_modes(computation.type_signature.result.member, modes)
  evaluate = _build_evaluator(
      computation,
      client_ids,
      collect,
      clients.num_examples,
      devices=devices,
      num_parallel_clients=num_parallel_clients,
      seed=seed,
  )
  return lambda weights: _to_metrics(client_ids, evaluate(weights), modes)


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
) -> Callable[[tff.learning.models.ModelWeights], PersonalizedMetrics]:
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
  client_ids = _sample(_in_both(train_clients, test_clients), num_clients, seed)
  train_seed = random_streams.derived_seed(seed, _USE)
  test_plan = batching.BatchPlan(_DEFAULT_BATCH_SIZE, shuffle=False)

  def collect_one(client_id):
    num_examples = train_clients.num_examples(client_id)
    trained = cohort_lib.Cohort(
        train_clients,
        [client_id],
        round_num=0,
        seed=train_seed,
        plan=_extend(train_plan, num_steps, num_examples),
        augmentation=augmentation,
    )
    tested = cohort_lib.Cohort(
        test_clients, [client_id], round_num=0, seed=seed, plan=test_plan
    )
    return collections.OrderedDict(
        train=trained.batches(0)[:num_steps], test=tested.batches(0)
    )

  computation = evaluation.build_personalization_computation(
      model, optimizer, gradient_options
  )
  _check_modes(computation.type_signature.result.member['after'], modes)
  train_and_test = _build_evaluator(
      computation,
      client_ids,
      lambda chunk: list(map(collect_one, chunk)),
      lambda client_id: (
          _num_rows(
              train_plan, num_steps, train_clients.num_examples(client_id)
          )
          + test_clients.num_examples(client_id)
      ),
      devices=devices,
      num_parallel_clients=num_parallel_clients,
      seed=train_seed,
  )

  def evaluate(weights):
    rows = train_and_test(weights)
    return PersonalizedMetrics(
        _to_metrics(client_ids, rows['before'], modes),
        _to_metrics(client_ids, rows['after'], modes),
    )

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
        "part of every client's examples for testing, as "
        '`simulation.hold_out_examples` does.'
    )
  return ids

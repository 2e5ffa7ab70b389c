# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pipelines as in TFF's tutorials on algorithms of one's own."""

import asyncio
import collections
import functools
import tempfile
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.pipelines import client_data
from tests.pipelines import pipeline
from tests.pipelines import training
from tests.tff_adaptive import testing
from tff_adaptive.runtime import plans

_at_clients, _at_server = testing.at_clients, testing.at_server


@pipeline.pipeline(plans.COMPILED)
def hello_world() -> pipeline.Run:
  @tff.federated_computation
  def greet():
    return 'Hello, World!'

  return training.of_calls(greet)


@pipeline.pipeline(plans.COMPILED)
def average_temperature() -> pipeline.Run:
  @tff.federated_computation(_at_clients())
  def average(readings):
    return tff.federated_mean(readings)

  return training.of_calls(average, [68.5, 70.3, 69.8])


@pipeline.pipeline(plans.COMPILED)
def average_of_local_averages() -> pipeline.Run:
  sequence = tff.SequenceType(np.float32)

  @tff.tensorflow.computation(sequence)
  def local_average(readings):
    total, count = readings.reduce(
        (0.0, 0), lambda sums, value: (sums[0] + value, sums[1] + 1)
    )
    return total / tf.cast(count, tf.float32)

  @tff.federated_computation(_at_clients(sequence))
  def average(readings):
    return tff.federated_mean(tff.federated_map(local_average, readings))

  return training.of_calls(average, [[68.0, 70.0], [71.0], [68.0, 72.0, 70.0]])


_BATCH = tff.types.tensorflow_to_type(
    collections.OrderedDict(
        x=tf.TensorSpec([None, 784], tf.float32),
        y=tf.TensorSpec([None], tf.int32),
    )
)
_MODEL = tff.types.tensorflow_to_type(
    collections.OrderedDict(
        weights=tf.TensorSpec([784, 10], tf.float32),
        bias=tf.TensorSpec([10], tf.float32),
    )
)
_BATCHES = tff.SequenceType(_BATCH)


@tf.function
def _forward_pass(model, batch):
  scores = tf.nn.softmax(batch['x'] @ model['weights'] + model['bias'])
  hot = tf.one_hot(batch['y'], 10)
  return -tf.reduce_mean(tf.reduce_sum(hot * tf.math.log(scores), axis=1))


@tff.tensorflow.computation(_MODEL, _BATCH)
def _batch_loss(model, batch):
  return _forward_pass(model, batch)


@tff.tensorflow.computation(_MODEL, _BATCH, np.float32)
def _batch_train(initial, batch, learning_rate):
  variables = collections.OrderedDict(
      (name, tf.Variable(value, name=name)) for name, value in initial.items()
  )

  @tf.function
  def step():
    with tf.GradientTape() as tape:
      loss = _forward_pass(variables, batch)
    for variable, gradient in zip(
        variables.values(), tape.gradient(loss, list(variables.values()))
    ):
      variable.assign_sub(learning_rate * gradient)
    return {name: variable.read_value() for name, variable in variables.items()}

  return collections.OrderedDict(step())


@tff.federated_computation(_MODEL, np.float32, _BATCHES)
def _local_train(initial, learning_rate, batches):
  @tff.federated_computation((_MODEL, np.float32), _BATCH)
  def step(model_and_rate, batch):
    model, rate = model_and_rate
    return _batch_train(model, batch, rate), rate

  model, _ = tff.sequence_reduce(batches, (initial, learning_rate), step)
  return model


def _batches_of_a_digit() -> list[list[Any]]:
  """Returns lists of batches of arrays; each client has one digit."""
  arrays = [
      next(dataset.as_numpy_iterator())
      for dataset in client_data.datasets(lambda dataset: dataset.batch(1000))
  ]
  x = np.concatenate([one['pixels'] for one in arrays]).reshape([-1, 784])
  y = np.concatenate([one['label'] for one in arrays])
  batches = [
      np.split(rows, range(20, len(rows), 20))
      for rows in (x[y == digit] for digit in range(10))
  ]
  return [
      [{'x': rows, 'y': np.full(len(rows), digit, np.int32)} for rows in client]
      for digit, client in enumerate(batches)
  ]


def _zero_model() -> Any:
  return collections.OrderedDict(
      weights=np.zeros([784, 10], np.float32), bias=np.zeros([10], np.float32)
  )


@pipeline.pipeline(plans.COMPILED)
def local_training_by_sequence_reduce() -> pipeline.Run:
  client = _batches_of_a_digit()[5]
  return training.of_state(_zero_model, _local_train, 0.1, client)


@pipeline.pipeline(plans.COMPILED)
def federated_training_by_sequence_reduce() -> pipeline.Run:
  @tff.federated_computation(
      _at_server(_MODEL), _at_server(), _at_clients(_BATCHES)
  )
  def train(model, learning_rate, clients):
    arguments = [
        tff.federated_broadcast(model),
        tff.federated_broadcast(learning_rate),
        clients,
    ]
    return tff.federated_mean(tff.federated_map(_local_train, arguments))

  return training.of_state(_zero_model, train, 0.1, _batches_of_a_digit())


@pipeline.pipeline(plans.COMPILED)
def federated_evaluation_by_sequence_reduce() -> pipeline.Run:
  @tff.federated_computation(_MODEL, _BATCHES)
  def local_loss(model, batches):
    @tff.tensorflow.computation((_MODEL, np.float32), _BATCH)
    def add(model_and_total, batch):
      model, total = model_and_total
      return model, total + _batch_loss(model, batch)

    _, total = tff.sequence_reduce(batches, (model, 0.0), add)
    return total

  @tff.federated_computation(_at_server(_MODEL), _at_clients(_BATCHES))
  def evaluate(model, clients):
    arguments = [tff.federated_broadcast(model), clients]
    return tff.federated_mean(tff.federated_map(local_loss, arguments))

  return training.of_calls(evaluate, _zero_model(), _batches_of_a_digit())


def _pairs_of_digits() -> list[tf.data.Dataset]:
  to_pair = lambda batch: tuple(client_data.flat_digits(batch).values())
  return client_data.datasets(lambda dataset: dataset.batch(20).map(to_pair))


@functools.cache
def _pair_model() -> Any:
  model = tf.keras.Sequential(
      [
          tf.keras.layers.InputLayer((784,)),
          tf.keras.layers.Dense(10, kernel_initializer=training.glorot(0)),
          tf.keras.layers.Softmax(),
      ]
  )
  spec = tuple(client_data.FLAT_DIGITS.values())
  return training.functional(model, spec, from_logits=False)


def _clip(gradients: Any) -> Any:
  """Scales gradients to a norm of at most one."""
  norm = tf.linalg.global_norm(gradients)
  if norm > 1:
    gradients = tf.nest.map_structure(lambda leaf: leaf / norm, gradients)
  return gradients


@tf.function
def _train_on_pairs(dataset, start, optimizer, clips):
  """Trains on a client's batches; returns weights and number of examples."""
  model = _pair_model()
  weights, num_examples = start, 0.0
  specs = tf.nest.map_structure(tf.TensorSpec.from_tensor, weights)
  state = optimizer.initialize(specs)
  for x, y in dataset:
    with tf.GradientTape() as tape:
      tape.watch(weights)
      scores = model.predict_on_batch((weights, ()), x, training=True)
      loss = model.loss(output=scores, label=y)
    gradients = tape.gradient(loss, weights)
    if clips:
      gradients = _clip(gradients)
    state, weights = optimizer.next(state, weights, gradients)
    num_examples += tf.cast(tf.shape(y)[0], tf.float32)
  return weights, num_examples


@functools.cache
def _initial_weights() -> Any:
  """Returns the computation of the first weights."""
  weights = tff.learning.models.ModelWeights(*_pair_model().initial_weights)
  return tff.tensorflow.computation(lambda: weights)


def _pair_types() -> tuple[Any, Any]:
  """Returns the types of the weights and of a client's data."""
  spec = tff.types.tensorflow_to_type(_pair_model().input_spec)
  return _initial_weights().type_signature.result, tff.SequenceType(spec)


@pipeline.pipeline(plans.CACHED)
def building_your_own_algorithm() -> pipeline.Run:
  weights_type, data_type = _pair_types()

  @tff.tensorflow.computation(data_type, weights_type)
  def client_update(dataset, weights):
    optimizer = training.sgd(0.01)
    trained, _ = _train_on_pairs(dataset, weights.trainable, optimizer, False)
    return tff.learning.models.ModelWeights(trained, ())

  @tff.tensorflow.computation(weights_type)
  def server_update(weights):
    return weights

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(_initial_weights(), tff.SERVER)

  @tff.federated_computation(_at_server(weights_type), _at_clients(data_type))
  def next_fn(weights, clients):
    at_clients = tff.federated_broadcast(weights)
    trained = tff.federated_map(client_update, (clients, at_clients))
    return tff.federated_map(server_update, tff.federated_mean(trained))

  process = tff.templates.IterativeProcess(initialize, next_fn)
  return training.of_state(process.initialize, process.next, _pairs_of_digits())


def _clipping_work(optimizer: Any) -> Any:
  """Returns a client work that clips its gradients."""
  weights_type, data_type = _pair_types()

  @tff.federated_computation
  def initialize():
    return tff.federated_value((), tff.SERVER)

  @tff.tensorflow.computation(weights_type, data_type)
  def update(weights, dataset):
    trained, num_examples = _train_on_pairs(
        dataset, weights.trainable, optimizer, True
    )
    return tff.learning.templates.ClientResult(
        update=tf.nest.map_structure(tf.subtract, trained, weights.trainable),
        update_weight=num_examples,
    )

  @tff.federated_computation(
      initialize.type_signature.result,
      _at_clients(weights_type),
      _at_clients(data_type),
  )
  def next_fn(state, weights, clients):
    result = tff.federated_map(update, (weights, clients))
    measurements = tff.federated_value((), tff.SERVER)
    return tff.templates.MeasuredProcessOutput(state, result, measurements)

  return tff.learning.templates.ClientWorkProcess(initialize, next_fn)


@pipeline.pipeline(plans.CACHED)
def composing_learning_algorithms() -> pipeline.Run:
  weights_type, _ = _pair_types()
  templates = tff.learning.templates
  process = templates.compose_learning_process(
      _initial_weights(),
      templates.build_broadcast_process(weights_type),
      _clipping_work(training.sgd(0.01)),
      tff.aggregators.MeanFactory().create(
          weights_type.trainable, tff.TensorType(np.float32)
      ),
      templates.build_apply_optimizer_finalizer(
          training.sgd(1.0), weights_type
      ),
  )
  return training.of_process(process, _pairs_of_digits())


class _ScalingFactory(tff.aggregators.UnweightedAggregationFactory):
  """Scales values by the number of the round, and the sum back."""

  def __init__(self, inner=None):
    self._inner = inner or tff.aggregators.SumFactory()

  def create(self, value_type):
    inner = self._inner.create(value_type)
    count = tff.tensorflow.computation(lambda number: number + 1.0)

    @tff.tensorflow.computation
    def scale(value, factor):
      return tf.nest.map_structure(lambda leaf: leaf * factor, value)

    @tff.tensorflow.computation
    def unscale(value, factor):
      return tf.nest.map_structure(lambda leaf: leaf / factor, value)

    @tff.federated_computation
    def initialize():
      number = tff.federated_value(0.0, tff.SERVER)
      return tff.federated_zip((number, inner.initialize()))

    @tff.federated_computation(
        initialize.type_signature.result, _at_clients(value_type)
    )
    def next_fn(state, value):
      number = tff.federated_map(count, state[0])
      scaled = tff.federated_map(
          scale, (value, tff.federated_broadcast(number))
      )
      output = inner.next(state[1], scaled)
      return tff.templates.MeasuredProcessOutput(
          state=tff.federated_zip((number, output.state)),
          result=tff.federated_map(unscale, (output.result, number)),
          measurements=tff.federated_zip(
              collections.OrderedDict(
                  scaled=output.result, inner=output.measurements
              )
          ),
      )

    return tff.templates.AggregationProcess(initialize, next_fn)


@pipeline.pipeline(plans.COMPILED)
def custom_aggregators() -> pipeline.Run:
  value_type = tff.to_type([(np.float32, (2,)), (np.float32, (3,))])
  process = _ScalingFactory(_ScalingFactory()).create(value_type)
  clients = [[[1.0, 2.0], [3.0, 4.0, 5.0]], [[1.0, 1.0], [3.0, 0.0, -5.0]]]
  show = lambda value: value
  return training.of_outputs(process, clients, show, show)


@pipeline.pipeline(plans.COMPILED)
def federated_select() -> pipeline.Run:
  words = tff.TensorType(np.str_, [None])

  @tff.tensorflow.computation(np.str_)
  def keys(line):
    numbers = tf.strings.split([line], sep=',')[0]
    return tf.strings.to_number([numbers[0], numbers[1]], tf.int32)

  @tff.tensorflow.computation(tff.SequenceType(np.str_))
  def join(values):
    return values.reduce('', lambda done, word: done + ',' + word)

  size = tff.tensorflow.computation(lambda value: tf.size(value))
  pick = tff.tensorflow.computation(lambda value, key: tf.gather(value, key))

  @tff.federated_computation(_at_server(words), _at_clients(np.str_))
  def select(value, clients):
    found = tff.federated_select(
        tff.federated_map(keys, clients),
        tff.federated_map(size, value),
        value,
        pick,
    )
    return tff.federated_map(join, found)

  return training.of_calls(select, ['a', 'b', 'c'], ['0,1', '1,2', '2,0'])


@pipeline.pipeline(plans.COMPILED)
def sparse_training_by_federated_select() -> pipeline.Run:
  num_rows, num_features = 1000, 20
  table_type = tff.TensorType(np.float32, [num_rows, num_features])
  keys_type = tff.TensorType(np.int32, [8])
  pick = tff.tensorflow.computation(lambda value, key: tf.gather(value, key))
  num_keys = tff.tensorflow.computation(lambda: num_rows)

  @tff.tensorflow.computation(
      tff.SequenceType(tff.TensorType(np.float32, [num_features])), keys_type
  )
  def update(rows, keys):
    picked = rows.batch(8).reduce(
        tf.zeros([8, num_features]), lambda _, batch: tf.reshape(batch, [8, -1])
    )
    step = 0.1 * (1.0 - picked)
    return tf.scatter_nd(keys[:, None], step, [num_rows, num_features])

  add = tff.tensorflow.computation(lambda table, step: table + step)

  @tff.federated_computation(_at_server(table_type), _at_clients(keys_type))
  def train(table, keys):
    rows = tff.federated_select(
        keys, tff.federated_eval(num_keys, tff.SERVER), table, pick
    )
    steps = tff.federated_map(update, (rows, keys))
    return tff.federated_map(add, (table, tff.federated_sum(steps)))

  generator = np.random.default_rng(0)
  clients = [
      generator.choice(num_rows, size=8, replace=False).astype(np.int32)
      for _ in range(10)
  ]
  start = generator.normal(size=[num_rows, num_features]).astype(np.float32)
  return training.of_state(lambda: start, train, clients)


# The smallest of three numbers of a standard normal distribution: the contexts
# have three clients if the argument does not tell.
@pipeline.pipeline(plans.COMPILED, pipeline.drawn(-0.8463, 0.7480))
def noise_at_clients() -> pipeline.Run:
  @tff.tensorflow.computation
  def noise():
    return tf.random.Generator.from_non_deterministic_state().normal([100])

  @tff.federated_computation
  def extremes():
    values = tff.federated_eval(noise, tff.CLIENTS)
    return tff.federated_min(values), tff.federated_max(values)

  def rounds():
    yield ()
    while True:
      low, _ = extremes()
      yield low

  return pipeline.Run(rounds, extremes)


@pipeline.pipeline(plans.COMPILED, pipeline.drawn(0.0, 1.0))
def noise_without_clients() -> pipeline.Run:
  @tff.tensorflow.computation(np.int32)
  def noise(_):
    return tf.random.normal([1000])

  return training.of_calls(noise, 1)


@pipeline.pipeline(plans.COMPILED, pipeline.drawn(0.0, 0.5))
def noise_of_differential_privacy() -> pipeline.Run:
  factory = tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
      noise_multiplier=5.0, clients_per_round=10, clip=1.0
  )
  process = factory.create(tff.TensorType(np.float32, [500]))
  clients = [np.zeros(500, np.float32)] * 10
  return training.of_outputs(process, clients, lambda output: output.result)


class _AsyncContext:
  """The installed context, as `tff.program` calls it."""

  def __init__(self):
    self._context = tff.framework.get_context_stack().current

  async def invoke(self, comp, arg):
    return self._context.invoke(comp, arg)


@pipeline.pipeline(plans.CACHED, known_ratio=0.5)
def federated_program() -> pipeline.Run:
  model = training.functional(
      training.softmax_model(), client_data.FLAT_DIGITS, from_logits=False
  )
  process = tff.learning.algorithms.build_weighted_fed_avg(
      model, training.sgd(0.02)
  )
  clients = client_data.datasets(
      lambda dataset: dataset.shuffle(500, seed=2)
      .batch(20)
      .map(client_data.flat_digits)
  )
  # All clients in each round: the source samples without a seed.
  data_source = tff.program.DatasetDataSource(clients)
  places = {id(dataset): place for place, dataset in enumerate(clients)}

  async def initialize():
    return await tff.program.materialize_value(process.initialize())

  async def train_a_round(state, manager, number):
    selected = sorted(
        data_source.iterator().select(len(clients)),
        key=lambda dataset: places[id(dataset)],
    )
    output = process.next(state, selected)
    state = await tff.program.materialize_value(output.state)
    await manager.save(state, number)
    return state

  def rounds():
    context = tff.program.NativeFederatedContext(_AsyncContext())
    stack = tff.framework.get_context_stack()
    with tempfile.TemporaryDirectory() as folder:
      manager = tff.program.FileProgramStateManager(folder)
      with stack.install(context):
        state = asyncio.run(initialize())
      number = 0
      while True:
        yield state.global_model_weights
        number += 1
        with stack.install(context):
          state = asyncio.run(train_a_round(state, manager, number))

  return pipeline.Run(rounds, process.next)

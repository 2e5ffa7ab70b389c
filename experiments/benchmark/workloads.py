# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The workloads and runtimes to measure; imports no TensorFlow."""

from collections.abc import Mapping
import math
from typing import Any, Optional

import attrs

FUNCTIONAL = 'functional'
VARIABLE = 'variable'
KERAS_3 = 'keras_3'

RUNTIMES_OF_A_MODEL = 'runtimes'
ALGORITHMS = 'algorithms'
TASKS = 'tasks'


@attrs.frozen
class Workload:
  """The settings of a federated training.

  Attributes:
    name: The name on the command line and in the files.
    summary: The description in `--help`.
    model: The model and its data: a key of `models.MODELS`.
    num_clients: The number of clients.
    clients_per_round: The cohort sizes, measured one after the other.
    examples_per_client: The sizes of the smallest and the largest client; the
      others are evenly spaced.
    batch_size: The number of examples in a batch.
    client_learning_rate: The learning rate of SGD on the clients.
    server_optimizer: A key of `models.SERVER_OPTIMIZERS`.
    server_learning_rate: The learning rate of the server optimizer.
    form: The form of the model: `FUNCTIONAL` or `VARIABLE`, TFF's forms of a
      Keras 2 model, or `KERAS_3`, a Keras 3 model by `models.from_keras`.
    client_optimizer: A key of `models.CLIENT_OPTIMIZERS`.
    peer_name: The name of the workload in the files of peers; empty for the
      same name.
    num_rows: The number of distinct examples that the clients share, if their
      own would not fit into memory; None for no sharing.
    kind: `RUNTIMES_OF_A_MODEL`; `ALGORITHMS`, to compare algorithms on the
      compiled runtime, each with its own optimizers; or `TASKS`, to train every
      task with its own protocol, ignoring the settings of the workload.
  """

  name: str
  summary: str
  model: str
  num_clients: int
  clients_per_round: tuple[int, ...]
  examples_per_client: tuple[int, int]
  batch_size: int
  client_learning_rate: float = 0.1
  server_optimizer: str = 'adam'
  server_learning_rate: float = 1e-3
  form: str = FUNCTIONAL
  client_optimizer: str = 'tff_sgdm'
  peer_name: str = ''
  num_rows: Optional[int] = None
  kind: str = RUNTIMES_OF_A_MODEL


_SO_LOGREG = Workload(
    name='so_logreg',
    summary='500 tags from the frequencies of 10,000 words, 10 clients of 2 '
    'steps',
    model='tags',
    num_clients=20,
    clients_per_round=(10,),
    examples_per_client=(200, 200),
    batch_size=100,
    server_optimizer='adagrad',
    server_learning_rate=0.1,
)
_EMNIST_CNN = Workload(
    name='emnist_cnn',
    summary='CNN with dropout on 28x28 images, 10 clients of 5 steps',
    model='cnn',
    num_clients=50,
    clients_per_round=(10,),
    examples_per_client=(100, 100),
    batch_size=20,
)
_TINY_MANY = Workload(
    name='tiny_many',
    summary='logistic regression 784-10, 100 clients of 1 step',
    model='logistic',
    num_clients=300,
    clients_per_round=(100,),
    examples_per_client=(20, 20),
    batch_size=20,
)

WORKLOADS: Mapping[str, Workload] = {
    workload.name: workload
    for workload in (
        _TINY_MANY,
        _EMNIST_CNN,
        Workload(
            name='shakespeare_lstm',
            summary='two LSTMs of 256 on 80 tokens, 10 clients of 4 steps',
            model='lstm',
            num_clients=50,
            clients_per_round=(10,),
            examples_per_client=(16, 16),
            batch_size=4,
            client_learning_rate=1.0,
        ),
        _SO_LOGREG,
        attrs.evolve(
            _SO_LOGREG,
            name='so_logreg_words',
            summary='so_logreg from the words, by gathered rows',
            model='word_tags',
            # Ours, unlike TFF's, keeps gradients sparse.
            client_optimizer='sgd',
        ),
        Workload(
            name='pfl_cifar10',
            summary="Table 1 of pfl-research: emnist_cnn's CNN on 32x32 color "
            'images, 50 of 1,000 clients of 5 steps',
            model='color_cnn',
            num_clients=1000,
            clients_per_round=(50,),
            examples_per_client=(50, 50),
            batch_size=10,
            server_optimizer='sgd',
            server_learning_rate=1.0,
            num_rows=5000,
        ),
        attrs.evolve(
            _TINY_MANY,
            name='scaling',
            summary='tiny_many with 10, 100, 1,000 and 10,000 clients',
            num_clients=10_000,
            clients_per_round=(10, 100, 1000, 10_000),
            num_rows=6000,
        ),
        attrs.evolve(
            _TINY_MANY,
            name='ragged',
            summary='tiny_many with clients of 1 to 400 examples',
            num_clients=100,
            examples_per_client=(1, 400),
        ),
        attrs.evolve(
            _TINY_MANY,
            name='variable_model',
            peer_name='tiny_many',
            summary='tiny_many with a VariableModel',
            form=VARIABLE,
        ),
        attrs.evolve(
            _TINY_MANY,
            name='tiny_keras_3',
            peer_name='tiny_many',
            summary='tiny_many with a Keras 3 model, which reports its loss',
            form=KERAS_3,
        ),
        attrs.evolve(
            _EMNIST_CNN,
            name='cnn_keras_3',
            peer_name='emnist_cnn',
            summary='emnist_cnn with a Keras 3 model, which reports its loss',
            form=KERAS_3,
        ),
        attrs.evolve(
            _EMNIST_CNN,
            name='algorithms',
            summary='emnist_cnn with every algorithm that it compiles',
            kind=ALGORITHMS,
        ),
        attrs.evolve(
            _TINY_MANY,
            name='tasks',
            summary='every task of experiments.train, with FedAvg',
            kind=TASKS,
        ),
    )
}


# The workloads that compare runtimes on one model.
OF_RUNTIMES = tuple(
    name
    for name, workload in WORKLOADS.items()
    if workload.kind == RUNTIMES_OF_A_MODEL
)


@attrs.frozen
class Runtime:
  """A runtime to measure.

  Attributes:
    name: The name on the command line and in the files.
    arguments: The arguments of its builder, besides the clients at once.
    row: Its name in the registry; by default the same name.
    max_clients_per_round: The largest cohort to measure; with more clients a
      round takes minutes.
  """

  name: str
  arguments: Mapping[str, Any] = attrs.field(factory=dict)
  row: str = attrs.field(
      default=attrs.Factory(lambda self: self.name, takes_self=True)
  )
  max_clients_per_round: float = math.inf

  @property
  def takes_cohorts(self) -> bool:
    """Whether it is ours: takes a `Cohort`, and numbers of clients at once."""
    return self.row != 'native'


# Falling back to the native runtime would measure the wrong one.
_STRICT = {'strict': True}
RUNTIMES: Mapping[str, Runtime] = {
    runtime.name: runtime
    for runtime in (
        Runtime('native', max_clients_per_round=100),
        Runtime('compiled', _STRICT),
        Runtime('xla', {**_STRICT, 'devices': 'XLA:CPU'}, row='compiled'),
        *(
            Runtime(f'ray_{n}', {**_STRICT, 'num_workers': n}, row='ray')
            for n in (1, 2, 4)
        ),
    )
}

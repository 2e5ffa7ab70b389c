# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The workloads, runtimes and algorithms to measure; imports no TensorFlow."""

from collections.abc import Callable, Iterator, Mapping
import math
from typing import Any, Optional

import attrs

from experiments import hparams
from experiments import registry

FUNCTIONAL = 'functional'
VARIABLE = 'variable'
KERAS_3 = 'keras_3'

COMPARE_RUNTIMES = 'runtimes'
COMPARE_ALGORITHMS = 'algorithms'
TRAIN_TASKS = 'tasks'


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
    kind: `COMPARE_RUNTIMES`; `COMPARE_ALGORITHMS`, to compare algorithms on the
      compiled runtime, each with its own optimizers; or `TRAIN_TASKS`, to train
      every task with its own protocol, ignoring the settings of the workload.
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
  kind: str = COMPARE_RUNTIMES


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
            kind=COMPARE_ALGORITHMS,
        ),
        attrs.evolve(
            _TINY_MANY,
            name='tasks',
            summary='every task of experiments.train, with FedAvg',
            kind=TRAIN_TASKS,
        ),
    )
}


# The workloads that compare runtimes on one model.
OF_RUNTIMES = tuple(
    name
    for name, workload in WORKLOADS.items()
    if workload.kind == COMPARE_RUNTIMES
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


# The rows that an algorithm uses by default.
_ROWS = {
    registry.CLIENT_OPTIMIZER: 'sgd',
    registry.SERVER_OPTIMIZER: 'fedavg',
    registry.LOSS_TERM: 'none',
}
# In units of a gradient: a loss is a forward pass, and the backward pass has
# twice its arithmetic.
_COST_OF_LOSS = 1 / 3


@attrs.frozen(kw_only=True)
class Algorithm:
  """An algorithm made of rows of the registry with their defaults.

  Attributes:
    name: The name on the command line and in the files.
    algorithm: The row that builds the process.
    rows: The names of other rows by kind.
    client_arguments: Arguments of the client optimizer.
    extra_gradients: Gradients per step that no metric counts, since they belong
      to a term of the loss.
    extra_losses: Forward passes per step that no metric counts, since they
      belong to a term of the loss or to a report.
  """

  name: str
  algorithm: str = 'fed_opt'
  rows: Mapping[str, str] = attrs.field(factory=dict)
  client_arguments: Mapping[str, Any] = attrs.field(factory=dict)
  extra_gradients: int = 0
  extra_losses: int = 0

  def build(
      self,
      model: Any,
      num_clients: int,
      build_representation_fn: Callable[[], Any],
  ) -> Any:
    """Builds the learning process.

    Args:
      model: The model, in any form that TFF accepts.
      num_clients: The number of clients.
      build_representation_fn: Builds the representation of the model, called
        only for algorithms that need it.

    Returns:
      The process.
    """
    row = registry.ROWS[registry.ALGORITHM][self.algorithm]
    names = {**_ROWS, **row.part_names, **self.rows}
    parts = {
        kind: hparams.Choice(registry.ROWS[kind][name], {})
        for kind, name in names.items()
    }
    client_optimizer = parts[registry.CLIENT_OPTIMIZER].with_values(
        **self.client_arguments
    )
    term = parts[registry.LOSS_TERM]
    needed = {}
    if 'representation_fn' in term.row.supplied:
      needed['representation_fn'] = build_representation_fn()
    return hparams.Choice(row, {}).build(
        model=model,
        client_optimizer=client_optimizer.build(num_clients=num_clients),
        server_optimizer=parts[registry.SERVER_OPTIMIZER].build(),
        loss_term=term.build(**needed),
    )

  def explained_cost(
      self, gradients_per_step: float, trials_per_step: float
  ) -> float:
    """Returns the cost of a step's evaluations, in units of a gradient.

    Args:
      gradients_per_step: The gradients counted by the metrics.
      trials_per_step: The losses evaluated at trial step sizes.

    Example:

      >>> ALGORITHMS['fedavg'].explained_cost(1.0, 0.0)
      1.0
    """
    losses = trials_per_step + self.extra_losses
    return gradients_per_step + self.extra_gradients + _COST_OF_LOSS * losses


_EXTRA: Mapping[str, Mapping[str, Any]] = {
    # The representation of a step, and those of the two other models.
    'moon': {'extra_gradients': 1, 'extra_losses': 2},
    # The loss of every batch at the final model.
    'fedexprox_stops': {'extra_losses': 1},
}
# Two exchanges a round, which the compiled runtime leaves to TFF's.
_NOT_COMPILED = frozenset({'mime'})


def _rules() -> Iterator[tuple[str, str]]:
  """Yields kind and name of the rules that combine with any others."""
  for kind, usual in _ROWS.items():
    for name, row in registry.ROWS[kind].items():
      needs_values = any(argument.is_required for argument in row.arguments)
      if name != usual and name not in registry.FIXED | _NOT_COMPILED:
        if not needs_values:
          yield kind, name


ALGORITHMS: Mapping[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        # The first is the baseline of the comparison.
        Algorithm(name='fedavg'),
        *(
            Algorithm(name=name, rows={kind: name}, **_EXTRA.get(name, {}))
            for kind, name in _rules()
        ),
        Algorithm(
            name='delta_sgd_reuse',
            rows={registry.CLIENT_OPTIMIZER: 'delta_sgd'},
            client_arguments={'previous_gradient': 'reuse'},
        ),
        *(
            Algorithm(name=name, algorithm=name)
            for name, row in registry.ROWS[registry.ALGORITHM].items()
            if row.parts
        ),
    )
}

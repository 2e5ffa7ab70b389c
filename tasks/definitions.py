# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A task as a value: its data, models, clients and protocol, defined once.

Everything else follows from the value: the task with both forms of its model,
the flags of the binaries, synthetic data, and the row in the documentation.
This module does not import TensorFlow, so that `--help` is quick; models are
named as 'module:function', and imported when they are built.
"""

from collections.abc import Callable, Mapping
import functools
import importlib
import inspect
import operator
import pathlib
import types
from typing import Any, Optional, TYPE_CHECKING, Union

import attrs

from tasks import clients as clients_lib
from tasks import data as data_lib
from tasks import npz_data
from tasks import sources
from tasks import synthetic_data
from tasks.arguments import Argument
from tff_adaptive import _files
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import protocol as protocol_lib
from tff_adaptive.data import sources as client_sources
from tff_adaptive.data import transforms

if TYPE_CHECKING:
  import keras

  from tff_adaptive.simulation import task as task_lib

# The parts of a task.
NpzData = npz_data.NpzData
Partition = clients_lib.Partition
Protocol = protocol_lib.Protocol
# A function, or its location 'module:function'.
Reference = Union[str, Callable[..., Any]]

_MODEL = 'model_id'
_LOSS = 'loss'
# Losses of class scores, besides softmax cross entropy.
SCORE_LOSSES: Mapping[str, Reference] = {
    'multiclass_hinge': 'tasks.keras_forms:build_multiclass_hinge'
}


def resolve(reference: Reference) -> Any:
  """Returns the object that a reference names; the name may have dots."""
  if not isinstance(reference, str):
    return reference
  module, _, name = reference.partition(':')
  return operator.attrgetter(name)(importlib.import_module(module))


def _call(reference: Reference, **offered: Any) -> Callable[[], Any]:
  """Binds those of the offered arguments that a function takes."""
  function = resolve(reference)
  taken = inspect.signature(function).parameters
  wanted = {name: offered[name] for name in taken if name in offered}
  return functools.partial(function, **wanted)


@attrs.frozen(kw_only=True, eq=False)
class TaskDefinition:
  """A learning task with any loss; see `ClassificationTask` for the usual one.

  Attributes:
    name: The name of the task, as in `--task`; its flags begin with it.
    data: The source of the examples and their form for the model.
    models: The functions that build a Keras model, by the name that
      `--<name>_model` chooses; the first one is the default. A single function
      if there is no choice. A function may take any of `seed`, `input_shape`
      (of the feature 'x' of an example), `num_classes` and the arguments of the
      task, by name. The same seed must give the same initial weights.
    loss: Builds the Keras loss of a batch.
    metrics: Builds the Keras metrics. Both may take the arguments of models.
    other_losses: Functions that build another loss, by the name that
      `--<name>_loss` chooses. Defaults to none.
    protocol: The training protocol.
    clients: The partition of training examples among clients. None (the
      default) if the data come with clients.
    source: The publication of the data, for `python -m tasks.fetch`. None (the
      default) without one.
    summary: A description of the clients for docs/tasks.md.
    model_help: The help text of the model's flag.
    has_representations: Whether `client_works.build_moon` may compare the
      inputs of the last layer.
  """

  name: str
  data: data_lib.Data
  models: Union[Reference, Mapping[str, Reference]]
  loss: Reference
  metrics: Reference
  protocol: Protocol
  other_losses: Mapping[str, Reference] = attrs.field(factory=dict)
  clients: Optional[Partition] = None
  source: Optional[sources.Dataset] = None
  summary: str = ''
  model_help: str = 'The model to train.'
  has_representations: bool = True

  @property
  def model_ids(self) -> tuple[str, ...]:
    """The names of the models, the default first; empty without a choice."""
    return tuple(self.models) if isinstance(self.models, Mapping) else ()

  @property
  def arguments(self) -> tuple[Argument, ...]:
    """The arguments of `create`, with flags, defaults and help texts."""
    found: list[Argument] = []
    if self.clients is not None:
      found.extend(self.clients.arguments)
    if ids := self.model_ids:
      found.append(Argument(_MODEL, ids[0], self.model_help, choices=ids))
    if self.other_losses:
      found.append(
          Argument(
              _LOSS,
              None,
              "What is minimized in place of the task's own loss.",
              type=str,
              choices=tuple(self.other_losses),
          )
      )
    return (*found, *self.data.arguments)

  def create(
      self,
      data_dir: Optional[_files.PathLike] = None,
      *,
      seed: int = 0,
      protocol: Optional[Protocol] = None,
      **arguments: Any,
  ) -> 'task_lib.Task':
    """Builds the task on its published data.

    Args:
      data_dir: The folder of the data sets. Unused by tasks that include their
        data.
      seed: The seed of the partition and of the initial weights, a non-negative
        integer. Defaults to 0.
      protocol: The training protocol. Defaults to the task's own.
      **arguments: Any of `arguments`, by name.

    Returns:
      The task.

    Raises:
      FileNotFoundError: If the data do not exist.
      TypeError: If there is no such argument, a number is not an integer, or
        `data_dir` is missing.
      ValueError: If the data are damaged, an argument is out of range or has no
        effect, or the protocol has more clients per round than there are.

    Example:

      >>> from tasks import mnist
      >>> task = mnist.MNIST.create('data', alpha=0.01, model_id='logistic')
      >>> len(task.train_data.client_ids)
      100
    """
    args = self._complete(arguments)
    if data_dir is None and self.data.reads_files:
      raise TypeError(
          f'`data_dir` is missing: the task {self.name!r} reads files.'
      )
    splits = self.data.load(args, data_dir, seed)
    if splits.validation and not self.data.has_validation(vars(args)):
      raise ValueError(
          f'The data of the task {self.name!r} have validation examples: let '
          'their `has_validation` return True, so that these choose rounds and '
          'methods.'
      )
    prepare = self.data.build_prepare(args, splits.train, data_dir)
    train = splits.train
    if isinstance(train, client_data.ClientArrays):
      if self.clients is not None:
        train = self.clients.choose(train, args, seed)
      train = self._prepare_clients(train, args, prepare)
    else:
      train = feature_arrays.as_examples(train, 'The training data')
      if self.clients is None:
        raise ValueError(
            f'The data of the task {self.name!r} come without clients: give '
            'the task `clients`, such as `definitions.Partition()`, or '
            '`NpzData` the name of an array of `client_ids`.'
        )
      train = self.clients.split(prepare(train), args, seed)
    return self._build(splits, train, prepare, args, seed, protocol)

  def create_from_data(
      self,
      train_data: client_sources.ClientSource,
      central_test: client_sources.ExampleSource,
      *extra: Any,
      test_data: Optional[client_sources.ClientSource] = None,
      validation: Optional[client_sources.ExampleSource] = None,
      seed: int = 0,
      protocol: Optional[Protocol] = None,
      **arguments: Any,
  ) -> 'task_lib.Task':
    """Builds the task on your data, in the form of its published data.

    Args:
      train_data: The clients, in any form that `data.read_clients` takes: a
        mapping from client ids to features, `ClientArrays`, TFF's `ClientData`,
        or a file, of which the rows of split 'train' are used if it has splits.
      central_test: The test set, in any form that `data.read_examples` takes;
        of a file with splits, 'test'.
      *extra: Further inputs of the data, in the order of
        `data.extra_arguments`, such as a vocabulary for Stack Overflow. They
        may also be given by name.
      test_data: Clients to evaluate on, like `train_data`. Defaults to none.
      validation: Validation examples, like `central_test`; of a file with
        splits, 'validation'. Defaults to none.
      seed: The seed of the initial weights. Defaults to 0.
      protocol: The training protocol. Defaults to the task's own.
      **arguments: Any of `arguments`, by name, except those about the
        partition.

    Returns:
      The task.

    Raises:
      FileNotFoundError: If a file is missing.
      TypeError: If an input has the wrong type, there is no such argument, or
        one is about the partition.
      ValueError: If the features are not those of the task, an argument is out
        of range, or the protocol has more clients per round than there are.

    Example:

      >>> from tasks import mnist
      >>> images = {'x': np.zeros([3, 28, 28], np.uint8), 'y': [0, 9, 4]}
      >>> protocol = Protocol(2, 1, clients_per_round=1, total_rounds=5)
      >>> mnist.MNIST.create_from_data(
      ...     {'a': images}, images, protocol=protocol).name
      'mnist'
    """
    if len(extra) > len(self.data.extra_arguments):
      raise TypeError(
          f'The task {self.name!r} takes the clients and the test set'
          f'{"".join(f", {name}" for name in self.data.extra_arguments)} as '
          'positional arguments, and all others by name.'
      )
    of_files = self.clients.arguments if self.clients is not None else ()
    for argument in of_files:
      if argument.name in arguments:
        raise TypeError(
            f'`{argument.name}` does not apply to data of your own; omit it.'
        )
    arguments.update(zip(self.data.extra_arguments, extra))
    args = self._complete(arguments)
    spec = self.data.published_spec()
    train = client_sources.read_clients(
        train_data, spec, split_name='train', needs_split=False
    )
    if self.data.in_memory and self.data.keeps_sizes:
      train = transforms.materialize(train)

    def read_examples(source, split_name, name):
      if source is None:
        return None
      return client_sources.read_examples(
          source, spec, split_name=split_name, needs_split=False, name=name
      )

    test = None
    if test_data is not None:
      test = client_sources.read_clients(
          test_data,
          spec,
          split_name='test',
          needs_split=False,
          name='The test clients',
      )
    splits = data_lib.Splits(
        train,
        read_examples(central_test, 'test', 'The central test data'),
        test,
        read_examples(validation, 'validation', 'The validation data'),
    )
    self.data.check(splits)
    prepare = self.data.build_prepare(args, train, None)
    clients = self._prepare_clients(train, args, prepare)
    return self._build(splits, clients, prepare, args, seed, protocol)

  def build_keras_model(
      self, model_id: Optional[str] = None, seed: int = 0, **arguments: Any
  ) -> 'keras.Model':
    """Builds the Keras model, without reading data.

    Args:
      model_id: The model. Defaults to the first one.
      seed: The seed of the initial weights, a non-negative integer.
      **arguments: Any of `arguments`, by name.

    Returns:
      The model.

    Raises:
      TypeError: If there is no such argument, or the seed is not an integer.
      ValueError: If an argument is out of range, or the seed is negative.

    Example:

      >>> from tasks import mnist
      >>> mnist.MNIST.build_keras_model('cnn', seed=1).count_params()
      21840
    """
    return self._model_builder(self._complete(arguments, model_id), seed)()

  def build_functional_model(
      self, model_id: Optional[str] = None, seed: int = 0, **arguments: Any
  ) -> Any:
    """Builds the model in functional form.

    The arguments and errors are those of `build_keras_model`.

    Returns:
      A `tff.learning.models.FunctionalModel`; None for a model without one,
      whose prediction for an example depends on its batch.
    """
    return self._forms(self._complete(arguments, model_id), seed).functional

  def build_variable_model_fn(
      self, model_id: Optional[str] = None, seed: int = 0, **arguments: Any
  ) -> Callable[[], Any]:
    """Builds a function that creates the same model with variables.

    The arguments and errors are those of `build_keras_model`.

    Returns:
      A function without arguments that returns a new
      `tff.learning.models.VariableModel`.
    """
    return self._forms(self._complete(arguments, model_id), seed).variable_fn

  def write_synthetic_data(self, data_dir: _files.PathLike) -> None:
    """Writes synthetic data to the place where `create` looks for real data.

    Args:
      data_dir: The folder of the data sets, created if missing. Existing files
        are kept; written files are the same every time.

    Example:

      >>> from tasks import mnist
      >>> mnist.MNIST.write_synthetic_data('made_up')
      >>> mnist.MNIST.create('made_up', model_id='logistic').name
      'mnist'
    """
    synthetic_data.write(self.data.synthetic_files, pathlib.Path(data_dir))

  def _complete(
      self, arguments: Mapping[str, Any], model_id: Optional[str] = None
  ) -> data_lib.Arguments:
    """Returns all arguments with their values, after checking them."""
    if model_id is not None:
      arguments = {**arguments, _MODEL: model_id}
    known = {argument.name: argument for argument in self.arguments}
    extra = self.data.extra_arguments
    unknown = [name for name in arguments if name not in {*known, *extra}]
    if unknown:
      raise TypeError(
          f'The task {self.name!r} has no argument {unknown[0]!r}; it has '
          f'{", ".join([*known, *extra])}.'
      )
    values = {name: argument.default for name, argument in known.items()}
    values.update(dict.fromkeys(extra), **arguments)
    args = self.data.complete(types.SimpleNamespace(**values))
    for name, argument in known.items():
      argument.check(getattr(args, name), values.get(_MODEL))
    return args

  def _model_builder(
      self, args: data_lib.Arguments, seed: int
  ) -> Callable[[], 'keras.Model']:
    models = self.models
    builder = models[args.model_id] if isinstance(models, Mapping) else models
    return _call(
        builder,
        **vars(args),
        seed=seed,
        num_classes=self.data.num_classes(args),
        input_shape=tuple(self.data.element_spec(args)['x'].shape),
    )

  def _forms(self, args: data_lib.Arguments, seed: int) -> Any:
    # TensorFlow takes seconds to import.
    from tasks import keras_forms  # pylint: disable=import-outside-toplevel

    chosen: Any = getattr(args, _LOSS, None)
    return keras_forms.KerasForms(
        self._model_builder(args, seed),
        self.data.element_spec(args),
        _call(self.other_losses.get(chosen, self.loss), **vars(args)),
        _call(self.metrics, **vars(args)),
    )

  def _prepare_clients(
      self,
      source: client_data.ClientArrays,
      args: data_lib.Arguments,
      prepare: Callable[..., Any],
  ) -> client_data.ClientArrays:
    mapped = transforms.map_clients(
        source,
        prepare,
        self.data.client_spec(args),
        keeps_sizes=self.data.keeps_sizes,
        cache_bytes=self.data.cache_bytes,
    )
    return transforms.materialize(mapped) if self.data.in_memory else mapped

  def _build(
      self,
      splits: data_lib.Splits,
      train: client_data.ClientArrays,
      prepare: Callable[..., Any],
      args: data_lib.Arguments,
      seed: int,
      protocol: Optional[Protocol],
  ) -> 'task_lib.Task':
    """Builds the task on prepared clients and published test data."""
    from tff_adaptive.simulation import task as task_lib  # pylint: disable=import-outside-toplevel

    augmentation = self.data.augmentation(args)

    def for_evaluation(examples):
      if examples is None:
        return None
      examples = prepare(examples)
      return augmentation.for_evaluation(examples) if augmentation else examples

    test = splits.test
    if test is not None:
      test = self._prepare_clients(test, args, prepare)
      if augmentation is not None:
        test = transforms.map_clients(
            test,
            augmentation.for_evaluation,
            self.data.element_spec(args),
            keeps_sizes=True,
        )
    forms = self._forms(args, seed)
    return task_lib.Task(
        name=self.name,
        functional_model=forms.functional,
        variable_model_fn=forms.variable_fn,
        train_data=train,
        central_test=for_evaluation(splits.central_test),
        protocol=protocol or self.protocol,
        test_data=test,
        num_classes=self.data.num_classes(args),
        representation_fn=(
            forms.representation_fn if self.has_representations else None
        ),
        validation=for_evaluation(splits.validation),
        augmentation=augmentation,
    )


@attrs.frozen(kw_only=True, eq=False)
class ClassificationTask(TaskDefinition):
  """A classification task with softmax cross entropy.

  Models return logits of shape [batch, num_classes]; the metric is 'accuracy'.
  The multi-class hinge loss is the other loss.
  The attributes are those of `TaskDefinition`.

  Example:

    ```python
    LEAVES = definitions.ClassificationTask(
        name='leaves',
        data=definitions.NpzData('leaves.npz', (64, 64, 3), 30),
        models={'cnn': build_cnn, 'logistic': build_logistic},
        clients=definitions.Partition(num_clients=100, alpha=0.1),
        protocol=definitions.Protocol(
            client_batch_size=20,
            client_epochs=1,
            clients_per_round=10,
            total_rounds=500,
        ),
    )
    ```
  """

  loss: Reference = 'tasks.keras_forms:build_softmax_loss'
  metrics: Reference = 'tasks.keras_forms:build_accuracy'
  other_losses: Mapping[str, Reference] = SCORE_LOSSES

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A learning task: clients, models and the training protocol."""

import collections
from collections.abc import Callable, Mapping
from typing import Any, Optional

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.client_works import local_models
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import protocol as protocol_lib
from tff_adaptive.data import specs
from tff_adaptive.data import tff_client_data
from tff_adaptive.data import transforms

_EVALUATION_BATCH_SIZE = 256
_SHUFFLE_BUFFER = 10_000


Protocol = protocol_lib.Protocol


def _optional(kind: Any) -> Any:
  validator = attrs.validators.optional(specs.instance_of(kind))
  return attrs.field(default=None, validator=validator)


@attrs.frozen(eq=False)
class Task:
  """The clients, models and training protocol of a simulation.

  The constructor checks that data and model match, before anything is traced.

  Attributes:
    name: The name of the task, as in `--task`.
    functional_model: The model in functional form, or None if it has none
      (batch normalization).
    variable_model_fn: Returns the model as a new
      `tff.learning.models.VariableModel`, with the same initial weights.
    train_data: The clients to train on.
    central_test: The whole test set, arrays of shape [num_examples, ...] with
      the features of the clients.
    protocol: The training protocol.
    test_data: Clients to evaluate on, or None (the default).
    num_classes: Labels are in [0, num_classes); None (the default) for tasks
      without classes. An argument of `data.check_clients`.
    representation_fn: Maps (trainable weights, batch), the weights a flat tuple
      in the model's order, to the representations of the batch's examples,
      [batch, ...]; an argument of `client_works.build_moon`. None (the default)
      if the model has none.
    validation: Central data for choosing hyperparameters, in the form of
      `central_test`, or None (the default).
    augmentation: The augmentation of `train_data`, whose result the model
      takes; None (the default) for none. Evaluation data are in the model's
      form.

  Raises:
    TypeError: If an attribute has the wrong type, or the model's `input_spec`
      is not a mapping (elements of clients are mappings).
    ValueError: If the features of the data and the model's `input_spec` differ
      (names the field, the spec found and the spec expected), or if
      `clients_per_round` exceeds the number of clients.

  Example: see `tasks.digits`.
  """

  name: str = attrs.field(validator=specs.instance_of(str))
  functional_model: Optional[tff.learning.models.FunctionalModel] = attrs.field(
      validator=attrs.validators.optional(
          specs.instance_of(tff.learning.models.FunctionalModel)
      )
  )
  variable_model_fn: Callable[[], tff.learning.models.VariableModel] = (
      attrs.field(validator=specs.instance_of(Callable))
  )
  train_data: client_data.ClientArrays = attrs.field(
      validator=specs.instance_of(client_data.ClientArrays)
  )
  central_test: feature_arrays.Examples = attrs.field(
      converter=lambda value: feature_arrays.as_examples(
          value, 'The central test data'
      )
  )
  protocol: Protocol = attrs.field(validator=specs.instance_of(Protocol))
  test_data: Optional[client_data.ClientArrays] = _optional(
      client_data.ClientArrays
  )
  num_classes: Optional[int] = attrs.field(
      default=None,
      validator=attrs.validators.optional(specs.positive_integer),
  )
  representation_fn: Optional[local_models.RepresentationFn] = _optional(
      Callable
  )
  validation: Optional[feature_arrays.Examples] = attrs.field(
      default=None,
      converter=attrs.converters.optional(
          lambda value: feature_arrays.as_examples(value, 'The validation data')
      ),
  )
  augmentation: Optional[batching.Augmentation] = _optional(
      batching.Augmentation
  )

  def __attrs_post_init__(self):
    input_spec = self.input_spec
    trained_on = (self.augmentation or self.train_data).element_spec
    check_input_spec(trained_on, input_spec, '`train_data`')
    if self.test_data is not None:
      check_input_spec(self.test_data.element_spec, input_spec, '`test_data`')
    for name in ('central_test', 'validation'):
      examples = getattr(self, name)
      if examples is not None:
        spec = feature_arrays.spec_of(examples)
        check_input_spec(spec, input_spec, f'`{name}`')
    num_clients = len(self.train_data.client_ids)
    if self.protocol.clients_per_round > num_clients:
      raise ValueError(
          f"The protocol's `clients_per_round` must be at most {num_clients}, "
          f'the number of clients, found {self.protocol.clients_per_round}.'
      )

  @property
  def model(self) -> Any:
    """The model for builders: the functional one, or `variable_model_fn`."""
    return self.functional_model or self.variable_model_fn

  @property
  def input_spec(self) -> Any:
    """The spec of a batch of the model, including the batch dimension."""
    if self.functional_model is not None:
      return self.functional_model.input_spec
    # In a graph, so that the variables of this model are freed.
    with tf.Graph().as_default():
      return self.variable_model_fn().input_spec

  def to_baseline_task(self) -> tff.simulation.baselines.BaselineTask:
    """Returns the task as one of TFF's baseline tasks.

    Returns:
      A `tff.simulation.baselines.BaselineTask` whose preprocessing takes,
      shuffles, repeats and batches according to `protocol` (with TFF's unseeded
      shuffling and augmentation), and whose test data are central. Its model is
      `variable_model_fn`.

    Raises:
      ValueError: If the model has an unknown dimension that the data fix, which
        TFF's baselines do not allow.
    """
    datasets = tff.simulation.baselines.BaselineTaskDatasets(
        train_data=tff_client_data.to_client_data(self.train_data),
        test_data=tf.data.Dataset.from_tensor_slices(self.central_test),
        train_preprocess_fn=_preprocess_fn(self.protocol, self.augmentation),
        eval_preprocess_fn=lambda data: data.batch(_EVALUATION_BATCH_SIZE),
    )
    return tff.simulation.baselines.BaselineTask(
        datasets, self.variable_model_fn
    )


def check_input_spec(
    element_spec: Mapping[str, tf.TensorSpec], input_spec: Any, owner: str
) -> None:
  """Raises unless batches of these elements match a model.

  Args:
    element_spec: Feature names and specs of one example, in order.
    input_spec: The spec of a batch of the model.
    owner: The owner of the elements, for error messages.

  Raises:
    TypeError: If `input_spec` is not a mapping.
    ValueError: If names, order, types or shapes differ. An unknown dimension of
      the model matches any size.

  Example:

    >>> spec = {'x': tf.TensorSpec([None, 3], tf.float32)}
    >>> check_input_spec({'x': tf.TensorSpec([3], tf.float32)}, spec, 'Data')
  """
  if not isinstance(input_spec, Mapping):
    raise TypeError(
        "The model's `input_spec` must be a mapping from feature names to "
        f'tf.TensorSpec, found {input_spec}.'
    )
  difference = specs.find_difference(
      specs.batched(element_spec), dict(input_spec), in_order=True
  )
  if difference is not None:
    raise ValueError(
        f"{owner} must match the model's `input_spec`, found {difference}."
    )


def _preprocess_fn(
    protocol: Protocol, augmentation: Optional[batching.Augmentation]
) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
  """Returns a client's preprocessing in `tf.data`, in a `BatchPlan`'s order."""

  def preprocess(dataset: tf.data.Dataset) -> tf.data.Dataset:
    if protocol.max_examples is not None:
      dataset = dataset.take(protocol.max_examples)
    # Repeating batched epochs keeps batches from spanning epochs.
    epoch = dataset.shuffle(_SHUFFLE_BUFFER, reshuffle_each_iteration=True)
    batches = epoch.batch(protocol.client_batch_size).repeat(
        protocol.client_epochs
    )
    return batches if augmentation is None else batches.map(augment)

  def augment(batch: Mapping[str, tf.Tensor]) -> Mapping[str, tf.Tensor]:
    assert augmentation is not None
    spec = augmentation.element_spec

    def in_numpy(*features):
      examples = collections.OrderedDict(zip(batch, features))
      return list(augmentation(examples, np.random.default_rng()).values())

    augmented = tf.numpy_function(
        in_numpy, list(batch.values()), [one.dtype for one in spec.values()]
    )
    for feature, one in zip(augmented, spec.values()):
      feature.set_shape([None, *one.shape])
    return collections.OrderedDict(zip(spec, augmented))

  return preprocess


def hold_out_clients(task: Task, num_clients: int, seed: int) -> Task:
  """Holds out some clients for testing only.

  Copies of their examples are left out of the clients to train on, see
  `data.transforms.split_clients`.

  Args:
    task: The task.
    num_clients: The number of sampled clients that are not trained on.
    seed: The seed of the sample.

  Returns:
    The task with the remaining clients to train on. The training examples of
    the held-out clients are its test data, by client and centrally.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If no examples, or fewer clients than a round needs, would
      remain to train on, the seed is negative, or the task's augmentation has
      no `evaluation_fn`.

  Example:

    >>> held_out = hold_out_clients(digits, 20, seed=0)
    >>> len(held_out.train_data.client_ids), len(held_out.test_data.client_ids)
    (30, 20)

  References:
    Zhou et al., FedCAda, https://arxiv.org/abs/2405.11811, hold out 20 clients
    of Shakespeare in this way.
  """
  clients = task.train_data
  total = len(clients.client_ids)
  if num_clients >= total:
    raise ValueError(
        f'`num_clients` must be at most {total - 1} of the {total} clients, so '
        f'that one remains to train on; found {num_clients}.'
    )
  sampled = transforms.sample_client_ids(clients.client_ids, num_clients, seed)
  return _with_held_out(task, *transforms.split_clients(clients, sampled))


def take_clients(task: Task, num_clients: int, seed: int) -> Task:
  """Restricts training to a sample of the clients.

  Args:
    task: The task.
    num_clients: The number of sampled clients.
    seed: The seed of the sample.

  Returns:
    The task with these clients. Test clients are restricted to the same ids, or
    all kept if there are none; the central test data stay the same.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If there are fewer clients, a round needs more, or the seed is
      negative.

  Example:

    >>> len(take_clients(digits, 10, seed=0).train_data.client_ids)
    10
  """
  ids = task.train_data.client_ids
  chosen = transforms.sample_client_ids(ids, num_clients, seed)
  test_data = task.test_data
  if test_data is not None:
    kept = set(chosen)
    matching = [name for name in test_data.client_ids if name in kept]
    test_data = transforms.select_clients(
        test_data, matching or test_data.client_ids
    )
  return attrs.evolve(
      task,
      train_data=transforms.select_clients(task.train_data, chosen),
      test_data=test_data,
  )


def hold_out_examples(task: Task, test_fraction: float, seed: int) -> Task:
  """Holds out a part of each client's training examples for testing.

  No example of any client is both trained on and held out, see
  `data.transforms.split_examples`.

  Args:
    task: The task.
    test_fraction: The fraction to hold out, in (0, 1); the number of examples
      is rounded down, and near the fraction if clients repeat examples.
    seed: The seed of the split.

  Returns:
    The task with the remaining examples to train on. The others are its test
    data, by client and centrally.

  Raises:
    ValueError: If `test_fraction` is out of range, there are too few different
      examples for it, or the task's augmentation has no `evaluation_fn`.

  Example:

    >>> held_out = hold_out_examples(digits, 0.25, seed=0)
    >>> len(held_out.train_data.client_ids)
    50

  References:
    Zhou et al., FedCAda, https://arxiv.org/abs/2405.11811, evaluate on a
    quarter of every client's examples.
  """
  train_data, test_data = transforms.split_examples(
      task.train_data, test_fraction, seed
  )
  return _with_held_out(task, train_data, test_data)


def hold_out_validation(task: Task, fraction: float, seed: int) -> Task:
  """Holds out a part of each client's training examples for validation.

  No example of any client is both trained on and held out, see
  `data.transforms.split_examples`.

  Args:
    task: The task.
    fraction: The fraction to hold out, in (0, 1); the number of examples is
      rounded down, and near the fraction if clients repeat examples.
    seed: The seed of the split.

  Returns:
    The task with the remaining examples to train on. The others together are
    its validation data, in place of any that it had; the test data are the
    same.

  Raises:
    ValueError: If `fraction` is out of range, there are too few different
      examples for it, or the task's augmentation has no `evaluation_fn`.

  Example:

    >>> held_out = hold_out_validation(digits, 0.25, seed=0)
    >>> len(held_out.validation['y']), held_out.train_data.total_examples
    (350, 1088)
  """
  train_data, held_out = transforms.split_examples(
      task.train_data, fraction, seed
  )
  validation = _as_evaluation_data(task, held_out).values
  return attrs.evolve(task, train_data=train_data, validation=validation)


def _with_held_out(
    task: Task,
    train_data: client_data.ClientArrays,
    held_out: client_data.ClientArrays,
) -> Task:
  """Returns the task with held-out training data as test data."""
  test_data = _as_evaluation_data(task, held_out)
  return attrs.evolve(
      task,
      train_data=train_data,
      test_data=test_data,
      central_test=test_data.values,
  )


def _as_evaluation_data(
    task: Task, held_out: client_data.ClientArrays
) -> client_data.PackedClientArrays:
  """Returns held-out training data in the form that the model takes."""
  packed = transforms.materialize(held_out)
  examples = transforms.concatenate(packed)
  if task.augmentation is not None:
    examples = task.augmentation.for_evaluation(examples)
  return client_data.PackedClientArrays(
      examples, packed.offsets, packed.client_ids
  )

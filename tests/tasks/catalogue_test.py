# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that every task is what its definition says, and names bad input."""

import copy

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tasks import catalogue
from tasks import definitions
from tests import folder_testing
from tff_adaptive.data import checks
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import partition
from tff_adaptive.data import transforms
from tff_adaptive.simulation import task as task_lib

_PROTOCOL = definitions.Protocol(
    4, 1, clients_per_round=2, total_rounds=3, max_examples=8
)
# Arguments that make a task small enough to build it once more.
_SMALL = {
    'digits': {'model_id': 'logistic', 'num_clients': 20},
    'mnist': {'model_id': 'logistic'},
    'fashion_mnist': {'model_id': 'logistic'},
    'emnist_cr': {'model_id': '2nn'},
    'cifar10': {'model_id': 'simple_cnn'},
    'cifar100': {'model_id': 'simple_cnn'},
    'shakespeare': {'model_id': 'small_lstm', 'sequence_length': 20},
    'stackoverflow_nwp': {'vocab_size': 50, 'num_test_examples': 20},
    'stackoverflow_lr': {'vocab_size': 50, 'num_test_examples': 20},
    'ag_news': {'vocab_size': 100, 'max_length': 10},
    'dbpedia': {'vocab_size': 100, 'max_length': 10},
}
_TASKS = tuple(catalogue.TASKS.items())


def _small(definition):
  return _SMALL.get(definition.name, {})


def _rows(examples):
  """Returns the bytes of each example."""
  return [
      b''.join(value.tobytes() for value in row)
      for row in zip(*examples.values())
  ]


class CatalogueTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = folder_testing.new(cls)
    cls.created = {}

  def _create(self, definition, seed=1):
    key = (definition.name, seed)
    if key not in self.created:
      definition.write_synthetic_data(self.folder)
      self.created[key] = definition.create(
          self.folder, seed=seed, protocol=_PROTOCOL, **_small(definition)
      )
    return self.created[key]

  @parameterized.named_parameters(*_TASKS)
  @pytest.mark.sample(4)
  def test_data_are_good(self, definition):
    task = self._create(definition)
    self.assertEqual(task.name, definition.name)
    checks.check_clients(
        task.train_data, num_classes=task.num_classes, max_clients=20
    )
    checks.check_central_examples(
        task.central_test, num_classes=task.num_classes
    )

  @parameterized.parameters(
      ('mnist', 100, 0.1),
      ('fashion_mnist', 100, 0.1),
      ('cifar10', 100, 0.1),
      ('ag_news', 50, 1.0),
      ('dbpedia', 50, 1.0),
  )
  @pytest.mark.sample(2)
  def test_clients_have_500_examples_drawn_by_their_classes(
      self, name, num_clients, alpha
  ):
    source = self._create(catalogue.TASKS[name]).train_data
    parts = partition.dirichlet_per_client(
        source.values['y'],
        num_clients,
        alpha,
        seed=1,
        examples_per_client=500,
        with_replacement=True,
    )
    self.assertLen(source.client_ids, num_clients)
    for client_id, rows in parts.items():
      np.testing.assert_array_equal(source.rows(client_id), rows)

  @parameterized.named_parameters(*_TASKS)
  @pytest.mark.sample(4)
  def test_no_held_out_example_is_trained_on(self, definition):
    task = self._create(definition)
    for hold_out, amount, part in (
        (task_lib.hold_out_examples, 0.25, 'central_test'),
        (task_lib.hold_out_validation, 0.25, 'validation'),
        (task_lib.hold_out_clients, 3, 'central_test'),
    ):
      held_out = hold_out(task, amount, seed=0)
      trained = transforms.concatenate(held_out.train_data)
      if task.augmentation is not None:
        trained = task.augmentation.for_evaluation(trained)
      tested = _rows(getattr(held_out, part))
      self.assertEmpty(set(tested) & set(_rows(trained)))
      if amount < 1:
        share = len(tested) / task.train_data.total_examples
        self.assertBetween(share, 0.22, 0.28)

  def test_no_held_out_example_of_a_small_file_is_trained_on(self):
    train_data = self._create(catalogue.TASKS['digits']).train_data
    examples = feature_arrays.take(train_data.values, slice(1437))
    parts = partition.by_scheme(
        'dirichlet_with_replacement',
        examples['y'],
        50,
        seed=0,
        alpha=0.1,
        examples_per_client='500',
    )
    clients = client_data.PackedClientArrays.from_partition(examples, parts)
    train, test = transforms.split_examples(clients, 0.3, seed=0)
    trained, tested = (set(part.indices.tolist()) for part in (train, test))
    self.assertEmpty(trained & tested)
    self.assertLen(trained | tested, 1437)
    for name in clients.client_ids:
      share = test.num_examples(name) / clients.num_examples(name)
      self.assertBetween(share, 0.15, 0.45)
    share = test.total_examples / clients.total_examples
    self.assertBetween(share, 0.29, 0.31)

  @parameterized.named_parameters(*_TASKS)
  @pytest.mark.sample(1)
  def test_both_forms_of_the_model_begin_with_the_keras_weights(
      self, definition
  ):
    # First, because Keras takes models in graphs for others.
    keras_model = definition.build_keras_model(seed=1, **_small(definition))
    weights = keras_model.get_weights()
    task = self._create(definition)
    functional = task.functional_model.initial_weights[0]
    with tf.Graph().as_default():
      variables = task.variable_model_fn().trainable_variables
      with tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.global_variables_initializer())
        of_variables = session.run(list(variables))
    self.assertNotEmpty(weights)
    for found in (functional, of_variables):
      np.testing.assert_equal(list(found), weights)

  @parameterized.named_parameters(*_TASKS)
  @pytest.mark.sample(1)
  def test_seed_decides_the_weights_and_not_the_test_set(self, definition):
    first, other = self._create(definition), self._create(definition, seed=2)
    self.assertTrue(
        any(
            np.any(one != another)
            for one, another in zip(
                first.functional_model.initial_weights[0],
                other.functional_model.initial_weights[0],
            )
        )
    )
    if 'num_test_examples' not in _small(definition):
      np.testing.assert_array_equal(
          first.central_test['x'], other.central_test['x']
      )

  @parameterized.named_parameters(*_TASKS)
  def test_arguments_are_documented_and_checked(self, definition):
    names = [argument.name for argument in definition.arguments]
    self.assertLen(set(names), len(names))
    for argument in definition.arguments:
      self.assertEndsWith(argument.help, '.')
      if argument.default is not None:
        self.assertIsInstance(argument.default, argument.type)
        argument.check(argument.default, None)
      if argument.choices:
        with self.assertRaisesRegex(ValueError, f'`{argument.name}` must be'):
          definition.create(self.folder, **{argument.name: 'none of these'})
      if argument.minimum is not None:
        too_small = {argument.name: argument.minimum - 1}
        with self.assertRaisesRegex(ValueError, f'`{argument.name}` must be'):
          definition.create(self.folder, **too_small)
    with self.assertRaisesRegex(TypeError, "has no argument 'color'"):
      definition.create(self.folder, color='red')

  @parameterized.named_parameters(*_TASKS)
  def test_missing_data_name_the_command(self, definition):
    if not definition.data.reads_files:
      self.skipTest('comes with its data')
    nowhere = self.folder / 'nowhere'
    command = (
        f'.venv/bin/python -m tasks.fetch {definition.source.name} --data_dir='
    )
    with self.assertRaisesRegex(FileNotFoundError, command):
      definition.create(nowhere)
    # Programs call it before they import TensorFlow.
    with self.assertRaisesRegex(FileNotFoundError, command):
      definition.data.check_files(nowhere)

  @parameterized.named_parameters(*_TASKS)
  @pytest.mark.slow
  def test_baseline_task_and_stock_algorithms_build(self, definition):
    task = self._create(definition)
    baseline = task.to_baseline_task()
    self.assertIsInstance(baseline, tff.simulation.baselines.BaselineTask)
    for model in (task.variable_model_fn, task.functional_model):
      tff.learning.algorithms.build_weighted_fed_avg(
          model, tff.learning.optimizers.build_sgdm(0.1)
      )

  def test_data_sets_of_tasks_are_listed_once(self):
    sources = {task.source for task in catalogue.TASKS.values() if task.source}
    self.assertEqual(set(catalogue.DATASETS.values()), sources)


# A task, its arguments, and the one that is refused.
_ARGUMENTS = (
    ('mnist', {'alpha': 0.0}, 'alpha'),
    ('mnist', {'num_clients': 0}, 'num_clients'),
    ('mnist', {'num_clients': 5}, 'clients_per_round'),
    ('mnist', {'examples_per_client': 'x'}, 'examples_per_client'),
    (
        'mnist',
        {'partition': 'shards', 'examples_per_client': '5'},
        'examples_per_client',
    ),
    ('mnist', {'partition': 'dirichlet_per_class', 'min_size': 99}, 'min_size'),
    ('cifar10', {'model_id': 'simple_cnn', 'norm': 'batch'}, 'norm'),
    ('cifar10', {'model_id': 'resnet18_v2', 'norm': 'batch'}, 'norm'),
    ('cifar10', {'augmentation': 'mixup'}, 'augmentation'),
    ('cifar100', {'partition': 'natural'}, 'partition'),
    ('cifar100', {'num_clients': 4, 'fine_alpha': 0.0}, 'fine_alpha'),
    ('stackoverflow_nwp', {'vocab_size': 10**6}, 'vocab_size'),
    ('stackoverflow_lr', {'tag_vocab_size': 10**6}, 'tag_vocab_size'),
    ('stackoverflow_lr', {'model_id': 'logistic', 'max_words': 8}, 'max_words'),
    ('ag_news', {'vocab_size': 10**6}, 'vocab_size'),
    ('ag_news', {'vocab_size': 50, 'num_clients': 4}, 'clients_per_round'),
    ('ag_news', {'vocab_size': 50, 'max_length': 4}, 'max_length'),
    ('ag_news', {'vocab_size': 50, 'pretrained_dir': 'x'}, 'pretrained_dir'),
)
_GOOD = {
    'mnist': {
        'x': np.zeros([3, 28, 28], np.uint8),
        'y': np.arange(3, dtype=np.int32),
    },
    'cifar10': {
        'image': np.zeros([3, 32, 32, 3], np.uint8),
        'label': np.arange(3, dtype=np.int32),
    },
    'emnist_cr': {
        'label': np.arange(3, dtype=np.int32),
        'pixels': np.zeros([3, 28, 28], np.float32),
    },
    'shakespeare': {'snippets': ['To be', 'or not to be']},
    'ag_news': {'text': ['a b c', 'd e'], 'label': [0, 3]},
}
_SMALL_CLIENTS = {
    'mnist': {'model_id': 'logistic'},
    'cifar10': {'model_id': 'simple_cnn'},
    'emnist_cr': {'model_id': '2nn'},
    'shakespeare': {'model_id': 'small_lstm', 'sequence_length': 6},
    'ag_news': {'model_id': 'bag_of_words', 'vocab_size': 6, 'max_length': 5},
}
# A task, and the feature that is not as `_GOOD` has it; None if it is missing.
_FEATURES = (
    ('mnist', 'x', np.zeros([3, 8, 8], np.uint8)),
    ('mnist', 'x', np.full([3, 28, 28], 0.5, np.float32)),
    ('cifar10', 'image', np.zeros([3, 8, 8, 3], np.uint8)),
    ('cifar10', 'image', np.zeros([3, 32, 32, 3], np.float32)),
    ('cifar10', 'image', None),
    ('emnist_cr', 'pixels', np.zeros([3, 784], np.float32)),
    ('emnist_cr', 'label', np.array([0.5, 1, 2])),
    ('emnist_cr', 'label', None),
    ('shakespeare', 'snippets', [1.5, 2.5]),
    ('shakespeare', 'snippets', [['x'], ['y']]),
    ('ag_news', 'label', [0, 4]),
    ('ag_news', 'label', [0, -1]),
    ('ag_news', 'label', [0.5, 1]),
    ('ag_news', 'label', None),
    ('ag_news', 'text', [3, 4]),
    ('ag_news', 'text', [['a b', 'c'], ['d', 'e']]),
)


class RefusalsTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = folder_testing.new(cls)
    for name in {name for name, *_ in _ARGUMENTS}:
      catalogue.TASKS[name].write_synthetic_data(cls.folder)

  @parameterized.parameters(*_ARGUMENTS)
  def test_argument(self, task, arguments, name):
    with self.assertRaisesRegex(ValueError, f'`{name}`') as caught:
      catalogue.TASKS[task].create(self.folder, **arguments)
    self.assertNotIn('\n', str(caught.exception))

  @parameterized.parameters(*_FEATURES)
  def test_feature_of_the_callers_examples(self, task, feature, value):
    good = _GOOD[task]
    bad = copy.copy(good)
    del bad[feature]
    if value is not None:
      bad[feature] = value
    for train, central_test in ((bad, good), (good, bad)):
      with self.assertRaisesRegex(ValueError, feature) as caught:
        catalogue.TASKS[task].create_from_data(
            {'ann': train},
            central_test,
            protocol=definitions.Protocol(2, 1, 1, 1),
            **_SMALL_CLIENTS[task],
        )
      self.assertNotIn('\n', str(caught.exception))

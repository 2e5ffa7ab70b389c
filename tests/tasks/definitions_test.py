# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `definitions`, by a task of a user's own."""

import functools
import json

from absl.testing import parameterized
import attrs
import numpy as np
import tensorflow as tf

from tasks import definitions
from tasks import keras_forms
from tasks import synthetic_data
from tests import folder_testing


def _sequential(shape, *layers):
  return tf.keras.Sequential([tf.keras.Input(shape), *layers])


def _build_mlp(input_shape, num_classes, seed):
  return _sequential(
      input_shape,
      tf.keras.layers.Dense(
          4,
          activation='relu',
          kernel_initializer=tf.keras.initializers.GlorotUniform(seed),
          kernel_regularizer='l2',
      ),
      tf.keras.layers.Dense(num_classes, kernel_initializer='zeros'),
  )


def _build_logistic(seed):
  del seed  # Unused.
  return _sequential([6], tf.keras.layers.Dense(3, kernel_initializer='zeros'))


def _build_recurrent(input_shape, num_classes):
  return _sequential(
      input_shape,
      tf.keras.layers.Reshape([6, 1]),
      tf.keras.layers.LSTM(2, kernel_regularizer='l2'),
      tf.keras.layers.Dense(num_classes, kernel_regularizer='l2'),
  )


def _build_with_batch_norm(input_shape, num_classes):
  return _sequential(
      input_shape,
      tf.keras.layers.BatchNormalization(),
      tf.keras.layers.Dense(num_classes),
  )


def _build_with_nested_batch_norm(input_shape, num_classes):
  return _sequential(
      input_shape,
      _build_with_batch_norm(input_shape, 4),
      tf.keras.layers.Dense(num_classes),
  )


LEAVES = definitions.ClassificationTask(
    name='leaves',
    data=definitions.NpzData('leaves.npz', (6,), 3),
    models={
        'mlp': _build_mlp,
        'logistic': _build_logistic,
        'batch_norm': _build_with_batch_norm,
        'nested_batch_norm': _build_with_nested_batch_norm,
        'recurrent': _build_recurrent,
    },
    clients=definitions.Partition(num_clients=5, alpha=1.0),
    protocol=definitions.Protocol(4, 1, clients_per_round=2, total_rounds=3),
)


class DefinitionsTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    generator = np.random.default_rng(1)
    self.arrays = {}
    for part, size in (('train', 30), ('test', 9)):
      self.arrays[f'x_{part}'] = generator.random([size, 6])
      self.arrays[f'y_{part}'] = np.arange(size) % 3

  def _create(self, task=LEAVES, **arguments):
    np.savez(self.folder / 'leaves.npz', **self.arrays)
    if task.clients is not None:
      arguments['examples_per_client'] = '4'
    return task.create(self.folder, **arguments)

  def _losses(self, task):
    """Returns the loss of the test set by both forms of the model."""
    batch = {name: tf.constant(task.central_test[name]) for name in 'xy'}
    model = task.variable_model_fn()
    of_variables = float(model.forward_pass(batch).loss)
    functional = task.functional_model
    with tf.Graph().as_default() as graph:
      output = functional.predict_on_batch(
          functional.initial_weights, task.central_test['x'], training=True
      )
      loss = functional.loss(output, task.central_test['y'])
      with tf.compat.v1.Session(graph=graph) as session:
        return float(session.run(loss)), of_variables

  def test_arguments_are_those_of_clients_and_models(self):
    names = [argument.name for argument in LEAVES.arguments]
    self.assertEqual(names[0], 'num_clients')
    self.assertIn('partition', names)
    self.assertEqual(names[-2:], ['model_id', 'loss'])

  def test_task_has_the_data_of_the_file(self):
    task = self._create()
    self.assertLen(task.train_data.client_ids, 5)
    self.assertEqual(task.train_data.values['x'].dtype, np.float32)
    np.testing.assert_array_equal(
        task.central_test['x'], self.arrays['x_test'].astype(np.float32)
    )
    self.assertEqual(task.num_classes, 3)
    self.assertIsNotNone(task.representation_fn)
    self.assertIsNone(self._create(model_id='logistic').representation_fn)

  def test_every_example_belongs_to_one_client(self):
    np.savez(self.folder / 'leaves.npz', **self.arrays)
    clients = LEAVES.create(self.folder).train_data
    np.testing.assert_array_equal(np.sort(clients.indices), np.arange(30))
    self.assertEqual(
        [clients.num_examples(n) for n in clients.client_ids], [6] * 5
    )

  def test_bytes_are_divided_by_255(self):
    self.arrays['x_train'] = np.full([30, 6], 255, np.uint8)
    self.arrays['x_test'] = np.full([9, 6], 51, np.uint8)
    task = self._create()
    self.assertEqual(task.train_data.values['x'].max(), 1.0)
    self.assertAlmostEqual(float(task.central_test['x'].max()), 0.2)

  @parameterized.parameters('train', 'test')
  def test_bytes_in_one_split_alone_are_refused(self, part):
    self.arrays[f'x_{part}'] = (255 * self.arrays[f'x_{part}']).astype(np.uint8)
    with self.assertRaisesRegex(
        ValueError, f'leaves.npz: x_train and .*, found .*x_{part} uint8'
    ):
      self._create()

  @parameterized.parameters('batch_norm', 'nested_batch_norm')
  def test_averages_of_batch_normalization_are_aggregated(self, model_id):
    task = self._create(model_id=model_id)
    self.assertTrue(task.functional_model.moved.is_sent)
    self.assertIsNone(task.representation_fn)

  def test_clients_own_the_examples_that_the_file_says(self):
    data = attrs.evolve(LEAVES.data, client_ids='owners')
    owned = attrs.evolve(LEAVES, data=data, clients=None)
    self.arrays['owners'] = np.array(['bob', 'ann', 'bob'] * 10)
    np.savez(self.folder / 'leaves.npz', **self.arrays)
    task = owned.create(self.folder)
    self.assertEqual(task.train_data.client_ids, ('ann', 'bob'))
    found = task.train_data.examples('ann')
    np.testing.assert_array_equal(
        found['x'], self.arrays['x_train'][1::3].astype(np.float32)
    )
    self.assertEqual(found['y'].tolist(), [1] * 10)
    owned.write_synthetic_data(self.folder / 'synthetic')
    synthetic = owned.create(self.folder / 'synthetic')
    self.assertLen(synthetic.train_data.client_ids, 40)

  @parameterized.parameters(
      (None, ValueError, 'must hold .* owners, but lacks owners;'),
      ([1, 2], ValueError, r'owners must have shape \[30\].*\[2\]'),
      ([0.5] * 30, TypeError, 'must be integers or strings.*float64'),
      (
          np.array(['ann'] * 30, object),
          ValueError,
          r"array 'owners' could not be read .* np.asarray\(\.\.\., str\)",
      ),
  )
  def test_owners_that_cannot_be(self, owners, error, sentence):
    data = attrs.evolve(LEAVES.data, client_ids='owners')
    if owners is not None:
      self.arrays['owners'] = np.array(owners)
    with self.assertRaisesRegex(error, f'leaves.npz.*{sentence}'):
      self._create(attrs.evolve(LEAVES, data=data, clients=None))

  @parameterized.parameters(
      (np.float64, 1e300, '1e.300'), (np.int64, 2**24 + 1, '16777217')
  )
  def test_numbers_that_float32_cannot_hold_are_refused(
      self, dtype, value, shown
  ):
    self.arrays['x_test'] = np.zeros([9, 6], dtype)
    self.arrays['x_test'][3, 4] = value
    with self.assertRaisesRegex(
        ValueError, f'leaves.npz: x_test has the value {shown}, which float32'
    ):
      self._create()

  @parameterized.parameters(True, False)
  def test_validation_examples_must_be_announced(self, is_announced):
    class Validated(definitions.NpzData):

      def load(self, args, data_dir, seed):
        splits = super().load(args, data_dir, seed)
        return attrs.evolve(splits, validation=splits.central_test)

      def has_validation(self, given):
        return is_announced

    task = attrs.evolve(LEAVES, data=Validated('leaves.npz', (6,), 3))
    if is_announced:
      self.assertLen(self._create(task).validation['y'], 9)
    else:
      with self.assertRaisesRegex(ValueError, "'leaves' .* `has_validation`"):
        self._create(task)

  def test_examples_without_clients_are_refused(self):
    with self.assertRaisesRegex(ValueError, "'leaves' come without clients"):
      self._create(attrs.evolve(LEAVES, clients=None))

  @parameterized.parameters('mlp', 'recurrent')
  def test_both_forms_have_the_penalties_of_the_weights(self, model_id):
    task = self._create(model_id=model_id)
    of_functional, of_variables = self._losses(task)
    self.assertAlmostEqual(of_functional, of_variables, places=6)
    self.assertGreater(of_variables, np.log(3) + 1e-3)

  @parameterized.parameters(
      ({}, np.log(3)), ({'loss': 'multiclass_hinge'}, 1.0)
  )
  def test_both_forms_have_the_chosen_loss(self, chosen, expected):
    # All scores are 0.
    task = self._create(model_id='logistic', **chosen)
    for found in self._losses(task):
      self.assertAlmostEqual(found, expected, places=6)

  def test_an_unknown_loss_is_refused(self):
    with self.assertRaisesRegex(ValueError, r"`loss` must .*'multiclass_hinge"):
      self._create(loss='hinge')
    alone = attrs.evolve(LEAVES, other_losses={})
    self.assertNotIn('loss', [a.name for a in alone.arguments])

  def test_from_data_takes_the_callers_clients(self):
    examples = {'x': np.ones([3, 6], np.float32), 'y': np.arange(3)}
    task = LEAVES.create_from_data(
        {'ann': examples, 'bob': examples}, examples, test_data={'a': examples}
    )
    self.assertEqual(list(task.train_data.client_ids), ['ann', 'bob'])
    self.assertEqual(list(task.test_data.client_ids), ['a'])
    with self.assertRaisesRegex(ValueError, 'at most 1, .*found 2'):
      LEAVES.create_from_data({'ann': examples}, examples)
    with self.assertRaisesRegex(TypeError, '`num_clients` does not apply'):
      LEAVES.create_from_data({'ann': examples}, examples, num_clients=1)

  def test_data_may_load_lists_but_no_mapping_of_clients(self):
    class InLists(definitions.NpzData):

      def load(self, args, data_dir, seed):
        splits = super().load(args, data_dir, seed)
        labels = splits.train['y'].tolist()
        return attrs.evolve(splits, train={**splits.train, 'y': labels})

    class ByClient(definitions.NpzData):

      def load(self, args, data_dir, seed):
        splits = super().load(args, data_dir, seed)
        return attrs.evolve(splits, train={'ann': splits.train})

    def create(data):
      return self._create(
          attrs.evolve(LEAVES, data=data('leaves.npz', (6,), 3))
      )

    self.assertEqual(create(InLists).train_data.total_examples, 20)
    with self.assertRaisesRegex(TypeError, "training data .* found 'ann' with"):
      create(ByClient)

  def test_from_data_reads_files_with_and_without_splits(self):
    rows = [
        {'client_id': 'ann', 'x': [i] * 6, 'y': 0, 'split': split}
        for i, split in enumerate(('train', 'validation', 'test'))
    ]
    protocol = attrs.evolve(LEAVES.protocol, clients_per_round=1)
    for has_splits, expected in (True, ([0], [1], [2])), (
        False,
        [[0, 1, 2]] * 3,
    ):
      path = folder_testing.new(self) / 'leaves.jsonl'
      with path.open('w') as file:
        for row in rows:
          if not has_splits:
            del row['split']
          file.write(json.dumps(row) + '\n')
      task = LEAVES.create_from_data(
          path, path, validation=path, protocol=protocol
      )
      found = task.train_data.values, task.validation, task.central_test
      for examples, values in zip(found, expected, strict=True):
        self.assertEqual(examples['x'][:, 0].tolist(), values)

  @parameterized.named_parameters(
      ('class', {'y_train': np.full([30], 7)}, 'y_train has the label 7 .* 2'),
      ('fraction', {'y_test': [0.5] * 9}, 'y_test has labels of type float64'),
      ('nan', {'y_test': [np.nan] * 9}, 'y_test has labels of type float64'),
      ('infinite', {'y_test': [np.inf] * 9}, 'y_test has labels of type float'),
      ('text', {'x_test': np.full([9, 6], 'a')}, 'x_test must be numbers'),
      ('shape', {'x_test': np.ones([9, 7])}, r'shape \[examples, 6\]'),
      ('labels', {'y_test': np.zeros([4], int)}, r'y_test must have shape'),
  )
  def test_wrong_arrays_raise(self, change, message):
    self.arrays.update(change)
    with self.assertRaisesRegex(ValueError, message):
      self._create()

  @parameterized.parameters(np.float32, np.bool_)
  def test_whole_numbers_of_another_type_are_labels(self, dtype):
    self.arrays['y_test'] = (np.arange(9) % 2).astype(dtype)
    self.assertEqual(
        self._create().central_test['y'].tolist(), [0, 1] * 4 + [0]
    )

  def test_a_shape_may_be_a_list(self):
    data = definitions.NpzData('leaves.npz', [6], 3)
    task = self._create(attrs.evolve(LEAVES, data=data))
    self.assertEqual(task.central_test['x'].shape, (9, 6))

  def test_missing_file_says_where_it_belongs(self):
    with self.assertRaisesRegex(FileNotFoundError, 'leaves.npz .*put it at'):
      LEAVES.create(self.folder)
    with self.assertRaisesRegex(TypeError, "`data_dir` is .*'leaves' reads"):
      LEAVES.create()

  @parameterized.parameters(
      ((6,), 3), ((8, 20, 1), 3), ((20, 8), 3), ((3, 50), 400)
  )
  def test_made_up_data_have_the_shape_and_the_classes(self, shape, classes):
    data = definitions.NpzData('leaves.npz', shape, classes)
    attrs.evolve(LEAVES, data=data).write_synthetic_data(self.folder)
    train = data.load(None, self.folder, 0).train
    self.assertEqual(train['x'].shape, (4000, *shape))
    self.assertGreaterEqual(train['y'].max(), 0.9 * (classes - 1))

  def test_made_up_data_may_be_written_by_several_processes_at_once(self):
    def write(path, rng, begins=True):
      path.write_bytes(rng.bytes(5))
      if begins:  # Another process comes first.
        again = functools.partial(write, begins=False)
        synthetic_data.write({'a/b.npz': again}, self.folder)

    synthetic_data.write({'a/b.npz': write}, self.folder)
    files = [path for path in self.folder.rglob('*') if path.is_file()]
    self.assertEqual(files, [self.folder / 'a' / 'b.npz'])
    self.assertLen(files[0].read_bytes(), 5)

  def test_a_single_model_has_no_argument(self):
    alone = attrs.evolve(LEAVES, models=_build_logistic)
    self.assertNotIn('model_id', [a.name for a in alone.arguments])
    self.assertEqual(alone.build_keras_model(seed=1).count_params(), 21)

  def test_metrics_can_be_chosen(self):
    task = self._create(
        attrs.evolve(
            LEAVES,
            metrics=lambda keras: [
                *keras_forms.build_accuracy(keras),
                keras.metrics.SparseTopKCategoricalAccuracy(2, name='top_2'),
            ],
        )
    )
    self.assertContainsSubset(
        {'top_2'}, task.functional_model.initialize_metrics_state()
    )

  def test_statistics_of_the_form_with_variables_move_in_training(self):
    model = LEAVES.build_variable_model_fn('batch_norm')()
    mean, _ = model.non_trainable_variables
    batch = {'x': np.full([4, 6], 3.0, np.float32), 'y': np.zeros(4, np.int32)}
    model.forward_pass(batch, training=False)
    np.testing.assert_array_equal(mean, np.zeros(6))
    model.forward_pass(batch, training=True)
    # The momentum is 0.99.
    np.testing.assert_allclose(mean, np.full(6, 0.03), rtol=1e-6)

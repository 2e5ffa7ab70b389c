# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of task."""

from absl.testing import absltest
from absl.testing import parameterized
import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.simulation import task_testing
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.simulation import task as task_lib


class ProtocolTest(parameterized.TestCase):

  def test_batch_plan(self):
    self.assertEqual(
        task_testing.protocol(max_examples=7).batch_plan(),
        batching.BatchPlan(2, num_epochs=2, max_examples=7),
    )


class TaskTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('variable', lambda: None), ('functional', task_testing.functional_model)
  )
  def test_matching_parts_pass(self, functional_model_fn):
    toy = task_testing.build_task(
        functional_model=functional_model_fn(),
        test_data=task_testing.clients(1),
        num_classes=2,
    )
    self.assertEqual(toy.input_spec, task_testing.INPUT_SPEC)
    self.assertEqual(toy.central_test['x'].shape, (4, 3))
    self.assertEqual(toy.num_classes, 2)

  def test_clients_of_another_type_are_named_and_not_printed(self):
    with self.assertRaises(TypeError) as caught:
      task_testing.build_task(train_data={'a': task_testing.examples(2)})
    self.assertEqual(
        str(caught.exception),
        '`train_data` must be of type ClientArrays, found dict.',
    )

  @parameterized.named_parameters(
      ('open_dimension_fits', [None, None], True),
      ('any_rank_fits', None, True),
      ('fixed_dimension_fits', [None, 3], True),
      ('fixed_batch_does_not', [5, 3], False),
      ('other_rank_does_not', [None], False),
  )
  def test_check_input_spec_shapes(self, shape, fits):
    elements = {'x': tf.TensorSpec([3], tf.float32)}
    inputs = {'x': tf.TensorSpec(shape, tf.float32)}
    if fits:
      task_lib.check_input_spec(elements, inputs, 'Data')
    else:
      with self.assertRaisesRegex(ValueError, "Data must.*field 'x'"):
        task_lib.check_input_spec(elements, inputs, 'Data')


class BaselineTaskTest(absltest.TestCase):

  def test_baseline_task_has_the_clients_batches_and_test_data(self):
    protocol = task_testing.protocol(max_examples=3, clients_per_round=1)
    baseline = task_testing.build_task(protocol=protocol).to_baseline_task()
    self.assertIsInstance(baseline, tff.simulation.baselines.BaselineTask)
    datasets = baseline.datasets
    self.assertEqual(datasets.train_data.client_ids, ['client_0', 'client_1'])
    self.assertEqual(datasets.element_type_structure, task_testing.INPUT_SPEC)
    data = datasets.train_data.preprocess(datasets.train_preprocess_fn)
    sizes = [
        len(batch['y'])
        for batch in data.create_tf_dataset_for_client('client_0')
    ]
    self.assertEqual(sizes, [2, 1, 2, 1])
    test = datasets.get_centralized_test_data()
    self.assertEqual([len(batch['y']) for batch in test], [4])

  def test_baseline_task_augments_every_batch_anew(self):
    clients = client_data.PackedClientArrays.from_clients(
        {f'client_{i}': {'raw': np.arange(3, dtype=np.int32)} for i in range(2)}
    )
    spec = task_testing.clients(1).element_spec

    def augment(examples, generator):
      noise = generator.random([len(examples['raw']), 3], np.float32)
      return {'x': noise, 'y': examples['raw']}

    baseline = task_testing.build_task(
        train_data=clients, augmentation=batching.Augmentation(augment, spec)
    ).to_baseline_task()
    datasets = baseline.datasets
    self.assertEqual(datasets.element_type_structure, task_testing.INPUT_SPEC)
    data = datasets.train_data.preprocess(datasets.train_preprocess_fn)
    rows = [
        (int(y), tuple(x))
        for batch in data.create_tf_dataset_for_client('client_0')
        for x, y in zip(batch['x'].numpy(), batch['y'])
    ]
    self.assertCountEqual([y for y, _ in rows], [0, 1, 2] * 2)
    self.assertLen({x for _, x in rows}, 6)


def _rows(clients):
  return {
      name: clients.examples(name)['y'].tolist() for name in clients.client_ids
  }


class HoldOutClientsTest(absltest.TestCase):

  def test_clients_are_trained_on_or_tested_on(self):
    task = task_testing.build_task([3, 1, 2, 4])
    held_out = task_lib.hold_out_clients(task, 2, seed=0)
    trained, tested = _rows(held_out.train_data), _rows(held_out.test_data)
    self.assertLen(tested, 2)
    self.assertEqual({**trained, **tested}, _rows(task.train_data))
    self.assertEqual(
        held_out.central_test['y'].tolist(), sum(tested.values(), [])
    )
    again = task_lib.hold_out_clients(task, 2, seed=0)
    self.assertEqual(_rows(again.test_data), tested)

  def test_augmented_examples_are_no_test_data(self):
    task = task_testing.build_task([3, 1, 2])
    task = attrs.evolve(
        task,
        augmentation=batching.Augmentation(
            lambda examples, generator: examples, task.train_data.element_spec
        ),
    )
    with self.assertRaisesRegex(ValueError, 'no `evaluation_fn`'):
      task_lib.hold_out_clients(task, 1, seed=0)
    with self.assertRaisesRegex(ValueError, 'no `evaluation_fn`'):
      task_lib.hold_out_examples(task, 0.5, seed=0)
    with self.assertRaisesRegex(ValueError, 'no `evaluation_fn`'):
      task_lib.hold_out_validation(task, 0.5, seed=0)

  def test_augmented_examples_are_test_data_without_chance(self):
    task = task_testing.build_task([3, 4, 2])
    spec = task.train_data.element_spec
    task = attrs.evolve(
        task,
        augmentation=batching.Augmentation(
            lambda examples, generator: examples,
            spec,
            lambda examples: {**examples, 'y': 100 + examples['y']},
        ),
    )
    plain = attrs.evolve(task, augmentation=None)
    for hold_out, what in (
        (task_lib.hold_out_clients, 1),
        (task_lib.hold_out_examples, 0.5),
    ):
      held_out, wanted = (hold_out(t, what, seed=0) for t in (task, plain))
      self.assertEqual(_rows(held_out.train_data), _rows(wanted.train_data))
      self.assertEqual(
          _rows(held_out.test_data),
          {
              name: [100 + row for row in rows]
              for name, rows in _rows(wanted.test_data).items()
          },
      )
      self.assertEqual(
          held_out.central_test['y'].tolist(),
          (100 + wanted.central_test['y']).tolist(),
      )


class TakeClientsTest(absltest.TestCase):

  def test_test_data_follow_the_clients(self):
    task = task_testing.build_task([3, 1, 2, 4])
    task = attrs.evolve(task, test_data=task.train_data)
    taken = task_lib.take_clients(task, 3, seed=1)
    self.assertLen(taken.train_data.client_ids, 3)
    self.assertEqual(taken.test_data.client_ids, taken.train_data.client_ids)
    np.testing.assert_array_equal(
        taken.central_test['y'], task.central_test['y']
    )


class HoldOutValidationTest(absltest.TestCase):

  def test_a_part_of_every_client_next_to_the_test_data(self):
    task = task_testing.build_task([4, 8])
    task = attrs.evolve(task, test_data=task.train_data)
    held_out = task_lib.hold_out_validation(task, 0.25, seed=0)
    trained = [
        row for rows in _rows(held_out.train_data).values() for row in rows
    ]
    validated = held_out.validation['y'].tolist()
    self.assertLen(validated, 3)
    self.assertCountEqual(
        trained + validated,
        [row for rows in _rows(task.train_data).values() for row in rows],
    )
    self.assertIs(held_out.test_data, task.test_data)
    np.testing.assert_array_equal(
        held_out.central_test['y'], task.central_test['y']
    )

  def test_examples_are_in_the_form_of_the_model(self):
    task = task_testing.build_task([4, 8])
    task = attrs.evolve(
        task,
        augmentation=batching.Augmentation(
            lambda examples, generator: examples,
            task.train_data.element_spec,
            lambda examples: {**examples, 'y': 100 + examples['y']},
        ),
    )
    plain = attrs.evolve(task, augmentation=None)
    found, wanted = (
        task_lib.hold_out_validation(t, 0.5, seed=0).validation['y']
        for t in (task, plain)
    )
    self.assertEqual(found.tolist(), (100 + wanted).tolist())

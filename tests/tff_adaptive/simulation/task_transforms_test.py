# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

from absl.testing import absltest
import attrs
import numpy as np

from tests.tff_adaptive.simulation import task_testing
from tff_adaptive.data import augmentation
from tff_adaptive.simulation import task_transforms


def _rows(clients):
  return {
      name: clients.examples(name)['y'].tolist() for name in clients.client_ids
  }


class HoldOutClientsTest(absltest.TestCase):

  def test_clients_are_trained_on_or_tested_on(self):
    task = task_testing.build_task([3, 1, 2, 4])
    held_out = task_transforms.hold_out_clients(task, 2, seed=0)
    trained, tested = _rows(held_out.train_data), _rows(held_out.test_data)
    self.assertLen(tested, 2)
    self.assertEqual({**trained, **tested}, _rows(task.train_data))
    self.assertEqual(
        held_out.central_test['y'].tolist(), sum(tested.values(), [])
    )
    again = task_transforms.hold_out_clients(task, 2, seed=0)
    self.assertEqual(_rows(again.test_data), tested)

  def test_one_client_must_remain(self):
    task = task_testing.build_task([3, 1, 2])
    with self.assertRaisesRegex(ValueError, 'At most 2 of 3.*found 3'):
      task_transforms.hold_out_clients(task, 3, seed=0)

  def test_augmented_examples_are_no_test_data(self):
    task = task_testing.build_task([3, 1, 2])
    task = attrs.evolve(
        task,
        augmentation=augmentation.Augmentation(
            lambda examples, generator: examples, task.train_data.element_spec
        ),
    )
    with self.assertRaisesRegex(ValueError, "task 'toy' augments"):
      task_transforms.hold_out_clients(task, 1, seed=0)
    with self.assertRaisesRegex(ValueError, "task 'toy' augments"):
      task_transforms.hold_out_examples(task, 0.5, seed=0)

  def test_augmented_examples_are_test_data_without_chance(self):
    task = task_testing.build_task([3, 4, 2])
    spec = task.train_data.element_spec
    task = attrs.evolve(
        task,
        augmentation=augmentation.Augmentation(
            lambda examples, generator: examples,
            spec,
            lambda examples: {**examples, 'y': 100 + examples['y']},
        ),
    )
    plain = attrs.evolve(task, augmentation=None)
    for hold_out, what in (
        (task_transforms.hold_out_clients, 1),
        (task_transforms.hold_out_examples, 0.5),
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
    taken = task_transforms.take_clients(task, 3, seed=1)
    self.assertLen(taken.train_data.client_ids, 3)
    self.assertEqual(taken.test_data.client_ids, taken.train_data.client_ids)
    np.testing.assert_array_equal(
        taken.central_test['y'], task.central_test['y']
    )

  def test_too_few_for_a_round_raises(self):
    task = task_testing.build_task([3, 1, 2, 4])
    with self.assertRaisesRegex(ValueError, '`clients_per_round`.* 1,'):
      task_transforms.take_clients(task, 1, seed=1)


class HoldOutExamplesTest(absltest.TestCase):

  def test_a_part_of_every_client(self):
    task = task_testing.build_task([4, 8])
    held_out = task_transforms.hold_out_examples(task, 0.25, seed=0)
    self.assertEqual(held_out.train_data.total_examples, 9)
    self.assertEqual(held_out.test_data.total_examples, 3)
    self.assertLen(held_out.central_test['y'], 3)


if __name__ == '__main__':
  absltest.main()

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
"""Tests of drawing examples to evaluate on."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive.simulation import client_data
from tff_adaptive.simulation import example_sampling


def _lazy_clients(sizes, read):
  def load(client_id):
    read.append(client_id)
    number = int(client_id)
    return {'x': 100 * number + np.arange(sizes[number])}

  return client_data.LazyClientArrays(
      [str(i) for i in range(len(sizes))],
      load,
      {'x': tf.TensorSpec([], tf.int64)},
  )


class SampleExamplesTest(parameterized.TestCase):

  def test_sample_is_seeded_and_keeps_rows_together(self):
    examples = {'x': np.arange(1000), 'y': 2 * np.arange(1000)}
    draws = [
        example_sampling.sample_examples(examples, 50, seed)
        for seed in (1, 1, 2)
    ]
    for draw in draws:
      self.assertLen(set(draw['x'].tolist()), 50)
      self.assertEqual(draw['x'].tolist(), sorted(draw['x'].tolist()))
      np.testing.assert_array_equal(draw['y'], 2 * draw['x'])
    np.testing.assert_array_equal(draws[0]['x'], draws[1]['x'])
    self.assertNotEqual(draws[0]['x'].tolist(), draws[2]['x'].tolist())
    self.assertGreater(np.ptp(draws[0]['x']), 500)

  @parameterized.parameters(3, 4)
  def test_all_are_taken_if_there_are_not_more(self, num_examples):
    examples = {'x': np.arange(3)}
    found = example_sampling.sample_examples(examples, num_examples, seed=1)
    self.assertEqual(found['x'].tolist(), [0, 1, 2])

  def test_no_more_clients_are_read_than_needed(self):
    sizes = [5, 0, 4, 6, 5, 4]
    read = []
    source = _lazy_clients(sizes, read)
    found = example_sampling.sample_client_examples(source, 7, seed=3)
    used = [name for name in read if sizes[int(name)]]
    self.assertLen(used, 2)
    first = sizes[int(used[0])]
    expected = [
        *(100 * int(used[0]) + np.arange(first)),
        *(100 * int(used[1]) + np.arange(7 - first)),
    ]
    self.assertEqual(found['x'].tolist(), expected)
    again = example_sampling.sample_client_examples(source, 7, seed=3)
    self.assertEqual(again['x'].tolist(), expected)

  def test_clients_with_fewer_examples_give_all(self):
    source = _lazy_clients([2, 1], [])
    found = example_sampling.sample_client_examples(source, 9, seed=1)
    self.assertCountEqual(found['x'].tolist(), [0, 1, 100])

  def test_seed_decides_which_clients(self):
    source = _lazy_clients([1] * 50, [])
    first, second = (
        example_sampling.sample_client_examples(source, 10, seed)['x']
        for seed in (1, 2)
    )
    self.assertNotEqual(sorted(first), sorted(second))

  def test_a_number_below_one_is_refused(self):
    with self.assertRaisesRegex(ValueError, '`num_examples`.*found 0'):
      example_sampling.sample_examples({'x': np.arange(3)}, 0, seed=1)
    with self.assertRaisesRegex(ValueError, '`num_examples`.*found -1'):
      example_sampling.sample_client_examples(
          _lazy_clients([1], []), -1, seed=1
      )


if __name__ == '__main__':
  absltest.main()

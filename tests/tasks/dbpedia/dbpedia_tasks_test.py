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
"""Tests of the task on DBpedia."""

import pathlib
import tempfile

from absl.testing import absltest
import numpy as np

from tasks import dbpedia
from tests.tasks.text_classification import text_testing
from tff_adaptive.simulation import task


class DBpediaTasksTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.data_dir = pathlib.Path(folder)
    self.path = self.data_dir / 'dbpedia.jsonl.gz'
    self.rows = text_testing.make_rows(56, 14, num_classes=14)

  def test_defaults_are_those_of_the_experiments(self):
    text_testing.write_jsonl(self.path, self.rows)
    created = dbpedia.create_dbpedia_task(
        self.data_dir, vocab_size=9, max_length=7
    )
    self.assertEqual(created.name, 'dbpedia')
    self.assertEqual(created.num_classes, 14)
    self.assertEqual(created.protocol, task.Protocol(16, 1, 5, 100))
    self.assertLen(created.train_data.client_ids, 50)
    self.assertEqual(created.train_data.values['x'].shape, (56, 7))
    np.testing.assert_array_equal(created.central_test['y'], np.arange(14))
    self.assertEqual(
        created.functional_model.initial_weights[0][-1].shape, (14,)
    )

  def test_reads_the_original_release(self):
    folder = self.data_dir / 'dbpedia_csv'
    folder.mkdir()
    for part in ('train', 'test'):
      (folder / f'{part}.csv').write_text(
          '14,"A Novel"," A Novel is a ""book"" by B."\n', encoding='utf-8'
      )
    for examples in dbpedia.load_dbpedia(self.data_dir):
      self.assertEqual(
          list(examples['text']), [b'A Novel  A Novel is a "book" by B.']
      )
      self.assertEqual(examples['label'].tolist(), [13])

  def test_missing_data_raise(self):
    with self.assertRaisesRegex(
        FileNotFoundError,
        'DBpedia was not found: put dbpedia.jsonl.gz .*tasks.fetch dbpedia ',
    ):
      dbpedia.load_dbpedia(self.data_dir)

  def test_from_data_checks_classes(self):
    texts = {'text': ['a village', 'an author'], 'label': [13, 14]}
    with self.assertRaisesRegex(ValueError, 'from 0 to 13, found 13 to 14'):
      dbpedia.create_dbpedia_task_from_data({'ann': texts}, texts)

  def test_models_have_fourteen_logits(self):
    for model in (
        dbpedia.build_keras_model('cnn', seed=1),
        dbpedia.build_keras_model('cnn', 1, vocab_size=10_000, max_length=9),
    ):
      self.assertEqual(model.count_params(), 692046)
      self.assertEqual(model.output_shape, (None, 14))
    functional = dbpedia.build_functional_model('cnn', 1, 20, 9)
    variables = dbpedia.build_variable_model_fn('cnn', 1, 20, 9)()
    for weight, variable in zip(
        functional.initial_weights[0], variables.trainable_variables
    ):
      np.testing.assert_array_equal(weight, variable.numpy())


if __name__ == '__main__':
  absltest.main()

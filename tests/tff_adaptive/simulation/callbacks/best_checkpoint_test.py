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
"""Tests of the checkpoint of the best round."""

import errno
import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tests.tff_adaptive.simulation import loop_testing
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation import checkpoint_files
from tff_adaptive.simulation import checkpoints

_KWARGS = dict(
    evaluate_fn=lambda weights: {'accuracy': 1 - abs(float(weights) - 1)},
    rounds_per_evaluation=1,
)
_TEMPLATE = np.float32(0)


def _make(folder):
  return [callbacks.BestCheckpoint(folder / 'checkpoints')]


class BestCheckpointTest(loop_testing.LoopTestCase):

  def load(self, name='run', template=_TEMPLATE):
    return callbacks.load_best(self.folder / name / 'checkpoints', template)

  def test_keeps_the_best_round(self):
    self.run_loop(callbacks=_make(self.folder / 'run'), **_KWARGS)
    best = self.load()
    self.assertEqual((best.round_num, best.metric), (4, 'evaluation/accuracy'))
    self.assertAlmostEqual(best.weights, 1.0, places=6)
    self.assertEqual(best.value, 1 - abs(float(best.weights) - 1))
    # It is none of the checkpoints that a run goes on from.
    manager = checkpoints.CheckpointManager(self.folder / 'run' / 'checkpoints')
    self.assertEqual(manager.round_nums(), [6, 9, 10])

  @parameterized.parameters(('max', 1), ('min', 10))
  def test_of_a_metric_of_every_round(self, mode, expected):
    keep = callbacks.BestCheckpoint(
        self.folder / 'best', 'clients/loss', mode=mode
    )
    self.run_loop(callbacks=[keep])
    best = callbacks.load_best(self.folder / 'best', _TEMPLATE)
    self.assertEqual(best.round_num, expected)

  def test_of_equal_rounds_the_first_is_kept(self):
    self.run_loop(
        callbacks=_make(self.folder / 'run'),
        evaluate_fn=lambda weights: {'accuracy': 0.5},
    )
    self.assertEqual(self.load().round_num, 4)

  @parameterized.parameters(1, 3, 4, 5, 6, 10)
  def test_a_resumed_run_keeps_the_same_bytes(self, killed_in):
    self.run_loop('whole', callbacks=_make(self.folder / 'whole'), **_KWARGS)
    self.run_in_two_parts('parts', killed_in, _make, **_KWARGS)
    self.assertEqual(self.load('parts').round_num, 4)
    self.assert_same_run('whole', 'parts')

  def test_weights_of_a_model_come_back_as_they_were(self):
    weights = tff.learning.models.ModelWeights(
        trainable=(np.arange(6, dtype=np.float32).reshape(2, 3),),
        non_trainable=(np.int64(3),),
    )
    keep = callbacks.BestCheckpoint(self.folder, 'loss', mode='min')
    keep.on_round_end(
        callbacks.RoundEnd(
            round_num=9,
            state=None,
            get_weights=lambda: weights,
            metrics={'loss': np.float32(0.5)},
            evaluation=None,
        )
    )
    best = callbacks.load_best(self.folder, weights)
    self.assertEqual(
        (best.round_num, best.metric, best.value), (9, 'loss', 0.5)
    )
    self.assertIsInstance(best.weights, tff.learning.models.ModelWeights)
    np.testing.assert_array_equal(
        best.weights.trainable[0], weights.trainable[0]
    )
    self.assertEqual(best.weights.non_trainable[0], 3)
    with np.load(keep.path, allow_pickle=False) as file:
      self.assertFalse(any(file[name].dtype.hasobject for name in file.files))

  def test_a_full_disk_keeps_the_round_before(self):
    self.run_loop(
        total_rounds=3, callbacks=_make(self.folder / 'run'), **_KWARGS
    )
    full = OSError(errno.ENOSPC, 'No space left on device')
    with mock.patch.object(os, 'replace', side_effect=full):
      with self.assertRaisesRegex(OSError, 'best.npz: No space left on device'):
        self.run_loop(
            callbacks=_make(self.folder / 'run'), writers=[], **_KWARGS
        )
    self.assertEqual(self.load().round_num, 3)

  def test_a_lost_file_is_an_error_on_resume(self):
    self.run_loop(
        total_rounds=6, callbacks=_make(self.folder / 'run'), **_KWARGS
    )
    path = self.folder / 'run' / 'checkpoints' / 'best.npz'
    data = path.read_bytes()
    path.write_bytes(data[:-100])
    with self.assertRaisesRegex(
        checkpoint_files.CheckpointError,
        'best.npz is damaged .* of round 4, the',
    ):
      self.run_loop(callbacks=_make(self.folder / 'run'), **_KWARGS)
    path.unlink()
    with self.assertRaisesRegex(
        checkpoint_files.CheckpointError,
        'there is no .*best.npz, .* of round 4',
    ):
      self.run_loop(callbacks=_make(self.folder / 'run'), **_KWARGS)
    path.write_bytes(data)
    self.run_loop(callbacks=_make(self.folder / 'run'), **_KWARGS)

  def test_reading_says_what_is_wrong(self):
    with self.assertRaisesRegex(FileNotFoundError, 'there is no .*best.npz'):
      callbacks.load_best(self.folder, _TEMPLATE)
    self.run_loop(callbacks=_make(self.folder / 'run'), **_KWARGS)
    with self.assertRaisesRegex(
        checkpoint_files.CheckpointError,
        r'`weights` is float32\[\].* float64\[2\]',
    ):
      self.load(template=np.zeros(2))
    path = self.folder / 'run' / 'checkpoints' / 'best.npz'
    path.write_bytes(path.read_bytes()[:-100])
    with self.assertRaisesRegex(checkpoint_files.CheckpointError, 'is damaged'):
      self.load()

  def test_bad_arguments(self):
    with self.assertRaisesRegex(ValueError, '`mode`'):
      callbacks.BestCheckpoint(self.folder, mode='best')


if __name__ == '__main__':
  absltest.main()

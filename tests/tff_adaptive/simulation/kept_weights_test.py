# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of kept_weights."""

import collections
import errno
import functools
import os
import types
from unittest import mock

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.simulation import loop_testing
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import kept_weights

_KWARGS = dict(
    evaluate_fn=lambda weights: {'accuracy': 1 - abs(float(weights) - 1)},
    rounds_per_evaluation=1,
)
_TEMPLATE = np.float32(0)


def _make(folder):
  return [kept_weights.BestCheckpoint(folder / 'checkpoints')]


def _load(directory):
  wanted = collections.OrderedDict(
      round_num=np.int64(0), metric='', value=np.float64(0), weights=_TEMPLATE
  )
  path = directory / 'best.npz'
  return types.SimpleNamespace(**checkpoints.read_structure(path, wanted))


class BestCheckpointTest(loop_testing.LoopTestCase):

  def load(self, name='run'):
    return _load(self.folder / name / 'checkpoints')

  def test_keeps_the_best_round(self):
    self.run_loop(callbacks=_make(self.folder / 'run'), **_KWARGS)
    best = self.load()
    self.assertEqual((best.round_num, best.metric), (4, 'evaluation/accuracy'))
    self.assertAlmostEqual(best.weights, 1.0, places=6)
    self.assertEqual(best.value, 1 - abs(float(best.weights) - 1))
    # A run does not continue from it.
    manager = checkpoints.CheckpointManager(self.folder / 'run' / 'checkpoints')
    self.assertEqual(manager.round_nums(), [6, 9, 10])

  @parameterized.parameters(('max', 1), ('min', 10))
  def test_of_a_metric_of_every_round(self, mode, expected):
    keep = kept_weights.BestCheckpoint(
        self.folder / 'best', 'clients/loss', mode=mode
    )
    self.run_loop(callbacks=[keep])
    best = _load(self.folder / 'best')
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

  def test_a_second_run_starts_anew(self):
    keep = kept_weights.BestCheckpoint(
        self.folder / 'best', 'clients/loss', mode='max'
    )
    self.run_loop('one', callbacks=[keep])
    keep.path.unlink()
    self.run_loop('two', callbacks=[keep])
    self.assertEqual(_load(self.folder / 'best').round_num, 1)

  def test_a_lost_file_is_an_error_on_resume(self):
    self.run_loop(
        total_rounds=6, callbacks=_make(self.folder / 'run'), **_KWARGS
    )
    path = self.folder / 'run' / 'checkpoints' / 'best.npz'
    data = path.read_bytes()
    path.write_bytes(data[:-100])
    with self.assertRaisesRegex(
        checkpoints.CheckpointError,
        'best.npz is damaged .* the best round, 4; restore',
    ):
      self.run_loop(callbacks=_make(self.folder / 'run'), **_KWARGS)
    path.unlink()
    with self.assertRaisesRegex(
        checkpoints.CheckpointError,
        'best.npz does not exist; .* the best round, 4',
    ):
      self.run_loop(callbacks=_make(self.folder / 'run'), **_KWARGS)
    path.write_bytes(data)
    self.run_loop(callbacks=_make(self.folder / 'run'), **_KWARGS)


_BFLOAT16 = tf.bfloat16.as_numpy_dtype


def _start(weights):
  return callbacks.TrainingStart(
      state=None, get_weights=lambda: weights, get_evaluation=lambda: None
  )


class AveragingTest(loop_testing.LoopTestCase):

  @parameterized.named_parameters(
      # ((0.1 * 0.5 + 0.3) * 0.5 + 0.6) / 1.75
      ('half', 0.5, 3, 0.775 / 1.75),
      ('current', 0.0, 10, 5.5),
      ('mean', 1.0, 10, 2.2),
      ('first', 0.9, 1, 0.1),
  )
  def test_moving_average(self, decay, total_rounds, expected):
    average = kept_weights.WeightsMovingAverage(decay)
    self.run_loop(total_rounds=total_rounds, callbacks=[average])
    self.assertAlmostEqual(average.get_weights(), expected, places=6)

  def test_without_decay_it_is_the_current_weights(self):
    average = kept_weights.WeightsMovingAverage(0.0)
    average.on_training_start(_start(_TEMPLATE))
    for weights in np.float32([1e8, 1.0, np.nan, 1.0]):
      get_weights = functools.partial(np.float32, weights)
      average.on_round_end(loop_testing.round_end(get_weights=get_weights))
      np.testing.assert_array_equal(average.get_weights(), weights)

  @parameterized.parameters((1, 10, 5.5), (2, 10, 5.0), (4, 2, 0.2))
  def test_last_rounds(self, num_rounds, total_rounds, expected):
    average = kept_weights.LastWeightsAverage(num_rounds)
    self.run_loop(total_rounds=total_rounds, callbacks=[average])
    self.assertAlmostEqual(average.get_weights(), expected, places=6)

  def test_is_evaluated_beside_the_current_weights(self):
    result = self.run_loop(
        callbacks=[
            kept_weights.WeightsMovingAverage(1.0),
            kept_weights.LastWeightsAverage(2, name='last_two'),
        ]
    )
    rows = [row.split(',') for row in self.rows()]
    self.assertEqual(
        rows[0][3:],
        [
            'evaluation/accuracy',
            'evaluation_average/accuracy',
            'evaluation_last_two/accuracy',
        ],
    )
    self.assertEqual(rows[1][3:], ['', '', ''])
    values = [float(value) for value in rows[10][3:]]
    np.testing.assert_allclose(values, [0.055, 0.022, 0.05], rtol=1e-6)
    # The training does not see it.
    self.assertEqual(result.state, self.run_loop('other').state)

  def test_without_evaluation_there_are_no_columns(self):
    self.run_loop(
        callbacks=[kept_weights.WeightsMovingAverage(0.5)], evaluate_fn=None
    )
    self.assertEqual(self.rows()[0], 'round_num,clients/loss,clients/num')

  def test_other_callbacks_can_watch_it(self):
    metric = 'evaluation_average/accuracy'
    result = self.run_loop(
        callbacks=[
            kept_weights.WeightsMovingAverage(0.5),
            callbacks.EarlyStopping(metric, 1, mode='min'),
        ]
    )
    self.assertEqual(result.round_num, 8)
    with self.assertRaisesRegex(
        callbacks.UnknownMetricError, f"'{metric}'.*evaluation/accuracy"
    ):
      self.run_loop('other', callbacks=[callbacks.EarlyStopping(metric, 1)])

  def test_the_best_average_is_kept(self):
    average = kept_weights.WeightsMovingAverage(1.0)
    keep = kept_weights.BestCheckpoint(
        self.folder, 'evaluation_average/accuracy', average=average
    )
    self.run_loop(callbacks=[average, keep], **_KWARGS)
    best = _load(self.folder)
    self.assertEqual(best.round_num, 6)
    self.assertEqual(best.value, 1 - abs(float(best.weights) - 1))

  @parameterized.product(
      make=[
          lambda _: [kept_weights.WeightsMovingAverage(0.7)],
          lambda _: [kept_weights.LastWeightsAverage(3)],
      ],
      killed_in=[1, 2, 4, 6, 7, 10],
  )
  def test_a_resumed_run_has_the_same_bytes(self, make, killed_in):
    average = make(None)
    self.run_loop('whole', callbacks=average)
    _, resumed = self.run_in_two_parts('parts', killed_in, make)
    self.assert_same_run('whole', 'parts')
    self.assertEqual(resumed[0].get_weights(), average[0].get_weights())

  @parameterized.parameters(
      lambda: kept_weights.WeightsMovingAverage(1.0),
      lambda: kept_weights.LastWeightsAverage(2),
  )
  def test_keeps_structure_and_dtypes(self, make):
    def weights(value, count):
      return tff.learning.models.ModelWeights(
          trainable=(
              np.full([2, 3], value, np.float32),
              np.full([2], value, np.float64),
          ),
          non_trainable=(np.full([2], value, _BFLOAT16), np.int64(count)),
      )

    average = make()
    average.on_training_start(_start(weights(5, 5)))
    tf.nest.map_structure(
        np.testing.assert_array_equal, average.get_weights(), weights(5, 5)
    )
    average.on_round_end(
        loop_testing.round_end(get_weights=lambda: weights(1, 1))
    )
    average.on_round_end(
        loop_testing.round_end(get_weights=lambda: weights(2, 2))
    )
    result = average.get_weights()
    self.assertIsInstance(result, tff.learning.models.ModelWeights)
    # Integers, such as counters, are not averaged.
    expected = weights(1.5, 2)
    tf.nest.map_structure(np.testing.assert_array_equal, result, expected)
    tf.nest.map_structure(
        lambda a, b: self.assertEqual(a.dtype, b.dtype), result, expected
    )

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of runs that begin with the weights of a file."""

import contextlib
import io
import json
import shutil
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from experiments import command_line
from experiments.export import model_files
from experiments.train import warm_start
from tasks import data
from tasks import keras_forms
from tests import folder_testing
from tests.experiments.train import trainer_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.simulation import weights_files


def _arrays(weights):
  return [leaf.tolist() for leaf in weights.trainable]


class WarmStartTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = folder_testing.new(cls)
    cls.first, weights = trainer_testing.shared_run()
    cls.weights = [leaf.tolist() for leaf in weights]
    cls.npz = cls.folder / 'first.npz'
    model_files.export(cls.first, 'latest', 'npz', cls.npz)
    cls.other_npz = cls.folder / 'other.npz'
    model_files.export(cls.first, '1', 'npz', cls.other_npz)

  def setUp(self):
    super().setUp()
    self.output_dir = folder_testing.new(self)

  def train(self, path, *arguments):
    flags = [] if path is None else [f'--initial_weights={path}']
    return trainer_testing.train(self.output_dir, *flags, *arguments)

  def recorded(self):
    return json.loads((self.output_dir / 'run/hparams.json').read_text())

  def _assert_begins_with_the_weights(self, runtime):
    # The server has a state and takes no step: the weights stay as they begin.
    arguments = (
        f'--runtime={runtime}',
        '--server_optimizer=fedadam',
        '--server_learning_rate=0',
    )
    result, out = self.train(self.npz, '--total_rounds=1', *arguments)
    self.assertEqual(_arrays(result.state.global_model_weights), self.weights)
    self.assertIn(f'initial weights: {self.npz}\n', out)
    return arguments

  @pytest.mark.slow
  def test_native_run_begins_with_the_weights(self):
    self._assert_begins_with_the_weights('native')

  @pytest.mark.slow
  def test_run_begins_with_the_weights_and_continues_with_the_same_alone(self):
    arguments = self._assert_begins_with_the_weights('compiled')
    recorded = self.recorded()
    self.assertEqual(recorded['initial_weights'], str(self.npz))
    self.assertEqual(
        recorded['initial_weights_sha256'],
        weights_files.read_weights(self.npz).digest(),
    )
    copy = self.output_dir / 'moved.npz'
    shutil.copy(self.npz, copy)
    resumed, _ = self.train(copy, *arguments)
    self.assertEqual((resumed.num_new_rounds, resumed.round_num), (1, 2))
    self.assertEqual(_arrays(resumed.state.global_model_weights), self.weights)
    # Of the path that which tells how the run began.
    self.assertEqual(self.recorded(), {**recorded, 'total_rounds': 2})
    for path, sentence in (
        (
            self.other_npz,
            f'/run holds a run with initial_weights="{self.npz}", but '
            f'initial_weights="{self.other_npz}" was given; choose another',
        ),
        (None, f'="{self.npz}", but initial_weights=nothing was given'),
        ('/gone.npz', '^--initial_weights: /gone.npz does not exist$'),
    ):
      with self.assertRaisesRegex(command_line.UserError, sentence):
        self.train(path, *arguments)

  def test_a_run_a_checkpoint_and_an_export_are_sources(self):
    checkpoint = self.first / 'checkpoints/checkpoint_00000003.npz'
    for path in (self.first, checkpoint, self.npz):
      start = warm_start.read(str(path), None, self.output_dir)
      self.assertEqual(
          [array.tolist() for array in start.stored.arrays.values()],
          self.weights,
      )

  def test_best_round_is_a_source(self):
    path = self.first / 'checkpoints/best.npz'
    start = warm_start.read(str(path), None, self.output_dir)
    rounds = [
        warm_start.read(str(p), None, self.output_dir).stored.digest()
        for p in path.parent.glob('checkpoint_*.npz')
    ]
    self.assertLen(rounds, 3)
    self.assertIn(start.stored.digest(), rounds)

  def test_a_file_that_has_changed_is_refused(self):
    path = str(self.output_dir / 'start.npz')
    shutil.copy(self.npz, path)
    recorded = warm_start.read(path, None, self.output_dir).hparams()
    shutil.copy(self.other_npz, path)
    with self.assertRaises(command_line.UserError) as caught:
      warm_start.read(path, recorded, self.output_dir)
    self.assertEqual(
        str(caught.exception),
        f'the run in {self.output_dir} started from other weights than those '
        f'now in --initial_weights={path}; choose another --experiment_name, '
        'or restore the file',
    )

  def test_a_run_without_the_flag_continues_without_it(self):
    shutil.copytree(self.first, self.output_dir / 'run')
    recorded = self.recorded()
    self.assertIsNone(recorded['initial_weights'])
    self.assertNotIn('initial_weights_sha256', recorded)
    with self.assertRaisesRegex(
        command_line.UserError,
        f'initial_weights=nothing, but initial_weights="{self.npz}"',
    ):
      self.train(self.npz, *trainer_testing.SHARED)

  @pytest.mark.slow
  def test_models_with_variables_that_are_not_trained(self):
    def build_keras_model():
      return tf.keras.Sequential(
          [
              tf.keras.layers.BatchNormalization(input_shape=[2]),
              tf.keras.layers.Dense(2),
          ]
      )

    model_fn = keras_forms.KerasForms(
        build_keras_model,
        data.spec(x=('float32', [2]), y=('int32', [])),
        keras_forms.build_softmax_loss,
        keras_forms.build_accuracy,
    ).variable_fn
    with self.assertWarnsRegex(UserWarning, 'GroupNormalization'):
      process = algorithms.build_fed_opt(
          model_fn,
          client_optimizer=optimizers.build_sgd(0.1),
          server_optimizer=optimizers.build_fedyogi(0.1),
      )
    weights = tff.learning.models.ModelWeights.from_model(build_keras_model())
    weights = tf.nest.map_structure(lambda leaf: leaf.numpy() + 3, weights)
    self.assertLen(weights.non_trainable, 2)
    path = self.output_dir / 'start.npz'
    names = tf.nest.map_structure(lambda _: 'name', weights)
    weights_files.write_weights(path, weights, names)
    start = warm_start.read(path, None, self.output_dir)
    task = mock.Mock(model=model_fn)
    with runtime.CompiledContext(), contextlib.redirect_stdout(io.StringIO()):
      state = start.initial_state_fn(process, task)()
    found = state.global_model_weights
    self.assertEqual(_arrays(found), _arrays(weights))
    for array, wanted in zip(found.non_trainable, weights.non_trainable):
      np.testing.assert_array_equal(array, wanted)

    weights.non_trainable[1][0] = np.nan
    weights_files.write_weights(path, weights, names)
    start = warm_start.read(path, None, self.output_dir)
    with self.assertRaisesRegex(
        command_line.UserError,
        f'^--initial_weights: `non_trainable/1/name` in {path} is not finite',
    ):
      start.initial_state_fn(process, task)

  def test_weights_of_another_model_are_one_sentence_before_training(self):
    with self.assertRaises(command_line.UserError) as caught:
      self.train(self.npz, '--digits_model=cnn')
    self.assertEqual(
        str(caught.exception),
        f'--initial_weights: {self.npz} does not match the model: expected '
        '8 weights, found 2, and no `trainable/2`',
    )
    # No folder that a better command would then be refused for.
    self.assertFalse((self.output_dir / 'run').exists())

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of exporting the global model of a run."""

import contextlib
import io
import json
import os
import shutil
from unittest import mock

from absl.testing import parameterized
import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments import command_line
from experiments.export import __main__ as export
from experiments.export import model_files
from tasks import stackoverflow
from tests import folder_testing
from tests.experiments import binary_testing
from tests.experiments.train import trainer_testing
from tff_adaptive.simulation import weights_files

_IMAGES = np.random.default_rng(0).random([5, 8, 8, 1], np.float32)


def _call(*arguments):
  """Runs the binary in this process; returns what it prints."""
  err = io.StringIO()
  with contextlib.redirect_stderr(err):
    out = binary_testing.call(export, *arguments)
  assert not err.getvalue(), err.getvalue()
  return out


def _predict(weights):
  """Returns the logits of logistic regression, by NumPy."""
  kernel, bias = weights
  return _IMAGES.reshape([5, 64]) @ kernel + bias


class ExportTest(folder_testing.FolderTestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.trained, cls.weights = trainer_testing.shared_run()

  def _copy_run(self):
    return shutil.copytree(self.trained, self.folder / 'run')

  def _load(self, checkpoint, run=None):
    """Returns the weights of a checkpoint by way of a npz file."""
    path = self.folder / f'{checkpoint}.npz'
    run = run or self.trained
    _call(f'--run={run}', f'--checkpoint={checkpoint}', f'--output={path}')
    with np.load(path, allow_pickle=False) as file:
      return list(file.values())

  def _assert_equal(self, found, expected):
    self.assertLen(found, len(expected))
    for array, wanted in zip(found, expected):
      np.testing.assert_array_equal(array, wanted)

  def _assert_refused(self, sentence, *arguments, run=None):
    output = self.folder / 'new.npz'
    with self.assertRaisesRegex(command_line.UserError, sentence) as caught:
      _call(f'--run={run or self.trained}', f'--output={output}', *arguments)
    self.assertNotIn('\n', str(caught.exception))
    self.assertFalse(output.exists())

  def test_npz_has_the_weights_of_the_final_state(self):
    path = self.folder / 'deep' / 'my model.npz'
    out = _call(f'--run={self.trained}', f'--output={path}')
    with np.load(path, allow_pickle=False) as file:
      self.assertEqual(
          file.files, ['trainable/0/logits/kernel', 'trainable/1/logits/bias']
      )
      self._assert_equal(list(file.values()), self.weights)
    size = f'{path.stat().st_size / 1000:.1f} kB'
    self.assertEqual(
        out,
        f'weights: {self.trained}/checkpoints/checkpoint_00000003.npz\n'
        f"{path} ({size}): np.load('{path}'), or train on with "
        f"'--initial_weights={path}'\n",
    )
    self.assertEqual(os.listdir(path.parent), ['my model.npz'])

  def test_keras_file_predicts_what_the_final_state_does(self):
    path = self.folder / 'model.keras'
    out = _call(f'--run={self.trained}', '--format=keras', f'--output={path}')
    self.assertIn(f": keras.models.load_model('{path}')", out)
    model = keras.models.load_model(path)
    self._assert_equal(model.get_weights(), self.weights)
    np.testing.assert_allclose(
        model(_IMAGES), _predict(self.weights), rtol=1e-5, atol=1e-6
    )

  def test_layers_that_are_not_kerass_are_to_be_imported(self):
    path = self.folder / 'model.keras'
    stackoverflow.STACKOVERFLOW_LR.build_keras_model(
        'words', vocab_size=3, tag_vocab_size=5, max_words=2
    ).save(path)
    self.assertEqual(
        model_files._how_to_load('keras', path, 'keras'),
        'import tasks.language.tag_models, tff_adaptive.layers.keras_3; '
        f"keras.models.load_model('{path}')",
    )

  def test_saved_model_predicts_what_the_final_state_does(self):
    path = self.folder / 'model'
    out = _call(
        f'--run={self.trained}', '--format=saved_model', f'--output={path}'
    )
    self.assertIn(f"tf.saved_model.load('{path}')", out)
    model = tf.saved_model.load(path)
    for predict in (
        model.serve,
        lambda x: next(iter(model.signatures['serving_default'](x).values())),
    ):
      np.testing.assert_allclose(
          predict(tf.constant(_IMAGES)),
          _predict(self.weights),
          rtol=1e-5,
          atol=1e-6,
      )

  def test_other_checkpoints(self):
    rounds = [self._load(str(number)) for number in (1, 2, 3)]
    self._assert_equal(rounds[2], self.weights)
    self.assertTrue(np.any(rounds[0][0] != rounds[2][0]))
    # A half of each round's weights is left in the next average.
    expected = [
        (0.25 * a + 0.5 * b + c) / 1.75 for a, b, c in zip(*rounds, strict=True)
    ]
    for array, wanted in zip(self._load('average'), expected):
      np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-7)
    with np.load(self.trained / 'checkpoints/best.npz') as file:
      manifest = json.loads(file['manifest'].tobytes())
    self._assert_equal(self._load('best'), rounds[manifest['round_num'] - 1])

  @pytest.mark.slow
  def test_weights_are_those_that_an_averaging_server_evaluates(self):
    result, _ = trainer_testing.train(
        self.folder, '--server_optimizer=gpa', '--server_schedule=exp_decay'
    )
    held = result.state.finalizer['inner']
    run = self.folder / 'run'
    self._assert_equal(self._load('latest', run), held['average'])
    trained = result.state.global_model_weights.trainable
    self.assertTrue(np.any(held['average'][0] != trained[0]))

  @pytest.mark.slow
  def test_average_of_the_last_rounds(self):
    trainer_testing.train(
        self.folder, '--weights_average_rounds=2', '--total_rounds=3'
    )
    run = self.folder / 'run'
    second, third, average = (self._load(c, run) for c in ('2', '3', 'average'))
    for array, a, b in zip(average, second, third):
      np.testing.assert_allclose(array, (a + b) / 2, rtol=1e-5, atol=1e-7)
    self._assert_refused(
        'has no best checkpoint: it was trained without --keep_best$',
        '--checkpoint=best',
        run=run,
    )

  def test_files_that_are_missing_or_damaged_are_named(self):
    run = self._copy_run()
    checkpoints = run / 'checkpoints'
    self._assert_refused(
        'run has no checkpoint of round 7; it has .* of rounds 1, 2, 3$',
        '--checkpoint=7',
        run=run,
    )
    for name, checkpoint in (
        ('best.npz', 'best'),
        ('checkpoint_00000003.npz', '3'),
    ):
      (checkpoints / name).write_bytes(b'damaged')
      self._assert_refused(
          f'{name} is not an intact npz file',
          f'--checkpoint={checkpoint}',
          run=run,
      )
    (checkpoints / 'best.npz').unlink()
    self._assert_refused(
        'no best .*: no round had a number for evaluation/accuracy yet$',
        '--checkpoint=best',
        run=run,
    )
    # The newest one that is whole.
    self._assert_equal(self._load('latest', run), self._load('2'))
    for path in checkpoints.glob('checkpoint_*'):
      path.write_bytes(b'damaged')
    for checkpoint in ('latest', 'average'):
      self._assert_refused(
          'every checkpoint in .*/run/checkpoints is damaged',
          f'--checkpoint={checkpoint}',
          run=run,
      )
    shutil.rmtree(checkpoints)
    self._assert_refused('there is no checkpoint in .*/run/check', run=run)

  def test_models_that_are_not_known_are_named(self):
    run = self._copy_run()
    recorded = json.loads((run / 'hparams.json').read_text())
    for changes, arguments, sentence in (
        (
            {'task': 'digit'},
            [],
            r'hparams.json describes a model unknown .*\(--task=',
        ),
        ({'digits_model': 'mlp'}, [], "digits_model takes cnn, .* found 'mlp'"),
        (
            {'digits_model': 'cnn'},
            [],
            'does not match the model: expected 8 weights, found 2',
        ),
        (
            {'weights_average_decay': None},
            ['--checkpoint=average'],
            'run has no average of its weights: it was trained without',
        ),
    ):
      (run / 'hparams.json').write_text(json.dumps({**recorded, **changes}))
      self._assert_refused(sentence, *arguments, run=run)
    (run / 'hparams.json').write_text('{')
    self._assert_refused('/run/hparams.json is damaged .*restore it', run=run)

  @parameterized.named_parameters(
      ('checkpoint', ['--checkpoint=newest'], "or the .* found 'newest'$"),
      ('suffix', ['--output=a.h5', '--format=keras'], 'end in .keras .*a.h5$'),
      ('no_run', ['--run=/nowhere'], '/nowhere is not the folder of a run'),
  )
  def test_flags(self, arguments, sentence):
    self._assert_refused(sentence, *arguments)

  def test_existing_files_stay(self):
    for output, form in ((self.folder, 'saved_model'), ('a.npz', 'npz')):
      output = self.folder / output
      if form == 'npz':
        output.symlink_to('nowhere')
      self._assert_refused(
          f'^--output={output} already exists; remove it',
          f'--output={output}',
          f'--format={form}',
      )

  @parameterized.parameters('npz', 'keras')
  @pytest.mark.sample(1)
  def test_a_failure_leaves_nothing(self, form):
    failing = (
        (weights_files, 'write_weights')
        if form == 'npz'
        else (keras.Model, 'save')
    )
    with mock.patch.object(*failing, side_effect=OSError('disk full')):
      with self.assertRaisesRegex(command_line.EnvironmentalError, 'disk full'):
        _call(
            f'--run={self.trained}',
            f'--format={form}',
            f'--output={self.folder}/model.{form}',
        )
    self.assertEmpty(os.listdir(self.folder))

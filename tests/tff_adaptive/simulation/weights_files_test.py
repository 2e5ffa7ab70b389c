# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of weights in files."""

import collections

from absl.testing import parameterized
import keras
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import folder_testing
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import weights_files

_BFLOAT16 = tf.bfloat16.as_numpy_dtype


def _weights(scale=1.0, dtype=np.float32):
  return tff.learning.models.ModelWeights(
      trainable=(
          (scale * np.arange(6).reshape(2, 3)).astype(dtype),
          np.zeros([3], dtype),
      ),
      non_trainable=(np.int64(7),),
  )


_NAMES = tff.learning.models.ModelWeights(
    ('logits/kernel', 'logits/bias'), ('counter',)
)


def _leaves(weights):
  return [
      (leaf.dtype.name, leaf.tolist())
      for leaf in map(np.asarray, tf.nest.flatten(weights))
  ]


def _snapshot(weights):
  """Returns a checkpoint as the training loop writes it."""
  state = tff.learning.templates.LearningAlgorithmState(
      global_model_weights=weights,
      distributor=(),
      client_work=(),
      aggregator=(np.float32(1),),
      finalizer=(),
  )
  return collections.OrderedDict(
      process=state, callbacks=[{'average': weights}], stopped=np.bool_(False)
  )


class WeightsFilesTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.path = self.folder / 'weights.npz'

  def _write(self, weights, names=_NAMES):
    weights_files.write_weights(self.path, weights, names)
    return weights_files.read_weights(self.path)

  def test_a_weights_file_is_readable_arrays_in_order(self):
    self._write(_weights())
    with np.load(self.path, allow_pickle=False) as file:
      self.assertEqual(
          file.files,
          [
              'trainable/0/logits/kernel',
              'trainable/1/logits/bias',
              'non_trainable/0/counter',
          ],
      )
      np.testing.assert_array_equal(
          file['trainable/0/logits/kernel'], _weights().trainable[0]
      )

  @parameterized.parameters(
      np.float32,
      np.float64,
      np.float16,
      _BFLOAT16,
      tf.as_dtype('float8_e5m2').as_numpy_dtype,
      tf.as_dtype('float8_e4m3fn').as_numpy_dtype,
  )
  def test_round_trip_keeps_every_bit(self, dtype):
    weights = _weights(dtype=dtype)
    stored = self._write(weights)
    self.assertEqual(stored.path, self.path)
    found = stored.to_model_weights(weights)
    self.assertIsInstance(found, tff.learning.models.ModelWeights)
    self.assertEqual(_leaves(found), _leaves(weights))

  @parameterized.product(
      found=[_BFLOAT16, np.float16, np.int16],
      wanted=[_BFLOAT16, np.float16, np.int16],
      by_numpy=[True, False],
  )
  def test_types_of_two_bytes_are_not_mistaken(self, found, wanted, by_numpy):
    weights = tff.learning.models.ModelWeights((np.array([1, 2], found),), ())
    if by_numpy:  # As earlier versions wrote them.
      np.savez(self.path, **{'trainable/0/k': weights.trainable[0]})
      stored = weights_files.read_weights(self.path)
    else:
      names = tff.learning.models.ModelWeights(('k',), ())
      stored = self._write(weights, names)
    template = tff.learning.models.ModelWeights((np.zeros([2], wanted),), ())
    if found == wanted:
      read = stored.to_model_weights(template)
      self.assertEqual(_leaves(read), _leaves(weights))
      return
    with self.assertRaises(weights_files.WeightsFileError) as caught:
      stored.to_model_weights(template)
    names = [np.dtype(dtype).name for dtype in (found, wanted)]
    self.assertEndsWith(
        str(caught.exception),
        f'`trainable/0/k` is {names[0]}[2], expected {names[1]}[2]',
    )

  def test_types_of_one_byte_are_not_mistaken(self):
    first, second = tf.as_dtype('float8_e5m2'), tf.as_dtype('float8_e4m3fn')
    weights = _weights(dtype=first.as_numpy_dtype)
    stored = self._write(weights)
    with self.assertRaisesRegex(
        weights_files.WeightsFileError,
        r'is float8_e5m2\[2, 3\], expected float8_e4m3fn\[2, 3\]',
    ):
      stored.to_model_weights(_weights(dtype=second.as_numpy_dtype))

  def test_bfloat16_is_integers_to_numpy(self):
    self._write(_weights(dtype=_BFLOAT16))
    with np.load(self.path, allow_pickle=False) as file:
      bits = file['trainable/0/logits/kernel']['bfloat16']
    self.assertEqual(bits.tolist()[0][:2], [0, 0x3F80])

  def test_template_may_be_tensors_or_variables(self):
    stored = self._write(_weights())
    for make in (tf.convert_to_tensor, tf.Variable):
      template = tf.nest.map_structure(make, _weights(0.0))
      found = stored.to_model_weights(template)
      self.assertEqual(_leaves(found), _leaves(_weights()))

  def test_names_of_variables_may_be_missing(self):
    names = [f'trainable/{i}' for i in range(12)]
    # In another order than that of the model.
    np.savez(self.path, **{name: np.float32(name[10:]) for name in names[::-1]})
    template = tff.learning.models.ModelWeights((np.float32(0),) * 12, ())
    found = weights_files.read_weights(self.path).to_model_weights(template)
    self.assertEqual(list(found.trainable), list(range(12)))

  def test_weights_may_be_one_array(self):
    centers = np.arange(6.0).reshape(2, 3)
    for state in (
        {'process': {'global_model_weights': centers}},
        {'weights': centers, 'process': {'global_model_weights': centers + 1}},
    ):
      checkpoints.write_structure(self.path, 1, state)
      stored = weights_files.read_weights(self.path)
      found = stored.to_model_weights(np.zeros([2, 3]))
      np.testing.assert_array_equal(found, centers)

  def test_every_file_of_a_run_has_the_same_digest(self):
    weights, later = _weights(), _weights(2.0)
    manager = checkpoints.CheckpointManager(self.folder / 'run/checkpoints')
    manager.save(4, _snapshot(weights))
    best = self.folder / 'run/checkpoints/best.npz'
    checkpoints.write_structure(
        best, 4, {'round_num': np.int64(4), 'weights': weights}
    )
    digests = set()
    for path in (manager.path(4), best, self.folder / 'run'):
      stored = weights_files.read_weights(path)
      self.assertEqual(
          _leaves(stored.to_model_weights(weights)), _leaves(weights)
      )
      digests.add(stored.digest())
    digests.add(self._write(weights).digest())
    self.assertLen(digests, 1)
    self.assertNotIn(self._write(later).digest(), digests)
    self.assertRegex(digests.pop(), '^[0-9a-f]{64}$')

  def test_the_trained_model_is_part_of_the_digest(self):
    kernel = np.ones([2])
    digests = {
        weights_files.StoredWeights(self.path, arrays).digest()
        for arrays in (
            {'trainable/0': kernel, 'trainable/1': kernel},
            {'trainable/0': kernel, 'non_trainable/0': kernel},
            {'trainable/0': np.ones([1, 2]), 'trainable/1': kernel},
        )
    }
    self.assertLen(digests, 3)

  def test_the_newest_whole_checkpoint_of_a_run_counts(self):
    manager = checkpoints.CheckpointManager(self.folder / 'run/checkpoints')
    for round_num in (1, 2, 3):
      manager.save(round_num, _snapshot(_weights(round_num)))
    manager.path(3).write_bytes(manager.path(3).read_bytes()[:-200])
    stored = weights_files.read_weights(self.folder / 'run')
    self.assertEqual(stored.path, manager.path(2))
    self.assertEqual(
        _leaves(stored.to_model_weights(_weights())), _leaves(_weights(2.0))
    )

  @parameterized.named_parameters(
      (
          'shape',
          {'trainable/0/a': np.ones([2, 4], np.float32)},
          'does not match the model: `trainable/0/a` is float32[2, 4], '
          'expected float32[2, 3]',
      ),
      (
          'dtype',
          {'trainable/0/a': np.ones([2, 3])},
          'does not match the model: `trainable/0/a` is float64[2, 3], '
          'expected float32[2, 3]',
      ),
      (
          'bytes_of_another_size',
          {'trainable/0/a': np.zeros([2, 3], 'V1')},
          '`trainable/0/a` is void8[2, 3], expected float32[2, 3]',
      ),
      (
          'too_few',
          {'trainable/1': None},
          'expected 3 weights, found 2, and no `trainable/1`',
      ),
      (
          'too_many',
          {'trainable/2/x': np.ones([1], np.float32)},
          'expected 3 weights, found 4, and an extra ' '`trainable/2/x`',
      ),
      (
          'not_trained',
          {'trainable/1': None, 'non_trainable/1': np.zeros([3], np.float32)},
          'expected 3 weights, found 3, and no `trainable/1`',
      ),
  )
  def test_weights_of_another_model_are_named(self, changes, sentence):
    arrays = {
        'trainable/0/a': np.ones([2, 3], np.float32),
        'trainable/1': np.zeros([3], np.float32),
        'non_trainable/0': np.int64(7),
        **changes,
    }
    np.savez(self.path, **{k: v for k, v in arrays.items() if v is not None})
    stored = weights_files.read_weights(self.path)
    with self.assertRaises(weights_files.WeightsFileError) as caught:
      stored.to_model_weights(_weights())
    self.assertIn(sentence, str(caught.exception))
    self.assertStartsWith(str(caught.exception), str(self.path))

  @parameterized.named_parameters(
      ('text', b'nothing of the kind'),
      ('empty', b''),
      ('pickle', b'\x80\x04N.'),
  )
  def test_other_files_are_named(self, data):
    self.path.write_bytes(data)
    with self.assertRaisesRegex(
        weights_files.WeightsFileError, 'weights.npz is not an intact npz file'
    ):
      weights_files.read_weights(self.path)

  def test_damaged_and_missing_files_are_named(self):
    with self.assertRaisesRegex(
        FileNotFoundError, 'weights.npz does not exist'
    ):
      weights_files.read_weights(self.path)
    self._write(_weights())
    data = bytearray(self.path.read_bytes())
    data[data.index(b'NUMPY') + 130] ^= 1
    self.path.write_bytes(data)
    with self.assertRaisesRegex(
        weights_files.WeightsFileError, 'weights.npz is not an intact npz file'
    ):
      weights_files.read_weights(self.path)

  def test_objects_are_not_unpickled(self):
    np.savez(self.path, **{'trainable/0': np.array([{}], object)})
    with self.assertRaisesRegex(weights_files.WeightsFileError, 'allow_pickle'):
      weights_files.read_weights(self.path)

  def test_folders_and_checkpoints_without_weights_are_named(self):
    with self.assertRaisesRegex(FileNotFoundError, 'no checkpoint in .*/check'):
      weights_files.read_weights(self.folder)
    checkpoints.write_structure(self.path, 1, {'process': np.float32(1)})
    with self.assertRaisesRegex(
        weights_files.WeightsFileError, 'no weights of a learning process'
    ):
      weights_files.read_weights(self.path)
    manager = checkpoints.CheckpointManager(self.folder / 'checkpoints')
    manager.save(1, _snapshot(_weights()))
    manager.path(1).write_bytes(b'damaged')
    with self.assertRaisesRegex(
        checkpoints.CheckpointError, 'every checkpoint in .* is damaged'
    ):
      weights_files.read_weights(self.folder)

  @parameterized.named_parameters(('keras_3', keras), ('keras_2', tf.keras))
  def test_weights_of_a_keras_file(self, version):
    model = version.Sequential(
        [
            version.Input([2]),
            version.layers.BatchNormalization(),
            version.layers.Dense(3),
        ]
    )
    path = self.folder / 'model.keras'
    model.save(path)
    parts = model.trainable_weights, model.non_trainable_weights
    weights = tff.learning.models.ModelWeights(
        *(tuple(weight.numpy() for weight in part) for part in parts)
    )
    found = weights_files.read_weights(path).to_model_weights(weights)
    self.assertEqual(_leaves(found), _leaves(weights))

  def test_damaged_keras_file_is_named(self):
    path = self.folder / 'model.keras'
    path.write_bytes(b'damaged')
    with self.assertRaisesRegex(
        weights_files.WeightsFileError, 'model.keras is not an intact Keras'
    ):
      weights_files.read_weights(path)

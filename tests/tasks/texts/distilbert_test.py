# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of DistilBERT, as a layer and in Hugging Face's files."""

import json
import shutil
import socket
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
from safetensors import numpy as safetensors
import tensorflow as tf

from tasks import data
from tasks import keras_forms
from tasks.texts import distilbert
from tasks.texts import pretrained
from tests import folder_testing
from tests.tasks.texts import text_testing

_CONFIG = dict(
    vocab_size=11, n_layers=2, n_heads=2, dim=8, hidden_dim=12,
    max_position_embeddings=6,
)  # fmt: skip
_TOKENS = np.array([[2, 5, 9, 4, 0, 0], [2, 10, 1, 3, 7, 8]], np.int32)


def _build(seed=1, initial_weights=None):
  layer = distilbert.DistilBertEncoder(_CONFIG, seed, initial_weights)
  layer.build([None, 6])
  return layer


def _keras_model(seed=1):
  tokens = tf.keras.Input([6], dtype=tf.int32)
  features = distilbert.DistilBertEncoder(_CONFIG, seed)(tokens)
  return tf.keras.Model(tokens, tf.keras.layers.Dense(3)(features))


class DistilBertTest(parameterized.TestCase):

  def test_is_what_transformers_computes(self):
    import transformers

    layer = _build()
    theirs = transformers.TFDistilBertModel(
        transformers.DistilBertConfig(**_CONFIG)
    )
    theirs.build(None)
    theirs.distilbert.set_weights(layer.get_weights())
    expected = theirs(_TOKENS, attention_mask=_TOKENS != 0)[0][:, 0]
    np.testing.assert_allclose(layer(_TOKENS), expected, atol=1e-6)
    self.assertEqual(layer(_TOKENS).shape, (2, 8))

  def test_padding_changes_nothing(self):
    layer = _build()
    np.testing.assert_allclose(
        layer(_TOKENS[:1, :4]), layer(_TOKENS[:1]), atol=1e-6
    )
    self.assertNotAllClose(layer(_TOKENS[1:, :4]), layer(_TOKENS[1:]))

  def assertNotAllClose(self, left, right):
    self.assertGreater(np.abs(left - right).max(), 1e-4)

  def test_drops_in_training_alone(self):
    layer = _build()
    np.testing.assert_array_equal(layer(_TOKENS), layer(_TOKENS))
    self.assertNotAllClose(layer(_TOKENS, training=True), layer(_TOKENS))

  def test_initial_weights_are_those_of_the_architecture(self):
    for variable in _build().weights:
      value = variable.numpy()
      name = variable.name
      if 'gamma' in name:
        np.testing.assert_array_equal(value, 1.0)
      elif 'bias' in name or 'beta' in name:
        np.testing.assert_array_equal(value, 0.0)
      else:
        self.assertBetween(value.std(), 0.013, 0.022, name)
        self.assertLessEqual(np.abs(value).max(), 0.04, name)

  def test_seeds_differ_and_no_two_weights_share_numbers(self):
    first, again, other = _build(), _build(), _build(2)
    kernels = []
    for a, b, c in zip(
        first.get_weights(), again.get_weights(), other.get_weights()
    ):
      np.testing.assert_array_equal(a, b)
      if a.ndim == 2:
        self.assertTrue(np.all(a != c))
        kernels.append(a.ravel()[:8])
    for i, kernel in enumerate(kernels):
      for later in kernels[i + 1 :]:
        self.assertTrue(np.all(kernel != later))

  def test_literal_weights_so_that_no_release_changes_a_run(self):
    weights = _build().get_weights()
    np.testing.assert_allclose(weights[0][0, 0], 0.01313354, rtol=1e-5)
    np.testing.assert_allclose(weights[4][0, 0], -0.01855113, rtol=1e-5)

  def test_begins_with_given_weights(self):
    given = [weight + 1.0 for weight in _build().get_weights()]
    for weight, expected in zip(_build(1, given).get_weights(), given):
      np.testing.assert_array_equal(weight, expected)

  @pytest.mark.slow
  def test_begins_with_given_weights_in_graphs(self):
    given = [weight + 1.0 for weight in _build().get_weights()]
    with tf.Graph().as_default() as graph:
      variables = _build(1, given).weights
      with tf.compat.v1.Session(graph=graph) as session:
        session.run(tf.compat.v1.global_variables_initializer())
        for weight, expected in zip(session.run(variables), given):
          np.testing.assert_array_equal(weight, expected)

  def test_copies_keep_the_architecture_and_draw_nothing(self):
    layer = _build()
    copy = distilbert.DistilBertEncoder.from_config(layer.get_config())
    copy.build([None, 6])
    self.assertEqual(
        [v.shape for v in copy.weights], [v.shape for v in layer.weights]
    )
    np.testing.assert_array_equal(copy.get_weights()[0], 0.0)
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(copy(_TOKENS), layer(_TOKENS))

  @pytest.mark.slow
  def test_functional_form_computes_the_same_without_assertions(self):
    model = _keras_model()
    expected = model(_TOKENS).numpy()
    functional = keras_forms.KerasForms(
        lambda: model,
        data.spec(x=('int32', [6]), y=('int32', [])),
        keras_forms.build_softmax_loss,
        keras_forms.build_accuracy,
    ).functional
    with tf.Graph().as_default() as graph:
      output = functional.predict_on_batch(
          functional.initial_weights, _TOKENS, training=False
      )
      operations = {node.op for node in graph.as_graph_def().node}
      with tf.compat.v1.Session(graph=graph) as session:
        np.testing.assert_allclose(session.run(output), expected, atol=1e-6)
    self.assertNotIn('Assert', operations)


def _to_torch(model):
  """Returns weights in PyTorch's layout, and a head of another model."""
  tensors = {'vocab_transform.weight': np.ones([16, 16], np.float32)}
  for variable in model.distilbert.weights:
    *path, leaf = variable.name.split(':')[0].split('/')
    value = variable.numpy()
    leaf = 'bias' if leaf in ('beta', 'bias') else 'weight'
    name = '.'.join([*path[path.index('distilbert') :], leaf])
    tensors[name.replace('layer_._', 'layer.')] = np.ascontiguousarray(
        value.T if variable.name.endswith('kernel:0') else value
    )
  return tensors


class PretrainedTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.original = folder_testing.new(cls) / 'original'
    cls.original.mkdir()
    cls.model = text_testing.write_pretrained(cls.original)
    cls.weights = [v.numpy() for v in cls.model.distilbert.weights]

  def setUp(self):
    super().setUp()
    folder = folder_testing.new(self)
    self.folder = folder / 'copy'
    shutil.copytree(self.original, self.folder)
    self.enter_context(
        mock.patch.object(
            socket.socket, 'connect', side_effect=AssertionError('network')
        )
    )

  def _change_config(self, **changes):
    path = self.folder / 'config.json'
    config = json.loads(path.read_text(encoding='utf-8'))
    path.write_text(json.dumps({**config, **changes}), encoding='utf-8')

  def _assert_refused(self, load, sentence, error=ValueError):
    with self.assertRaisesRegex(error, sentence) as caught:
      load(self.folder)
    self.assertNotIn('\n', str(caught.exception))
    self.assertEndsWith(str(caught.exception), '.')

  def _assert_weights(self):
    found = pretrained.load_encoder_weights(str(self.folder))
    self.assertLen(found, len(self.weights))
    for weight, expected in zip(found, self.weights):
      np.testing.assert_array_equal(weight, expected)

  def test_weights_of_keras(self):
    self._assert_weights()

  @parameterized.parameters('tf', 'pt')
  def test_weights_in_safetensors(self, library):
    (self.folder / 'tf_model.h5').unlink()
    if library == 'tf':
      self.model.save_pretrained(self.folder, safe_serialization=True)
    else:
      safetensors.save_file(
          _to_torch(self.model), self.folder / 'model.safetensors'
      )
    self._assert_weights()

  @parameterized.parameters((np.uint16, 7, 'uint16'), (float, 1e300, 'float64'))
  def test_weights_that_are_no_floats_of_32_bits(self, dtype, value, found):
    (self.folder / 'tf_model.h5').unlink()
    tensors = _to_torch(self.model)
    name = next(n for n in tensors if n.endswith('word_embeddings.weight'))
    tensors[name] = np.full(tensors[name].shape, value, dtype)
    safetensors.save_file(tensors, self.folder / 'model.safetensors')
    self._assert_refused(
        pretrained.load_encoder_weights,
        f'safetensors must hold .*word_embeddings.weight .* found {found}',
    )

  def test_config_has_the_sizes(self):
    config = pretrained.load_config(self.folder)
    self.assertEqual((config['dim'], config['n_layers']), (16, 2))

  def test_tokens_are_pieces_between_marks(self):
    pieces = pretrained.load_word_pieces(self.folder)
    tokens = pieces.encode(['The WINNER banks', b'unheard'], 7)
    self.assertEqual(tokens.dtype, np.int32)
    place = text_testing.PIECES.index
    np.testing.assert_array_equal(
        tokens,
        [
            [
                2,
                place('the'),
                place('win'),
                place('##ner'),
                place('bank'),
                place('##s'),
                3,
            ],
            [2, 1, 3, 0, 0, 0, 0],
        ],
    )
    np.testing.assert_array_equal(
        pieces.encode(['The WINNER banks'], 4),
        [[2, place('the'), place('win'), 3]],
    )

  def test_few_texts_are_held_at_once(self):
    sizes = []

    def tokenize(texts, max_length, **kwargs):
      del kwargs  # Unused.
      sizes.append(len(texts))
      numbers = np.array(texts, np.int64)
      return {'input_ids': np.tile(numbers[:, np.newaxis], max_length)}

    texts = [str(number) for number in range(2500)]
    tokens = pretrained.WordPieces(tokenize).encode(texts, 3)
    np.testing.assert_array_equal(tokens, np.tile(np.c_[:2500], 3))
    self.assertEqual(tokens.dtype, np.int32)
    self.assertEqual(sizes, [1000, 1000, 500])

  def test_case_counts_if_the_folder_says_so(self):
    (self.folder / 'tokenizer_config.json').write_text(
        '{"do_lower_case": false}'
    )
    pieces = pretrained.load_word_pieces(self.folder)
    self.assertEqual(pieces.encode(['The'], 3).tolist(), [[2, 1, 3]])

  @parameterized.parameters(
      ('load_config', 'config.json', 'config.json'),
      ('load_word_pieces', 'vocab.txt', 'vocab.txt or tokenizer.json'),
      ('load_encoder_weights', 'tf_model.h5', 'tf_model.h5 or .*'),
  )
  def test_missing_file_is_named(self, load, file, sentence):
    (self.folder / file).unlink()
    self._assert_refused(
        getattr(pretrained, load),
        f'`pretrained_dir` must be a folder with {sentence}, .* {self.folder} ',
        FileNotFoundError,
    )

  @parameterized.product(
      damaged=(
          ('load_config', 'config.json'),
          ('load_encoder_weights', 'tf_model.h5'),
      ),
      part=(0.0, 0.5),
  )
  def test_damaged_file_is_named(self, damaged, part):
    load, name = damaged
    path = self.folder / name
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    self._assert_refused(
        getattr(pretrained, load),
        f'{path} could not be read .*; replace it by an intact copy',
    )

  @parameterized.parameters(MemoryError, PermissionError)
  def test_a_file_that_may_be_whole_is_not_called_damaged(self, error):
    with mock.patch.object(pretrained, '_read_h5', side_effect=error):
      with self.assertRaises(error):
        pretrained.load_encoder_weights(self.folder)

  def test_truncated_safetensors_are_named(self):
    (self.folder / 'tf_model.h5').unlink()
    path = self.folder / 'model.safetensors'
    safetensors.save_file(_to_torch(self.model), path)
    path.write_bytes(path.read_bytes()[:2000])
    self._assert_refused(
        pretrained.load_encoder_weights, f'{path} could not be read'
    )

  def test_weights_that_are_missing_are_named(self):
    self._change_config(n_layers=3)
    self._assert_refused(
        pretrained.load_encoder_weights,
        r'must hold transformer\.layer\.2\.attention\.q_lin\.weight of shape '
        r'\[16, 16\] to match config.json, found none',
    )

  def test_weights_of_another_shape_are_named(self):
    self._change_config(hidden_dim=40)
    self._assert_refused(
        pretrained.load_encoder_weights,
        r'lin1\.weight of shape \[16, 40\] .* found \[16, 32\]',
    )

  def test_another_architecture_raises(self):
    self._change_config(model_type='bert')
    self._assert_refused(
        pretrained.load_config, "model type 'distilbert', found 'bert'"
    )

  @parameterized.parameters(dict(vocab_size=9), dict(pad_token_id=4))
  def test_tokens_that_do_not_fit_the_model_raise(self, **changes):
    self._change_config(**changes)
    self._assert_refused(
        pretrained.load_word_pieces, 'vocab.txt must hold at most .* to match'
    )

  def test_empty_vocabulary_raises(self):
    (self.folder / 'vocab.txt').write_text('')
    self._assert_refused(pretrained.load_word_pieces, 'vocab.txt')

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the models of all tasks are the published ones: a row a model."""

from collections.abc import Mapping
import itertools
from typing import Any

from absl.testing import parameterized
import attrs
import numpy as np
import pytest
import tensorflow as tf

from tasks import catalogue

_AUTOENCODER = (784, 1000, 500, 250, 30, 250, 500, 1000, 784)


@attrs.frozen
class _Model:
  """A published model.

  Attributes:
    name: The names of its task and of the model, if there are several.
    num_weights: How many numbers it trains.
    kernels: Their shapes in words; empty if another row has them.
    initial: The distribution of kernels, 'glorot' with zero biases or 'fan_in',
      as PyTorch's; empty for another one.
    arguments: Arguments of the task.
    literals: Initial numbers by the place of the weight, so that no release
      changes a run.
    rates: The rates of its dropout.
  """

  name: str
  num_weights: int
  kernels: str = ''
  initial: str = ''
  arguments: Mapping[str, Any] = {}
  literals: Mapping[int, float] = {}
  rates: tuple[float, ...] = ()

  def build(self, seed=1):
    task, _, model_id = self.name.partition('/')
    chosen = {'model_id': model_id} if model_id else {}
    return catalogue.TASKS[task].build_keras_model(
        seed=seed, **chosen, **self.arguments
    )


_DIGITS = {'only_digits': True}
_MODELS = (
    _Model('digits/logistic', 650, '64x10', 'glorot', literals={0: 0.0208343}),
    _Model('digits/cnn', 23_946, '3x3x1x16 3x3x16x32 288x64 64x10', 'glorot'),
    _Model('mnist/logistic', 7_850, '784x10', 'fan_in'),
    _Model('mnist/mlp', 178_110, '784x200 200x100 100x10', 'fan_in'),
    _Model(
        'mnist/fedavg_cnn',
        582_026,
        '5x5x1x32 5x5x32x64 1024x512 512x10',
        'fan_in',
    ),
    _Model(
        'mnist/cnn',
        21_840,
        '5x5x1x10 5x5x10x20 320x50 50x10',
        'fan_in',
        literals={0: -0.06529255, 7: -0.1049663},
        rates=(0.5, 0.5),
    ),
    _Model(
        'emnist_cr/cnn_dropout',
        1_206_590,
        '3x3x1x32 3x3x32x64 9216x128 128x62',
        'glorot',
        literals={0: 0.07380237, 6: 0.17587596},
        rates=(0.25, 0.5),
    ),
    _Model(
        'emnist_cr/cnn',
        1_690_046,
        '5x5x1x32 5x5x32x64 3136x512 512x62',
        'glorot',
    ),
    _Model('emnist_cr/2nn', 209_662, '784x200 200x200 200x62', 'glorot'),
    _Model(
        'emnist_cr/cnn_dropout', 1_199_882, arguments=_DIGITS, rates=(0.25, 0.5)
    ),
    _Model('emnist_cr/cnn', 1_663_370, arguments=_DIGITS),
    _Model('emnist_cr/2nn', 199_210, arguments=_DIGITS),
    _Model(
        'emnist_ae',
        2_837_314,
        ' '.join(f'{n}x{m}' for n, m in itertools.pairwise(_AUTOENCODER)),
        'glorot',
    ),
    _Model(
        'cifar10/simple_cnn',
        122_570,
        '3x3x3x32 3x3x32x64 3x3x64x64 1024x64 64x10',
        'fan_in',
        {'augmentation': 'none'},
        {0: -0.1588245, 9: 0.0984599},
    ),
    _Model(
        'cifar100/simple_cnn',
        79_268,
        '3x3x3x32 3x3x32x64 3x3x64x64 256x64 64x100',
        'fan_in',
        {'augmentation': 'fedopt'},
    ),
    _Model(
        'cifar10/lenet',
        62_006,
        '5x5x3x6 5x5x6x16 400x120 120x84 84x10',
        'fan_in',
        {'augmentation': 'none'},
    ),
    _Model(
        'cifar10/cnn_dropout',
        1_626_442,
        '3x3x3x32 3x3x32x64 12544x128 128x10',
        'glorot',
        {'augmentation': 'none'},
        rates=(0.25, 0.5),
    ),
    _Model(
        'shakespeare/lstm',
        820_522,
        '90x8 8x1024 256x1024 256x1024 256x1024 256x90',
        arguments={'sequence_length': 6},
        literals={0: 0.011557363, 7: 0.026371181},
    ),
    _Model('shakespeare/small_lstm', 295_210, '90x8 8x1024 256x1024 256x90'),
    _Model(
        'stackoverflow_nwp',
        4_050_748,
        '10004x96 96x2680 670x2680 670x96 96x10004',
    ),
    _Model(
        'stackoverflow_nwp',
        2_122_485,
        arguments={'vocab_size': 9, 'sequence_length': 5},
        literals={0: -0.04441713, 6: 0.0105480105},
    ),
    _Model('stackoverflow_lr/words', 5_000_500, '10000x500'),
    _Model('stackoverflow_lr/logistic', 5_000_500, '10000x500'),
    _Model(
        'stackoverflow_lr/words',
        248,
        '30x8',
        'glorot',
        {'vocab_size': 30, 'tag_vocab_size': 8},
        {0: -0.32589728},
    ),
    _Model(
        'ag_news/cnn',
        50_820,
        '11x64 3x64x64 4x64x64 5x64x64 192x4',
        arguments={'vocab_size': 11, 'max_length': 8},
        literals={0: -0.0895884, 7: -0.1582677},
        rates=(0.5,),
    ),
    _Model('ag_news', 690_116, rates=(0.5,)),
    _Model('ag_news/bag_of_words', 640_196),
    _Model('dbpedia', 692_046, rates=(0.5,)),
)
_EVERY = parameterized.named_parameters(
    (f'{m.name.replace("/", "_")}_{m.num_weights}', m) for m in _MODELS
)
_DRAWN = parameterized.named_parameters(
    (m.name.replace('/', '_'), m) for m in _MODELS if m.initial or m.literals
)


def _limit(shape, initial):
  """Returns the bound of the uniform distribution of a kernel."""
  *field, num_inputs, num_outputs = shape
  fan_in, fan_out = (np.prod(field) * n for n in (num_inputs, num_outputs))
  return np.sqrt(6 / (fan_in + fan_out) if initial == 'glorot' else 1 / fan_in)


class ModelsTest(parameterized.TestCase):

  @_EVERY
  def test_weights_and_dropout_are_the_published_ones(self, model):
    # In a graph, where nothing is drawn yet.
    with tf.Graph().as_default():
      built = model.build()
      self.assertEqual(built.count_params(), model.num_weights)
      kernels = [
          'x'.join(map(str, weight.shape))
          for weight in built.trainable_weights
          if len(weight.shape) > 1
      ]
      rates = [layer.rate for layer in built.layers if hasattr(layer, 'rate')]
    self.assertEmpty(built.non_trainable_weights)
    self.assertEqual(tuple(rates), model.rates)
    if model.kernels:
      self.assertEqual(' '.join(kernels), model.kernels)

  @_DRAWN
  def test_initial_weights_follow_from_the_seed(self, model):
    first, again, other = (model.build(s).get_weights() for s in (1, 1, 2))
    for place, number in model.literals.items():
      np.testing.assert_allclose(first[place].flat[0], number, rtol=1e-5)
    kernels = []
    for a, same, b in zip(first, again, other, strict=True):
      np.testing.assert_array_equal(a, same)
      if a.ndim > 1:
        self.assertGreater(np.mean(a != b), 0.99)
        kernels.append(a.ravel()[:10] / np.abs(a).max())
    self.assertNotEmpty(kernels)
    for i, kernel in enumerate(kernels):
      for later in kernels[i + 1 :]:
        self.assertGreater(np.abs(kernel - later).max(), 0.1)
    if model.initial:
      self._assert_distribution(first, model.initial)

  def _assert_distribution(self, weights, initial):
    limit = 0.0
    for weight in weights:
      if weight.ndim > 1:
        limit = _limit(weight.shape, initial)
        np.testing.assert_allclose(weight.std(), limit / 3**0.5, rtol=0.1)
      elif initial == 'glorot':
        np.testing.assert_array_equal(weight, 0.0)
        continue
      largest = np.abs(weight).max() / limit
      self.assertBetween(largest, 0.6, 1 + 1e-6)  # Rounded to float32.

  @parameterized.parameters(('ag_news', 1_759_364), ('dbpedia', 1_760_654))
  @pytest.mark.slow
  def test_number_of_weights_of_the_transformer(self, task, num_weights):
    model = catalogue.TASKS[task].build_keras_model('transformer', 1)
    self.assertEqual(model.count_params(), num_weights)

  @pytest.mark.slow
  def test_distilbert_has_the_weights_of_the_published_one(self):
    model = catalogue.TASKS['ag_news'].build_keras_model(
        'distilbert', 1, vocab_size=30_522, max_length=512
    )
    self.assertEqual(model.count_params(), 66_956_548)
    self.assertLen(model.weights, 104)
    self.assertEqual(
        [
            (layer.name, layer.output_shape[1:], layer.count_params())
            for layer in model.layers
            if layer.weights
        ],
        [
            ('distilbert', (768,), 66_362_880),
            ('pre_classifier', (768,), 590_592),
            ('logits', (4,), 3_076),
        ],
    )

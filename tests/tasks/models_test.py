# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the models of all tasks are the published ones: a row a model."""

from collections.abc import Mapping
from typing import Any, Optional

from absl.testing import parameterized
import attrs
import numpy as np
import pytest
import tensorflow as tf

from tasks import catalogue

_LSTM = [(8, 1024), (256, 1024)]
_AUTOENCODER = (784, 1000, 500, 250, 30, 250, 500, 1000, 784)


@attrs.frozen
class _Model:
  """A published model.

  Attributes:
    task: The name of its task.
    model_id: Its name; None if it is the only one.
    num_weights: How many numbers it trains.
    shapes: The shapes of its kernels; None if another row has them.
    arguments: Arguments of the task.
    initial: The distribution of kernels, 'glorot' with zero biases or 'fan_in',
      as PyTorch's; None for another one.
    literals: Initial numbers by the place of the weight, so that no release
      changes a run.
    rates: The rates of its dropout.
  """

  task: str
  model_id: Optional[str]
  num_weights: int
  shapes: Optional[list[tuple[int, ...]]] = None
  arguments: Mapping[str, Any] = {}
  initial: Optional[str] = None
  literals: Mapping[int, float] = {}
  rates: tuple[float, ...] = ()

  def build(self, seed=1):
    arguments = {'seed': seed, **self.arguments}
    if self.model_id is not None:
      arguments['model_id'] = self.model_id
    return catalogue.TASKS[self.task].build_keras_model(**arguments)


_MODELS = (
    _Model('digits', 'logistic', 650, [(64, 10)], {}, 'glorot', {0: 0.0208343}),
    _Model(
        'digits',
        'cnn',
        23_946,
        [(3, 3, 1, 16), (3, 3, 16, 32), (288, 64), (64, 10)],
        {},
        'glorot',
    ),
    _Model('mnist', 'logistic', 7_850, [(784, 10)], {}, 'fan_in'),
    _Model(
        'mnist',
        'mlp',
        178_110,
        [(784, 200), (200, 100), (100, 10)],
        {},
        'fan_in',
    ),
    _Model(
        'mnist',
        'cnn',
        21_840,
        [(5, 5, 1, 10), (5, 5, 10, 20), (320, 50), (50, 10)],
        {},
        'fan_in',
        {0: -0.06529255, 7: -0.1049663},
        (0.5, 0.5),
    ),
    _Model(
        'emnist_cr',
        'cnn_dropout',
        1_206_590,
        [(3, 3, 1, 32), (3, 3, 32, 64), (9216, 128), (128, 62)],
        {},
        'glorot',
        {0: 0.07380237, 6: 0.17587596},
        (0.25, 0.5),
    ),
    _Model(
        'emnist_cr',
        'cnn',
        1_690_046,
        [(5, 5, 1, 32), (5, 5, 32, 64), (3136, 512), (512, 62)],
        {},
        'glorot',
    ),
    _Model(
        'emnist_cr',
        '2nn',
        209_662,
        [(784, 200), (200, 200), (200, 62)],
        {},
        'glorot',
    ),
    *(
        _Model(
            'emnist_cr', name, number, None, {'only_digits': True}, rates=rates
        )
        for name, number, rates in (
            ('cnn_dropout', 1_199_882, (0.25, 0.5)),
            ('cnn', 1_663_370, ()),
            ('2nn', 199_210, ()),
        )
    ),
    _Model(
        'emnist_ae',
        None,
        2_837_314,
        list(zip(_AUTOENCODER[:-1], _AUTOENCODER[1:])),
        {},
        'glorot',
    ),
    _Model(
        'cifar10',
        'simple_cnn',
        122_570,
        [(3, 3, 3, 32), (3, 3, 32, 64), (3, 3, 64, 64), (1024, 64), (64, 10)],
        {'augmentation': 'none'},
        'fan_in',
        {0: -0.1588245, 9: 0.0984599},
    ),
    _Model(
        'cifar100',
        'simple_cnn',
        79_268,
        [(3, 3, 3, 32), (3, 3, 32, 64), (3, 3, 64, 64), (256, 64), (64, 100)],
        {'augmentation': 'fedopt'},
        'fan_in',
    ),
    _Model(
        'cifar10',
        'cnn_dropout',
        1_626_442,
        [(3, 3, 3, 32), (3, 3, 32, 64), (14 * 14 * 64, 128), (128, 10)],
        {'augmentation': 'none'},
        'glorot',
        {},
        (0.25, 0.5),
    ),
    _Model(
        'shakespeare',
        'lstm',
        820_522,
        [(90, 8), *_LSTM, *[(256, 1024)] * 2, (256, 90)],
        {'sequence_length': 6},
        None,
        {0: 0.011557363, 7: 0.026371181},
    ),
    _Model(
        'shakespeare',
        'small_lstm',
        295_210,
        [(90, 8), *_LSTM, (256, 90)],
        {'sequence_length': 6},
    ),
    _Model(
        'stackoverflow_nwp',
        'lstm',
        4_050_748,
        [(10_004, 96), (96, 2680), (670, 2680), (670, 96), (96, 10_004)],
    ),
    _Model(
        'stackoverflow_nwp',
        'lstm',
        2_122_485,
        None,
        {'vocab_size': 9, 'sequence_length': 5},
        None,
        {0: -0.04441713, 6: 0.0105480105},
    ),
    *(
        _Model('stackoverflow_lr', name, 5_000_500, [(10_000, 500)])
        for name in ('words', 'logistic')
    ),
    _Model(
        'stackoverflow_lr',
        'words',
        248,
        [(30, 8)],
        {'vocab_size': 30, 'tag_vocab_size': 8},
        'glorot',
        {0: -0.32589728},
    ),
    _Model('ag_news', 'cnn', 690_116, rates=(0.5,)),
    _Model(
        'ag_news',
        'cnn',
        50_820,
        [(11, 64), (3, 64, 64), (4, 64, 64), (5, 64, 64), (192, 4)],
        {'vocab_size': 11, 'max_length': 8},
        None,
        {0: -0.0895884, 7: -0.1582677},
        (0.5,),
    ),
    _Model('dbpedia', 'cnn', 692_046, rates=(0.5,)),
    _Model('ag_news', 'bag_of_words', 640_196),
)


def _name(model):
  return '_'.join([model.task, model.model_id or '', str(model.num_weights)])


def _limit(shape, initial):
  """Returns the bound of the uniform distribution of a kernel."""
  *field, num_inputs, num_outputs = shape
  fan_in, fan_out = (np.prod(field) * n for n in (num_inputs, num_outputs))
  return np.sqrt(6 / (fan_in + fan_out) if initial == 'glorot' else 1 / fan_in)


class ModelsTest(parameterized.TestCase):

  @parameterized.named_parameters((_name(m), m) for m in _MODELS)
  def test_weights_and_dropout_are_the_published_ones(self, model):
    # In a graph, where nothing is drawn yet.
    with tf.Graph().as_default():
      built = model.build()
      self.assertEqual(built.count_params(), model.num_weights)
      shapes = [tuple(weight.shape) for weight in built.trainable_weights]
      rates = [layer.rate for layer in built.layers if hasattr(layer, 'rate')]
    self.assertEmpty(built.non_trainable_weights)
    self.assertEqual(tuple(rates), model.rates)
    if model.shapes is not None:
      self.assertEqual([s for s in shapes if len(s) > 1], model.shapes)

  @parameterized.named_parameters(
      (_name(m), m) for m in _MODELS if m.initial or m.literals
  )
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
    if model.initial is not None:
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

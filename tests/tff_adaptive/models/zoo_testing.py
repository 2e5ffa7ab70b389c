# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A zoo of small Keras models, with data for them.

Each function of `ZOO` takes Keras, of either version, and returns an `Animal`.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

NUM_CLASSES = 3
NUM_WORDS = 7
_LENGTH = 6


@dataclasses.dataclass(frozen=True)
class Animal:
  """A model with its losses and metrics, and what its data look like.

  Attributes:
    model: The Keras model.
    x: Maps a generator and a number of examples to features.
    y: The same for labels.
    loss: As for `Model.compile`.
    options: More arguments of `Model.compile`.
    weight: As `x`, for sample weights, or None.
  """

  model: Any
  x: Callable[[np.random.Generator, int], Any]
  y: Callable[[np.random.Generator, int], Any]
  loss: Any
  options: dict[str, Any] = dataclasses.field(default_factory=dict)
  weight: Any = None

  def sample(self, num_examples: int, seed: int) -> tuple[Any, ...]:
    """Returns examples: features, labels and, if any, sample weights."""
    generator = np.random.default_rng(seed)
    parts = [self.x, self.y, *([self.weight] if self.weight else [])]
    return tuple(part(generator, num_examples) for part in parts)


ZOO: dict[str, Callable[[Any], Animal]] = {}
# Those of layers that Keras 2 does not have.
ONLY_KERAS_3 = ('rms_normalization', 'grouped_query_attention')
# Those that move weights in training.
MOVING = ('batch_normalization', 'normalized_features', 'moving_scale')


def _animal(fn: Callable[[Any], Animal]) -> Callable[[Any], Animal]:
  ZOO[fn.__name__.strip('_')] = fn
  return fn


def _normal(*shape):
  return lambda generator, n: generator.normal(size=(n, *shape)).astype('f')


def _integers(high, *shape, low=0):
  return lambda generator, n: generator.integers(
      low, high, size=(n, *shape)
  ).astype('i')


def _uniform(*shape):
  return lambda generator, n: generator.uniform(size=(n, *shape)).astype('f')


_classes = _integers(NUM_CLASSES)
_VECTOR = _normal(5)
_IMAGE = _normal(8, 8, 2)
_SERIES = _normal(_LENGTH, 4)
# With padding, 0.
_WORDS = _integers(NUM_WORDS, _LENGTH)
_IDS = _integers(12, _LENGTH)


def _texts(num_words):
  words = np.array(['Oslo', 'Rome', 'Bern', 'or', 'Bonn', ''])

  def sample(generator, n):
    chosen = generator.choice(words, size=(n, num_words))
    return np.array([[' '.join(text)] for text in chosen], object)

  return sample


def _one_hot(generator, n):
  return np.eye(NUM_CLASSES, dtype='f')[_classes(generator, n)]


def _of_classes(model, x, y=_classes, **options):
  options = {'metrics': ['accuracy'], **options}
  return Animal(model, x, y, 'sparse_categorical_crossentropy', options)


def _sequential(keras, x, *layers):
  example = x(np.random.default_rng(0), 1)
  dtype = 'string' if example.dtype == object else example.dtype
  return keras.Sequential(
      [keras.Input(example.shape[1:], dtype=dtype), *layers]
  )


def _classifier(keras, x, *layers, **options):
  """Returns a model of layers, before a softmax layer."""
  last = keras.layers.Dense(NUM_CLASSES, activation='softmax')
  return _of_classes(_sequential(keras, x, *layers, last), x, **options)


def _of_layers(x, build):
  return lambda keras: _classifier(keras, x, *build(keras.layers))


def _tagger(keras, *layers, **options):
  """Returns a model of the words of words, before a softmax layer."""
  layers = (
      keras.layers.Embedding(NUM_WORDS, 4, mask_zero=True),
      *layers,
      keras.layers.Dense(NUM_WORDS, activation='softmax'),
  )
  model = _sequential(keras, _WORDS, *layers)
  return _of_classes(model, _WORDS, _WORDS, **options)


def _linear(keras, loss, metrics=()):
  """Returns a linear model of two numbers."""
  model = _sequential(keras, _VECTOR, keras.layers.Dense(2))
  return Animal(model, _VECTOR, _normal(2), loss, {'metrics': list(metrics)})


_OF_VECTORS = {
    'logistic_regression': lambda nn: [],
    'dense': lambda nn: [
        nn.Dense(6, activation='relu'),
        nn.Dense(5, activation='tanh'),
    ],
    'parametric_relu': lambda nn: [nn.Dense(6), nn.PReLU(), nn.LeakyReLU()],
    'activity_regularizer': lambda nn: [nn.Dense(6, activity_regularizer='l2')],
    'layer_normalization': lambda nn: [nn.Dense(6), nn.LayerNormalization()],
    'unit_normalization': lambda nn: [nn.Dense(6), nn.UnitNormalization()],
    'rms_normalization': lambda nn: [nn.Dense(6), nn.RMSNormalization()],
    'normalized_features': lambda nn: [
        nn.BatchNormalization(momentum=0.8, scale=False),
        nn.Dense(6, use_bias=False),
        nn.BatchNormalization(trainable=False),
        nn.BatchNormalization(epsilon=1e-2),
    ],
    'frozen_layer': lambda nn: [
        nn.Dense(6, activation='relu', trainable=False),
        nn.Dense(4),
    ],
}
_OF_IMAGES = {
    'convolutions': lambda nn: [
        nn.Conv2D(4, 3, activation='relu', padding='same'),
        nn.MaxPooling2D(),
        nn.Conv2D(4, 3, strides=2, dilation_rate=1),
        nn.Flatten(),
    ],
    'depthwise_convolutions': lambda nn: [
        nn.DepthwiseConv2D(3, depth_multiplier=2, activation='relu'),
        nn.SeparableConv2D(4, 3),
        nn.GlobalAveragePooling2D(),
    ],
    'group_normalization': lambda nn: [
        nn.Conv2D(4, 3),
        nn.GroupNormalization(2),
        nn.GlobalAveragePooling2D(),
    ],
    'batch_normalization': lambda nn: [
        nn.Conv2D(4, 3, use_bias=False),
        nn.BatchNormalization(),
        nn.ReLU(),
        nn.GlobalAveragePooling2D(),
    ],
}
_OF_SERIES = {
    'series_convolutions': lambda nn: [
        nn.Conv1D(5, 3, padding='causal', activation='relu'),
        nn.Conv1D(4, 2),
        nn.GlobalMaxPooling1D(),
    ],
    'lstm': lambda nn: [nn.LSTM(4)],
    'gru': lambda nn: [nn.GRU(4, return_sequences=True), nn.GRU(3)],
    'simple_rnn': lambda nn: [nn.SimpleRNN(4, go_backwards=True)],
    'bidirectional': lambda nn: [nn.Bidirectional(nn.LSTM(3))],
    'time_distributed': lambda nn: [
        nn.TimeDistributed(nn.Dense(3)),
        nn.Flatten(),
    ],
    'dropout_of_nothing': lambda nn: [
        nn.SpatialDropout1D(0.0),
        nn.GaussianNoise(0.0),
        nn.LSTM(4, dropout=0.0),
        nn.Dropout(0.0),
    ],
}
_OF_IDS = {
    'looked_up_words': lambda nn: [
        nn.IntegerLookup(vocabulary=[4, 9, 2], num_oov_indices=2),
        nn.Embedding(6, 4),
        nn.GlobalAveragePooling1D(),
    ],
}
_OF_WORDS = {
    'masked_sentences': lambda nn: [
        nn.Embedding(NUM_WORDS, 4, mask_zero=True),
        nn.GRU(4),
    ],
}
ZOO.update(
    (name, _of_layers(x, build))
    for x, builders in (
        (_VECTOR, _OF_VECTORS),
        (_IMAGE, _OF_IMAGES),
        (_SERIES, _OF_SERIES),
        (_IDS, _OF_IDS),
        (_WORDS, _OF_WORDS),
    )
    for name, build in builders.items()
)
ZOO.update(
    weight_regularizers=lambda keras: _classifier(
        keras,
        _VECTOR,
        keras.layers.Dense(
            6,
            activation='relu',
            kernel_regularizer=keras.regularizers.L1L2(1e-2, 1e-1),
            bias_regularizer='l2',
        ),
    ),
    masking=lambda keras: _classifier(
        keras,
        lambda generator, n: _SERIES(generator, n)
        * generator.integers(2, size=(n, _LENGTH, 1)).astype('f'),
        keras.layers.Masking(),
        keras.layers.SimpleRNN(4),
    ),
    f1_score=lambda keras: dataclasses.replace(
        _classifier(keras, _VECTOR, keras.layers.Dense(4)),
        y=_one_hot,
        loss='categorical_crossentropy',
        options={
            'metrics': [
                keras.metrics.F1Score(average='macro', name='f1'),
                keras.metrics.F1Score(name='f1_per_class'),
                keras.metrics.AUC(
                    multi_label=True, num_labels=NUM_CLASSES, name='auc'
                ),
                keras.metrics.Precision(name='precision'),
                keras.metrics.RecallAtPrecision(0.3, name='recall'),
                keras.metrics.TopKCategoricalAccuracy(2, name='top_2'),
                'categorical_accuracy',
            ]
        },
    ),
)


@_animal
def _added_loss(keras):
  class Penalty(keras.layers.Layer):

    def call(self, x):
      self.add_loss(0.1 * tf.reduce_mean(tf.square(x)))
      return x

  return _classifier(keras, _VECTOR, keras.layers.Dense(6), Penalty())


@_animal
def _transposed_convolutions(keras):
  layers = keras.layers
  model = keras.Sequential(
      [
          keras.Input([8, 8, 2]),
          layers.Conv2D(3, 3, strides=2, padding='same', activation='relu'),
          layers.Conv2DTranspose(4, 3, strides=2, padding='same'),
          layers.UpSampling2D(),
          layers.AveragePooling2D(2),
          layers.Conv2D(2, 1),
      ]
  )
  return Animal(model, _IMAGE, _IMAGE, 'mse', {'metrics': ['mae']})


@_animal
def _moving_scale(keras):
  class MovingScale(keras.layers.Layer):
    """Divides by a moving mean, on which training depends."""

    def build(self, shape):
      self.scale = self.add_weight(
          name='scale', shape=(), initializer='ones', trainable=False
      )

    def call(self, x, training=False):
      scale = tf.convert_to_tensor(self.scale)
      if training:
        mean = tf.reduce_mean(tf.stop_gradient(tf.abs(x)))
        self.scale.assign(0.9 * scale + 0.1 * mean)
      return x / scale

  return _classifier(keras, _VECTOR, keras.layers.Dense(6), MovingScale())


@_animal
def _categories(keras):
  layers = keras.layers
  city, size = keras.Input([1], dtype='string'), keras.Input([1], dtype='int32')
  x = layers.Concatenate()(
      [
          layers.StringLookup(
              vocabulary=['Oslo', 'Rome', 'Bern'], output_mode='one_hot'
          )(city),
          layers.CategoryEncoding(num_tokens=3, output_mode='one_hot')(size),
          layers.Hashing(num_bins=4, output_mode='one_hot')(city),
      ]
  )
  model = keras.Model([city, size], layers.Dense(1)(x))
  return Animal(
      model,
      lambda *args: (_texts(1)(*args), _integers(3, 1)(*args)),
      _normal(1),
      'mse',
  )


@_animal
def _texts_of_words(keras):
  words = keras.layers.TextVectorization(output_sequence_length=_LENGTH)
  words.adapt(['Oslo and Rome', 'Bern or Rome or Oslo'])
  embedding = keras.layers.Embedding(NUM_WORDS, 4, mask_zero=True)
  return _classifier(keras, _texts(5), words, embedding, keras.layers.LSTM(4))


@_animal
def _counted_words(keras):
  words = keras.layers.TextVectorization(output_mode='tf_idf', ngrams=2)
  words.adapt(['Oslo and Rome', 'Bern or Rome or Oslo'])
  return _classifier(keras, _texts(3), words)


@_animal
def _scaled_features(keras):
  # The statistics are tensors of the layer.
  normalization = keras.layers.Normalization(mean=[0.5] * 5, variance=[2.0] * 5)
  return _classifier(
      keras, _VECTOR, normalization, keras.layers.Rescaling(0.5, offset=0.1)
  )


@_animal
def _masked_words(keras):
  """A mask that reaches loss and metrics."""
  return _tagger(keras, keras.layers.LSTM(4, return_sequences=True))


@_animal
def _masked_and_weighted(keras):
  metric = keras.metrics.SparseCategoricalCrossentropy(name='weighted')
  animal = _tagger(keras, weighted_metrics=[metric])
  return dataclasses.replace(animal, weight=_uniform(_LENGTH))


@_animal
def _sample_weights(keras):
  animal = _classifier(
      keras,
      _VECTOR,
      keras.layers.Dense(4),
      weighted_metrics=[
          keras.metrics.SparseCategoricalAccuracy(name='weighted')
      ],
  )
  return dataclasses.replace(animal, weight=_uniform())


@_animal
def _attention(keras):
  layers = keras.layers
  words = keras.Input([_LENGTH])
  x = layers.Embedding(NUM_WORDS, 4)(words)
  attended = layers.MultiHeadAttention(num_heads=2, key_dim=3)(
      x, x, use_causal_mask=True
  )
  x = layers.LayerNormalization()(layers.Add()([x, attended]))
  x = layers.Add()([x, layers.Dense(4, activation='gelu')(x)])
  outputs = layers.Dense(NUM_WORDS)(x)
  return Animal(
      keras.Model(words, outputs),
      _WORDS,
      _WORDS,
      keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      {'metrics': ['accuracy']},
  )


@_animal
def _grouped_query_attention(keras):
  layers = keras.layers
  series = keras.Input([_LENGTH, 4])
  x = layers.GroupQueryAttention(4, 4, 2)(series, series)
  outputs = layers.Dense(1)(layers.GlobalAveragePooling1D()(x))
  return Animal(keras.Model(series, outputs), _SERIES, _normal(1), 'mse')


@_animal
def _additive_attention(keras):
  layers = keras.layers
  query, value = keras.Input([_LENGTH, 4]), keras.Input([_LENGTH, 4])
  x = layers.AdditiveAttention()([layers.Dense(4)(query), value])
  outputs = layers.Dense(1)(layers.GlobalAveragePooling1D()(x))
  return Animal(
      keras.Model([query, value], outputs),
      lambda *args: (_SERIES(*args), _SERIES(*args)),
      _normal(1),
      'mse',
  )


@_animal
def _named_inputs(keras):
  layers = keras.layers
  image = keras.Input([8, 8, 2], name='image')
  vector = keras.Input([5], name='vector')
  x = layers.Concatenate()(
      [layers.Flatten()(layers.Conv2D(2, 3)(image)), vector]
  )
  return Animal(
      keras.Model({'image': image, 'vector': vector}, layers.Dense(1)(x)),
      # TFF's runtime and Keras 3 take no mapping in another order.
      lambda *args: collections.OrderedDict(
          image=_IMAGE(*args), vector=_VECTOR(*args)
      ),
      _normal(1),
      'mse',
      {'metrics': ['mae']},
  )


@_animal
def _two_outputs(keras):
  x = keras.Input([5])
  hidden = keras.layers.Dense(4, activation='relu')(x)
  outputs = [
      keras.layers.Dense(1, name='a')(hidden),
      keras.layers.Dense(NUM_CLASSES, activation='softmax', name='b')(hidden),
  ]
  return Animal(
      keras.Model(x, outputs),
      _VECTOR,
      lambda *args: (_normal(1)(*args), _classes(*args)),
      ['mse', 'sparse_categorical_crossentropy'],
      {'loss_weights': [0.5, 2.0], 'metrics': [['mae'], ['accuracy']]},
  )


@_animal
def _named_outputs(keras):
  x = keras.Input([5])
  hidden = keras.layers.Dense(4, activation='relu')(x)
  outputs = {
      'a': keras.layers.Dense(1, name='a')(hidden),
      'b': keras.layers.Dense(NUM_CLASSES, activation='softmax', name='b')(
          hidden
      ),
  }
  return Animal(
      keras.Model(x, outputs),
      _VECTOR,
      lambda *args: {'a': _normal(1)(*args), 'b': _classes(*args)},
      {'a': 'mse', 'b': 'sparse_categorical_crossentropy'},
      {'metrics': {'a': ['mae'], 'b': ['accuracy']}},
  )


@_animal
def _shared_layer(keras):
  one, other = keras.Input([5]), keras.Input([5])
  encode = keras.layers.Dense(4, activation='tanh')
  outputs = keras.layers.Dot(-1, normalize=True)([encode(one), encode(other)])
  return Animal(
      keras.Model([one, other], outputs),
      lambda *args: (_VECTOR(*args), _VECTOR(*args)),
      _integers(2, 1),
      keras.losses.Hinge(),
  )


@_animal
def _model_in_model(keras):
  inner = keras.Sequential(
      [
          keras.Input([5]),
          keras.layers.Dense(4, kernel_regularizer='l2'),
          keras.layers.Dropout(0.0),
      ]
  )
  return _classifier(keras, _VECTOR, inner, keras.layers.Activation('relu'))


def _subclass(keras):
  """Returns a class of models without a configuration."""

  class Model(keras.Model):

    def __init__(self, width):
      super().__init__()
      self.hidden = keras.layers.Dense(width, activation='relu')
      self.dropout = keras.layers.Dropout(0.0)
      self.last = keras.layers.Dense(NUM_CLASSES, activation='softmax')

    def call(self, x, training=False):
      return self.last(self.dropout(self.hidden(x), training=training))

  return Model


@_animal
def _subclassed(keras):
  model = _subclass(keras)(4)
  model(np.zeros([1, 5], 'f'))
  return _of_classes(model, _VECTOR)


@_animal
def _own_weights(keras):
  class Tied(keras.layers.Layer):

    def build(self, shape):
      self.w = self.add_weight(
          shape=(shape[-1], 4), initializer='glorot_uniform', name='w'
      )

    def call(self, x):
      return tf.matmul(tf.matmul(x, self.w), self.w, transpose_b=True)

  return _classifier(keras, _VECTOR, Tied())


@_animal
def _regression(keras):
  metrics = [
      keras.metrics.R2Score(name='r2'),
      keras.metrics.RootMeanSquaredError(name='rmse'),
      keras.metrics.CosineSimilarity(name='cosine'),
      keras.metrics.LogCoshError(name='log_cosh'),
  ]
  return _linear(keras, keras.losses.Huber(0.7), metrics)


@_animal
def _sum_of_losses(keras):
  return _linear(keras, keras.losses.MeanSquaredError(reduction='sum'))


@_animal
def _own_loss_and_metric(keras):
  def loss(y_true, y_pred):
    return tf.reduce_mean(tf.abs(y_true - y_pred) ** 1.5, -1)

  def within(y_true, y_pred):
    return tf.cast(tf.abs(y_true - y_pred) < 1.0, tf.float32)

  return _linear(keras, loss, [within])


@_animal
def _binary(keras):
  model = keras.Sequential(
      [
          keras.Input([5]),
          keras.layers.Dense(4, activation='elu'),
          keras.layers.Dense(1, activation='sigmoid'),
      ]
  )
  return Animal(
      model,
      _VECTOR,
      _integers(2, 1),
      keras.losses.BinaryCrossentropy(label_smoothing=0.1),
      {
          'metrics': [
              'accuracy',
              keras.metrics.FalsePositives(name='false_positives'),
          ]
      },
  )


@_animal
def _mixed_bfloat16(keras):
  policy = 'mixed_bfloat16'
  model = keras.Sequential(
      [
          keras.Input([5]),
          keras.layers.Dense(6, activation='relu', dtype=policy),
          keras.layers.Dense(NUM_CLASSES, dtype=policy),
          keras.layers.Activation('softmax', dtype='float32'),
      ]
  )
  return _of_classes(model, _VECTOR)

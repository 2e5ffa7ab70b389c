# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Recurrent models that predict the next character or word.

They map tokens of shape [batch, sequence_length] to the logits of the next
tokens. The LSTM layers skip padding. Initial weights depend only on the seed.
"""

import keras

from tasks import seeded_layers
from tasks.language import shakespeare_data
from tasks.language import token_metrics
from tasks.language import word_sequences

_CHARACTER_EMBEDDING_SIZE = 8
_CHARACTER_LSTM_SIZE = 256
_WORD_EMBEDDING_SIZE = 96
_WORD_LSTM_SIZE = 670


def build_shakespeare_lstm(
    sequence_length: int, seed: int, num_lstms: int = 2
) -> keras.Model:
  """Builds the model of the FedAvg and FedOpt experiments, 820,522 weights.

  An embedding of size 8, two LSTM layers of 256 units and a dense layer to the
  90 tokens.

  Args:
    sequence_length: The length of the sequences.
    seed: The seed of the initial weights, a non-negative integer. Their
      distributions are TFF's: He normal for the LSTM's kernels, Keras' defaults
      for the others.
    num_lstms: The number of LSTM layers.

  Returns:
    The model.

  References:
    McMahan et al., Communication-Efficient Learning of Deep Networks from
    Decentralized Data, AISTATS 2017, https://arxiv.org/abs/1602.05629, and
    `tff.simulation.baselines.shakespeare`.
  """
  layers = seeded_layers.SeededLayers('shakespeare', seed)
  num_tokens = shakespeare_data.NUM_TOKENS
  inputs = keras.Input([sequence_length], dtype='int32')
  outputs = layers.embedding(
      'embedding', num_tokens, _CHARACTER_EMBEDDING_SIZE
  )(inputs)
  for i in range(num_lstms):
    outputs = layers.lstm(f'lstm_{i + 1}', _CHARACTER_LSTM_SIZE, 'HeNormal')(
        outputs
    )
  outputs = layers.dense('logits', num_tokens)(outputs)
  return keras.Model(inputs, outputs)


def build_shakespeare_small_lstm(
    sequence_length: int, seed: int
) -> keras.Model:
  """Builds the same model with one LSTM layer, 295,210 weights.

  The FedCAda experiments use one layer, of an unpublished size.

  Args:
    sequence_length: The length of the sequences.
    seed: The seed of the initial weights, a non-negative integer.

  Returns:
    The model.
  """
  return build_shakespeare_lstm(sequence_length, seed, num_lstms=1)


def build_shakespeare_metrics() -> list[keras.metrics.Metric]:
  """Builds the metrics of TFF's baseline, both without padding."""
  masked = [shakespeare_data.PADDING]
  return [
      token_metrics.NumTokensCounter(masked),
      token_metrics.MaskedCategoricalAccuracy(masked),
  ]


def build_stackoverflow_lstm(
    vocab_size: int, sequence_length: int, seed: int
) -> keras.Model:
  """Builds the model of the FedOpt experiments.

  An embedding of size 96, an LSTM layer of 670 units, a dense layer of 96 units
  and one to the tokens; 4,050,748 weights with 10,000 words.

  Args:
    vocab_size: The number of words, without the four special tokens.
    sequence_length: The length of the sequences.
    seed: The seed of the initial weights, a non-negative integer. Their
      distributions are Keras' defaults, as in TFF.

  Returns:
    The model.

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Table 9;
    `tff.simulation.baselines.stackoverflow.create_word_prediction_task`.
  """
  layers = seeded_layers.SeededLayers('stackoverflow_nwp', seed)
  num_tokens = vocab_size + word_sequences.NUM_SPECIAL_TOKENS
  inputs = keras.Input([sequence_length], dtype='int32')
  outputs = layers.embedding('embedding', num_tokens, _WORD_EMBEDDING_SIZE)(
      inputs
  )
  outputs = layers.lstm('lstm', _WORD_LSTM_SIZE)(outputs)
  outputs = layers.dense('dense', _WORD_EMBEDDING_SIZE)(outputs)
  outputs = layers.dense('logits', num_tokens)(outputs)
  return keras.Model(inputs, outputs)


def build_next_word_metrics(vocab_size: int) -> list[keras.metrics.Metric]:
  """Builds the metrics of TFF's baseline, and the accuracy of publications.

  | metric | ignored labels |
  | --- | --- |
  | num_tokens | padding |
  | accuracy | padding, unknown words, ends of sentences |
  | accuracy_without_padding | padding |
  | accuracy_without_out_of_vocab | padding, unknown words |
  | accuracy_without_out_of_vocab_or_end_of_sentence | as for accuracy |

  'accuracy' is the metric that Reddi et al. report; in TFF's baseline that name
  is used for 'accuracy_without_padding'.

  Args:
    vocab_size: The number of words, without the special tokens.

  Returns:
    The metrics.
  """
  padding = word_sequences.PADDING
  unknown = word_sequences.out_of_vocabulary(vocab_size)
  end = word_sequences.end(vocab_size)
  masked = {
      'accuracy': [padding, end, unknown],
      'accuracy_without_padding': [padding],
      'accuracy_without_out_of_vocab': [padding, unknown],
      'accuracy_without_out_of_vocab_or_end_of_sentence': [
          padding,
          end,
          unknown,
      ],
  }
  return [token_metrics.NumTokensCounter([padding])] + [
      token_metrics.MaskedCategoricalAccuracy(tokens, name)
      for name, tokens in masked.items()
  ]

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""DistilBERT as a Keras layer, with seeded or given initial weights."""

from collections.abc import Mapping, Sequence
import functools
import itertools
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from tasks import seeded_layers

# The variables of `transformers` that are not initialized to zeros or ones.
_DRAWN = ('weight', 'embeddings', 'kernel')


@tf.keras.utils.register_keras_serializable(package='tff_adaptive')
class DistilBertEncoder(tf.keras.layers.Layer):
  """Maps tokens [batch, length] to DistilBERT's vector of the first token.

  The layers are those of `transformers`. They are called here, and not through
  its models, because those compare the tokens with the size of the vocabulary
  in an assertion that does not work in TFF's graphs.
  """

  def __init__(
      self,
      config: Mapping[str, Any],
      seed: Optional[int],
      initial_weights: Optional[Sequence[np.ndarray]] = None,
      **kwargs: Any,
  ):
    """Initializes the layer.

    Args:
      config: The arguments of `transformers.DistilBertConfig`.
      seed: The seed of the initial weights. None uses zeros instead of random
        weights, as in a layer made from `get_config`: the weights of a copy are
        set later, and sampling 66 million takes seconds.
      initial_weights: Initial values instead, in the order of `weights`.
      **kwargs: See `tf.keras.layers.Layer`.
    """
    super().__init__(**kwargs)
    # Imported here because it takes seconds, and no other model needs it.
    import transformers  # pylint: disable=g-import-not-at-top

    self._config = dict(config)
    self._seed = seed
    self._initial_weights = initial_weights
    self._model_config = transformers.DistilBertConfig(**config)
    self._main = transformers.TFDistilBertMainLayer(
        self._model_config, name='distilbert'
    )

  def build(self, input_shape: Any) -> None:
    """Creates the variables, each with its own initial value."""
    places = itertools.count()

    def create(next_creator, **kwargs):
      place = next(places)
      name = kwargs['name'].split(':')[0]
      if self._initial_weights is not None:
        kwargs['initial_value'] = self._initial_weights[place]
      elif name in _DRAWN:
        kwargs['initial_value'] = functools.partial(
            self._initializer(place), kwargs['shape'], dtype=kwargs['dtype']
        )
      return next_creator(**kwargs)

    with tf.variable_creator_scope(create):
      self._main.build(None)
    super().build(input_shape)

  def call(self, tokens: tf.Tensor, training: Optional[bool] = None):
    """Returns a vector for each text, [batch, dim]."""
    outputs = self._main(
        None,
        inputs_embeds=tf.gather(self._main.embeddings.weight, tokens),
        attention_mask=tf.not_equal(tokens, self._model_config.pad_token_id),
        return_dict=False,
        training=training,
    )
    return outputs[0][:, 0]

  def get_config(self) -> dict[str, Any]:
    return {**super().get_config(), 'config': self._config, 'seed': None}

  def _initializer(self, place: int) -> tf.keras.initializers.Initializer:
    """Returns the initializer of a variable, with its own random stream."""
    if self._seed is None:
      return tf.keras.initializers.Zeros()
    return tf.keras.initializers.TruncatedNormal(
        stddev=self._model_config.initializer_range,
        seed=seeded_layers.initializer_seed(self._seed, 'distilbert', place),
    )

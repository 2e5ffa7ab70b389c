# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""DistilBERT as a Keras layer, with weights that follow a seed or a folder."""

from collections.abc import Mapping, Sequence
import functools
import itertools
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from tff_adaptive.data import random_streams

# Of the variables of `transformers`, those that do not begin as zeros or ones.
_DRAWN = ('weight', 'embeddings', 'kernel')


@tf.keras.utils.register_keras_serializable(package='tff_adaptive')
class DistilBertEncoder(tf.keras.layers.Layer):
  """Maps tokens [batch, length] to what DistilBERT makes of the first of each.

  The layers are those of `transformers`. They are called from here, and not
  through its models, because those compare the tokens with the size of the
  vocabulary by an assertion that does not survive in TFF's graphs.
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
      seed: The seed of the initial weights. None for zeros where they would be
        drawn, as in a layer that is made from `get_config`: whoever copies a
        model sets its weights, and drawing 66 million takes seconds.
      initial_weights: Arrays in the order of `weights` to begin with instead.
      **kwargs: As for any layer of Keras.
    """
    super().__init__(**kwargs)
    # Here, because it takes seconds, and no other model needs it.
    import transformers  # pylint: disable=g-import-not-at-top

    self._config = dict(config)
    self._seed = seed
    self._initial_weights = initial_weights
    self._model_config = transformers.DistilBertConfig(**config)
    self._main = transformers.TFDistilBertMainLayer(
        self._model_config, name='distilbert'
    )

  def build(self, input_shape: Any) -> None:
    """Creates the variables, each with an initial value of its own."""
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
    """Returns what draws a variable, a stream of its own for each."""
    if self._seed is None:
      return tf.keras.initializers.Zeros()
    return tf.keras.initializers.TruncatedNormal(
        stddev=self._model_config.initializer_range,
        seed=random_streams.derived_seed(
            self._seed, random_streams.INITIAL_WEIGHTS, 'distilbert', place
        ),
    )

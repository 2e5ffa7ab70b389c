# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Faster Keras layers, with the same numbers as Keras' own.

A dense layer on bags of words that skips absent words, and an LSTM whose
recurrence is compiled by XLA. Those here are for Keras 2;
`tff_adaptive.layers.keras_3` has them for Keras 3.
"""

from tff_adaptive.layers.bags_of_words import to_frequencies
from tff_adaptive.layers.keras_2 import BagOfWordsDense
from tff_adaptive.layers.keras_2 import LSTM
from tff_adaptive.layers.recurrence import lstm

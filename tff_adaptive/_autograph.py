# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps AutoGraph to the code of users.

AutoGraph rewrites the source of each function that a `tf.function` calls. The
functions of this package need none of that, and it was most of the time in
which a process was built.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.core import config

config.CONVERSION_RULES = (
    config.DoNotConvert('tff_adaptive'),
    *config.CONVERSION_RULES,
)


def call(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
  """Calls a function that may be a user's, with AutoGraph where it is on."""
  context = tf.__internal__.autograph.control_status_ctx()
  return tf.__internal__.autograph.tf_convert(fn, context)(*args, **kwargs)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps Keras models usable after others were built in a graph.

Keras 2 has a version of its base classes for graphs. Whenever an object is
made, it sets the bases of the object's class to the version for the current
mode, and so breaks all objects of that class from the other mode ("Your Layer
or Model is in an invalid state"). Processes build models in graphs.
"""

from collections.abc import Iterator
import contextlib
from typing import Any

import tensorflow as tf

# The modules with the versions for graphs, and those that only use these.
_FOR_GRAPHS = ('.engine.base_layer_v1', '.engine.training_v1')
_LEGACY = '.legacy_tf_layers.'


@contextlib.contextmanager
def kept_usable() -> Iterator[None]:
  """Makes models made outside of graphs usable again, before and after.

  Does nothing inside a graph, where models may still be in use.
  """
  _restore()
  try:
    yield
  finally:
    _restore()


def _restore() -> None:
  """Sets the bases of all Keras classes to the versions outside of graphs."""
  if tf.executing_eagerly():
    for cls in _subclasses(tf.keras.layers.Layer):
      _restore_bases(cls)


def _subclasses(cls: Any) -> Iterator[Any]:
  """Yields all subclasses, bases before the classes derived from them."""
  found, level = {cls}, [cls]
  while level:
    level = [c for base in level for c in type.__subclasses__(base)]
    level = [c for c in dict.fromkeys(level) if c not in found]
    found.update(level)
    yield from level


def _restore_bases(cls: Any) -> None:
  """Replaces bases for graphs; their own first base is the other version."""
  if _is_for_graphs(cls) or _LEGACY in cls.__module__:
    return
  bases = tuple(
      base.__bases__[0] if _is_for_graphs(base) else base
      for base in cls.__bases__
  )
  if bases != cls.__bases__:
    cls.__bases__ = bases


def _is_for_graphs(cls: Any) -> bool:
  return cls.__module__.endswith(_FOR_GRAPHS)

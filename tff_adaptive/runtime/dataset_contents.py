# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tells whether datasets have the same elements, in the same structure.

Programs often make the datasets of a round's clients anew in each round, by the
same ops of the same values.
"""

from typing import Any
import weakref

import tensorflow as tf

from tff_adaptive.data import dataset_graphs


class Content:
  """What datasets with the same elements have in common."""


_by_dataset: weakref.WeakKeyDictionary[tf.data.Dataset, Content] = (
    weakref.WeakKeyDictionary()
)
# By the digest of a graph, which has no names of features, and the spec.
_by_digest: weakref.WeakValueDictionary[tuple[bytes, str], Content] = (
    weakref.WeakValueDictionary()
)


def of(dataset: tf.data.Dataset) -> Any:
  """Returns the content of a dataset; itself if its graph does not tell it."""
  found = _by_dataset.get(dataset)
  if found is None:
    graph = dataset_graphs.DatasetGraph.of(dataset)
    if graph is None or graph.reads_outside:
      return dataset
    key = (graph.digest(), repr(dataset.element_spec))
    found = _by_digest.setdefault(key, Content())
    _by_dataset[dataset] = found
  return found

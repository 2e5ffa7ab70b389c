# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names and leaves of nested structures.

The states and metrics of learning processes are nests of attrs classes, named
tuples, mappings, sequences and `tff.structure.Struct`. Checkpoints and metrics
files need a stable, readable name for every leaf.
"""

import collections
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import tensorflow_federated as tff


def _children(value):
  """Returns the (name, child) pairs of a container, or None for a leaf."""
  if value is None:
    return []
  if isinstance(value, Mapping):
    return [(str(key), child) for key, child in value.items()]
  is_sequence = isinstance(value, (list, tuple, tff.structure.Struct))
  if not is_sequence and not attrs.has(type(value)):
    return None
  elements = tff.structure.to_elements(tff.structure.from_container(value))
  return [
      (str(i) if name is None else name, child)
      for i, (name, child) in enumerate(elements)
  ]


def _with_children(value, children):
  """Returns a container like `value` with other children."""
  if value is None:
    return None
  if isinstance(value, tff.structure.Struct):
    names = [name for name, _ in tff.structure.to_elements(value)]
    return tff.structure.Struct(list(zip(names, children)))
  if attrs.has(type(value)):
    names = [field.name for field in attrs.fields(type(value))]
    return attrs.evolve(
        value,
        **{name.lstrip('_'): child for name, child in zip(names, children)},
    )
  if isinstance(value, tuple) and hasattr(value, '_fields'):
    return type(value)(*children)
  if isinstance(value, (collections.Counter, collections.defaultdict)):
    # Their types do not take pairs.
    changed = value.copy()
    dict.update(changed, zip(value, children))
    return changed
  if isinstance(value, Mapping):
    # Not pairs, which a `ChainMap` would take for a mapping.
    return type(value)(dict(zip(value, children)))
  return type(value)(children)


def map_with_path(
    fn: Callable[[tuple[str, ...], Any], Any],
    structure: Any,
    path: tuple[str, ...] = (),
) -> Any:
  """Applies `fn(path, leaf)` to every leaf; keeps the structure.

  Args:
    fn: Takes the path of a leaf, a tuple of names, and the leaf.
    structure: A nest of attrs classes, named tuples, mappings, lists, tuples
      and `tff.structure.Struct`. None is an empty container; all other values
      are leaves.
    path: The path of `structure` itself.

  Returns:
    A structure of the same containers with the results of `fn`.

  Raises:
    TypeError: If a container cannot be built from other leaves; names it.

  Example:
    >>> map_with_path(lambda path, leaf: '/'.join(path), {'a': [1, 2]})
    {'a': ['a/0', 'a/1']}
  """
  children = _children(structure)
  if children is None:
    return fn(path, structure)
  mapped = [map_with_path(fn, child, (*path, name)) for name, child in children]
  try:
    return _with_children(structure, mapped)
  except Exception as error:  # pylint: disable=broad-exception-caught
    raise TypeError(
        f'`{"/".join(path)}`, a {type(structure).__name__}, cannot be built '
        f'from other leaves ({error}); use dictionaries, lists and tuples.'
    ) from error


def flatten_with_path(structure: Any) -> list[tuple[tuple[str, ...], Any]]:
  """Returns the (path, leaf) pairs of all leaves, in order.

  Args:
    structure: See `map_with_path`.

  Returns:
    A list of pairs; mappings keep their insertion order.

  Example:
    >>> flatten_with_path({'b': 1, 'a': (2,)})
    [(('b',), 1), (('a', '0'), 2)]
  """
  return list(_leaves(structure, ()))


def _leaves(
    structure: Any, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any]]:
  children = _children(structure)
  if children is None:
    yield path, structure
    return
  for name, child in children:
    yield from _leaves(child, (*path, name))

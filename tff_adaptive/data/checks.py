# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Looking through client data before training, instead of failing in it."""

import collections
from collections.abc import Mapping, Sequence
import re
from typing import Optional

from absl import logging
import attrs
import numpy as np

from tff_adaptive.data import client_data

ERROR = 'error'
REJECT = 'reject'
_POLICIES = (ERROR, REJECT)

# Lines around what an op says.
_IS_ABOUT_THE_GRAPH = re.compile(
    r'\[\[|Graph execution error|Detected at node|<stack traces|'
    r'\d+ (root error|successful op|derived error)'
).match


@attrs.frozen
class CheckedClients:
  """What a look through the clients found.

  Attributes:
    source: The clients as they were given, bad ones included.
    bad_clients: For every bad client its id and what is wrong with it, in the
      order of the clients; empty if all are good.
  """

  source: client_data.ClientArrays
  bad_clients: collections.OrderedDict[str, str]


def check_clients(
    source: client_data.ClientArrays,
    *,
    num_classes: Optional[int] = None,
    label_key: str = 'y',
    bad_clients: str = ERROR,
    max_clients: Optional[int] = None,
) -> CheckedClients:
  """Looks through all clients for data that training cannot use.

  A client is bad if it has no example, or a feature of it holds NaN or an
  infinity. With `bad_clients='error'` the first one stops the run. With
  'reject' the clients stay as they are and are only reported: they are sampled
  like any other, so that cohorts do not depend on the state of the data; local
  training gives an empty client, and one whose update is not finite, the weight
  0, and counts it among the rejected clients of the round. A bad value that
  never reaches the loss (in an example beyond `max_examples`) rejects nothing.

  Labels out of range are an error either way: depending on the device the loss
  would be NaN or silently wrong.

  All clients are read once, also those of a lazy source, unless `max_clients`
  says otherwise.

  Args:
    source: The clients.
    num_classes: The labels must lie in [0, num_classes). None (the default) for
      tasks without classes: labels are then looked through like any feature.
    label_key: The feature that holds the labels, of any shape. Defaults to 'y',
      the name that `tff.learning` demands.
    bad_clients: 'error' (the default) or 'reject'.
    max_clients: How many clients are looked through at most, spread evenly over
      all; None (the default) for all of them.

  Returns:
    The source, unchanged, and what is wrong with which client.

  Raises:
    ValueError: If `bad_clients` is unknown, there is no feature `label_key`
      though `num_classes` is given, a label is out of range, or, with 'error',
      a client is bad. The sentence names the client, what was found and what
      would be right.

  Example:

    >>> source = client_data.PackedClientArrays.from_clients(
    ...     {'a': {'x': np.ones([1])}, 'b': {'x': np.ones([0])}})
    >>> dict(check_clients(source, bad_clients='reject').bad_clients)
    {'b': 'has no example, where at least one is needed'}
  """
  if bad_clients not in _POLICIES:
    raise ValueError(
        f'`bad_clients` must be one of {list(_POLICIES)}, found '
        f'{bad_clients!r}.'
    )
  if num_classes is not None and label_key not in source.element_spec:
    raise ValueError(
        f'The labels must be in feature {label_key!r}, found the features '
        f'{list(source.element_spec)}.'
    )
  found = collections.OrderedDict()
  for client_id in _spread(source.client_ids, max_clients):
    examples = source.examples(client_id)
    if num_classes is not None:
      problem = find_bad_label(examples[label_key], num_classes)
      if problem:
        raise ValueError(
            f'Client {client_id!r} {problem} (--bad_clients=reject does not '
            'help with labels).'
        )
    problem = find_bad_features(examples)
    if problem:
      found[client_id] = problem
  _report(found, len(source.client_ids), bad_clients)
  return CheckedClients(source, found)


def _spread(
    client_ids: Sequence[str], max_clients: Optional[int]
) -> Sequence[str]:
  """Returns clients spread evenly over all, at most so many."""
  num_clients = len(client_ids)
  if max_clients is None or num_clients <= max_clients:
    return client_ids
  return [
      client_ids[i * num_clients // max_clients] for i in range(max_clients)
  ]


def check_central_examples(
    examples: Mapping[str, np.ndarray],
    *,
    name: str = 'The test set',
    num_classes: Optional[int] = None,
    label_key: str = 'y',
) -> None:
  """Looks through a central data set, where nothing can be rejected.

  Args:
    examples: Feature names and arrays of shape [num_examples, ...].
    name: The subject of an error's sentence. Defaults to 'The test set'.
    num_classes: As for `check_clients`.
    label_key: As for `check_clients`.

  Raises:
    ValueError: If there is no example, a feature is not finite, or a label out
      of range.

  Example:

    >>> check_central_examples({'y': np.array([0, 9])}, num_classes=10)
  """
  problem = find_bad_features(examples)
  if not problem and num_classes is not None:
    problem = find_bad_label(examples[label_key], num_classes)
  if problem:
    raise ValueError(f'{name} {problem}.')


def find_bad_features(examples: Mapping[str, np.ndarray]) -> Optional[str]:
  """Returns what is wrong with the features of one owner, None if nothing is.

  Args:
    examples: Feature names and arrays of shape [num_examples, ...].

  Returns:
    The rest of a sentence whose subject is the owner, without a full stop.
  """
  if not len(next(iter(examples.values()))):
    return 'has no example, where at least one is needed'
  for name, array in examples.items():
    if not np.issubdtype(array.dtype, np.inexact):
      continue
    finite = np.isfinite(array)
    if not finite.all():
      place = tuple(np.argwhere(~finite)[0])
      return (
          f'has {array[place]} in feature {name!r} of example {place[0]}, '
          'where all values must be finite'
      )
  return None


def find_bad_label(labels: np.ndarray, num_classes: int) -> Optional[str]:
  """Returns what is wrong with the labels of one owner, None if nothing is.

  Args:
    labels: Classes, an array of shape [num_examples, ...].
    num_classes: The number of classes.

  Returns:
    The rest of a sentence whose subject is the owner, without a full stop.
  """
  if not np.issubdtype(labels.dtype, np.integer):
    return (
        f'has labels of type {labels.dtype}, where labels must be integers '
        f'from 0 to {num_classes - 1}'
    )
  bad = ~((labels >= 0) & (labels < num_classes))
  if not bad.any():
    return None
  place = tuple(np.argwhere(bad)[0])
  return (
      f'has the label {labels[place]} at example {place[0]}, where labels must '
      f'be integers from 0 to {num_classes - 1}'
  )


def _report(
    found: collections.OrderedDict[str, str], num_clients: int, policy: str
) -> None:
  """Raises or warns, naming the first bad client."""
  if not found:
    return
  client_id, problem = next(iter(found.items()))
  others = f' (the first of {len(found)})' if len(found) > 1 else ''
  if policy == ERROR:
    raise ValueError(
        f'Client {client_id!r}{others} {problem}; mend the data, or go on '
        'without such clients with --bad_clients=reject.'
    )
  logging.warning(
      '%d of %d clients are bad and will be rejected when sampled: client %r%s '
      '%s.',
      len(found),
      num_clients,
      client_id,
      others,
      problem,
  )


def first_line(error: BaseException) -> str:
  """Returns what an error says in its first line, without a full stop.

  Args:
    error: The error.

  Returns:
    The line, without what TensorFlow puts around it: the name of the operation
    in braces and in brackets. The name of the error's type if it says nothing.
  """
  text = re.sub(r'\{\{.*?\}\}|\[Op:\w*\]|Name: <unknown>, ', '', str(error))
  lines = text.strip().splitlines() or [type(error).__name__]
  return lines[0].strip().rstrip('.')


def graph_error_line(error: BaseException) -> str:
  """Returns what an op says that has failed in a graph, without a full stop.

  Args:
    error: The error of the graph.

  Returns:
    The sentence of the op, without where it stands in the graph and without
    the values that follow it; the name of the error's type if it says nothing.
  """
  lines = [
      re.sub(r'\{\{.*?\}\} *|^\(\d+\) *[A-Z_]+: *', '', line.strip())
      for line in str(error).splitlines()
  ]
  said = [line for line in lines if line and not _IS_ABOUT_THE_GRAPH(line)]
  text = said[-1] if said else type(error).__name__
  return text.partition('  ')[0].rstrip('.')

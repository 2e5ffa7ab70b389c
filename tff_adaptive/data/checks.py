# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks client data before training, so that bad data do not fail later."""

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Optional

from absl import logging
import numpy as np

from tff_adaptive.data import client_data
from tff_adaptive.data import specs

ERROR = 'error'
REJECT = 'reject'
_POLICIES = (ERROR, REJECT)
# How messages name the argument, which programs have as a flag.
REJECTING = '`bad_clients="reject"`'


def check_clients(
    source: client_data.ClientArrays,
    *,
    num_classes: Optional[int] = None,
    label_key: str = 'y',
    bad_clients: str = ERROR,
    max_clients: Optional[int] = None,
) -> collections.OrderedDict[str, str]:
  """Checks all clients for data that training cannot use.

  A client is bad if it has no examples, or a feature holds NaN or an infinity.
  With `bad_clients='error'` the first bad client raises. With 'reject' bad
  clients stay and are only reported: they are sampled like any other, so that
  cohorts do not depend on the data; local training gives the weight 0 to an
  empty client and to a non-finite update, and counts it among the rejected
  clients of the round. A bad value that never reaches the loss (in an example
  beyond `max_examples`) has no effect.

  Labels out of range always raise: depending on the device the loss would be
  NaN or silently wrong.

  All clients are read once, also those of a lazy source, unless `max_clients`
  is set.

  Args:
    source: The clients.
    num_classes: The labels must be in [0, num_classes). None (the default) for
      tasks without classes: labels are then checked like any feature.
    label_key: The feature that holds the labels, of any shape. Defaults to 'y',
      the name that `tff.learning` requires.
    bad_clients: 'error' (the default) or 'reject'.
    max_clients: The maximum number of clients to check, spread evenly over all
      clients; None (the default) for all.

  Returns:
    The ids of the bad clients, in order, with the problem of each.

  Raises:
    TypeError: If `max_clients` is not an integer.
    ValueError: If `bad_clients` is unknown, `max_clients` is not positive,
      `num_classes` is given but there is no feature `label_key`, a label is out
      of range, or, with 'error', a client is bad. The message names the client,
      the value found and the valid range.

  Example:

    >>> source = client_data.PackedClientArrays.from_clients(
    ...     {'a': {'x': np.ones([1])}, 'b': {'x': np.ones([0])}})
    >>> dict(check_clients(source, bad_clients='reject'))
    {'b': 'has no example, where at least one is needed'}
  """
  if bad_clients not in _POLICIES:
    raise ValueError(
        f'`bad_clients` must be one of {list(_POLICIES)}, found '
        f'{bad_clients!r}.'
    )
  if max_clients is not None:
    specs.check_positive('max_clients', max_clients)
  if num_classes is not None:
    _check_label_key(label_key, source.element_spec)
  found = collections.OrderedDict()
  checked = _spread(source.client_ids, max_clients)
  for client_id in checked:
    examples = source.examples(client_id)
    if num_classes is not None:
      problem = find_bad_label(examples[label_key], num_classes)
      if problem:
        raise ValueError(
            f'Client {client_id!r} {problem} ({REJECTING} does not apply to '
            'labels).'
        )
    problem = _find_bad_features(examples)
    if problem:
      found[client_id] = problem
  _report(found, len(checked), bad_clients)
  return found


def _check_label_key(label_key: str, features: Iterable[str]) -> None:
  if label_key not in features:
    raise ValueError(
        f'The labels must be in feature {label_key!r}, found the features '
        f'{list(features)}.'
    )


def _spread(
    client_ids: Sequence[str], max_clients: Optional[int]
) -> Sequence[str]:
  """Returns at most `max_clients` clients, spread evenly over all."""
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
  """Checks a central data set, where nothing can be rejected.

  Args:
    examples: Feature names and arrays of shape [num_examples, ...].
    name: The subject of error messages. Defaults to 'The test set'.
    num_classes: See `check_clients`.
    label_key: See `check_clients`.

  Raises:
    ValueError: If there are no examples, a feature is not finite, `num_classes`
      is given but there is no feature `label_key`, or a label is out of range.

  Example:

    >>> check_central_examples({'y': np.array([0, 9])}, num_classes=10)
  """
  problem = _find_bad_features(examples)
  if not problem and num_classes is not None:
    _check_label_key(label_key, examples)
    problem = find_bad_label(examples[label_key], num_classes)
  if problem:
    raise ValueError(f'{name} {problem}.')


def _find_bad_features(examples: Mapping[str, np.ndarray]) -> Optional[str]:
  """Returns the problem with a client's features, None if they are good.

  Args:
    examples: Feature names and arrays of shape [num_examples, ...].

  Returns:
    The rest of a sentence whose subject is the client, without a full stop.
  """
  if not len(next(iter(examples.values()))):
    return 'has no example, where at least one is needed'
  for name, array in examples.items():
    if specs.kind(array.dtype) not in 'fc':
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
  """Returns the problem with a client's labels, None if they are good.

  Args:
    labels: Classes, an array of shape [num_examples, ...].
    num_classes: The number of classes.

  Returns:
    The rest of a sentence whose subject is the client, without a full stop.
  """
  if specs.kind(labels.dtype) not in 'iu':
    return (
        f'has labels of type {labels.dtype}, where labels must be integers '
        f'from 0 to {num_classes - 1}'
    )
  bad = ~((labels >= 0) & (labels < num_classes))
  if not bad.any():
    return None
  place = tuple(np.argwhere(bad)[0])
  may_begin_at_1 = labels.min() > 0 and labels.max() == num_classes
  advice = '; subtract 1 if yours begin at 1' if may_begin_at_1 else ''
  return (
      f'has the label {labels[place]} at example {place[0]}, where labels must '
      f'be integers from 0 to {num_classes - 1}{advice}'
  )


def _report(
    found: collections.OrderedDict[str, str], num_checked: int, policy: str
) -> None:
  """Raises or warns, and names the first bad client."""
  if not found:
    return
  client_id, problem = next(iter(found.items()))
  others = f' (the first of {len(found)})' if len(found) > 1 else ''
  if policy == ERROR:
    raise ValueError(
        f'Client {client_id!r}{others} {problem}; fix the data, or train '
        f'without such clients with {REJECTING}.'
    )
  logging.warning(
      '%d of %d checked clients are bad and will be rejected when sampled: '
      'client %r%s %s.',
      len(found),
      num_checked,
      client_id,
      others,
      problem,
  )

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tables of the rules in docs/, read from their builders.

Name, arguments and paper of a rule come from the signature and docstring of its
builder; the entries of its state come from a state, and what it needs from two
steps with a gradient alone.
"""

from collections.abc import Callable, Iterator, Mapping
import functools
import inspect
import re
from typing import Any

from experiments import pages
from experiments import registry

PAGE = 'docs/algorithms.md'
STOCK_TFF_PAGE = 'docs/guide/one_optimizer.md'
_URL = re.compile(r'(.*?), (https?://[^\s,;]+[^\s,;.])')


def _names(names: Any) -> str:
  return ', '.join(f'`{name}`' for name in names)


def _rules(kind: str) -> Iterator[tuple[registry.Row, Callable[..., Any]]]:
  """Yields the rows and builders of the rules of a kind."""
  for row in registry.ROWS[kind].values():
    if row.builder is not None:
      yield row, registry.resolve(row.builder)


def _build(row: registry.Row, builder: Callable[..., Any]) -> Any:
  """Returns a rule with its defaults, and 10 for all supplied arguments."""
  return builder(**{name: 10 for name in row.supplied})


def _default(argument: registry.Argument) -> str:
  if argument.is_required:
    return f'`{argument.name}`'
  return f'`{argument.name}={argument.default}`'


def rules(kind: str) -> str:
  """Returns the table of the rules of a kind.

  Args:
    kind: The kind of their rows in the registry.

  Returns:
    One row per rule: its name, its description, its arguments with their
    defaults, and its paper.
  """
  lines = []
  for row, builder in _rules(kind):
    text, _, references = (inspect.getdoc(builder) or '').partition(
        'References:\n'
    )
    summary = text.splitlines()[0].removeprefix('Builds ')
    found = _URL.match(' '.join(references.split()))
    assert found is not None, f'{row.builder}: no paper with a URL'
    paper, url = found.groups()
    arguments = ', '.join(map(_default, row.arguments))
    lines.append((f'`{row.name}`', summary, arguments, f'[{paper}]({url})'))
  return pages.text_table(('rule', 'description', 'arguments', 'paper'), lines)


def server_states() -> str:
  """Returns the table of the states of server rules.

  Returns:
    One row per rule: the scalars and the per-weight entries of its state.
  """
  import tensorflow as tf  # After prepare_libraries.

  lines = []
  for row, builder in _rules(registry.SERVER_OPTIMIZER):
    state = _build(row, builder).initialize(tf.TensorSpec([3]))
    tensors = [key for key, value in state.items() if tf.rank(value)]
    scalars = [key for key in state if key not in tensors]
    lines.append((f'`{row.name}`', _names(scalars), _names(tensors)))
  return pages.text_table(('server rule', 'scalars', 'one per weight'), lines)


def client_states() -> str:
  """Returns the table of the states of client rules that last across rounds.

  Returns:
    One row per rule with such states: those that the server shares with all
    clients, and those that each client keeps.
  """
  import tensorflow as tf  # After prepare_libraries.

  spec = tf.TensorSpec([3])
  lines = []
  for row, builder in _rules(registry.CLIENT_OPTIMIZER):
    rule = _build(row, builder)
    if hasattr(rule, 'initialize_shared'):
      shared, kept = rule.initialize_shared(spec), rule.initialize_kept(spec)
      lines.append((f'`{row.name}`', _names(shared), _names(kept)))
  return pages.text_table(
      (
          'client rule',
          'shared, one per weight',
          'kept by each client, one per weight',
      ),
      lines,
  )


def _needs(rule: Any) -> str:
  """Returns what stock TFF would have to give a rule besides a gradient."""
  import tensorflow as tf  # After prepare_libraries.

  from tff_adaptive.optimizers import optimizer

  if getattr(rule, 'client_reports', None):
    return 'reports of clients'
  needs = []
  if optimizer.evaluates_again(rule):
    needs.append('another evaluation of the same batch')
  if hasattr(rule, 'initialize_shared'):
    needs.append('state shared by the server or kept by clients')
  if needs:
    return ', and '.join(needs)
  state, x = rule.initialize(tf.TensorSpec([3])), tf.zeros([3])
  if hasattr(rule, 'client_rate_scale') and rule.client_rate_scale(state):
    return "a loop that scales the clients' rate"
  try:
    for _ in range(2):
      state, x = rule.next(state, x, tf.ones([3]))
  except ValueError as error:
    if '`value`' not in str(error):
      raise
    return 'the loss of the batch'
  if tf.reduce_any(optimizer.final_weights(rule, state, x) != x):
    return 'a last step that sends the mean of the iterates'
  return 'nothing'


# What becomes of a rule in stock TFF, if it is not refused.
_IN_STOCK_TFF = {'nothing': 'works'}
# The same at the server, where no last step is missing.
_AT_STOCK_SERVER = {
    'a last step that sends the mean of the iterates': (
        'works: evaluate its `final_weights`'
    ),
}


def stock_tff() -> str:
  """Returns the table of the rules that fit into stock TFF.

  Returns:
    One row per side and need: the builders, with their defaults.
  """
  builders: dict[tuple[str, str], list[str]] = {}
  sides = {
      'clients': registry.CLIENT_OPTIMIZER,
      'server': registry.SERVER_OPTIMIZER,
  }
  for side, kind in sides.items():
    for row, builder in _rules(kind):
      key = (side, _needs(_build(row, builder)))
      builders.setdefault(key, []).append(f'build_{row.name}')
  found = {
      'clients': _IN_STOCK_TFF,
      'server': {**_IN_STOCK_TFF, **_AT_STOCK_SERVER},
  }
  return pages.text_table(
      ('side', 'optimizer', 'needs besides a gradient', 'in stock TFF'),
      [
          (side, _names(names), needs, found[side].get(needs, 'refused'))
          for (side, needs), names in builders.items()
      ],
  )


SECTIONS: Mapping[str, Callable[[], str]] = {
    **{f'{kind}s': functools.partial(rules, kind) for kind in registry.RULES},
    'server_states': server_states,
    'client_states': client_states,
}

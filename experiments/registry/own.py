# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A user's own tasks and rules, which flags name by their place.

They are `--task=package.module:VALUE`, and `--client_optimizer`,
`--server_optimizer` and `--loss_term=package.module:build_NAME`, or entries of
`--compare`, `[LABEL=][NAME][:FILE.flags]`.
"""

from collections.abc import Mapping, Sequence
import contextlib
import dataclasses
import hashlib
import importlib
import os
import pathlib
import re
from typing import Any, NamedTuple, Optional

from experiments import flag_table
from experiments.registry import rows
from experiments.registry import signatures
from tasks import definitions

# The kinds of rows that a user may add.
KINDS = (rows.TASK, *rows.RULES)
_NAME = re.compile(r'[a-z][a-z0-9_]*')
_SEPARATOR = ':'
# What a module says of its rule for the leaderboard.
SUBMISSION = 'SUBMISSION'


class _OwnError(Exception):
  """Why a place names no row."""


def form_of(kind: str) -> str:
  """Returns how a user's own is given, such as 'package.module:VALUE'."""
  name = 'VALUE' if kind == rows.TASK else f'{signatures.PREFIX}NAME'
  return f'package.module{_SEPARATOR}{name}'


def is_own(name: str) -> bool:
  """Returns whether the value of a flag is the place of a user's own."""
  return _SEPARATOR in name


def kind_of(name: str) -> str:
  """Returns the flag of a user's own rule, which its builder's signature tells.

  A loss term returns a `LossTerm`, a server optimizer a `ServerOptimizer`.
  Anything else is a client optimizer, also what cannot be read, which `load`
  reports.

  Args:
    name: The place, 'package.module:build_NAME'.
  """
  module, _, attribute = name.partition(_SEPARATOR)
  try:
    builder = signatures.find(module, attribute.removeprefix(signatures.PREFIX))
  except (KeyError, ModuleNotFoundError, SyntaxError, ValueError):
    return rows.CLIENT_OPTIMIZER
  return rows.kind_of(builder)


def find_submission(name: str) -> Mapping[str, Any]:
  """Returns the `SUBMISSION` of the module of a user's own rule; {} if none.

  Args:
    name: The place of the rule, which can be loaded.

  Raises:
    HparamError: If it is not a dictionary that is written out.
  """
  module, _, _ = name.partition(_SEPARATOR)
  try:
    found = signatures.constant(module, SUBMISSION)
  except KeyError:
    return {}
  except (ModuleNotFoundError, ValueError):
    found = None
  if not isinstance(found, Mapping):
    raise flag_table.HparamError(
        f'{SUBMISSION} of {module} must be a dictionary of texts, numbers and '
        'lists, without calls'
    )
  return found


def load(kind: str, name: str) -> rows.Row:
  """Returns the row of a user's own task or rule.

  The module of a task is imported, that of a rule is only read.

  Args:
    kind: A kind of `KINDS`.
    name: The place, 'package.module:NAME'.

  Raises:
    HparamError: If the module or the name does not exist, or is of another
      kind; if a value of a rule has to be given, but cannot be by a flag.
  """
  module, _, attribute = name.partition(_SEPARATOR)
  try:
    if not module or module.startswith('.'):
      raise _OwnError(f'found no module, expected {form_of(kind)}')
    if '/' in module or module.endswith('.py'):
      dotted = module.removesuffix('.py').replace('/', '.').strip('.')
      raise _OwnError(
          f'expected {form_of(kind)}; did you mean '
          f'{dotted}{_SEPARATOR}{attribute}?'
      )
    if kind == rows.TASK:
      row = _create_task(name, module, attribute)
    else:
      row = _create_rule(kind, name, module, attribute)
    if not _NAME.fullmatch(row.label):
      raise _OwnError(
          'the name begins flags, and must consist of lower-case letters, '
          f'digits and _, found {row.label!r}'
      )
  except (_OwnError, signatures.UnreadableError) as error:
    raise flag_table.HparamError(f'--{kind}={name}: {error}') from error
  except SyntaxError as error:
    raise flag_table.HparamError(
        f'--{kind}={name}: {error.filename}, line {error.lineno}: {error.msg}'
    ) from error
  except ModuleNotFoundError as error:
    if error.name is None or not f'{module}.'.startswith(f'{error.name}.'):
      raise
    raise flag_table.HparamError(
        f'--{kind}={name}: the module {error.name} is not found from '
        f'{pathlib.Path.cwd()}; expected {form_of(kind)}'
    ) from error
  return row


def _create_task(name: str, module: str, attribute: str) -> rows.Row:
  task = getattr(importlib.import_module(module), attribute, None)
  if task is None:
    raise _OwnError(f'the module {module} has no {attribute or "value"}')
  if not isinstance(task, definitions.TaskDefinition):
    raise _OwnError(
        f'{attribute} must be a tasks.definitions.TaskDefinition, found '
        f'{type(task).__name__}'
    )
  return rows.create_task(name, task)


def _create_rule(kind: str, name: str, module: str, attribute: str) -> rows.Row:
  prefix, _, label = attribute.partition(signatures.PREFIX)
  if prefix or not label:
    raise _OwnError(
        f'expected a function {signatures.PREFIX}NAME, found '
        f'{attribute or "none"}'
    )
  try:
    builder = signatures.find(module, label)
  except KeyError as error:
    raise _OwnError(
        f'the module {module} has no function {attribute}'
    ) from error
  row = rows.create_rule(kind, builder)
  unknown = set(row.supplied) - set(rows.SUPPLIED)
  for argument in builder.required & unknown:
    raise _OwnError(
        f'{attribute} needs {argument}, which has no flag; annotate it as a '
        'float, int, bool, str or Literal, or give it a default'
    )
  source = signatures.find_source(builder.module).read_bytes()
  return dataclasses.replace(
      row, name=name, digest=hashlib.sha256(source).hexdigest()[:16]
  )


_SUFFIX = '.flags'
# The file that a sweep writes into its folder, which has the telling name.
_OF_SWEEPS = 'best'
# Paths of files may have '=', too.
_ENTRY = re.compile(r'(?:([^=:/]+)=)?(.*)', re.DOTALL)


class Entry(NamedTuple):
  """A method as `--compare` names it.

  Attributes:
    label: Its name in tables and legends; empty for the default one.
    name: The name of a method, or the place of a user's own rule; empty if the
      file says all.
    flagfile: The file with its flags, if any.
  """

  label: str
  name: str
  flagfile: Optional[pathlib.Path] = None

  @property
  def file_label(self) -> str:
    """The name of the file, or of the sweep that wrote it."""
    assert self.flagfile is not None
    stem, folder = self.flagfile.stem, self.flagfile.absolute().parent.name
    return folder if stem == _OF_SWEEPS and folder else stem


def read_entry(text: str) -> Entry:
  """Reads an entry of `--compare`.

  Example:

    >>> read_entry('FedAvg, tuned=fedavg:runs/rates/best.flags')[:2]
    ('FedAvg, tuned', 'fedavg')
  """
  match = _ENTRY.fullmatch(text.strip())
  assert match is not None
  label, rest = (match[1] or '').strip(), match[2].strip()
  if not rest.endswith(_SUFFIX):
    return Entry(label, rest)
  name, _, path = rest.rpartition(':')
  return Entry(label, name, pathlib.Path(path).expanduser())


def find(
    arguments: Sequence[str], including: Sequence[str] = ()
) -> list[tuple[str, str]]:
  """Returns the kinds and places of a user's own on a command line.

  Args:
    arguments: The flags; flagfiles among them are read, unless they cannot be
      read, which absl reports.
    including: The flagfiles that contain these flags; not read again.
  """
  arguments = [argument.strip() for argument in arguments]
  found = []
  for place, argument in enumerate(arguments):
    flag, equals, value = argument.lstrip('-').partition('=')
    if not argument.startswith('-'):
      continue
    if not equals and place + 1 < len(arguments):
      value = arguments[place + 1]
    if flag in KINDS and is_own(value):
      found.append((flag, value))
    elif flag == 'compare':
      for entry in map(read_entry, value.split(',')):
        if is_own(entry.name):
          found.append((kind_of(entry.name), entry.name))
        if entry.flagfile is not None:
          found += _find_in_file(str(entry.flagfile), including)
    elif flag == 'flagfile':
      found += _find_in_file(os.path.expanduser(value.strip()), including)
  return found


def _find_in_file(path: str, including: Sequence[str]) -> list[tuple[str, str]]:
  """Returns what `find` finds in a flagfile, unless it cannot be read."""
  if not os.path.isfile(path) or path in including:
    return []
  with (
      contextlib.suppress(OSError),
      open(path, encoding='utf-8', errors='replace') as file,
  ):
    return find(file.read().splitlines(), (*including, path))
  return []

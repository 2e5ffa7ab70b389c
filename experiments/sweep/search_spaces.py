# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Search spaces of sweeps: grids, powers of ten and distributions."""

from collections.abc import Callable, Sequence
import itertools
import math
import re
import zlib

import numpy as np

from experiments import hparams

# The values of flags, as on a command line.
Assignment = tuple[tuple[str, str], ...]

_DISTRIBUTION = re.compile(r'(\w+)\((.*)\)')
# Tolerance for rounding in the number of steps of a grid.
_STEP_TOLERANCE = 1e-9


def _show(value: float) -> str:
  """Formats a number for flags and folders, with six digits."""
  return f'{value:.6g}'


def _error(
    option: str, flag: str, expected: str, found: str
) -> hparams.HparamError:
  """Returns the error of values that do not have the expected form."""
  return hparams.HparamError(
      f'--{option}={flag} takes {expected}, found {found!r}'
  )


def _split(option: str, text: str) -> tuple[str, str]:
  """Returns the two sides of 'FLAG=VALUES'."""
  flag, _, values = text.partition('=')
  if not flag or not values:
    raise hparams.HparamError(
        f'--{option} takes FLAG=VALUES, such as client_learning_rate=0.1,1, '
        f'found {text!r}'
    )
  return flag.lstrip('-'), values


def _split_values(option: str, flag: str, text: str) -> list[str]:
  values = [value.strip() for value in text.split(',')]
  if not all(values) or len(set(values)) < len(values):
    raise _error(option, flag, 'distinct comma-separated values', text)
  return values


def _to_numbers(
    option: str, flag: str, texts: Sequence[str], expected: str
) -> list[float]:
  """Returns the numbers, or raises with the expected form."""
  try:
    numbers = [float(text) for text in texts]
  except ValueError:
    numbers = []
  if len(numbers) != expected.count('NUMBER') or not np.all(
      np.isfinite(numbers)
  ):
    raise _error(option, flag, expected, ', '.join(texts))
  return numbers


def read_grid(text: str) -> tuple[str, list[str]]:
  """Parses a grid.

  Args:
    text: A text such as 'client_learning_rate=0.01,0.1' or
      'client_optimizer=sgd,adam'.

  Returns:
    The flag, and the values as given.

  Raises:
    HparamError: If the text does not have this form, or a value is repeated.
  """
  flag, values = _split('grid', text)
  return flag, _split_values('grid', flag, values)


def read_log_grid(text: str) -> tuple[str, list[str]]:
  """Parses a grid of powers of ten.

  Args:
    text: A text such as 'server_learning_rate=-3:1:0.5', with the first
      exponent, the last one and the step.

  Returns:
    The flag, and the powers with six digits.

  Raises:
    HparamError: If the text does not have this form, or contains no value.

  Example:

    >>> read_log_grid('server_learning_rate=-1:0:0.5')
    ('server_learning_rate', ['0.1', '0.316228', '1'])
  """
  flag, values = _split('log_grid', text)
  expected = 'NUMBER:NUMBER:NUMBER, exponents from:to:step'
  first, last, step = _to_numbers('log_grid', flag, values.split(':'), expected)
  if step <= 0 or last < first or last > 308:
    expected = 'exponents up to 308, from:to:step with from <= to and step > 0'
    raise _error('log_grid', flag, expected, values)
  count = math.floor((last - first) / step + _STEP_TOLERANCE) + 1
  return flag, [_show(10 ** (first + i * step)) for i in range(count)]


def _read_distribution(flag: str, text: str) -> Callable[[float], str]:
  """Returns a function that maps uniform numbers in [0, 1) to values."""
  match = _DISTRIBUTION.fullmatch(text.strip())
  name, arguments = match.groups() if match else ('', '')
  if name == 'choice':
    values = _split_values('random', flag, arguments)
    return lambda u: values[int(u * len(values))]
  if name not in ('log_uniform', 'uniform'):
    expected = 'log_uniform(LOW,HIGH), uniform(LOW,HIGH) or choice(X,Y,...)'
    raise _error('random', flag, expected, text)
  low, high = _to_numbers(
      'random', flag, arguments.split(','), f'{name}(NUMBER,NUMBER)'
  )
  if low >= high or (name == 'log_uniform' and low <= 0):
    above = ' above 0' if name == 'log_uniform' else ''
    expected = f'a lower bound{above} and a larger upper bound'
    raise _error('random', flag, expected, text)
  if name == 'uniform':
    return lambda u: _show(low + u * (high - low))
  log_low, log_high = math.log(low), math.log(high)
  return lambda u: _show(math.exp(log_low + u * (log_high - log_low)))


def draw(
    text: str, *, num_trials: int, search_seed: int
) -> tuple[str, list[str]]:
  """Samples values of a flag.

  They depend only on the seed and the name of the flag: more trials or another
  flag in the search do not change the first values.

  Args:
    text: A text such as 'client_learning_rate=log_uniform(1e-3,1)', also with
      'uniform(0,1)' or 'choice(adam,sgd)'.
    num_trials: The number of values.
    search_seed: The seed.

  Returns:
    The flag, and the values; numbers have six digits.

  Raises:
    HparamError: If the text does not have this form, or the interval is empty.
  """
  flag, distribution = _split('random', text)
  to_value = _read_distribution(flag, distribution)
  generator = np.random.default_rng([search_seed, zlib.crc32(flag.encode())])
  return flag, [to_value(u) for u in generator.random(num_trials)]


def build_assignments(
    *,
    grids: Sequence[str] = (),
    log_grids: Sequence[str] = (),
    randoms: Sequence[str] = (),
    num_trials: int = 1,
    search_seed: int = 0,
) -> list[Assignment]:
  """Returns the assignments of a sweep.

  Args:
    grids: See `read_grid`.
    log_grids: See `read_log_grid`.
    randoms: See `draw`.
    num_trials: The number of random samples.
    search_seed: The seed of the samples.

  Returns:
    Every combination of the grids with every sample, without duplicates.

  Raises:
    HparamError: If a text is invalid, or two are for the same flag.

  Example:

    >>> build_assignments(grids=['client_learning_rate=0.1,1'])
    [(('client_learning_rate', '0.1'),), (('client_learning_rate', '1'),)]
  """
  spaces = [read_grid(text) for text in grids]
  spaces += [read_log_grid(text) for text in log_grids]
  drawn = [
      draw(text, num_trials=num_trials, search_seed=search_seed)
      for text in randoms
  ]
  names = [flag for flag, _ in spaces + drawn]
  for name in names:
    if names.count(name) > 1:
      raise hparams.HparamError(
          f'--{name} is swept twice, give it in only one of --grid, '
          '--log_grid and --random'
      )
  combinations = itertools.product(
      *([(flag, value) for value in values] for flag, values in spaces)
  )
  draws = list(
      zip(*([(flag, value) for value in values] for flag, values in drawn))
  ) or [()]
  found = [grid + one for grid in combinations for one in draws]
  return list(dict.fromkeys(found))

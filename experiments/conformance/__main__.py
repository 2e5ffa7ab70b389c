# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Compares the library, or another framework, with reference trajectories.

For example:

  python -m experiments.conformance --goldens=goldens.json

prints one line per run, `name problem max_error tolerance ok` or `FAIL`, and
finally `N passed, M failed`. The exit code is 1 if any run failed or has an
unknown configuration, and 2 if there was nothing to compare.

  python -m experiments.conformance --goldens=goldens.json --adapter=stock_tff

compares the weights of another framework. Runs of methods that the framework
lacks are `skipped`, with the reason, and counted in the last line. See
docs/conformance.md.
"""

from collections.abc import Callable, Mapping
import contextlib
import dataclasses
import functools
import sys
from typing import Any, Optional

from absl import flags

from experiments import command_line
from experiments import conformance
from experiments import flag_table
from experiments import registry
from experiments.conformance import adapters
from experiments.flag_table import field


@dataclasses.dataclass
class _Flags:
  """The flags.

  Attributes:
    goldens: The file of reference trajectories.
    runtime: The runtime.
    devices: The device of the compiled runtime, as of experiments.train.
    adapter: {adapter_help}
    adapter_timeout: The time limit in seconds for a run of an --adapter
      command.
  """

  goldens: Optional[str] = None
  runtime: str = field(registry.COMPILED, enum_values=registry.RUNTIMES)
  devices: str = 'auto'
  adapter: Optional[str] = None
  adapter_timeout: float = field(adapters.DEFAULT_TIMEOUT, lower_bound=0.0)


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags."""
  flag_table.define(_Flags, flag_values, adapter_help=adapters.HELP)
  flags.register_multi_flags_validator(
      [flag.name for flag in dataclasses.fields(_Flags)],
      _belong_together,
      'give --goldens=FILE, optionally with --adapter; --adapter_timeout needs '
      'an adapter that is a command, and a command needs no --runtime and no '
      '--devices, which are those of the compiled runtime',
      flag_values=flag_values,
  )


def _belong_together(values: Mapping[str, Any]) -> bool:
  is_command = adapters.is_command(values['adapter'])
  if not is_command and values['adapter_timeout'] != adapters.DEFAULT_TIMEOUT:
    return False
  is_compiled = values['runtime'] == registry.COMPILED
  has_devices = values['devices'] != 'auto'
  if has_devices and not is_compiled:
    return False
  if is_command and (has_devices or not is_compiled):
    return False
  return values['goldens'] is not None


def _create_check(values: flags.FlagValues) -> Callable[..., Any]:
  """Returns a function that maps a run and the problems to a result."""
  if values.adapter is None:
    # TensorFlow takes seconds to import, so --help and typos do without it.
    from experiments.conformance import replay  # pylint: disable=import-outside-toplevel

    return replay.replay
  adapter = conformance.create_adapter(values.adapter, values.adapter_timeout)
  return lambda run, problems: conformance.check(adapter, run, problems)


def main(flag_values=flags.FLAGS):
  """Replays every run of the file, and exits with 1 if any failed.

  Args:
    flag_values: The parsed flags.
  """
  command_line.prepare_libraries()
  with command_line.errors_as(command_line.UserError, OSError, ValueError):
    runs, problems = conformance.read_goldens(flag_values.goldens)
    check = _create_check(flag_values)
  runtime = contextlib.nullcontext
  if not adapters.is_command(flag_values.adapter):
    runtime = registry.resolve(registry.RUNTIMES[flag_values.runtime])
  if flag_values.runtime == registry.COMPILED and flag_values.adapter is None:
    runtime = functools.partial(runtime, devices=flag_values.devices)
  results = []
  with runtime():
    for run in runs:
      results.append(check(run, problems))
      print(results[-1], flush=True)
  num_passed = sum(result.passed for result in results)
  num_skipped = sum(result.skipped for result in results)
  num_failed = len(results) - num_passed - num_skipped
  skipped = '' if flag_values.adapter is None else f', {num_skipped} skipped'
  print(f'{num_passed} passed, {num_failed} failed{skipped}')
  if num_skipped == len(results):
    raise command_line.UserError(
        f'nothing was compared: --adapter={flag_values.adapter} skipped all '
        f'{num_skipped} runs of {flag_values.goldens}; give a file with a run '
        'that it supports'
    )
  sys.exit(int(num_failed > 0))


if __name__ == '__main__':
  define()
  command_line.run(main)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Retrains one round of a run and records every local step of its clients.

For example:

  python -m experiments.trace --run=runs/demo --round=40

starts from the newest checkpoint before the round, trains any rounds between,
and writes `runs/demo/plots/trace_0040.csv`, with one row per local step, and
`trace_0040.png`. With `--cka` it plots instead the similarity of the moments
that clients keep after the round, or send in it if they keep none, in
`runs/demo/plots/cka.png`, where experiments.report finds it. The run itself is
not changed.
"""

import dataclasses
import functools
import pathlib
from typing import Optional

from absl import flags

from experiments import command_line
from experiments import flag_table
from experiments import folders
from experiments.flag_table import field


@dataclasses.dataclass
class _Flags:
  """The flags.

  Attributes:
    run: The folder of a run of experiments.train.
    round: The number of the round, from 1, as in metrics.csv.
    from_start: Whether to train from the first round if no checkpoint is early
      enough.
    cka: Whether to plot, instead of the local steps, the linear CKA of the
      moments that clients keep after the round, or send in it if they keep
      none, in plots/cka.png.
    cka_part: The part of the states that --cka compares, such as first_moment;
      all parts by default.
    cka_clients: The maximal number of clients that --cka compares; the first
      ones are taken.
    data_dir: The folder of the data sets; digits needs none.
  """

  run: str = field(required=True)
  round: int = field(required=True, lower_bound=1)
  from_start: bool = False
  cka: bool = False
  cka_part: Optional[str] = None
  cka_clients: int = field(100, lower_bound=1)
  data_dir: Optional[str] = None


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags."""
  flag_table.define(_Flags, flag_values)


def main(flag_values: flags.FlagValues = flags.FLAGS):
  """Traces the round or plots the kept states, according to the flags.

  Args:
    flag_values: The parsed flags.
  """
  for name in ('cka_part', 'cka_clients'):
    if flag_values[name].present and not flag_values.cka:
      raise command_line.UserError(f'--{name} needs --cka')
  run = pathlib.Path(flag_values.run)
  round_num = flag_values['round'].value
  command_line.check_run(run)
  folders.check_data_dir(flag_values.data_dir)
  if not flag_values.from_start:
    # Kept states are those after the round, steps are those within it.
    newest = round_num if flag_values.cka else round_num - 1
    folders.check_checkpoint(run, newest)
  command_line.prepare_libraries()
  # TensorFlow takes seconds to import, so --help and typos do without it.
  from experiments.trace import views  # pylint: disable=import-outside-toplevel

  show = views.trace
  if flag_values.cka:
    show = functools.partial(
        views.draw_kept_states,
        part=flag_values.cka_part,
        num_clients=flag_values.cka_clients,
    )
  show(
      run,
      round_num,
      from_start=flag_values.from_start,
      data_dir=flag_values.data_dir,
  )


if __name__ == '__main__':
  define()
  command_line.run(main)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Repeats one round of training and records every local step."""

import collections
from collections.abc import Iterator, Mapping
from typing import Any, Optional

import attrs
import matplotlib
import numpy as np
import tensorflow_federated as tff

from tff_adaptive import _files
from tff_adaptive.analysis import _style
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.runtime import compiled
from tff_adaptive.simulation import client_states as client_states_lib
from tff_adaptive.simulation import structures


@attrs.frozen(eq=False, kw_only=True)
class RoundTrace:
  """A table with a row for each local step of a round, and the round's result.

  The rows of a client are contiguous, in the order of its steps; the clients
  are in the order of the cohort. A client without examples has no rows.

  Attributes:
    round_num: The number of rounds finished before this one.
    client_id: The client of each step, strings of shape [num_rows].
    step: The index of each step in the client's round, from 0, int64 of shape
      [num_rows].
    values: Named values, each float32 of shape [num_rows]: `loss`, the loss of
      the batch before the step, with the loss term, and the reports of the
      client optimizer, such as `step_size`. Includes clients whose training
      diverged, although they do not count in the round.
    state: The state of the process after the round.
    metrics: The metrics of the round, without steps and client states.
    client_states: The new states of the clients, structures of arrays by client
      id; empty if the process has no client states.
  """

  round_num: int
  client_id: np.ndarray
  step: np.ndarray
  values: Mapping[str, np.ndarray]
  state: Any
  metrics: Any
  client_states: Mapping[str, Any] = attrs.field(factory=dict)

  def clients(self) -> Iterator[tuple[str, slice]]:
    """Yields the id and the rows of each client that has rows.

    A client that is twice in the cohort is yielded twice.
    """
    starts = np.flatnonzero(self.step == 0).tolist()
    for start, end in zip(starts, [*starts[1:], len(self.step)]):
      yield self.client_id[start], slice(start, end)

  def to_csv(self, path: _files.PathLike):
    """Writes the table: `client_id`, `step` and a column for each value.

    Args:
      path: The file, which is replaced atomically; its folder is created.

    Raises:
      OSError: If the file cannot be written; names it.
    """
    # NumPy formats a float32 with the fewest digits that read back the same.
    columns = [column.astype(str) for column in self.values.values()]
    rows = zip(self.client_id, self.step, *columns)
    _files.write(
        path, _files.to_csv([['client_id', 'step', *self.values], *rows])
    )


def _check_process(process: tff.learning.templates.LearningProcess) -> None:
  """Raises unless the process records its steps."""
  metrics = process.next.type_signature.result.metrics.member
  client_work = getattr(metrics, client_states_lib.CLIENT_WORK_KEY, None)
  if not hasattr(client_work, 'steps'):
    raise ValueError(
        'The process does not record its local steps: build it with '
        '`tff_adaptive.algorithms.build_fed_opt(..., trace_steps=True)`, or '
        'with `trace_steps` in another builder of that package.'
    )


def trace_round(
    process: tff.learning.templates.LearningProcess,
    state: Any,
    cohort: cohort_lib.Cohort,
    *,
    client_store: Optional[client_states_lib.ClientStateStore] = None,
) -> RoundTrace:
  """Trains one round and returns each client's local steps.

  Given the state before a round of a run and its cohort, this repeats the
  round: batches, dropout masks and client weights depend only on the seed, the
  round and the client ids, which the cohort holds. The new state equals that of
  the process without `trace_steps` bit for bit, on the same machine with the
  same plan of the runtime, the same number of threads, and deterministic ops:
  see `tf.config.experimental.enable_op_determinism`. Otherwise it is equal up
  to rounding; another plan uses the same random numbers, but sums in another
  order.

  Args:
    process: The result of
      `tff_adaptive.algorithms.build_fed_opt(..., trace_steps=True)` with the
      arguments of the run.
    state: The state of the process before the round.
    cohort: The clients of the round. If the process has client states, a
      `StatefulCohort`, or any `Cohort` together with `client_store`.
    client_store: The client states before the round; not modified. None (the
      default) without client states.

  Returns:
    The trace.

  Raises:
    ValueError: If the process does not record steps, or has client states and
      they are missing, or vice versa.
    TypeError: If `cohort` is not a `Cohort`.

  Example:

    >>> process = algorithms.build_fed_opt(
    ...     model, optimizers.build_delta_sgd(), trace_steps=True)
    >>> with runtime.CompiledContext():
    ...   trace = trace_round(process, process.initialize(), cohort_fn(0))
    >>> trace.to_csv('round_1.csv')
    >>> len(trace.values['step_size'])  # 10 clients, 6 steps each.
    60
  """
  _check_process(process)
  if not isinstance(cohort, cohort_lib.Cohort):
    raise TypeError(
        '`cohort` must be a `tff_adaptive.data.Cohort`, which has client '
        f'ids, found {type(cohort).__name__}.'
    )
  if not isinstance(cohort, cohort_lib.StatefulCohort):
    states = client_states_lib.bind(process, client_store, None)
    cohort = cohort if states is None else states.add_to(cohort)
  context = tff.framework.get_context_stack().current
  # TFF's own contexts take lists.
  is_compiled = isinstance(context, compiled.CompiledContext)
  output = process.next(state, cohort if is_compiled else list(cohort))
  return _to_trace(cohort, output)


def _to_trace(cohort: cohort_lib.Cohort, output: Any) -> RoundTrace:
  """Returns the trace in the output of the process."""
  metrics = collections.OrderedDict(output.metrics)
  key = client_states_lib.CLIENT_WORK_KEY
  client_work = metrics[key] = collections.OrderedDict(metrics[key])
  values = collections.OrderedDict(client_work.pop('steps'))
  num_steps = values.pop('num_steps')
  steps = [np.arange(number, dtype=np.int64) for number in num_steps]
  states = client_work.pop(client_states_lib.CLIENT_STATES_KEY, None)
  return RoundTrace(
      round_num=int(cohort.round_num),
      client_id=np.repeat(np.asarray(cohort.client_ids, dtype=str), num_steps),
      step=np.concatenate([np.zeros(0, np.int64), *steps]),
      values=values,
      state=output.state,
      metrics=metrics,
      client_states={} if states is None else _split(states),
  )


def _split(states: Mapping[str, Any]) -> dict[str, Any]:
  """Splits stacked client states by id."""
  stacked = states[cohort_lib.STATE_KEY]

  def take(place):
    return structures.map_with_path(lambda _, leaf: leaf[place], stacked)

  ids = [client_id.decode() for client_id in states[cohort_lib.ID_KEY]]
  return {client_id: take(place) for place, client_id in enumerate(ids)}


# Each color is used with two dash patterns before looks repeat.
_DASHES = ('-', '--')
_MAX_NAMED_CLIENTS = len(_style.COLORS) * len(_DASHES)
_MANY_COLORS = 'viridis'

_LABELS = {
    'step_size': 'step size',
    'smoothness_limit': 'smoothness\nlimit',
    'growth_limit': 'growth\nlimit',
    'loss': 'batch loss',
}
# Panels that share a vertical axis, for comparison.
_STEP_SIZES = ('step_size', 'smoothness_limit', 'growth_limit')
_WIDE_RANGE = 20.0  # The max/min ratio above which the axis is logarithmic.
_PANEL_HEIGHT = 2.1
_WIDTH = 8.0


def _panels(trace: RoundTrace) -> list[str]:
  """Returns the values to plot: the step size and its limits, or the loss."""
  if 'smoothness_limit' in trace.values:
    return list(_STEP_SIZES)
  return [name for name in ('step_size', 'loss') if name in trace.values]


def _looks(num_clients: int) -> list[dict[str, Any]]:
  """Returns colors and dashes of the clients' lines."""
  if num_clients <= _MAX_NAMED_CLIENTS:
    looks = [(color, dash) for dash in _DASHES for color in _style.COLORS]
    return [
        {'color': color, 'linestyle': dash, 'linewidth': 1.4}
        for color, dash in looks[:num_clients]
    ]
  colors = matplotlib.colormaps[_MANY_COLORS](np.linspace(0, 0.9, num_clients))
  return [{'color': color, 'linewidth': 0.8, 'alpha': 0.7} for color in colors]


def _scale(panels, trace: RoundTrace):
  """Gives panels a common axis on which small values are visible, too."""
  values = np.asarray([trace.values[name] for _, name in panels])
  values = values[np.isfinite(values)]
  if not len(values):
    return
  low, high = values.min(), values.max()
  is_wide = 0 < low < high / _WIDE_RANGE
  margin = (high / low) ** 0.05 if is_wide else 0.05 * (high - low)
  margin = margin or 0.5 * abs(high) or 1.0
  for axes, _ in panels:
    if is_wide:
      axes.set_yscale('log')
      axes.set_ylim(low / margin, high * margin)
    else:
      axes.set_ylim(low - margin, high + margin)


def _draw(axes, name: str, trace: RoundTrace):
  """Plots a line for each client."""
  clients = list(trace.clients())
  for (client_id, rows), look in zip(clients, _looks(len(clients))):
    axes.plot(
        trace.step[rows],
        trace.values[name][rows],
        label=client_id,
        marker=_style.marker(rows.stop - rows.start),
        markersize=3.0,
        **look,
    )
  axes.set_ylabel(_LABELS[name])
  _style.frame(axes)


def plot_trace(trace: RoundTrace, path: _files.PathLike, title: str = ''):
  """Plots the local steps of a round, one line per client.

  For Delta-SGD: the step size, and below it its two limits, of which it is the
  minimum, all with the same axis. For others: the step size, if the optimizer
  has one, and below it the loss. The figure uses no global state of matplotlib.

  Args:
    trace: The result of `trace_round`.
    path: The .png, .pdf or .svg file to write; its folder is created.
    title: The title, for example the method. Defaults to no title.

  Raises:
    OSError: If the file cannot be written; names it.
    ValueError: If the trace has no steps.

  Example:

    >>> trace = RoundTrace(
    ...     round_num=7, client_id=np.array(['a', 'a', 'b']),
    ...     step=np.array([0, 1, 0]),
    ...     values={'loss': np.array([2.3, 2.1, 2.2]),
    ...             'step_size': np.array([0.2, 0.25, 0.2])},
    ...     state=None, metrics=None)
    >>> plot_trace(trace, 'round_8.png', title='delta_sgd, round 8')

  References:
    Kim, Toghani, Uribe, Kyrillidis, Adaptive Federated Learning with
    Auto-Tuned Clients, ICLR 2024, https://arxiv.org/abs/2306.11201, Figure 7.
  """
  if not len(trace.step):
    raise ValueError('The trace has no steps: no client has examples.')
  names = _panels(trace)
  drawing, grid = _style.new_stack(
      len(names), width=_WIDTH, height=_PANEL_HEIGHT, x_label='local step'
  )
  panels = list(zip(grid, names))
  for axes, name in panels:
    _draw(axes, name, trace)
  _scale([panel for panel in panels if panel[1] in _STEP_SIZES], trace)
  drawing.align_ylabels()
  lines, labels = grid[0].get_legend_handles_labels()
  if len(lines) <= _MAX_NAMED_CLIENTS:
    drawing.legend(
        lines,
        labels,
        loc='outside right center',
        frameon=False,
        fontsize=9,
        title='client',
    )
  _style.save(drawing, path, title)

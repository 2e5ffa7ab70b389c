# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of tracing one round, and of its picture."""

import csv
import functools

from absl.testing import parameterized
import attrs
import numpy as np
import pytest
import tensorflow_federated as tff

from tests import folder_testing
from tests.tff_adaptive import testing
from tests.tff_adaptive.analysis import figure_testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import analysis
from tff_adaptive import data
from tff_adaptive import optimizers
from tff_adaptive import simulation

_IDS = ['ann', 'bob', 'none', 'cid', 'bob']
_SIZES = {'ann': 7, 'bob': 12, 'none': 0, 'cid': 4}
_NUM_STEPS = [4, 6, 0, 2, 6]


@functools.cache
def _source():
  generator = np.random.default_rng(0)
  return data.PackedClientArrays.from_clients(
      {
          name: {
              'x': generator.normal(size=[size, 5]).astype(np.float32),
              'y': generator.integers(3, size=size, dtype=np.int32),
          }
          for name, size in _SIZES.items()
      }
  )


def _cohort(round_num=0):
  plan = data.BatchPlan(4, num_epochs=2)
  return data.Cohort(_source(), _IDS, round_num, 1, plan)


@functools.cache
def _process(trace_steps=True, kind='delta_sgd'):
  build, optimizer = {
      # One gradient a step is compiled in half the time.
      'delta_sgd': (
          algorithms.build_fed_opt,
          optimizers.build_delta_sgd(previous_gradient='reuse'),
      ),
      'dropout': (algorithms.build_fed_opt, optimizers.build_delta_sgd()),
      'scaffold': (
          algorithms.build_fed_opt,
          optimizers.build_scaffold_sgd(4, 0.5),
      ),
  }[kind]
  model = testing.functional_model(dropout=0.5 if kind == 'dropout' else 0.0)
  return build(model, optimizer, trace_steps=trace_steps)


@functools.cache
def _trace(kind='delta_sgd', number=None):
  process = _process(True, kind)
  store = simulation.ClientStateStore() if kind == 'scaffold' else None
  with compiled_testing.installed(number):
    return analysis.trace_round(
        process, process.initialize(), _cohort(), client_store=store
    )


def _cross_entropy(weights, batch):
  """Returns the loss of a linear classifier, by NumPy."""
  kernel, bias = weights
  logits = batch['x'] @ kernel + bias
  log_sums = np.log(np.sum(np.exp(logits), axis=1))
  return np.mean(log_sums - logits[np.arange(len(logits)), batch['y']])


class RoundTraceTest(parameterized.TestCase):

  @parameterized.parameters(1, 4)
  @pytest.mark.slow
  def test_weights_are_those_of_the_round_bit_for_bit(self, number):
    trace, process = _trace('dropout', number), _process(False, 'dropout')
    with compiled_testing.installed(number):
      output = process.next(process.initialize(), _cohort())
    for traced, array in zip(
        testing.trainable(trace.state), testing.trainable(output.state)
    ):
      np.testing.assert_array_equal(traced, array)
    self.assertEqual(
        list(trace.metrics['client_work']), list(output.metrics['client_work'])
    )

  @pytest.mark.slow
  def test_a_row_for_every_step_in_the_order_of_the_cohort(self):
    trace = _trace()
    np.testing.assert_array_equal(trace.client_id, np.repeat(_IDS, _NUM_STEPS))
    np.testing.assert_array_equal(
        trace.step, np.concatenate([np.arange(n) for n in _NUM_STEPS])
    )
    self.assertEqual(
        [(name, rows.start, rows.stop) for name, rows in trace.clients()],
        [('ann', 0, 4), ('bob', 4, 10), ('cid', 10, 12), ('bob', 12, 18)],
    )
    self.assertEqual(
        list(trace.values),
        [
            'loss',
            'step_size',
            'theta',
            'smoothness_limit',
            'growth_limit',
            'relative_step_size',
        ],
    )
    self.assertEqual(trace.round_num, 0)
    self.assertEmpty(trace.client_states)

  def test_values_are_those_that_the_round_sums_up(self):
    trace = _trace()
    clients = trace.metrics['client_work']['clients']
    for name in ('step_size', 'theta', 'smoothness_limit', 'growth_limit'):
      values = trace.values[name]
      np.testing.assert_allclose(clients[f'{name}_mean'], values.mean(), 1e-5)
      self.assertEqual(clients[f'{name}_min'], values.min())
      self.assertEqual(clients[f'{name}_max'], values.max())
    np.testing.assert_array_equal(
        trace.values['step_size'],
        np.minimum(
            trace.values['smoothness_limit'], trace.values['growth_limit']
        ),
    )

  def test_losses_are_those_of_the_clients_own_batches(self):
    process, trace = _process(), _trace()
    with compiled_testing.installed():
      weights = testing.trainable(process.initialize())
    first = trace.step == 0
    batches = [_cohort().batches(place)[0] for place in (0, 1, 3, 4)]
    expected = [_cross_entropy(weights, batch) for batch in batches]
    self.assertLen(set(np.round(expected, 4)), 3)
    np.testing.assert_allclose(trace.values['loss'][first], expected, 1e-5)

  @pytest.mark.slow
  def test_states_of_clients_come_and_go_with_the_round(self):
    process, store = _process(True, 'scaffold'), simulation.ClientStateStore()
    first = _trace('scaffold')
    self.assertCountEqual(first.client_states, ['ann', 'bob', 'cid'])
    for name, state in first.client_states.items():
      self.assertEqual(list(state), ['optimizer'], name)
    with compiled_testing.installed():
      simulation.run_training(
          process,
          cohort_fn=lambda _: _cohort(),
          total_rounds=1,
          client_store=store,
      )
      kept = store.get('ann')
      second = analysis.trace_round(
          process, first.state, _cohort(1), client_store=store
      )
    np.testing.assert_equal(
        tff.structure.flatten(tff.structure.from_container(kept, True)),
        tff.structure.flatten(
            tff.structure.from_container(first.client_states['ann'], True)
        ),
    )
    # The kept state changes the round, and stays.
    self.assertIs(store.get('ann'), kept)
    self.assertTrue(
        np.any(
            second.client_states['ann']['optimizer']['control'][0]
            != kept['optimizer']['control'][0]
        )
    )

  def test_csv_holds_the_table(self):
    trace = _trace()
    folder = folder_testing.new(self)
    path = folder / 'deep' / 'trace.csv'
    trace.to_csv(path)
    with open(path, encoding='utf-8', newline='') as file:
      rows = list(csv.DictReader(file))
    self.assertEqual(list(rows[0]), ['client_id', 'step', *trace.values])
    self.assertEqual([row['client_id'] for row in rows], list(trace.client_id))
    self.assertEqual([int(row['step']) for row in rows], list(trace.step))
    for name, values in trace.values.items():
      read = np.asarray([row[name] for row in rows], np.float32)
      np.testing.assert_array_equal(read, values)

  @pytest.mark.usefixtures('native_runtime')
  def test_native_runtime_gives_the_same(self):
    process = _process()
    found = analysis.trace_round(process, process.initialize(), _cohort())
    expected = _trace()
    self.assertEqual(found.client_id.tolist(), expected.client_id.tolist())
    np.testing.assert_array_equal(found.step, expected.step)
    for name, values in expected.values.items():
      np.testing.assert_allclose(found.values[name], values, rtol=1e-4)


class ErrorsTest(parameterized.TestCase):

  def test_process_without_steps(self):
    with self.assertRaisesRegex(ValueError, 'trace_steps=True'):
      analysis.trace_round(compiled_testing.process(), None, _cohort())

  def test_clients_without_ids(self):
    with self.assertRaisesRegex(TypeError, '`cohort` must be .* found list'):
      analysis.trace_round(_process(), None, testing.clients([4]))

  @pytest.mark.slow
  def test_states_of_clients_without_a_store(self):
    with compiled_testing.installed():
      with self.assertRaisesRegex(ValueError, 'there is no `client_store`'):
        analysis.trace_round(_process(True, 'scaffold'), None, _cohort())


_DELTA_SGD = ('loss', 'step_size', 'theta', 'smoothness_limit', 'growth_limit')


def _made_up_trace(names, num_clients=3, num_steps=5, largest=0.4):
  num_rows = num_clients * num_steps
  values = np.linspace(0.1, largest, num_rows, dtype=np.float32)
  return analysis.RoundTrace(
      round_num=3,
      client_id=np.repeat(
          [f'client_{i}' for i in range(num_clients)], num_steps
      ),
      step=np.tile(np.arange(num_steps), num_clients),
      values={name: values for name in names},
      state=None,
      metrics=None,
  )


class TracePlotTest(figure_testing.FigureTestCase):

  def _draw(self, trace, title='delta_sgd, round 4'):
    return self.draw(analysis.plot_trace, trace, self.png, title)

  @parameterized.named_parameters(
      (
          'delta_sgd',
          _DELTA_SGD,
          ['step size', 'smoothness\nlimit', 'growth\nlimit'],
      ),
      ('sgd', ('loss', 'step_size'), ['step size', 'batch loss']),
      ('adagrad', ('loss',), ['batch loss']),
  )
  def test_panels(self, names, labels):
    drawing = self._draw(_made_up_trace(names))
    self.assertEqual([axes.get_ylabel() for axes in drawing.axes], labels)
    self.assertEqual(drawing.axes[-1].get_xlabel(), 'local step')
    self.assertEqual(drawing.get_suptitle(), 'delta_sgd, round 4')

  def test_a_line_a_client(self):
    trace = _made_up_trace(_DELTA_SGD)
    drawing = self._draw(trace)
    for axes in drawing.axes:
      lines = axes.get_lines()
      self.assertLen(lines, 3)
      for line, (_, rows) in zip(lines, trace.clients()):
        np.testing.assert_array_equal(line.get_xdata(), trace.step[rows])
        np.testing.assert_array_equal(
            line.get_ydata(), trace.values['step_size'][rows]
        )
    (legend,) = drawing.legends
    self.assertEqual(
        [text.get_text() for text in legend.get_texts()],
        ['client_0', 'client_1', 'client_2'],
    )

  @parameterized.parameters((0.4, 'linear'), (40.0, 'log'))
  def test_step_sizes_and_limits_share_an_axis(self, largest, scale):
    drawing = self._draw(_made_up_trace(_DELTA_SGD, largest=largest))
    self.assertEqual([axes.get_yscale() for axes in drawing.axes], [scale] * 3)
    self.assertLen({axes.get_ylim() for axes in drawing.axes}, 1)

  def test_the_axis_of_a_constant_step_size_fits_it(self):
    trace = _made_up_trace(('loss', 'step_size'))
    trace.values['step_size'][:] = 0.001
    axes = self._draw(trace).axes[0]
    self.assertSequenceAlmostEqual(axes.get_ylim(), (0.0005, 0.0015))

  def test_a_client_with_one_step_beside_long_ones_has_a_marker(self):
    trace = _made_up_trace(('loss', 'step_size'), num_steps=40)
    is_kept = (trace.client_id != 'client_0') | (trace.step == 0)
    trace = attrs.evolve(
        trace,
        client_id=trace.client_id[is_kept],
        step=trace.step[is_kept],
        values={k: v[is_kept] for k, v in trace.values.items()},
    )
    lines = self._draw(trace).axes[0].get_lines()
    self.assertEqual(
        [line.get_marker() for line in lines], ['o', 'None', 'None']
    )

  def test_many_clients_have_no_names(self):
    drawing = self._draw(_made_up_trace(('loss', 'step_size'), num_clients=100))
    self.assertEmpty(drawing.legends)
    self.assertLen(drawing.axes[0].get_lines(), 100)

  def test_diverged_clients_and_single_steps_are_plotted(self):
    trace = _made_up_trace(('loss', 'step_size'), num_steps=1)
    for name in trace.values:
      trace.values[name][:] = np.nan
    self.assertLen(self._draw(trace, title='').axes, 2)

  def test_no_step_is_an_error(self):
    with self.assertRaisesRegex(ValueError, 'The trace has no step'):
      analysis.plot_trace(_made_up_trace(('loss',), num_clients=0), 'trace.png')

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the benchmark binary; none of how long anything takes."""

import json
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import attrs
import numpy as np
import pytest
import tensorflow_federated as tff

from experiments import registry
from experiments.benchmark import comparisons
from experiments.benchmark import measurement
from experiments.benchmark import models
from experiments.benchmark import reports
from experiments.benchmark import workloads
from tests import folder_testing
from tests import program_testing

_PEER = {
    'peer': 'loop',
    'variant': 't1',
    'workload': 'tiny_many',
    'sec_per_round_median': 0.5,
    'min': 0.4,
    'max': 0.6,
    'first_round': 0.7,
    'peak_rss_mb': 321.0,
}
_LINE = {
    **_PEER,
    'runtime': 'native',
    'variant': 'logistic functional',
    'clients_per_round': 100,
    'rounds': 2,
    'sec_per_round_median': 0.25,
}


class BinaryTest(folder_testing.FolderTestCase):

  def _write(self, text):
    path = self.folder / 'peers.jsonl'
    path.write_text(text)
    return path

  @pytest.mark.slow
  def test_writes_a_line_a_runtime_and_shows_peers_beside(self):
    path = self.folder / 'times.jsonl'
    path.write_text('{"kept": true}\n')
    other = {**_PEER, 'peer': 'elsewhere', 'workload': 'emnist_cnn'}
    peers = self._write(
        f'a warning\n{json.dumps(_PEER)}\n{json.dumps(other)}\n'
    )
    result = program_testing.run(
        'experiments.benchmark',
        '--workload=tiny_many',
        '--runtimes=compiled,native',
        '--rounds=1',
        '--inter_op_threads=3',
        f'--json={path}',
        f'--peers={peers}',
    )
    self.assertEqual(result.returncode, 0, result.stderr)
    kept, *lines = map(json.loads, path.read_text().splitlines())
    self.assertEqual(kept, {'kept': True})
    self.assertEqual(
        [line['runtime'] for line in lines], ['compiled', 'native']
    )
    for line in lines:
      self.assertContainsSubset(_LINE, line)
      self.assertEqual(line['peer'], 'tff_adaptive')
      self.assertEqual(line['workload'], 'tiny_many')
      self.assertEqual(line['rounds'], 1)
      self.assertEqual(line['min'], line['max'])
      self.assertGreater(line['first_round'], 0)
      self.assertGreater(line['peak_rss_mb'], 0)
    self.assertEqual(lines[0]['threads'], {'inter_op': 3, 'intra_op': 1})
    self.assertIsNotNone(lines[0]['num_parallel_clients'])
    # The native runtime works elsewhere, where the flags do not reach.
    self.assertEqual(lines[1]['threads'], {'inter_op': 0, 'intra_op': 0})
    self.assertIsNone(lines[1]['num_parallel_clients'])
    # Both have done the same.
    np.testing.assert_allclose(lines[0]['delta'], lines[1]['delta'], rtol=1e-4)
    _, _, *rows = result.stdout.splitlines()
    names = [row.split()[0] for row in rows if row]
    self.assertEqual(names, ['compiled', 'native', 'loop'])

  @parameterized.named_parameters(
      ('key', json.dumps({**_PEER, 'min': 1.0}).replace('"max"', '"m"'), 'max'),
      ('json', '{"peer": ', 'not JSON'),
  )
  def test_broken_peers_are_told_with_their_place(self, text, sentence):
    with self.assertRaisesRegex(ValueError, f'peers.jsonl:1 .*{sentence}'):
      reports.read([self._write(text)])


class AlgorithmsTest(parameterized.TestCase):

  @pytest.mark.slow
  def test_ratios_and_what_explains_them(self):
    workload = attrs.evolve(
        workloads.WORKLOADS['tiny_many'],
        name='tiny',
        num_clients=4,
        examples_per_client=(60, 60),
        kind=workloads.COMPARE_ALGORITHMS,
    )
    names = ('fedavg', 'delta_sgd', 'armijo', 'scaffold')
    lines = comparisons.measure_algorithms(
        workload,
        2,
        [workloads.ALGORITHMS[name] for name in names],
        measurement.Settings(1, num_parallel_clients=1),
    )
    self.assertEqual(tuple(line['variant'] for line in lines), names)
    by_name = dict(zip(names, lines))
    # Three steps: two gradients from the second on.
    self.assertAlmostEqual(by_name['delta_sgd']['gradients_per_step'], 5 / 3)
    for name in ('fedavg', 'armijo', 'scaffold'):
      self.assertEqual(by_name[name]['gradients_per_step'], 1)
    self.assertGreaterEqual(by_name['armijo']['trials_per_step'], 1)
    self.assertEqual(by_name['delta_sgd']['trials_per_step'], 0)
    for line in lines:
      self.assertContainsSubset(_LINE, line)
      self.assertEqual(line['workload'], 'tiny')
      self.assertEqual(line['runtime'], 'compiled')
      self.assertEqual(line['rounds'], 1)
      self.assertAlmostEqual(
          line['ratio'],
          line['sec_per_round_median'] / lines[0]['sec_per_round_median'],
          delta=0.05 * line['ratio'],
      )
      self.assertAlmostEqual(
          line['explained_ratio'],
          line['gradients_per_step'] + line['trials_per_step'] / 3,
          places=3,
      )

  def test_what_no_metric_counts_is_part_of_the_cost(self):
    moon = workloads.ALGORITHMS['moon']
    self.assertAlmostEqual(moon.explained_cost(1.0, 0.0), 2 + 2 / 3)
    stops = workloads.ALGORITHMS['fedexprox_stops']
    self.assertAlmostEqual(stops.explained_cost(1.0, 0.0), 1 + 1 / 3)

  @pytest.mark.slow
  def test_every_algorithm_can_be_compiled(self):
    workload = workloads.WORKLOADS['algorithms']
    spec = models.build_clients(
        attrs.evolve(workload, num_clients=1), seed=0
    ).element_spec
    for algorithm in workloads.ALGORITHMS.values():
      process = models.build_algorithm(algorithm, workload, spec)
      # Raises if the rounds have more than one exchange.
      form = tff.backends.mapreduce.get_map_reduce_form_for_computation(
          process.next
      )
      self.assertIsInstance(form, tff.backends.mapreduce.MapReduceForm)

  def test_rows_are_in_the_registry(self):
    for algorithm in workloads.ALGORITHMS.values():
      self.assertIn(algorithm.algorithm, registry.ROWS[registry.ALGORITHM])
      for kind, name in algorithm.rows.items():
        self.assertIn(name, registry.ROWS[kind])
    # Every one of the registry that has cohorts is measured.
    rows = registry.ROWS[registry.ALGORITHM].values()
    self.assertContainsSubset(
        [row.name for row in rows if not row.pools_clients],
        ['fed_opt', *workloads.ALGORITHMS],
    )


class TableTest(absltest.TestCase):

  def test_algorithms_have_columns_of_what_they_evaluate(self):
    costs = {
        'explained_ratio': 1.8,
        'gradients_per_step': 1.8,
        'trials_per_step': 0.0,
    }
    table = reports.format_table([{**_LINE, **costs}])
    _, header, row = table.splitlines()
    self.assertEqual(header.split()[-3:], ['explained', 'gradients', 'trials'])
    self.assertEqual(row.split()[-3:], ['1.8', '1.8', '0'])

  def test_ratios_are_to_the_first_runtime(self):
    second = {**_LINE, 'runtime': 'compiled', 'sec_per_round_median': 0.01}
    rows = reports.format_table([_LINE, second], [_PEER]).splitlines()
    self.assertStartsWith(rows[0], 'tiny_many: 100 clients per round')
    self.assertEqual(
        [row.split() for row in rows[1:]],
        [
            'median min max first ratio s/client RSS MB'.split(),
            'native logistic functional 0.25 0.4 0.6 0.7 1 0.0025 321'.split(),
            'compiled logistic functional 0.01 0.4 0.6 0.7 0.04 0.0001 '
            '321'.split(),
            'loop t1 0.5 0.4 0.6 0.7 2 0.005 321'.split(),
        ],
    )
    self.assertLen(set(map(len, rows[1:])), 1)

  def test_a_peer_with_other_clients_is_left_out(self):
    ours = {**_LINE, 'peer': 'tff_adaptive'}
    table = reports.format_table([_LINE], [{**ours, 'clients_per_round': 10}])
    self.assertNotIn('tff_adaptive', table)
    self.assertIn(
        'tff_adaptive native logistic functional',
        reports.format_table([_LINE], [ours]),
    )


class WorkloadsTest(parameterized.TestCase):

  @parameterized.product(
      sizes=(
          ('logistic', 7850),
          ('cnn', 1_206_590),
          ('lstm', 820_522),
          ('tags', 5_000_500),
          ('word_tags', 5_000_500),
      ),
      version=(models.KERAS_2, models.KERAS_3),
  )
  def test_models_have_the_known_numbers_of_weights(self, sizes, version):
    name, num_weights = sizes
    model = models.MODELS[name].build(version)
    self.assertEqual(model.count_params(), num_weights)
    examples = models.MODELS[name].make_examples(np.random.default_rng(0), 3)
    logits = model(examples['x'])
    loss = models.MODELS[name].build_loss(version)
    self.assertGreater(float(loss(examples['y'], logits)), 0)
    self.assertEqual(examples['y'].shape[0], 3)

  def test_bags_are_frequencies_and_several_tags(self):
    examples = models.MODELS['tags'].make_examples(np.random.default_rng(0), 5)
    np.testing.assert_allclose(examples['x'].sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal((examples['x'] > 0).sum(axis=1), 20)
    np.testing.assert_array_equal(examples['y'].sum(axis=1), 2)

  def test_words_are_those_of_the_bags(self):
    bags, words = (
        models.MODELS[name].make_examples(np.random.default_rng(0), 5)
        for name in ('tags', 'word_tags')
    )
    for bag, numbers in zip(bags['x'], words['x']):
      self.assertCountEqual(np.flatnonzero(bag), numbers)
    np.testing.assert_array_equal(bags['y'], words['y'])

  def test_labels_of_sequences_are_the_tokens_after(self):
    examples = models.MODELS['lstm'].make_examples(np.random.default_rng(0), 5)
    np.testing.assert_array_equal(examples['x'][:, 1:], examples['y'][:, :-1])
    self.assertGreater(examples['x'].min(), 0)

  def test_names_of_all_rows_are_known(self):
    for workload in workloads.WORKLOADS.values():
      self.assertIn(workload.model, models.MODELS)
      self.assertIn(workload.client_optimizer, models.CLIENT_OPTIMIZERS)
      self.assertIn(workload.server_optimizer, models.SERVER_OPTIMIZERS)
      for clients_per_round in workload.clients_per_round:
        self.assertLessEqual(clients_per_round, workload.num_clients)
    self.assertContainsSubset(
        {runtime.row for runtime in workloads.RUNTIMES.values()},
        registry.RUNTIMES,
    )

  def test_clients_of_a_scaling_workload_share_examples(self):
    clients = models.build_clients(workloads.WORKLOADS['scaling'], seed=0)
    self.assertLen(clients.client_ids, 10_000)
    self.assertLen(clients.values['x'], 6000)
    self.assertEqual(clients.total_examples, 200_000)

  def test_ragged_clients_differ_in_size(self):
    clients = models.build_clients(workloads.WORKLOADS['ragged'], seed=0)
    sizes = [clients.num_examples(name) for name in clients.client_ids]
    self.assertEqual((min(sizes), max(sizes)), (1, 400))
    self.assertGreater(len(set(sizes)), 90)


class TaskMeasurementTest(absltest.TestCase):

  def _measure(self, name):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    return comparisons.measure_task(
        registry.ROWS[registry.TASK][name],
        [workloads.RUNTIMES['compiled']],
        measurement.Settings(1, num_parallel_clients=1),
        data_dir=None,
        synthetic_dir=folder.name,
    )

  @pytest.mark.slow
  def test_measures_a_task_as_its_protocol_says(self):
    (line,) = self._measure('digits')
    self.assertEqual(line['workload'], 'tasks/digits')
    self.assertEqual(line['variant'], 'real data')
    self.assertEqual(line['clients_per_round'], 10)
    self.assertEqual(line['rounds'], 1)
    self.assertBetween(line['wait_share'], 0, 1)
    self.assertIn('waiting', reports.format_table([line], []))

  @pytest.mark.slow
  def test_made_up_data_are_called_so(self):
    (line,) = self._measure('mnist')
    self.assertEqual(line['variant'], 'synthetic data')

  def test_capped_tasks_are_tasks(self):
    for name in comparisons.CAPS:
      self.assertIn(name, registry.ROWS[registry.TASK])

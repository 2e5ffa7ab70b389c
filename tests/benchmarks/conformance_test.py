# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the table of formulas, without other frameworks but TFF."""

from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest

from benchmarks.peers import client_formulas
from benchmarks.peers import conformance

_CLIENT_FORMULAS = client_formulas.FORMULAS


def _first_equal(iterates, method):
  for formula in conformance.FORMULAS[method]:
    if conformance.describe(iterates, formula, method) == 'equal':
      return formula.name
  return None


class ConformanceTest(parameterized.TestCase):

  def test_step_by_hand(self):
    # m = 0.1 * 0.3, v = 0.99 * 1e-6 + 0.01 * 0.09.
    step = 0.05 * 0.03 / (np.sqrt(0.99e-6 + 9e-4) + 1e-3)
    x = conformance.iterate(conformance.PAPER, 'FedAdam')
    self.assertEqual(x.shape, (6, 4))
    np.testing.assert_allclose(x[0, 0], step, rtol=1e-12)
    np.testing.assert_array_equal(x[:, 3], 0.0)

  def test_formulas_are_told_apart(self):
    for method, formulas in conformance.FORMULAS.items():
      for found in formulas:
        iterates = conformance.iterate(found, method)
        for formula in formulas:
          shown = conformance.describe(iterates, formula, method)
          self.assertEqual(shown == 'equal', found is formula, (method, shown))

  def test_nan_is_not_equal(self):
    found = conformance.iterate(conformance.PAPER, 'FedYogi')
    found[2:] = np.nan
    self.assertEqual(
        conformance.describe(found, conformance.PAPER, 'FedYogi'),
        'from round 3 by nan',
    )

  def test_the_library_has_the_papers_formula_and_tff_another(self):
    rows = list(conformance.run_here())
    self.assertLen(rows, 8)
    for row in rows:
      shown = conformance.describe(row.iterates, conformance.PAPER, row.method)
      self.assertEqual(shown == 'equal', row.framework == 'tff_adaptive')
    section = conformance.format_section(
        [*rows, *conformance.read_others(rows)], conformance.HPARAMS
    )
    self.assertStartsWith(section, '| FedAdam | Reddi | Reddi, v from 0 |')
    self.assertRegex(section, r'\n\| TFF 0\.\d+\.\d+ \| from round 1 by 0.2 \|')
    self.assertIn('| read | `utils/optimizers/yogi.py` |', section)

  def test_a_framework_is_not_read_where_it_was_run(self):
    run = conformance.Row('fluke 1.2', 'FedYogi', [], 'run', 'call')
    read = list(conformance.read_others([run]))
    methods = [row.method for row in read if row.framework == 'fluke']
    self.assertEqual(methods, ['FedAdam', 'FedAdagrad', 'FedProx', 'SCAFFOLD'])

  def test_changes_may_be_scaled(self):
    # m = 0.1 * 0.015, v = 0.01 * 0.015^2, where 0.015 = 0.05 * 0.3.
    (scaled,) = [
        formula
        for formula in conformance.FORMULAS['FedAdam']
        if formula.scales_changes
    ]
    x = conformance.iterate(scaled, 'FedAdam')
    np.testing.assert_allclose(x[0, 0], 0.05 * 0.0015 / (0.0015 + 1e-3))

  def test_client_formulas_by_hand(self):
    client = {'X': [[2.0]], 'y': [4.0]}
    problem = {'x0': [1.0], 'clients': [client, {'X': [[0.0]], 'y': [0.0]}]}
    names = ('COHORTS', 'NUM_STEPS', 'LEARNING_RATE')
    for name, value in zip(names, (((0,), (1,)), 2, 0.1)):
      self.enter_context(mock.patch.object(client_formulas, name, value))
    self.enter_context(
        mock.patch.object(
            client_formulas, 'create_problem', return_value=problem
        )
    )
    prox, scaffold = (formulas[0] for formulas in _CLIENT_FORMULAS.values())
    # The first step goes from 1 to 1 + 0.1 * 4 = 1.4, and the second adds
    # 0.1 * (4 * (2 - 1.4) - 0.5 * 0.4). The second client has no gradient.
    x = client_formulas.iterate(prox)
    np.testing.assert_allclose(x, [[1.62], [1.62]])
    # Without mu it reaches 1.64. c_0 = (1 - 1.64) / 0.2 and c = c_0 / 2, by
    # which the second client moves twice.
    x = client_formulas.iterate(scaffold)
    np.testing.assert_allclose(x, [[1.64], [1.64 + 0.2 * 1.6]])

  @pytest.mark.slow
  def test_papers_fedprox_and_scaffold_are_those_of_the_library(self):
    rows = list(conformance.run_clients_here())
    found = [
        (row.framework, _first_equal(row.iterates, row.method)) for row in rows
    ]
    self.assertEqual(
        [name for name, _ in found[:2] + found[3:]], ['tff_adaptive'] * 4
    )
    self.assertEqual(
        [name for _, name in found],
        [
            'Li, mean by examples',
            'Li',
            'opposite sign, mean by examples',
            'II',
            'II, mean by examples',
        ],
    )

  def test_a_peer_without_a_rule_is_not_asked_for_it(self):
    rows = conformance.run_peers(None, ['fedlab'], script='server_rules')
    self.assertEmpty(list(rows))

  def test_a_peer_replies_with_its_version(self):
    iterates = conformance.iterate(conformance.PAPER, 'FedAdam').tolist()
    reply = (
        f'{{"version": "1.2", "methods": {{"FedAdam": [["f", {iterates}]]}}}}'
    )
    with (
        mock.patch.object(conformance.peers, 'make_environment') as make,
        mock.patch.object(conformance.subprocess, 'run') as run,
    ):
      run.return_value.stdout = f'noise\n{reply}\n'
      (row,) = conformance.run_peers(None, ['optax'], 'python3.12')
    self.assertEqual(make.call_args.args[2], 'python3.12')
    self.assertEqual(run.call_args.args[0][-1], 'optax')
    self.assertEqual(row.framework, 'optax 1.2')
    self.assertEqual(
        conformance.describe(row.iterates, conformance.PAPER, 'FedAdam'),
        'equal',
    )

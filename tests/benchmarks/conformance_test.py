# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the table of formulas, without other frameworks but TFF."""

import itertools
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest

from benchmarks.peers import client_formulas
from benchmarks.peers import conformance
from benchmarks.peers import here
from benchmarks.peers import server_formulas

_PAPER = server_formulas.PAPER


def _describe(formulas, iterates, formula, method):
  expected = formulas.iterate(formula, method)
  return conformance.describe(iterates, expected, formulas.TOLERANCE)


def _first_equal(iterates, method):
  for formula in client_formulas.FORMULAS[method]:
    if _describe(client_formulas, iterates, formula, method) == 'equal':
      return formula.name
  return None


class ConformanceTest(parameterized.TestCase):

  def test_step_by_hand(self):
    # m = 0.1 * 0.3, v = 0.99 * 1e-6 + 0.01 * 0.09.
    step = 0.05 * 0.03 / (np.sqrt(0.99e-6 + 9e-4) + 1e-3)
    x = server_formulas.iterate(_PAPER, 'FedAdam')
    self.assertEqual(x.shape, (6, 4))
    np.testing.assert_allclose(x[0, 0], step, rtol=1e-12)
    np.testing.assert_array_equal(x[:, 3], 0.0)

  def test_formulas_are_told_apart(self):
    for module in (server_formulas, client_formulas):
      for method, formulas in module.FORMULAS.items():
        for found, formula in itertools.product(formulas, repeat=2):
          iterates = module.iterate(found, method)
          shown = _describe(module, iterates, formula, method)
          self.assertEqual(shown == 'equal', found is formula, (method, shown))

  def test_nan_is_not_equal(self):
    found = server_formulas.iterate(_PAPER, 'FedYogi')
    found[2:] = np.nan
    self.assertEqual(
        _describe(server_formulas, found, _PAPER, 'FedYogi'),
        'from round 3 by nan',
    )

  def test_the_library_has_the_papers_formula_and_tff_another(self):
    found = list(here.run_server_rules())
    self.assertLen(found, 8)
    for framework, method, iterates, _ in found:
      shown = _describe(server_formulas, iterates, _PAPER, method)
      self.assertEqual(shown == 'equal', framework == 'tff_adaptive')
    rows = [conformance.Row(*row[:3], 'run', row[3]) for row in found]
    rows += conformance.read_others(server_formulas, rows)
    section = conformance.format_section(server_formulas, rows)
    self.assertStartsWith(section, '| FedAdam | Reddi | Reddi, v from 0 |')
    self.assertRegex(section, r'\n\| TFF 0\.\d+\.\d+ \| from round 1 by 0.2 \|')
    self.assertIn('| read | `utils/optimizers/yogi.py` |', section)

  def test_a_framework_is_not_read_where_it_was_run(self):
    run = conformance.Row('fluke 1.2', 'FedYogi', [], 'run', 'call')
    for formulas, expected in (
        (server_formulas, ['FedAdam', 'FedAdagrad']),
        (client_formulas, ['FedProx', 'SCAFFOLD']),
    ):
      read = conformance.read_others(formulas, [run])
      methods = [row.method for row in read if row.framework == 'fluke']
      self.assertEqual(methods, expected)

  def test_changes_may_be_scaled(self):
    # m = 0.1 * 0.015, v = 0.01 * 0.015^2, where 0.015 = 0.05 * 0.3.
    (scaled,) = [
        formula
        for formula in server_formulas.FORMULAS['FedAdam']
        if formula.scales_changes
    ]
    x = server_formulas.iterate(scaled, 'FedAdam')
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
    prox, scaffold = (
        client_formulas.iterate(formulas[0], method)
        for method, formulas in client_formulas.FORMULAS.items()
    )
    # The first step goes from 1 to 1 + 0.1 * 4 = 1.4, and the second adds
    # 0.1 * (4 * (2 - 1.4) - 0.5 * 0.4). The second client has no gradient.
    np.testing.assert_allclose(prox, [[1.62], [1.62]])
    # Without mu it reaches 1.64. c_0 = (1 - 1.64) / 0.2 and c = c_0 / 2, by
    # which the second client moves twice.
    np.testing.assert_allclose(scaffold, [[1.64], [1.64 + 0.2 * 1.6]])

  @pytest.mark.slow
  def test_papers_fedprox_and_scaffold_are_those_of_the_library(self):
    found = [
        (framework, _first_equal(iterates, method))
        for framework, method, iterates, _ in here.run_client_rules()
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
    rows = conformance.run_peers('server_rules', None, ['fedlab'])
    self.assertEmpty(list(rows))

  def test_a_peer_replies_with_its_version(self):
    iterates = server_formulas.iterate(_PAPER, 'FedAdam').tolist()
    reply = (
        f'{{"version": "1.2", "methods": {{"FedAdam": [["f", {iterates}]]}}}}'
    )
    with (
        mock.patch.object(conformance.peers, 'make_environment') as make,
        mock.patch.object(conformance.subprocess, 'run') as run,
    ):
      run.return_value.stdout = f'noise\n{reply}\n'
      (row,) = conformance.run_peers(
          'server_rules', None, ['optax'], 'python3.12'
      )
    self.assertEqual(make.call_args.args[2], 'python3.12')
    self.assertEqual(run.call_args.args[0][-1], 'optax')
    self.assertEqual(row.framework, 'optax 1.2')
    self.assertEqual(
        _describe(server_formulas, row.iterates, _PAPER, 'FedAdam'),
        'equal',
    )

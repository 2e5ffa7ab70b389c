# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the matrix of implementations and formulas, and of its page."""

import re

from absl.testing import parameterized
import tensorflow as tf

from experiments import conformance
from experiments.conformance import dialects
from experiments.conformance import matrix
from tests.experiments.conformance import golden_testing

_PAGE = (golden_testing.ROOT / 'docs/conformance.md').read_text(
    encoding='utf-8'
)

# Whose rule is which formula.
_EQUAL = {
    'FedAdam': {
        'tff_adaptive': 'Reddi',
        'TFF 0.87': 'corrected rate, v from 0',
        'Keras 2': 'corrected rate, v from 0',
        'google-research/federated': 'corrected rate, v from 0',
        'PyTorch': 'Kingma, v from 0',
        'pfl-research, PyTorch': 'Kingma, v from 0',
        'pfl-research, TensorFlow': 'corrected rate, v from 0',
        'optax': 'Kingma, v from 0',
        'FedJAX': 'Kingma, v from 0',
        'Flower, before #4362': 'Reddi, v from 0',
        'Flower, since #4362': 'corrected rate of the next round, v from 0',
    },
    'FedYogi': {
        'tff_adaptive': 'Reddi',
        'TFF 0.87': 'corrected rate',
        'google-research/federated': 'corrected rate',
        'optax': 'Kingma, m from v',
        'Flower': 'Reddi, v from 0',
    },
    'FedAdagrad': {
        'tff_adaptive': 'Reddi',
        'TFF 0.87': 'epsilon in the root',
        'Keras 2': 'epsilon in the root',
        'google-research/federated': 'Reddi',
        'PyTorch': 'Reddi',
        'optax': 'epsilon in the root',
        'FedJAX': 'epsilon in the root',
        'Flower': 'Reddi, v from 0',
    },
}


class MatrixTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(*_EQUAL)
  def test_each_implementation_equals_one_formula(self, method):
    found = {
        implementation.name: [
            dialect.name
            for dialect in dialects.DIALECTS[method]
            if str(matrix.compare(implementation, dialect, method)) == 'equal'
        ]
        for implementation in matrix.IMPLEMENTATIONS[method]
    }
    self.assertEqual(found, {k: [v] for k, v in _EQUAL[method].items()})

  def test_page_has_the_tables(self):
    self.assertIn(matrix.to_markdown(), _PAGE)

  def test_adapter_of_the_page_works(self):
    code = re.search(r'^```python\n(.*?)^```$', _PAGE, re.M | re.S)
    names = {}
    exec(code[1], names)  # pylint: disable=exec-used
    adapter = names['MyFramework']()
    run, problems = golden_testing.create_tiny_run()
    self.assertEqual(
        str(conformance.check(adapter, run, problems)),
        'tiny quadratic 0 2e-05 ok',
    )
    run, problems = golden_testing.create_tiny_run(server={'name': 'fedadam'})
    self.assertTrue(conformance.check(adapter, run, problems).skipped)

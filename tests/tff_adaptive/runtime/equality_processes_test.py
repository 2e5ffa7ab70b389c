# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that learning processes give the same on compiled and native runtime.

TFF's and those of this library, on models of both kinds.
"""

import collections
import functools
from typing import Any

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing
from tff_adaptive import algorithms
from tff_adaptive import client_works
from tff_adaptive import data
from tff_adaptive import optimizers
from tff_adaptive.optimizers import schedules

_UNIFORM = tff.learning.ClientWeighting.UNIFORM
_ITERATOR = tff.learning.LoopImplementation.DATASET_ITERATOR
_adam = tff.learning.optimizers.build_adam
_sgdm = tff.learning.optimizers.build_sgdm
_learning = tff.learning.algorithms


def _halving(round_num: Any) -> tf.Tensor:
  return 0.1 * 0.5 ** tf.cast(round_num, tf.float32)


# Builders of processes from a model.
_PROCESSES = {
    'weighted_fed_avg': lambda model: _learning.build_weighted_fed_avg(
        model, _sgdm(0.1), _sgdm(1.0, 0.9)
    ),
    'unweighted_fed_avg': lambda model: _learning.build_unweighted_fed_avg(
        model, _adam(0.1), _adam(0.1)
    ),
    'fed_avg_by_iterator': lambda model: _learning.build_weighted_fed_avg(
        model, _sgdm(0.1), loop_implementation=_ITERATOR
    ),
    'fed_avg_with_schedule': lambda model: (
        _learning.build_weighted_fed_avg_with_optimizer_schedule(
            model, _halving, _sgdm
        )
    ),
    'fed_sgd': lambda model: _learning.build_fed_sgd(model, _sgdm(0.5)),
    'fed_sgd_by_iterator': lambda model: _learning.build_fed_sgd(
        model, _sgdm(0.5), loop_implementation=_ITERATOR
    ),
    'weighted_fed_prox': lambda model: _learning.build_weighted_fed_prox(
        model, 0.5, _sgdm(0.1)
    ),
    'unweighted_fed_prox': lambda model: _learning.build_unweighted_fed_prox(
        model, 0.5, _sgdm(0.1)
    ),
    'fed_eval': lambda model: _learning.build_fed_eval(model),
    'weighted_mime_lite': lambda model: _learning.build_weighted_mime_lite(
        model, _sgdm(0.1, 0.9)
    ),
    'unweighted_mime_lite': lambda model: _learning.build_unweighted_mime_lite(
        model, _adam(0.1)
    ),
    'mime_lite_with_schedule': lambda model: (
        _learning.build_mime_lite_with_optimizer_schedule(
            model, _halving, _sgdm(0.1, 0.9)
        )
    ),
    'robust_aggregator': lambda model: _learning.build_weighted_fed_avg(
        model, _sgdm(0.1), model_aggregator=tff.learning.robust_aggregator()
    ),
    'compression_aggregator': lambda model: _learning.build_weighted_fed_avg(
        model,
        _sgdm(0.1),
        model_aggregator=tff.learning.compression_aggregator(),
    ),
    'dp_aggregator_without_noise': lambda model: (
        _learning.build_unweighted_fed_avg(
            model,
            _sgdm(0.1),
            model_aggregator=tff.learning.dp_aggregator(0.0, 4.0),
        )
    ),
    'fed_opt_sgd': lambda model: algorithms.build_fed_opt(
        model, optimizers.build_sgd(0.1)
    ),
    'fed_opt_delta_sgd_recompute': lambda model: algorithms.build_fed_opt(
        model,
        optimizers.build_delta_sgd(),
        optimizers.build_adam(0.1),
        client_weighting=_UNIFORM,
        client_schedule=schedules.build_inverse_sqrt(),
        server_schedule=schedules.build_exp_decay(),
    ),
    'fed_opt_delta_sgd_reuse': lambda model: algorithms.build_fed_opt(
        model,
        optimizers.build_delta_sgd(previous_gradient='reuse'),
        optimizers.build_fedadam(0.1),
    ),
    'fed_opt_by_iterator': lambda model: algorithms.build_fed_opt(
        model, optimizers.build_delta_sgd(), loop_implementation=_ITERATOR
    ),
    'fed_opt_with_all_options': lambda model: algorithms.build_fed_opt(
        model,
        optimizers.build_adam(0.05),
        optimizers.build_fedyogi(0.1),
        model_aggregator=tff.learning.robust_aggregator(),
        loss_term=client_works.build_fedprox(0.3),
        clip_norm=0.5,
        weight_decay=0.1,
    ),
}

# Both kinds of loops and of models.
_SAMPLE = (
    ('weighted_fed_avg', 'functional'),
    ('fed_avg_by_iterator', 'variable'),
)
# Both kinds of models for every second process.
_OTHERS = tuple(
    case
    for i, name in enumerate(_PROCESSES)
    for case in ((name, 'variable'), (name, 'functional'))[: 1 + i % 2]
    if case not in _SAMPLE
)


def _named(cases: Any) -> list[tuple[str, ...]]:
  return [(f'{name}_{kind}', name, kind) for name, kind in cases]


@functools.cache
def _model(kind: str) -> Any:
  return testing.either_model(kind)


@functools.cache
def _process(name: str, kind: str) -> tff.learning.templates.LearningProcess:
  return _PROCESSES[name](_model(kind))


@tf.function
def _evaluate(model: Any, dataset: tf.data.Dataset) -> Any:
  """Returns a client's metrics for TFF's evaluation of personalization."""
  for variable in model.local_variables:
    variable.assign(tf.zeros_like(variable))
  for batch in dataset.batch(2):
    model.forward_pass(batch, training=False)
  return model.report_local_unfinalized_metrics()


def _evaluate_only(
    model: Any, train_data: Any, test_data: Any, context: Any = None
) -> Any:
  """Returns a way to personalize that trains nothing."""
  del train_data, context  # Unused.
  return _evaluate(model, test_data)


@pytest.mark.usefixtures('native_runtime')
class ProcessesTest(equality_testing.TestCase):

  def _check(self, name, kind):
    cohorts = [equality_testing.cohort(0), equality_testing.cohort(1)]
    # The compiled runtime gets the same from a cohort and from datasets.
    self.assert_process_equals(
        _process(name, kind),
        [list(cohort) for cohort in cohorts],
        [cohorts[0], list(cohorts[1])],
    )

  @parameterized.named_parameters(*_named(_SAMPLE))
  def test_sample(self, name, kind):
    self._check(name, kind)

  @parameterized.named_parameters(*_named(_OTHERS))
  @pytest.mark.slow
  def test_others(self, name, kind):
    self._check(name, kind)

  @pytest.mark.slow
  def test_weights_that_are_not_trained(self):
    process = _learning.build_weighted_fed_avg(
        testing.variable_model_fn(batch_norm=True), _sgdm(0.1)
    )
    # Batches of one row have no variance, which is what normalization divides
    # by; only what is well conditioned can be compared.
    source = equality_testing.source()
    plan = data.BatchPlan(4, drop_remainder=True)
    cohort = data.Cohort(source, ['nine', 'many'], 0, 1, plan)
    self.assert_process_equals(process, [list(cohort)], [cohort], atol=1e-4)

  @pytest.mark.slow
  def test_personalization_with_batches_that_are_mappings(self):
    evaluate = _learning.build_personalization_eval_computation(
        testing.variable_model_fn(),
        collections.OrderedDict(untrained=lambda: _evaluate_only),
        _evaluate,
    )
    weights = tff.learning.models.ModelWeights.from_model(
        testing.variable_model_fn()()
    )
    cohort = [
        {
            'train_data': testing.dataset(6, seed).unbatch(),
            'test_data': testing.dataset(5, seed + 10).unbatch(),
        }
        for seed in range(3)
    ]
    found = self.assert_equals(evaluate, weights, cohort)
    _, num_examples = found['untrained']['accuracy']
    self.assertEqual(num_examples.tolist(), [5, 5, 5])

  @pytest.mark.slow
  def test_k_means_of_single_examples(self):
    process = _learning.build_fed_kmeans(3, (2,), random_seed=(1, 2))
    points = np.random.default_rng(0).normal(size=[20, 2]).astype(np.float32)
    rounds = [
        [
            tf.data.Dataset.from_tensor_slices(client)
            for client in np.split(points, places)
        ]
        for places in ([1, 4, 4, 13], [7])
    ]
    states = []
    stack = tff.framework.get_context_stack()
    for context in (stack.current, equality_testing.context()):
      with stack.install(context):
        states.append([process.initialize()])
        for clients in rounds:
          output = process.next(states[-1][-1], clients)
          states[-1].append(output.state)
        states[-1].append(output.metrics)
    self.assert_same(*states, atol=1e-5)

  @pytest.mark.slow
  def test_double_precision_and_pairs(self):
    process = _learning.build_unweighted_fed_avg(
        testing.least_squares_model(np.float64, 1), _sgdm(0.125)
    )
    datasets = [
        testing.least_squares_dataset(size, np.float64, seed=size)
        for size in (1, 9, 4, 0, 13)
    ]
    # Pairs may come as lists of batches, too.
    lists = [list(dataset.as_numpy_iterator()) for dataset in datasets]
    self.assert_process_equals(
        process, [datasets, datasets[1:3]], [datasets, lists[1:3]], atol=1e-10
    )

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every task trains, by the flags that a user would give."""

import itertools

from absl.testing import parameterized
import numpy as np
import pytest

from tasks import catalogue
from tests import folder_testing
from tests.experiments.train import trainer_testing
from tests.experiments.train import training_process
from tests.tasks import data_testing

_METHODS = {
    'delta_sgd': ('--client_optimizer=delta_sgd',),
    'fedadam': ('--server_optimizer=fedadam',),
}
# A round of these takes minutes as published: two clients of two steps.
_CAPPED = ('--clients_per_round=2', '--client_batch_size=4', '--max_examples=8')
# And all test data an hour: a few examples of four clients.
_FEW_TEST_EXAMPLES = ('--num_clients=4', '--heldout_fraction=0.02')
_CAPPED_DISTILBERT = (*_CAPPED, *_FEW_TEST_EXAMPLES)
_LARGE_MODELS = ('_model=resnet18', '_model=resnet50', '_model=distilbert')
# Those without flags are tried as they are.
_WITH_FLAGS = (
    ('emnist_cr', ('--max_examples=40',)),
    ('emnist_ae', ('--max_examples=40',)),
    ('cifar10', (*_CAPPED, '--cifar10_model=simple_cnn')),
    ('cifar10', (*_CAPPED, '--cifar10_model=resnet18')),
    # Without a functional form.
    ('cifar10', (*_CAPPED, '--cifar10_norm=batch', '--cifar10_model=resnet18')),
    ('cifar100', (*_CAPPED, '--cifar100_model=resnet50')),
    ('shakespeare', ('--max_examples=8',)),
    ('stackoverflow_nwp', ('--clients_per_round=5', '--max_examples=32')),
    ('stackoverflow_lr', ('--max_examples=200',)),
    ('ag_news', ('--max_examples=64',)),
    ('ag_news', ('--max_examples=64', '--ag_news_model=transformer')),
    ('ag_news', ('--max_examples=64', '--ag_news_model=bag_of_words')),
    ('ag_news', (*_CAPPED_DISTILBERT, '--ag_news_model=distilbert')),
    ('dbpedia', ('--max_examples=64',)),
)
_RUNS = (
    *((n, ()) for n in catalogue.TASKS if n not in dict(_WITH_FLAGS)),
    *_WITH_FLAGS,
)
_SMALL_TASKS = (
    'digits',
    'mnist',
    'emnist_cr',
    'emnist_ae',
    'stackoverflow_lr',
    'ag_news',
)


def _name(task, method, arguments):
  models = [
      a.partition('=')[2] for a in arguments if '_model=' in a or '_norm=' in a
  ]
  return '_'.join([task, *models, method])


class EveryTaskTest(folder_testing.FolderTestCase):

  def _train(self, task, *arguments):
    """Trains; returns the rows of its metrics and what was printed."""
    flags = data_testing.data_flags(task)
    told = (f'--task={task}', '--experiment_name=run', *flags, *arguments)
    if any(argument.endswith(_LARGE_MODELS) for argument in arguments):
      out = training_process.train(f'--output_dir={self.folder}', *told)
    else:
      _, out = trainer_testing.train_as_told(self.folder, *told)
    metrics = self.folder / 'run' / 'metrics.csv'
    return folder_testing.read_rows(metrics), out

  def _check(self, task, arguments):
    rows, out = self._train(
        task, '--total_rounds=3', '--rounds_per_evaluation=3', *arguments
    )
    self.assertLen(rows, 3)
    for row in rows:
      self.assertTrue(np.isfinite(float(row['clients/loss'])))
      self.assertEqual(float(row['clients/num_rejected']), 0)
    self.assertTrue(np.isfinite(float(rows[-1]['evaluation/loss'])))
    if '--use_synthetic_data' in data_testing.data_flags(task):
      self.assertIn('synthetic data in the format of', out)
    self.assertRegex(
        out.splitlines()[-1], r'^test (accuracy|recall_at_5|loss): \d+\.\d\d$'
    )

  @parameterized.named_parameters(
      (_name(task, method, arguments), task, (*arguments, *_METHODS[method]))
      for (task, arguments), method in zip(_RUNS, itertools.cycle(_METHODS))
  )
  @pytest.mark.slow
  def test_trains_three_rounds(self, task, arguments):
    self._check(task, arguments)

  @parameterized.parameters(*_SMALL_TASKS)
  @pytest.mark.slow
  def test_the_loss_falls_over_thirty_rounds(self, task):
    rows, _ = self._train(
        task,
        '--total_rounds=30',
        '--rounds_per_evaluation=5',
        '--client_optimizer=delta_sgd',
    )
    losses = [
        float(row['evaluation/loss']) for row in rows if row['evaluation/loss']
    ]
    # On made-up images Delta-SGD's loss comes and goes.
    self.assertLess(min(losses), 0.97 * losses[0])

  @pytest.mark.slow
  @pytest.mark.published_data
  def test_delta_sgd_reaches_its_accuracy_on_mnist_in_100_rounds(self):
    data_testing.real_data('mnist')
    rows, _ = self._train(
        'mnist',
        '--mnist_alpha=0.1',
        '--client_optimizer=delta_sgd',
        '--client_weighting=uniform',
        '--total_rounds=100',
        '--rounds_per_evaluation=100',
    )
    self.assertGreaterEqual(float(rows[-1]['evaluation/accuracy']), 0.955)

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of evaluations, from the flags to what is built and written."""

import collections
import contextlib
import functools
import io
import json
import tempfile
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import attrs
import numpy as np
import pytest

from experiments.train import evaluations
from experiments.train import run_parts
from tests import folder_testing
from tests.experiments import hparams_testing
from tests.experiments.train import trainer_testing
from tff_adaptive import _metric_modes
from tff_adaptive import evaluation
from tff_adaptive.analysis import training_curve
from tff_adaptive.data import batching
from tff_adaptive.simulation import run_directory


def _read(*arguments):
  return hparams_testing.read(*hparams_testing.SMALL, *arguments)


@functools.cache
def _task_of(*arguments):
  return run_parts.build_task(*_read(*arguments))


def _build_task(*arguments):
  """Returns the task of flags, the same one if they hold out the same."""
  return _task_of(*(a for a in arguments if a.startswith('--heldout')))


class FlagsTest(parameterized.TestCase):

  def test_evaluations_are_in_their_order(self):
    _, settings = _read('--final_evaluations=per_client,central')
    self.assertEqual(settings.evaluations, ('central',))
    self.assertEqual(settings.final_evaluations, ('central', 'per_client'))

  def test_a_metric_without_a_mode_names_the_flag(self):
    arguments = ('--evaluations=per_client', '--heldout_fraction=0.2')
    choices, settings = _read(*arguments)
    build = mock.patch.object(
        evaluation,
        'build_client_evaluation',
        side_effect=_metric_modes.UnknownModeError('turnover', '`modes`'),
    )
    with (
        build,
        self.assertRaisesRegex(ValueError, "the metric 'turnover' does not"),
    ):
      evaluations.build_evaluations(choices, settings, _build_task(*arguments))


class BuildTest(parameterized.TestCase):

  @parameterized.parameters(
      ('--evaluation_data=validation', 'validation', '--validation_fraction'),
      ('--evaluation_data=test_clients', 'test_data', '--evaluation_data'),
      (
          '--evaluations=per_client --final_evaluations=personalized',
          'test_data',
          '--evaluations=per_client or personalized .* --heldout_fraction',
      ),
      (
          '--evaluations=personalized --heldout_clients=5',
          None,
          'no client has both.* --heldout_fraction',
      ),
      (
          '--final_evaluations=personalized --algorithm=fafed '
          '--heldout_fraction=0.2',
          None,
          '--client_optimizer=fafed',
      ),
  )
  def test_what_the_task_lacks_is_named(self, arguments, lacking, named):
    changes = {} if lacking is None else {lacking: None}
    self._assert_refused(named, arguments.split(), **changes)

  def test_augmented_examples_are_no_data_to_evaluate_on(self):
    augmented = batching.Augmentation(
        lambda examples, generator: examples,
        _build_task().train_data.element_spec,
    )
    self._assert_refused(
        '--evaluation_data=train .* augments',
        ['--evaluation_data=train'],
        augmentation=augmented,
    )

  def _assert_refused(self, named, arguments, **changes):
    choices, settings = _read(*arguments)
    task = attrs.evolve(_build_task(*arguments), **changes)
    with self.assertRaisesRegex(ValueError, named) as caught:
      evaluations.build_evaluations(choices, settings, task)
    self.assertNotIn('\n', str(caught.exception))

  @parameterized.parameters(
      ((), 'central_test', True),
      (('--evaluation_examples=50',), 'central_test', False),
      (('--evaluation_data=validation',), 'validation', False),
      (('--evaluation_data=train', '--evaluation_examples=50'), None, False),
  )
  def test_examples_during_the_training(self, arguments, source, is_test):
    choices, settings = _read(*arguments)
    task = _build_task()
    validation = {k: v[:99] for k, v in task.central_test.items()}
    task = attrs.evolve(task, validation=validation)
    built = []

    def build(model, examples, devices):
      del model  # Unused.
      built.append(examples)
      # The device on which clients train.
      self.assertEqual(devices, 'auto')
      return lambda weights: {'accuracy': len(built[-1]['y'])}

    with mock.patch.object(evaluation, 'build_central_evaluation', build):
      found = evaluations.build_evaluations(choices, settings, task)
    self.assertIs(built[0], task.central_test)
    self.assertEqual(found.includes_test, is_test)
    self.assertLen(built, 1 if is_test else 2)
    self.assertEmpty(found.final)
    size = len(built[-1]['y'])
    if settings.evaluation_examples is not None:
      self.assertEqual(size, 50)
    elif source is not None:
      self.assertLen(getattr(task, source)['y'], size)
    self.assertEqual(found.during_training(None), {'accuracy': size})

  def test_test_clients_give_other_examples_in_each_round(self):
    arguments = (
        '--evaluation_data=test_clients',
        '--evaluation_examples=50',
        '--heldout_fraction=0.5',
    )
    choices, settings = _read(*arguments)
    task = _build_task(*arguments)
    samples = {}

    def build(model, sample_fn, devices):
      del model  # Unused.
      self.assertEqual(devices, 'auto')

      def evaluate(weights, round_num):
        del weights  # Unused.
        samples.setdefault(round_num, []).append(sample_fn(round_num))
        return {'accuracy': round_num}

      return evaluate

    with mock.patch.object(evaluation, 'build_sampled_evaluation', build):
      found = evaluations.build_evaluations(choices, settings, task)
    self.assertFalse(found.includes_test)
    for round_num in (1, 2, 1):
      self.assertEqual(
          found.during_training(None, round_num=round_num),
          {'accuracy': round_num},
      )
    first, again = samples[1]
    (other,) = samples[2]
    self.assertLen(first['y'], 50)
    np.testing.assert_array_equal(first['x'], again['x'])
    self.assertTrue(np.any(first['x'] != other['x']))

  def test_of_a_large_test_set_a_sample_is_evaluated(self):
    _, settings = _read()
    task = _build_task()
    self.enter_context(
        mock.patch.multiple(
            evaluations, _MAX_WHOLE_EXAMPLES=20, _SAMPLED_EXAMPLES=10
        )
    )
    with contextlib.redirect_stdout(io.StringIO()) as out:
      found = evaluations._examples_during_training(task, settings)
    self.assertLen(found['y'], 10)
    self.assertIn('10 of ', out.getvalue())
    again = evaluations._examples_during_training(task, settings)
    np.testing.assert_array_equal(found['x'], again['x'])


class RunTest(folder_testing.FolderTestCase):

  @pytest.mark.slow
  def test_run_evaluates_as_told_and_again_when_it_is_finished(self):
    arguments = (
        '--heldout_fraction=0.25',
        '--evaluations=central,per_client',
        '--evaluation_examples=40',
        '--evaluation_clients=10',
    )
    result, out = trainer_testing.train(self.folder, *arguments)
    run = self.folder / 'run'
    row = folder_testing.read_rows(run / 'metrics.csv')[-1]
    self.assertEqual(
        float(row['evaluation/clients/accuracy_median']),
        result.evaluation['clients/accuracy_median'],
    )
    self.assertFalse((run / 'evaluation.json').exists())
    last_line = out.splitlines()[-1]
    self.assertRegex(last_line, r'^test accuracy: 0\.\d\d$')

    again, out = trainer_testing.train(
        self.folder,
        *arguments,
        '--final_evaluations=central,per_client,personalized',
    )
    self.assertEqual(again.num_new_rounds, 0)
    self.assertEqual(again.evaluation, result.evaluation)
    self.assertEqual(out.splitlines()[-1], last_line)
    content = json.loads((run / 'evaluation.json').read_text())
    accuracy = content['central']['test']['accuracy']
    self.assertEqual(last_line, f'test accuracy: {accuracy:.2f}')
    self.assertEqual(content['per_client']['num_clients'], 10)
    self.assertEqual(
        content['per_client']['summary']['accuracy_median'],
        result.evaluation['clients/accuracy_median'],
    )
    before = content['personalized']['before']['clients']
    after = content['personalized']['after']
    self.assertEqual(before.keys(), after['clients'].keys())
    self.assertEqual(before.keys(), content['per_client']['clients'].keys())
    for client_id in before:
      self.assertAlmostEqual(
          before[client_id]['accuracy'],
          content['per_client']['clients'][client_id]['accuracy'],
      )
    self.assertGreater(
        after['summary']['accuracy_mean'],
        content['personalized']['before']['summary']['accuracy_mean'],
    )
    self.assertTrue((run / 'plots' / 'clients_accuracy.png').exists())

  @pytest.mark.slow
  def test_the_curve_names_the_test_clients(self):
    with mock.patch.object(training_curve, 'plot_training_curve') as plot:
      trainer_testing.train(
          self.folder,
          '--heldout_fraction=0.5',
          '--evaluation_data=test_clients',
          '--evaluation_examples=40',
      )
    self.assertEqual(plot.call_args.kwargs['data'], 'test clients')


def _metrics(accuracy):
  return evaluation.ClientMetrics(
      ['a', 'b'], [1, 3], {'loss': [0.5, np.nan], 'accuracy': accuracy}
  )


class WriteTest(absltest.TestCase):

  def test_writes_file_pictures_and_table(self):
    folder = self.enter_context(tempfile.TemporaryDirectory())
    directory = run_directory.RunDirectory(folder, 'run')
    directory.open({})
    found = {
        'central': {'test': collections.OrderedDict(loss=0.5, accuracy=0.75)},
        'per_client': _metrics([0.5, 1.0]),
        'personalized': evaluation.PersonalizedMetrics(
            _metrics([0.5, 1.0]), _metrics([1.0, 1.0])
        ),
    }
    with contextlib.redirect_stdout(io.StringIO()) as out:
      evaluations.write_results(found, 7, directory, 'A title')
    content = json.loads((directory.path / 'evaluation.json').read_text())
    self.assertEqual(content['round_num'], 7)
    self.assertEqual(content['central']['test']['accuracy'], 0.75)
    per_client = content['per_client']
    self.assertEqual(per_client['num_clients'], 2)
    self.assertEqual(per_client['summary']['accuracy_weighted_mean'], 0.875)
    self.assertIsNone(per_client['summary']['loss_mean'])
    self.assertEqual(
        per_client['clients']['b'],
        {'num_examples': 3, 'loss': None, 'accuracy': 1.0},
    )
    after = content['personalized']['after']['summary']
    self.assertEqual(after['accuracy_worst_decile'], 1.0)
    self.assertEqual(
        {path.name for path in directory.plots.iterdir()},
        {
            'clients_loss.png',
            'clients_accuracy.png',
            'personalized_loss.png',
            'personalized_accuracy.png',
        },
    )
    lines = out.getvalue().splitlines()
    self.assertEqual(lines[0], 'central, test: loss 0.5, accuracy 0.75')
    self.assertRegex(lines[1], '^by client +clients +metric +mean +by examples')
    self.assertRegex(
        lines[3], r'^per client +2 +accuracy +0\.75 +0\.875 +0\.75 +0\.5$'
    )
    self.assertRegex(lines[7], r'^after fine-tuning +2 +accuracy +1 +1 +1 +1$')

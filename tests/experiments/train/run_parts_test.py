# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of building the parts of a training run from its flags."""

import functools
import inspect
import tempfile
from unittest import mock

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments import hparams
from experiments import registry
from experiments.train import evaluations
from experiments.train import run_parts
from tests.experiments import hparams_testing
from tests.tff_adaptive.simulation import task_testing
from tff_adaptive import algorithms
from tff_adaptive import privacy
from tff_adaptive import runtime
from tff_adaptive.algorithms import fed_opt
from tff_adaptive.data import client_data
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation import client_states
from tff_adaptive.simulation import kept_weights
from tff_adaptive.simulation import run_directory

_EXAMPLES = tff.learning.ClientWeighting.NUM_EXAMPLES
_UNIFORM = tff.learning.ClientWeighting.UNIFORM
_BUILD_FED_OPT = fed_opt.build_fed_opt


def _read(*arguments):
  return hparams_testing.read(
      '--digits_num_clients=20',
      '--digits_model=logistic',
      '--experiment_name=run',
      *arguments,
  )


@functools.cache
def _build_task(*arguments):
  return run_parts.build_task(*_read(*arguments))


class BuildTaskTest(tf.test.TestCase):

  def test_held_out_clients_are_the_central_test_data_of_held_out_examples(
      self,
  ):
    arguments = ('--num_clients=10', '--heldout_clients=5')
    whole = _build_task(*arguments)
    task = _build_task(*arguments, '--heldout_fraction=0.25')
    self.assertAllEqual(task.central_test['x'], whole.central_test['x'])
    self.assertEqual(task.train_data.client_ids, whole.train_data.client_ids)
    for name in task.train_data.client_ids:
      num_tested, num_trained, num_all = (
          len(data.examples(name)['y'])
          for data in (task.test_data, task.train_data, whole.train_data)
      )
      self.assertEqual(num_tested, num_all // 4)
      self.assertEqual(num_tested + num_trained, num_all)

  def test_validation_data_are_neither_trained_nor_tested_on(self):
    whole = _build_task('--heldout_fraction=0.25')
    task = _build_task('--heldout_fraction=0.25', '--validation_fraction=0.5')
    self.assertAllEqual(task.central_test['x'], whole.central_test['x'])
    rest = sum(
        whole.train_data.num_examples(n) // 2
        for n in whole.train_data.client_ids
    )
    self.assertLen(task.validation['y'], rest)
    self.assertEqual(
        task.train_data.total_examples + rest, whole.train_data.total_examples
    )
    self.assertIsNone(whole.validation)

  def test_data_to_evaluate_on_are_finite(self):
    bad = dict(task_testing.examples(3), x=np.full([3, 3], np.nan, np.float32))
    clients = client_data.PackedClientArrays.from_clients({'a': bad, 'b': bad})
    read = _read('--bad_clients=reject', '--evaluation_data=train')
    task = task_testing.build_task(validation=bad)
    with mock.patch.object(hparams.Choice, 'build', return_value=task):
      with self.assertRaisesRegex(ValueError, "^The validation .* feature 'x'"):
        run_parts.build_task(*read)
    task = task_testing.build_task(train_data=clients)
    with self.assertRaisesRegex(ValueError, "_data=train has nan .* 'x'"):
      evaluations.build_evaluations(*read, task)

  def test_bad_clients_are_no_part_of_a_pool(self):
    bad = dict(task_testing.examples(3), x=np.full([3, 3], np.nan, np.float32))
    clients = client_data.PackedClientArrays.from_clients(
        {
            'a': task_testing.examples(5),
            'nan': bad,
            'empty': task_testing.examples(0),
        }
    )
    task = task_testing.build_task(train_data=clients)
    arguments = ('--bad_clients=reject', '--clients_per_round=2')
    for algorithm, expected in (
        (('--algorithm=centralized', '--client_optimizer=sgd'), ('a', 'empty')),
        ((), clients.client_ids),
    ):
      with mock.patch.object(hparams.Choice, 'build', return_value=task):
        found = run_parts.build_task(*_read(*algorithm, *arguments))
      self.assertEqual(found.train_data.client_ids, expected)


class BuildProcessTest(tf.test.TestCase, parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls._task = _build_task()

  def _arguments_of_build_fed_opt(self, task, *arguments):
    """Returns the arguments of `build_fed_opt` by name, with its defaults."""
    with (
        mock.patch.object(algorithms, 'build_fed_opt') as build,
        mock.patch.object(fed_opt, 'build_fed_opt', build),
    ):
      run_parts.build_process(*_read(*arguments), task)
    build.assert_called_once()
    bound = inspect.signature(_BUILD_FED_OPT).bind(
        *build.call_args.args, **build.call_args.kwargs
    )
    bound.apply_defaults()
    return bound.arguments

  @parameterized.parameters(
      set(registry.ROWS[registry.ALGORITHM]) - {'centralized'}
  )
  def test_algorithm_has_its_parts(self, algorithm):
    choices, _ = _read(f'--algorithm={algorithm}')
    found = self._arguments_of_build_fed_opt(
        self._task, f'--algorithm={algorithm}'
    )
    self.assertIs(found['model'], self._task.functional_model)
    for kind in ('client_optimizer', 'server_optimizer'):
      expected = choices[kind].build(num_clients=20)
      self.assertIs(type(found[kind]), type(expected))
    recorded = choices[registry.ALGORITHM].hparams()['client_weighting']
    self.assertEqual(
        found['client_weighting'] == _UNIFORM, recorded == 'uniform'
    )
    self.assertIsNone(found['loss_term'])

  def test_weights_of_the_registry_are_those_of_the_rules(self):
    for row in registry.ROWS[registry.CLIENT_OPTIMIZER].values():
      build = registry.resolve(row.builder)
      needed = {
          name: 10
          for name, parameter in inspect.signature(build).parameters.items()
          if parameter.default is inspect.Parameter.empty
      }
      rule = build(**needed)
      weighting = getattr(rule, 'client_weighting', _EXAMPLES)
      known = 'uniform' if weighting == _UNIFORM else 'examples'
      self.assertIn(registry.weighting_of(row), (known, None), row.name)

  def test_scaffold_knows_the_number_of_clients(self):
    spec = tf.TensorSpec([], tf.float32)
    for algorithm in ('scaffold', 'fed_opt'):
      rule = self._arguments_of_build_fed_opt(
          self._task,
          f'--algorithm={algorithm}',
          '--client_optimizer=scaffold_sgd',
      )['client_optimizer']
      change = {'control': tf.constant(1.0)}
      control = rule.update_shared(
          rule.initialize_shared(spec), change, tf.constant(5)
      )['control']
      self.assertAllClose(control, 5 / 20)

  @parameterized.parameters(
      ('--server_optimizer=gpa',),
      ('--server_optimizer=fed_schedule_free', '--server_schedule=exp_decay'),
  )
  def test_mean_of_an_averaging_server_is_evaluated(self, *arguments):
    choices, settings = _read(*arguments)
    process = run_parts.build_process(choices, settings, self._task)
    get_weights = run_parts.build_get_weights(choices, process)
    with runtime.CompiledContext():
      state = process.initialize()
      first = get_weights(state)
      trained = process.get_model_weights(state)
    self.assertAllClose(first.trainable, trained.trainable)
    held = state.finalizer.get('inner', state.finalizer)
    held['num_steps'] = np.int32(1)
    held['average'] = tf.nest.map_structure(np.ones_like, held['average'])
    with runtime.CompiledContext():
      found = get_weights(state)
    self.assertIsInstance(found.trainable[0], np.ndarray)
    for weight in found.trainable:
      self.assertAllEqual(weight, np.ones_like(weight))

  def test_flags_reach_the_options(self):
    found = self._arguments_of_build_fed_opt(
        self._task,
        '--algorithm=fafed',
        '--client_weighting=examples',
        '--client_clip_norm=2',
        '--client_weight_decay=0.1',
        '--loss_term=fedprox',
        '--client_schedule=inverse_sqrt',
        '--client_learning_rate=0.5',
    )
    self.assertEqual(found['client_weighting'], _EXAMPLES)
    self.assertEqual((found['clip_norm'], found['weight_decay']), (2.0, 0.1))
    self.assertIsNotNone(found['loss_term'])
    self.assertEqual(float(found['client_schedule'](3)), 0.5)
    hparams_of_rule = found['client_optimizer'].get_hparams(
        found['client_optimizer'].initialize(tf.TensorSpec([], tf.float32))
    )
    self.assertAllClose(hparams_of_rule['learning_rate'], 0.5)

  @parameterized.named_parameters(
      (
          'fixed',
          ['--dp_clip_norm=2', '--dp_payload_clip_norms=control:3'],
          dict(clip_norm=2.0, payload_clip_norms={'control': 3.0}),
      ),
      (
          'adaptive',
          [
              '--dp_adaptive_clip_quantile=0.6',
              '--dp_adaptive_clip_learning_rate=0.7',
              '--dp_adaptive_clip_count_stddev=8',
          ],
          dict(
              adaptive_clipping=privacy.AdaptiveClipping(
                  target_quantile=0.6, learning_rate=0.7, count_stddev=8.0
              )
          ),
      ),
  )
  def test_privacy_is_that_of_the_flags(self, arguments, expected):
    task = _build_task('--clients_per_round=7')
    found = self._arguments_of_build_fed_opt(
        task,
        '--client_optimizer=scaffold_sgd',
        '--client_weighting=uniform',
        '--clients_per_round=7',
        '--dp_noise_multiplier=0.3',
        *arguments,
    )
    self.assertEqual(
        found['privacy'],
        privacy.DifferentialPrivacy(
            noise_multiplier=0.3, clients_per_round=7, **expected
        ),
    )

  def test_moon_takes_the_representations_of_the_task(self):
    task = _build_task('--digits_model=cnn')
    found = self._arguments_of_build_fed_opt(
        task, '--loss_term=moon', '--moon_mu=3'
    )
    # Of a client without a model of before, the term is mu log 2.
    with tf.Graph().as_default() as graph:
      weights = tuple(
          map(tf.constant, task.functional_model.initial_weights[0])
      )
      batch = {'x': task.central_test['x'][:5], 'y': task.central_test['y'][:5]}
      term = found['loss_term'](weights, weights, batch, previous_model=weights)
      with tf.compat.v1.Session(graph=graph) as session:
        self.assertAllClose(session.run(term), 3.0 * 0.693147)


class BuildCohortFnTest(parameterized.TestCase):

  @parameterized.parameters(
      ('--drop_clients=1', 0, 0), ('--straggler_fraction=1', 5, 5), ('', 5, 0)
  )
  def test_faults_are_those_of_the_flags(self, flag, num_clients, num_slow):
    flags = ['--clients_per_round=5', *filter(None, [flag])]
    cohort = run_parts.build_cohort_fn(*_read(*flags), _build_task(*flags))(0)
    self.assertLen(cohort.client_ids, num_clients)
    self.assertLen(cohort.step_limits or {}, num_slow)
    self.assertLen(cohort.dropped_out, 5 - num_clients)


class PrivacyCallbackTest(parameterized.TestCase):

  @parameterized.parameters((['--dp_delta=1e-3'], 1e-3), ([], None))
  def test_epsilon_is_that_of_the_flags(self, arguments, delta):
    flags = ('--clients_per_round=7', '--total_rounds=5')
    privacy_flags = ('--dp_noise_multiplier=0.3', '--dp_clip_norm=1')
    _, settings = _read(
        *flags, *privacy_flags, '--client_weighting=uniform', *arguments
    )
    (found,) = run_parts.build_privacy_callbacks(settings, _build_task(*flags))
    accountant = privacy.RoundAccountant(
        noise_multiplier=0.3,
        num_clients=20,
        clients_per_round=7,
        sampling=privacy.CohortSampling('fixed'),
    )
    delta = delta or privacy.default_delta(20)
    round_end = mock.Mock(round_num=5, state=None)
    with mock.patch.object(
        callbacks.differential_privacy, 'get_clip_norms', return_value={}
    ):
      measured = found.measure(round_end)
    self.assertEqual(
        measured['privacy/epsilon'], accountant.get_epsilon(5, delta)
    )


class DirectoryTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self._directory = run_directory.RunDirectory(
        self.enter_context(tempfile.TemporaryDirectory()), 'run'
    )

  @parameterized.named_parameters(
      ('none', [], []),
      (
          'decay',
          ['--weights_average_decay=0.9'],
          [kept_weights.WeightsMovingAverage],
      ),
      (
          # The average comes first, so that the others can watch it.
          'all',
          [
              '--early_stopping_patience=2',
              '--keep_best',
              '--weights_average_rounds=2',
          ],
          [
              kept_weights.LastWeightsAverage,
              kept_weights.BestCheckpoint,
              callbacks.EarlyStopping,
          ],
      ),
  )
  def test_flags_turn_callbacks_on(self, arguments, expected):
    found = run_parts.build_callbacks(_read(*arguments)[1], self._directory)
    self.assertEqual([type(callback) for callback in found], expected)

  @parameterized.parameters('evaluation/loss', 'evaluation_average/loss')
  def test_flags_reach_the_callbacks(self, metric):
    _, settings = _read(
        '--early_stopping_patience=7',
        '--keep_best',
        f'--monitored_metric={metric}',
        '--monitored_mode=min',
        '--weights_average_decay=0.5',
    )
    watched = dict(metric=metric, mode='min')
    with (
        mock.patch.object(callbacks, 'EarlyStopping') as stop,
        mock.patch.object(kept_weights, 'BestCheckpoint') as keep,
    ):
      average, *_ = run_parts.build_callbacks(settings, self._directory)
    stop.assert_called_once_with(patience=7, **watched)
    keep.assert_called_once_with(
        self._directory.checkpoints,
        average=average if 'average' in metric else None,
        **watched,
    )

  @parameterized.parameters(
      ([], 2**30, 3),
      (['--client_states_memory_mb=3'], 3 * 2**20, 3),
      (['--client_states_max_rejections=1'], 2**30, 1),
      (['--client_states_max_rejections=0'], 2**30, None),
  )
  def test_store_of_a_process_that_keeps_states(
      self, arguments, max_bytes, max_rejections
  ):
    _, settings = _read(*arguments)
    with (
        mock.patch.object(client_states, 'get_state_spec', return_value={}),
        mock.patch.object(
            run_parts.client_states, 'ClientStateStore'
        ) as build_store,
    ):
      store = run_parts.build_client_store(None, settings, self._directory)
    self.assertIs(store, build_store.return_value)
    build_store.assert_called_once_with(
        self._directory.path / 'client_states',
        max_bytes=max_bytes,
        max_rejections=max_rejections,
    )

  def test_no_store_for_clients_that_keep_nothing(self):
    _, settings = _read()
    with mock.patch.object(client_states, 'get_state_spec', return_value=None):
      self.assertIsNone(
          run_parts.build_client_store(None, settings, self._directory)
      )

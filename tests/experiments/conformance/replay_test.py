# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the replay of reference trajectories, and of its problems."""

from unittest import mock
import warnings

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from experiments import conformance
from experiments.conformance import problems
from experiments.conformance import replay
from tests.experiments.conformance import golden_testing
from tff_adaptive import runtime

_RUNS, _PROBLEMS = conformance.read_goldens(golden_testing.GOLDENS)
_OTHERS = [
    conformance.read_goldens(path)
    for path in (golden_testing.TUNING_FREE, golden_testing.METHODS_2026)
]
_RUNS += [run for runs, _ in _OTHERS for run in runs]


def _all_runs():
  return {(r['config']['name'], r['config']['problem']): r for r in _RUNS}


def _named(keys):
  """Parameters of a test: these runs of the goldens."""
  runs = _all_runs()
  return [('_'.join(key), runs[key]) for key in keys]


@pytest.mark.usefixtures('native_runtime')
class ReplayerTest(tf.test.TestCase, parameterized.TestCase):

  def test_files_of_goldens_share_their_problems(self):
    for _, problems_of_file in _OTHERS:
      self.assertNotEmpty(problems_of_file)
      for name, problem in problems_of_file.items():
        self.assertEqual(problem, _PROBLEMS[name])
    self.assertLen(_all_runs(), len(_RUNS))

  def test_numbers_are_compared(self):
    run, problems_by_name = golden_testing.create_tiny_run()
    process = replay._process_of(
        conformance.GoldenRun(
            run['config'], problems_by_name['quadratic'], [[0], [0]]
        )
    )

    def replay_changed(change):
      run, problems = golden_testing.create_tiny_run()
      first, second = run['trajectory']
      change(first['clients'][0], second['server'])
      return replay.replay(run, problems)

    with mock.patch.object(replay, '_process_of', return_value=process):
      right = replay_changed(lambda client, server: None)
      weights = replay_changed(
          lambda c, server: server.update(x=[0.7, 0, 0, 0])
      )
      step_sizes = replay_changed(lambda client, s: client.update(etas=[0.4]))
      missing = replay_changed(lambda client, server: server.pop('x'))
    self.assertEqual(str(right), 'tiny quadratic 0 2e-05 ok')
    for result, error in ((weights, 0.05), (step_sizes, 0.1)):
      self.assertFalse(result.passed)
      self.assertAllClose(result.max_error, error, atol=1e-6)
      self.assertEndsWith(str(result), 'FAIL')
    self.assertIn("KeyError: 'x'", str(missing))

  @parameterized.named_parameters(
      ('key', dict(compression='top_k'), "unknown key 'compression'"),
      ('client', dict(client={'name': 'newton'}), "unknown client 'newton'"),
      (
          'client_key',
          dict(client={'name': 'sgd', 'lr': 0.5, 'nesterov': True}),
          "unknown client key 'nesterov'",
      ),
      ('server', dict(server={'name': 'lion'}), "unknown server 'lion'"),
      ('loss', dict(loss={'name': 'feddyn'}), "unknown loss 'feddyn'"),
      ('weighting', dict(weighting='loss'), "unknown weighting 'loss'"),
      ('problem', dict(problem='cubic'), "unknown problem 'cubic'"),
      ('decay', dict(decay_every=2), "'decay_every' of the schedule"),
      (
          'bad_value',
          dict(client={'name': 'sgd', 'lr': -1.0}),
          'ValueError: `build_sgd`: `learning_rate`',
      ),
  )
  def test_unknown_configuration_fails(self, config, reason):
    result = replay.replay(*golden_testing.create_tiny_run(**config))
    self.assertFalse(result.passed)
    self.assertIn(reason, str(result))

  def test_missing_keys_fail(self):
    run, problems = golden_testing.create_tiny_run()
    del run['float32_error'], run['config']['batch_size']
    result = replay.replay(run, problems)
    self.assertIn("KeyError: 'float32_error'", str(result))
    run['float32_error'] = 0.0
    result = replay.replay(run, problems)
    self.assertIn("KeyError: 'batch_size'", str(result))

  def test_none_is_no_limit(self):
    # The rule takes steps of 1 here, as FedAvg does.
    result = replay.replay(
        *golden_testing.create_tiny_run(
            server={'name': 'fedexprox_grads', 'max': None}
        )
    )
    self.assertTrue(result.passed, str(result))

  def test_shared_state_is_compared_under_a_schedule(self):
    run, problems = golden_testing.create_tiny_run(
        client={'name': 'scaffold', 'lr': 0.5}, schedule='step_decay', rounds=8
    )
    # The control of a single client is its last gradient: -1, then -0.5.
    for entry, control in zip(run['trajectory'], (-1.0, 1.0)):
      entry['server']['c'] = [control, 0.0, 0.0, 0.0]
    self.assertAllClose(replay.replay(run, problems).max_error, 1.5)

  def test_fedhyper_divides_by_the_clients_of_the_round(self):
    rng = np.random.default_rng(0)
    data = rng.normal(size=[3, 3, 5])
    run, problems = golden_testing.create_tiny_run(
        client={'name': 'fedhyper_client_local', 'lr': 0.1, 'hyper_lr': 9.0}
    )
    problems['quadratic']['clients'] = [
        {'X': client[:, :4].tolist(), 'y': client[:, 4].tolist()}
        for client in data
    ]
    run['trajectory'] = []
    x, change = np.zeros(4), np.zeros(4)
    for cohort in ((0, 1, 2), (1,), (0, 2), (0, 1, 2)):
      ends = []
      for client in cohort:
        y, scale, last = x, 1.0, None
        for *features, label in data[client]:
          step = -0.1 * scale * (features @ y - label) * np.array(features)
          if last is not None:
            q = step @ last + 0.1 * step @ change / len(cohort)
            scale = np.clip(scale * min(1.1, 1 + 9.0 * q), 0.1, 10.0)
          y, last = y + step, step
        ends.append(y)
      change = np.mean(ends, axis=0) - x
      x = x + change
      clients = [{'id': client} for client in cohort]
      server = {'x': list(x), 'prev_D': list(change)}
      run['trajectory'].append({'clients': clients, 'server': server})
    self.assertLess(replay.replay(run, problems).max_error, 1e-6)

  def test_page_has_every_alias(self):
    path = golden_testing.ROOT / 'docs/conformance.md'
    page = path.read_text(encoding='utf-8')
    for key, argument in replay._KEYS.items():
      self.assertRegex(page, rf'\| [^|]*`{key}`[^|]* \| [^|]*`{argument}`')

  @parameterized.named_parameters(*_named(_all_runs()))
  @pytest.mark.sample(1)
  def test_native_runtime_has_the_reference_numbers(self, run):
    result = replay.replay(run, _PROBLEMS)
    self.assertTrue(result.passed, str(result))

  @parameterized.named_parameters(*_named(_all_runs()))
  @pytest.mark.sample(3)
  def test_compiled_runtime_has_the_reference_numbers(self, run):
    self._assert_passes(run, devices='CPU')

  @parameterized.named_parameters(*_named(_all_runs()))
  @pytest.mark.sample(1)
  def test_programs_of_xla_have_the_reference_numbers(self, run):
    self._assert_passes(run, devices='XLA:CPU')

  def _assert_passes(self, run, devices):
    # Mime has two exchanges in a round: TFF's own runtime takes it over, and
    # warns.
    is_mime = run['config']['client']['name'] == 'mime'
    with warnings.catch_warnings():
      if is_mime:
        warnings.filterwarnings('ignore', "TFF's native runtime takes over")
      with runtime.CompiledContext(devices=devices, strict=not is_mime):
        result = replay.replay(run, _PROBLEMS)
    self.assertTrue(result.passed, str(result))

  @parameterized.parameters('fedavg_examples', 'delta_sgd', 'delta_sgd_fedprox')
  @pytest.mark.sample(1)
  def test_reference_numbers_with_variable_models(self, name):
    run = _all_runs()[(name, 'softmax')]
    problem = _PROBLEMS['softmax']
    functional = problems.create_functional_model(problem)
    result = replay.replay(
        run,
        _PROBLEMS,
        lambda: tff.learning.models.model_from_functional(functional),
    )
    self.assertTrue(result.passed, str(result))


def _problem(name, dim):
  return {
      'name': name,
      'x0': list(np.arange(dim) / dim),
      'clients': [{'X': np.ones([3, 5]), 'y': [0, 1, 2]}],
  }


class GoldenProblemsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(('quadratic', 4), ('softmax', 18), ('mlp', 39))
  def test_weights_are_the_flat_vector_in_order(self, name, dim):
    problem = _problem(name, dim)
    model = problems.create_functional_model(problem)
    self.assertAllClose(
        problems.flatten_weights(model.initial_weights[0]), problem['x0']
    )

  def test_quadratic_predicts_and_measures(self):
    model = problems.create_functional_model(_problem('quadratic', 4))
    output = model.predict_on_batch(model.initial_weights, np.ones([2, 4], 'f'))
    self.assertAllClose(output, [1.5, 1.5])
    self.assertAllClose(model.loss(output, tf.constant([0.5, 1.5])), 0.25)

  def test_batches_are_in_order_short_last_and_repeated(self):
    (client,) = problems.create_client_batches(
        _problem('softmax', 18), batch_size=2, num_epochs=2
    )
    batches = client.as_numpy_iterator()
    self.assertEqual([list(b['y']) for b in batches], [[0, 1], [2]] * 2)

  def test_wrong_length_raises(self):
    with self.assertRaisesRegex(ValueError, '18 weights.*(17,)'):
      problems.create_functional_model(_problem('softmax', 17))

  def test_unknown_name_raises(self):
    with self.assertRaisesRegex(ValueError, "'cubic'.*mlp"):
      problems.create_functional_model(_problem('cubic', 4))

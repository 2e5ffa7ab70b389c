# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that JAX runs exported rounds with the compiled runtime's results."""

import functools
import importlib.util
import io
import pathlib

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import equality_testing
from tff_adaptive import algorithms
from tff_adaptive import data
from tff_adaptive import layers
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.runtime import values
from tff_adaptive.runtime.accelerators import kept_rows

_RUNNER = (
    pathlib.Path(__file__).parents[3] / 'docs/examples/run_exported_round.py'
)
_IMAGE = tf.TensorSpec([None, 8, 8, 1], tf.float32)
_TOKENS = tf.TensorSpec([None, 6], tf.int32)
_LABELS = tf.TensorSpec([None, 1], tf.int32)
# Examples in each batch of each client.
_BATCHES = ((5, 5, 2), (5, 1), (3,), (), (5, 5, 5))
_keras = tf.keras.layers
_sgd = optimizers.build_sgd


def _dense():
  return _IMAGE, [_keras.Flatten(), _keras.Dense(16, 'relu'), _keras.Dense(3)]


def _lstm():
  return _TOKENS, [_keras.Embedding(10, 4), layers.LSTM(5), _keras.Dense(3)]


def _model(build_layers):
  """Returns a functional model of these layers."""
  spec, model_layers = build_layers()
  start = _keras.InputLayer(input_shape=spec.shape[1:], dtype=spec.dtype)
  return tff.learning.models.functional_model_from_keras(
      tf.keras.Sequential([start, *model_layers]),
      loss_fn=testing.loss(),
      input_spec=(spec, _LABELS),
  )


def _clients(build_layers):
  """Returns random batches, of several sizes; one client has none."""
  spec, _ = build_layers()
  rng = np.random.default_rng(1)

  def batch(size):
    shape = [size, *spec.shape[1:]]
    features = rng.integers(0, 10, shape)
    return features.astype(spec.dtype.as_numpy_dtype), rng.integers(
        0, 3, [size, 1], np.int32
    )

  return [list(map(batch, sizes)) for sizes in _BATCHES]


def _load_runner():
  spec = importlib.util.spec_from_file_location('run_exported_round', _RUNNER)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def _run(file):
  """Returns the results of an exported file by name, as JAX computes them."""
  jax = pytest.importorskip('jax', reason='JAX is not installed.')
  runner = _load_runner()
  program, inputs, names = runner.load(io.BytesIO(file))
  jax.config.update('jax_enable_x64', True)
  found = runner.compile_program(program)(jax.device_put(inputs))
  return dict(zip(names, found, strict=True))


def _load(process, clients, **kwargs):
  """Returns the exported file as arrays."""
  return np.load(io.BytesIO(runtime.export_round(process, clients, **kwargs)))


@functools.cache
def _dense_process():
  return algorithms.build_fed_opt(_model(_dense), _sgd(0.1))


def _stock_fed_avg(model):
  return tff.learning.algorithms.build_weighted_fed_avg(
      model,
      tff.learning.optimizers.build_sgdm(0.1),
      loop_implementation=tff.learning.LoopImplementation.DATASET_REDUCE,
  )


class ExportTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('dense_fedavg_of_tff', _stock_fed_avg, _dense),
      (
          'lstm_fedadam',
          lambda m: algorithms.build_fed_opt(
              m, _sgd(0.1), optimizers.build_adam(0.1, epsilon=0.1)
          ),
          _lstm,
      ),
      (
          'lstm_fedcada',
          lambda m: algorithms.build_fed_opt(
              m, optimizers.build_fedcada_adam()
          ),
          _lstm,
      ),
      (
          'dense_fedli',
          lambda m: algorithms.build_fed_opt(
              m, optimizers.build_armijo(), optimizers.build_line_search_step()
          ),
          _dense,
      ),
  )
  @pytest.mark.sample(1)
  def test_jax_has_the_results_of_the_runtime(self, build, build_layers):
    process, clients = build(_model(build_layers)), _clients(build_layers)
    file = runtime.export_round(process, clients)
    with runtime.CompiledContext(strict=True, seed=0):
      output = process.next(process.initialize(), clients)
    flatten = values.build_flatten(process.next.type_signature.result)
    expected = flatten(output)

    by_name = _run(file)
    # What clients report row by row comes as rows and counts.
    result_names = values.leaf_names(process.next.type_signature.result)
    for name, reference in zip(result_names, expected, strict=True):
      value = by_name.get(name)
      if value is None:
        value = kept_rows.KeptRows(
            by_name[f'{name}/rows'], by_name[f'{name}/counts']
        ).to_numpy()[: len(reference)]
      np.testing.assert_allclose(
          value, reference, rtol=1e-5, atol=1e-5, err_msg=name
      )

  @pytest.mark.slow
  def test_rounds_of_one_call_are_those_of_several(self):
    clients = _clients(_dense)
    # Cohorts of other numbers and sizes; with as many clients, and with fewer.
    cohorts = [clients, clients[1:3], clients[::-1]]
    process = algorithms.build_fed_opt(
        _model(_dense), _sgd(0.1), optimizers.build_adam(0.1, epsilon=0.1)
    )
    file = runtime.export_rounds(process, cohorts, num_parallel_clients=1)
    with runtime.CompiledContext(strict=True, seed=0):
      outputs = []
      state = process.initialize()
      for cohort in cohorts:
        outputs.append(process.next(state, cohort))
        state = outputs[-1].state

    found = _run(file)
    result_type = process.next.type_signature.result
    of_rounds = zip(*map(values.build_flatten(result_type), outputs))
    for name, leaves in zip(values.leaf_names(result_type), of_rounds):
      if name not in found:  # What clients report row by row.
        num_rows = found[f'{name}/counts'].sum(1)
        self.assertEqual(num_rows.tolist(), list(map(len, leaves)))
        continue
      # Of the state there is the last one, of metrics those of all rounds.
      expected = leaves[-1] if name.startswith('state/') else np.stack(leaves)
      np.testing.assert_allclose(
          found[name], expected, 1e-5, 1e-5, err_msg=name
      )

  def test_no_rounds(self):
    with self.assertRaisesRegex(ValueError, '`cohorts` must hold'):
      runtime.export_rounds(_dense_process(), [])

  def test_more_inputs_than_their_numbers_have_digits(self):
    file = io.BytesIO()
    inputs = {f'input/{place:03}/x': np.int32(place) for place in range(1002)}
    np.savez(file, program=b'', **inputs, results=[])
    file.seek(0)
    _, found, _ = _load_runner().load(file)
    self.assertEqual(list(map(int, found)), list(range(1002)))

  def test_state_and_batches_are_inputs(self):
    file = _load(_dense_process(), _clients(_dense))
    keys = [key for key in file if key.startswith('input/')]
    self.assertEqual(
        keys[0], 'input/000/state/global_model_weights/trainable/0'
    )
    rows = [file[key] for key in keys if '/rows/' in key]
    num_examples = sum(map(sum, _BATCHES))
    self.assertEqual([array.shape[1:] for array in rows], [(8, 8, 1), (1,)])
    self.assertTrue(all(len(array) >= num_examples for array in rows))
    counts = next(file[key] for key in keys if key.endswith('/counts'))
    self.assertEqual(counts.tolist()[: len(_BATCHES)], [3, 2, 1, 0, 3])
    self.assertIn(
        'state/global_model_weights/trainable/0', file['results'].tolist()
    )

  @pytest.mark.slow
  def test_draws_of_a_cohort_follow_its_seed(self):
    process = algorithms.build_fed_opt(
        testing.functional_model(), optimizers.build_sgd(0.1)
    )
    source = equality_testing.source()

    def server_seed(cohort_seed, **kwargs):
      cohort = data.Cohort(
          source,
          ['nine', 'one'],
          round_num=2,
          seed=cohort_seed,
          plan=data.BatchPlan(4),
      )
      file = _load(process, cohort, **kwargs)
      (key,) = [key for key in file if key.endswith('seeds/server')]
      return file[key].tolist()

    self.assertEqual(server_seed(1, seed=2), server_seed(1, seed=3))
    self.assertNotEqual(server_seed(1), server_seed(2))

  @parameterized.named_parameters(
      ('batches', lambda rows: rows.batch(2), "batch the clients' data before"),
      ('shuffles', lambda rows: rows.shuffle(2).batch(2), 'shuffle .* before'),
  )
  @pytest.mark.sample(1)
  def test_batches_of_the_work_are_refused(self, preprocess, fix):
    spec = tff.types.tensorflow_to_type(
        (tf.TensorSpec([8, 8, 1]), tf.TensorSpec([1], tf.int32))
    )
    process = tff.simulation.compose_dataset_computation_with_learning_process(
        tff.tensorflow.computation(preprocess, tff.SequenceType(spec)),
        _dense_process(),
    )
    rows = [(np.zeros([8, 8, 1], np.float32), np.zeros([1], np.int32))]
    with self.assertRaisesRegex(
        runtime.UnsupportedComputationError,
        f'cannot be a program of XLA, because.*{fix}',
    ):
      runtime.export_round(process, [rows * 4])

  def test_pipelines_are_refused(self):
    ragged = [
        [(np.zeros([2, 8, 8, 1], np.float32), np.zeros([3, 1], np.int32))]
    ]
    with self.assertRaisesRegex(
        runtime.UnsupportedComputationError,
        'cannot be a program of XLA, because the components of an element',
    ):
      runtime.export_round(_dense_process(), ragged)

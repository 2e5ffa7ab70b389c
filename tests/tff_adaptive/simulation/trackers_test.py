# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the writers for experiment trackers, on their own file stores.

Those of the packages run where they are installed, which the lock does not
hold; others have a stand-in.
"""

import functools
from importlib import machinery
import json
import os
import struct
import sys
import types
from unittest import mock

from absl.testing import absltest
import numpy as np
import pytest

from tests.tff_adaptive.simulation import loop_testing
from tff_adaptive import analysis
from tff_adaptive.simulation import metrics_writers
from tff_adaptive.simulation import trackers

_HPARAMS = {'client_learning_rate': 0.1, 'seed': 0, 'loss_term': None}


class MissingPackageTest(absltest.TestCase):

  def test_a_missing_package_is_named_with_what_to_install(self):
    class Writer(trackers.WandbWriter):
      _package = 'no_such_tracker'

    with self.assertRaisesRegex(
        ImportError,
        'the package no_such_tracker is not installed; install it with '
        '.*python.* -m pip install no_such_tracker$',
    ):
      Writer('run', _HPARAMS)


class _TrackerTestCase(loop_testing.LoopTestCase):
  """Trains ten rounds, of which the first call fails in the sixth."""

  def run_and_fail(self, make_writer):
    def fail(state):
      if state['rounds'] == 5:
        raise RuntimeError('killed')

    with self.assertRaisesRegex(RuntimeError, 'killed'):
      self.run_loop(
          process=loop_testing.Process(fail), writers=self._writers(make_writer)
      )

  def run_to_the_end(self, make_writer, **kwargs):
    self.run_loop(writers=self._writers(make_writer), **kwargs)

  def _writers(self, make_writer):
    csv = metrics_writers.CSVMetricsWriter(self.folder / 'run' / 'metrics.csv')
    return [csv, make_writer()]

  def losses(self):
    """Returns the losses of metrics.csv, by round."""
    columns = analysis.read_columns(self.folder / 'run' / 'metrics.csv')
    rounds, losses = columns['clients/loss']
    return dict(zip(rounds, map(float, np.float32(losses))))


class _StandInRun:
  """Records what a run of Weights & Biases is told."""

  def __init__(self, options):
    self.options = options
    self.id = options['id'] or f'id_{id(self)}'
    self.losses = {}
    self.exit_code = None

  def log(self, numbers, step):
    self.losses[step] = numbers['clients/loss']

  def finish(self, exit_code):
    self.exit_code = exit_code


class WandbStandInTest(_TrackerTestCase):
  """Tests without the package."""

  def setUp(self):
    super().setUp()
    self.runs = []

    def init(**options):
      self.runs.append(_StandInRun(options))
      return self.runs[-1]

    module = types.ModuleType('wandb')
    module.init = init
    module.__spec__ = machinery.ModuleSpec('wandb', None, origin='made up')
    self.enter_context(mock.patch.dict(sys.modules, wandb=module))

  def _make_writer(self):
    return trackers.WandbWriter(self.folder / 'run', _HPARAMS, name='mine')

  def test_a_resumed_run_continues_that_of_the_tracker(self):
    self.run_and_fail(self._make_writer)
    self.run_to_the_end(self._make_writer)
    first, second = self.runs
    self.assertIsNone(first.options['resume'])
    self.assertEqual(second.options['resume'], 'allow')
    self.assertEqual(second.id, first.id)
    for run in self.runs:
      self.assertEqual(run.options['name'], 'mine')
      self.assertEqual(run.options['config'], _HPARAMS)
    self.assertEqual([first.exit_code, second.exit_code], [1, 0])
    losses = self.losses()
    self.assertEqual(list(first.losses), [1, 2, 3, 4, 5])
    # From the checkpoint of round 3 on.
    self.assertEqual(second.losses, {n: losses[n] for n in range(4, 11)})

  def test_a_run_that_starts_afresh_is_another_run(self):
    for _ in range(2):
      self.run_to_the_end(self._make_writer, checkpoints=None)
    first, second = self.runs
    self.assertNotEqual(first.id, second.id)

  def test_a_refusal_is_an_error_of_its_own(self):
    with mock.patch.object(
        sys.modules['wandb'], 'init', side_effect=ValueError('no login')
    ):
      with self.assertRaisesRegex(trackers.TrackerError, '^wandb: no login$'):
        self.run_to_the_end(self._make_writer)

  def test_a_refusal_of_metrics_is_too_and_one_of_the_end_is_a_warning(self):
    down = mock.Mock(side_effect=ConnectionError('no network'))
    with self.assertLogs('absl', 'WARNING') as logs:
      with mock.patch.object(_StandInRun, 'finish', down):
        self.run_to_the_end(self._make_writer, checkpoints=None)
        with mock.patch.object(_StandInRun, 'log', down):
          with self.assertRaisesRegex(trackers.TrackerError, '^wandb: no net'):
            self.run_to_the_end(self._make_writer, checkpoints=None)
    self.assertLen(logs.output, 2)

  def test_a_retry_that_succeeds_has_not_failed(self):
    try:
      raise ValueError('of an earlier attempt')
    except ValueError:
      self.run_and_fail(self._make_writer)
      self.run_to_the_end(self._make_writer)
    self.assertEqual([run.exit_code for run in self.runs], [1, 0])


class MLflowStandInTest(_TrackerTestCase):
  """Tests without the package."""

  def setUp(self):
    super().setUp()
    self.runs = []
    module = types.ModuleType('mlflow')
    module.start_run = self._start_run
    module.log_params = lambda params: self.run.data.params.update(params)
    module.set_tags = lambda tags: self.run.tags.update(tags)
    module.log_metrics = lambda row, step: self.run.rows.append((step, row))
    module.end_run = lambda status: setattr(self.run, 'status', status)
    module.MlflowClient = lambda: types.SimpleNamespace(
        get_metric_history=self._get_metric_history
    )
    module.__spec__ = machinery.ModuleSpec('mlflow', None, origin='made up')
    self.enter_context(mock.patch.dict(sys.modules, mlflow=module))

  def _start_run(self, run_id, run_name):
    if run_id is None:
      run = types.SimpleNamespace(
          info=types.SimpleNamespace(run_id=str(len(self.runs))),
          data=types.SimpleNamespace(params={}),
          name=run_name,
          tags={},
          rows=[],
      )
      self.runs.append(run)
    self.run = self.runs[-1 if run_id is None else int(run_id)]
    return self.run

  def _get_metric_history(self, run_id, name):
    rows = self.runs[int(run_id)].rows
    return [types.SimpleNamespace(step=n) for n, row in rows if name in row]

  def _make_writer(self, **hparams):
    return trackers.MLflowWriter(
        self.folder / 'run', {**_HPARAMS, **hparams}, name='mine'
    )

  def test_a_resumed_run_is_one_run_with_every_round_once(self):
    self.run_and_fail(self._make_writer)
    self.assertEqual(self.run.status, 'FAILED')
    self.run_to_the_end(self._make_writer)
    (run,) = self.runs
    self.assertEqual((run.name, run.status), ('mine', 'FINISHED'))
    self.assertEqual(
        run.data.params,
        {'client_learning_rate': '0.1', 'seed': '0', 'loss_term': 'None'},
    )
    self.assertEqual(
        [(step, row['clients/loss']) for step, row in run.rows],
        list(self.losses().items()),
    )

  def test_names_that_mlflow_refuses_are_changed(self):
    (self.folder / 'run').mkdir()
    writer = self._make_writer()
    writer.resume(0)
    names = {
        'train/f1@5': 'train/f1_5',
        'train/f1:5': 'train/f1_5_0',
        '/a//b/../c': '_/a/_/b/_../c',
        '..d': '_..d',
        'top 5/e-1.é': 'top 5/e-1.é',
    }
    for round_num in (1, 2):
      writer.write(round_num, dict.fromkeys(names, round_num))
    for _, row in self.run.rows:
      self.assertEqual(list(row), list(names.values()))

  def test_mlflow_gets_no_more_at_once_than_it_takes(self):
    sizes = []
    module = sys.modules['mlflow']
    module.log_params = lambda params: sizes.append(len(params))
    module.log_metrics = lambda row, step: sizes.append(len(row))
    (self.folder / 'run').mkdir()
    writer = self._make_writer(**{f'p{i}': i for i in range(198)})
    writer.resume(0)
    writer.write(1, {f'f1_{i}': 0.5 for i in range(1001)})
    self.assertEqual(sizes, [100, 100, 1, 1000, 1])

  def test_more_rounds_are_a_tag(self):
    for total_rounds in (4, 6):
      make_writer = functools.partial(
          self._make_writer, total_rounds=total_rounds
      )
      self.run_to_the_end(make_writer, total_rounds=total_rounds)
    self.assertEqual(self.run.data.params['total_rounds'], '4')
    self.assertEqual(self.run.tags, {'total_rounds': '6'})

  def test_a_run_that_starts_afresh_is_another_run(self):
    for _ in range(2):
      self.run_to_the_end(self._make_writer, checkpoints=None)
    self.assertEqual([len(run.rows) for run in self.runs], [10, 10])


class MLflowWriterTest(_TrackerTestCase):

  def setUp(self):
    super().setUp()
    pytest.importorskip('mlflow', reason='MLflow is not installed.')
    self.enter_context(
        mock.patch.dict(
            os.environ,
            MLFLOW_TRACKING_URI=f'file:{self.folder / "mlruns"}',
            MLFLOW_EXPERIMENT_NAME='digits',
            # MLflow 3 would rather have a database.
            MLFLOW_ALLOW_FILE_STORE='true',
        )
    )

  def _make_writer(self, **hparams):
    return trackers.MLflowWriter(
        self.folder / 'run', {**_HPARAMS, **hparams}, name='mine'
    )

  def _find_runs(self):
    """Returns all runs with their steps and losses."""
    import mlflow

    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name('digits')
    return [
        (
            run,
            [
                (metric.step, metric.value)
                for metric in client.get_metric_history(
                    run.info.run_id, 'clients/loss'
                )
            ],
        )
        for run in client.search_runs([experiment.experiment_id])
    ]

  def test_a_resumed_run_is_one_run_with_every_round_once(self):
    self.run_and_fail(self._make_writer)
    ((run, losses),) = self._find_runs()
    self.assertEqual(run.info.status, 'FAILED')
    self.assertLen(losses, 5)
    self.run_to_the_end(self._make_writer)
    ((run, losses),) = self._find_runs()
    self.assertEqual(run.info.status, 'FINISHED')
    self.assertEqual(run.info.run_name, 'mine')
    self.assertEqual(
        run.data.params,
        {'client_learning_rate': '0.1', 'seed': '0', 'loss_term': 'None'},
    )
    self.assertEqual(losses, sorted(self.losses().items()))
    self.assertLen(losses, 10)
    self.assertContainsSubset(
        {'seconds', 'evaluation/accuracy'}, run.data.metrics
    )

  def test_a_refusal_is_an_error_of_its_own(self):
    self.enter_context(
        mock.patch.dict(os.environ, MLFLOW_TRACKING_URI='no-such-scheme://x')
    )
    with self.assertRaisesRegex(trackers.TrackerError, '^mlflow: '):
      self.run_to_the_end(self._make_writer)


def _read_records(path):
  """Yields the records of a file in the form of LevelDB's logs."""
  data, place, record = path.read_bytes(), _HEADER_BYTES, b''
  while place + 7 <= len(data):
    left = _BLOCK_BYTES - place % _BLOCK_BYTES
    if left < 7:  # Too few for a header.
      place += left
      continue
    _, size, kind = struct.unpack('<IHB', data[place : place + 7])
    record += data[place + 7 : place + 7 + size]
    place += 7 + size
    if kind in (1, 4):  # A whole record, or its last piece.
      yield record
      record = b''


_HEADER_BYTES = 7
_BLOCK_BYTES = 32768


class WandbWriterTest(_TrackerTestCase):

  def setUp(self):
    super().setUp()
    pytest.importorskip('wandb', reason='Weights & Biases is not installed.')
    self.enter_context(
        mock.patch.dict(
            os.environ,
            WANDB_MODE='offline',
            WANDB_SILENT='true',
            WANDB_PROJECT='digits',
        )
    )

  def _make_writer(self):
    return trackers.WandbWriter(self.folder / 'run', _HPARAMS, name='mine')

  def _find_runs(self):
    """Returns id, configuration, losses and exit code of each start."""
    import wandb

    wandb.teardown()  # Its process writes the last records.
    paths = sorted((self.folder / 'run').glob('wandb/offline-run-*/*.wandb'))
    return [self._read(path) for path in paths]

  def _read(self, path):
    from wandb.proto import wandb_internal_pb2

    found = {'config': {}, 'losses': {}}
    for data in _read_records(path):
      record = wandb_internal_pb2.Record.FromString(data)
      kind = record.WhichOneof('record_type')
      if kind == 'run':
        found['id'] = record.run.run_id
        found['name'] = record.run.display_name
        for item in record.run.config.update:
          found['config'][item.key] = json.loads(item.value_json)
      elif kind == 'history':
        row = {
            item.key or '/'.join(item.nested_key): json.loads(item.value_json)
            for item in record.history.item
        }
        found['losses'][record.history.step.num] = row['clients/loss']
      elif kind == 'exit':
        found['exit_code'] = record.exit.exit_code
    return found

  def test_a_resumed_run_has_the_same_id(self):
    self.run_and_fail(self._make_writer)
    self.run_to_the_end(self._make_writer)
    first, second = self._find_runs()
    self.assertEqual(first['id'], second['id'])
    self.assertEqual(second['name'], 'mine')
    self.assertContainsSubset(_HPARAMS, second['config'])
    self.assertEqual([first['exit_code'], second['exit_code']], [1, 0])
    losses = self.losses()
    self.assertEqual(first['losses'], {n: losses[n] for n in range(1, 6)})
    # From the checkpoint of round 3 on.
    self.assertEqual(second['losses'], {n: losses[n] for n in range(4, 11)})

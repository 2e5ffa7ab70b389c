# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that bad arguments of simulations are refused by name."""

import functools
import math
from typing import Any

import attrs
import numpy as np
import tensorflow as tf

from tests.tff_adaptive import error_testing
from tests.tff_adaptive.simulation import loop_testing
from tests.tff_adaptive.simulation import task_testing
from tff_adaptive import data
from tff_adaptive import simulation
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation import training_loop

_partial: Any = functools.partial
_value, _type = error_testing.value_error, error_testing.type_error
_bad, _bad_type = error_testing.bad_values, error_testing.bad_types

_NUMBERS = (
    'client_batch_size',
    'client_epochs',
    'clients_per_round',
    'total_rounds',
    'max_examples',
)
_WIDE_SPEC = dict(
    task_testing.INPUT_SPEC, x=tf.TensorSpec([None, 4], tf.float32)
)
_PAIR_SPEC = tuple(task_testing.INPUT_SPEC.values())
_task = task_testing.build_task


def _clients(**features):
  arrays = {name: np.asarray(value) for name, value in features.items()}
  return data.PackedClientArrays.from_clients({'a': arrays, 'b': arrays})


_X, _Y = np.ones([1, 3], np.float32), np.zeros([1], np.int32)
_EVAL = dict(task_testing.examples(2), y=np.zeros([2]))
test_tasks_are_refused = error_testing.refused(
    *_bad(task_testing.protocol, **dict.fromkeys(_NUMBERS, 0)),
    *_bad_type(task_testing.protocol, **dict.fromkeys(_NUMBERS, 1.5)),
    *_bad(_task, train_data=_clients(x=np.ones([1, 4], 'f'), y=_Y)),
    *_bad(_task, train_data=_clients(y=_Y, x=_X)),
    *_bad(_task, train_data=_clients(x=_X)),
    *_bad(_task, test_data=_clients(x=np.ones([1, 3]), y=_Y)),
    *_bad(_task, central_test=_EVAL),
    _value('number', _task, central_test=dict(task_testing.examples(2), y=_Y)),
    *_bad_type(_task, name=3, functional_model='cnn', train_data={}),
    *_bad_type(_task, variable_model_fn=3, protocol=None, num_classes=2.0),
    *_bad_type(_task, representation_fn='cnn'),
    _type('central test data', _task, central_test=[1]),
    _value(
        '`clients_per_round`.* 2.*found 3',
        lambda: _task(protocol=task_testing.protocol(clients_per_round=3)),
    ),
    _value(
        "`train_data`.*'x'",
        lambda: _task(
            functional_model=task_testing.functional_model(_WIDE_SPEC)
        ),
    ),
    _type(
        '`input_spec`',
        lambda: _task(
            functional_model=task_testing.functional_model(_PAIR_SPEC)
        ),
    ),
    _value('found 3', simulation.hold_out_clients, _task([3, 1, 2]), 3, seed=0),
    _value('`clients_per_round`', simulation.take_clients, _task(), 1, seed=1),
)

_monitor = _partial(callbacks.Monitor, metric='loss', mode='min')
_stopping = _partial(simulation.EarlyStopping, 'loss', mode='min')
_average = simulation.WeightsMovingAverage
test_callbacks_are_refused = error_testing.refused(
    *_bad(_monitor, metric='', mode='best', min_delta=-0.5),
    *_bad(_monitor, min_delta=math.nan),
    *_bad(_stopping, patience=0, mode='least', min_delta=-1.0),
    *_bad(_partial(simulation.BestCheckpoint, 'folder'), mode='best'),
    *_bad(_average, decay=-0.1),
    *_bad(_average, decay=1.1),
    *_bad(_average, decay=math.nan),
    *_bad(simulation.LastWeightsAverage, num_rounds=0),
    *_bad(_partial(simulation.LastWeightsAverage, 2), name='a/b'),
    *_bad(_partial(simulation.CheckpointManager, 'folder'), keep_total=0),
    *_bad(simulation.ClientStateStore, max_bytes=-1, max_rejections=0),
)

_train = _partial(
    training_loop.run_training,
    loop_testing.Process(),
    cohort_fn=lambda round_index: [1],
    total_rounds=1,
)
_faults = _partial(simulation.inject_faults, lambda round_index: [])
_pooled = _partial(simulation.build_pooled_cohort_fn, seed=0)
_EMPTY = data.PackedClientArrays(
    {'x': np.zeros([0, 3], np.float32), 'y': np.zeros([0], np.int32)},
    [0, 0, 0],
    ['a', 'b'],
)
test_training_is_refused = error_testing.refused(
    *_bad(_train, total_rounds=0, rounds_per_evaluation=0),
    *_bad(_train, rounds_per_checkpoint=0, max_rejected_rounds=0),
    *_bad_type(_train, checkpoints='runs', callbacks=[print]),
    *_bad_type(_train, writers=simulation.CSVMetricsWriter('metrics.csv')),
    *(
        _type(f'`total_rounds`.*{number!r}', _train, total_rounds=number)
        for number in (2.5, 3.0, True, '3', None)
    ),
    *_bad(_faults, drop_clients=-0.1, straggler_fraction=1.1),
    *_bad(_faults, drop_clients=math.nan, straggler_fraction=math.nan),
    _type(
        'found list',
        simulation.FaultCounts().measure,
        loop_testing.round_end(cohort=[]),
    ),
    *_bad(_partial(_pooled, _task()), seed=-1, shuffle_buffer=0),
    *_bad_type(_partial(_pooled, _task()), shuffle_buffer=1.5),
    _value(
        "task 'toy'", lambda: _pooled(attrs.evolve(_task(), train_data=_EMPTY))
    ),
    _value(
        "6, .* of task 'toy', found 7",
        lambda: _pooled(
            _task(protocol=task_testing.protocol(client_batch_size=7))
        ),
    ),
)

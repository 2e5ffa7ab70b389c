# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that bad arguments are refused by name; data and simulations apart."""

import collections
import functools
import math
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import error_testing
from tests.tff_adaptive import testing
from tff_adaptive import algorithms
from tff_adaptive import client_works
from tff_adaptive import data
from tff_adaptive import evaluation
from tff_adaptive import layers
from tff_adaptive import optimizers
from tff_adaptive import privacy
from tff_adaptive import runtime
from tff_adaptive import simulation
from tff_adaptive import tuning
from tff_adaptive.aggregators import reports
from tff_adaptive.aggregators import weighting
from tff_adaptive.algorithms import scaled_rates
from tff_adaptive.analysis import client_plots
from tff_adaptive.analysis import similarity
from tff_adaptive.client_works import local_training
from tff_adaptive.optimizers import schedules

_partial: Any = functools.partial
_value, _type = error_testing.value_error, error_testing.type_error
_bad, _bad_type = error_testing.bad_values, error_testing.bad_types
_SGD, _FEDDYN = optimizers.build_sgd(0.1), optimizers.build_feddyn(3)
_STOCK_ADAM = tff.learning.optimizers.build_adam(0.1)
_SUM, _MEAN = tff.aggregators.SumFactory(), tff.aggregators.MeanFactory()
_NUM_EXAMPLES = tff.learning.ClientWeighting.NUM_EXAMPLES
_UNIFORM = tff.learning.ClientWeighting.UNIFORM
_PRIVATE = tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
    1.0, clients_per_round=2.0, clip=1.0
)
_PRIVATE_MEAN = tff.learning.dp_aggregator(0.1, 10.0)


def _of_model(build):
  """Returns a builder of what trains or measures the linear classifier."""
  return lambda *args, **kwargs: build(
      testing.functional_model(), *args, **kwargs
  )


def _rule(name, *args, **kwargs):
  return getattr(optimizers, f'build_{name}')(*args, **kwargs)


_fed_opt = _of_model(algorithms.build_fed_opt)
_trains = _partial(_fed_opt, _SGD)
_central = _of_model(algorithms.build_centralized)
_stock = _of_model(tff.learning.algorithms.build_weighted_fed_avg)
_stock_mime = _of_model(tff.learning.algorithms.build_weighted_mime_lite)
_carried = _rule('dog', carry_state=True)
test_algorithms_are_refused = error_testing.refused(
    _type('client optimizer.*Keras', _fed_opt, tf.keras.optimizers.SGD),
    _type('client optimizer.*str', _fed_opt, 'armijo'),
    _value('a rule of servers, found FedExP', _fed_opt, _rule('fedexp')),
    _type('server optimizer.*float', _trains, 0.1),
    _value('a server has none', _trains, _rule('delta_sgd')),
    _value('a client rule.*FedCAda', _trains, _rule('fedcada_adam')),
    _type("ClientWeighting.*'uniform'", _trains, client_weighting='uniform'),
    _type('metrics_aggregator.*SumFactory', _trains, metrics_aggregator=_SUM),
    _type('loop_implementation.*True', _trains, loop_implementation=True),
    _value('unweighted.*UNIFORM', _trains, model_aggregator=_SUM),
    _value('ignore the number', _trains, model_aggregator=_PRIVATE),
    _type('model_aggregator.*str', _trains, model_aggregator='mean'),
    *(
        _value('Client `max_update_norm`', _trains, max_update_norm=limit)
        for limit in (0.0, -1.0, math.nan, math.inf)
    ),
    _value(
        'no learning', _fed_opt, _rule('sps'), _rule('fedhyper_server_local')
    ),
    _value(
        'client optimizer is an integer',
        scaled_rates._check_has_rate,
        tff.to_type(collections.OrderedDict(learning_rate=np.int32)),
        'client optimizer',
    ),
    _value('optimizer Adam', _fed_opt, _rule('adam'), _rule('fednova')),
    _value(
        'step sizes', _fed_opt, _rule('adaalter'), _rule('line_search_step')
    ),
    _value('step sizes', _fed_opt, _STOCK_ADAM, _rule('line_search_step')),
    _value('UNIFORM', _fed_opt, _FEDDYN, client_weighting=_NUM_EXAMPLES),
    _type('The server optimizer', _fed_opt, _FEDDYN, optimizers.build_fedadam),
    _type('client optimizer', _central, 'adam'),
    _value('DoG with `carry_state=True`', _central, _carried),
    _value('without clients, found F', _central, _rule('fedcada_adam')),
    _value('without clients, found S', _central, _rule('scaffold_sgd', 10)),
    _value('without clients, found F', _central, _rule('fedexp')),
    _value('build_fed_opt', _stock, _rule('delta_sgd')),
    _value('SCAFFOLD keeps state', _stock, _rule('scaffold_sgd', 2)),
    _value('FedCAda keeps state', _stock, _rule('fedcada_adam', 0.1)),
    _value('AdaAlter keeps state', _stock, _rule('adaalter')),
    _value('reports.*build_fed_opt', _stock, _SGD, _rule('fedexp')),
    _value(
        'FedHyper.*the server', _stock, _SGD, _rule('fedhyper_server_local')
    ),
    _value('Free SGD ends.*build_fed', _stock, _rule('schedule_free_sgd')),
    _value('DoG ends the round', _stock, _rule('dog', send='average')),
    _value('DoG remembers weights', _stock_mime, _rule('dog')),
)

_sends = _partial(
    _fed_opt,
    _rule('fedcada_adam', 0.01),
    _rule('fedexp'),
    client_weighting=_UNIFORM,
)
_build_reports = _partial(reports.build_reports_factory, weighs_examples=True)
_to_weighted = _partial(weighting.to_weighted, argument='`a`')
_check_names = _partial(weighting.check_names, argument='`x`')
test_aggregators_are_refused = error_testing.refused(
    _value("'third'.*'sq", _sends, payload_aggregators={'third': None}),
    *_bad_type(_sends, payload_aggregators=_MEAN),
    _type(
        "'first_mo.*str", _sends, payload_aggregators={'first_moment': 'mean'}
    ),
    *(
        _value(
            f"'{name}' is unweighted.*UNIFORM",
            _sends,
            client_weighting=_NUM_EXAMPLES,
            payload_aggregators={name: _PRIVATE},
        )
        for name in ('first_moment', 'squared_norm')
    ),
    _value("'a'.*nothing", _trains, payload_aggregators={'a': None}),
    _value("'reduction'.*median", optimizers.Report, reduction='median'),
    _value("'a' is unweighted", _build_reports, {'a': 'mean'}, {'a': _SUM}),
    _value("'b', a sum", _build_reports, {'b': 'sum'}, {'b': _MEAN}),
    _value("'c'.*a maximum", _build_reports, {'c': 'max'}, {'c': _MEAN}),
    _value(r'`a` is unweighted \(Sum', _to_weighted, _SUM, True),
    _type('`a` must be.*float', _to_weighted, 0.5, True),
    _type('`a` must be.*float', _to_weighted, 0.5, False),
    _value("`x` has.*'c'.*'b'", _check_names, {'c': 1}, ['a', 'b']),
    _value("'c'.*nothing", _check_names, {'c': 1}, []),
    _type('`x` must map', _check_names, _SUM, ['a']),
)

_scaffold = _partial(optimizers.build_scaffold_sgd, num_clients=1)
_wolfe = optimizers.build_frank_wolfe
test_rules_are_refused = error_testing.refused(
    *_bad(optimizers.build_fedexp, epsilon=math.nan),
    *_bad(optimizers.build_fedexprox_stops, max_scale=0.0, gamma=0.0),
    *_bad(optimizers.build_fedexprox_stops, optimal_value=math.nan),
    *_bad(optimizers.build_fednova, learning_rate=-1.0, tau_eff='all'),
    *_bad(_scaffold, num_clients=0, learning_rate=-1.0),
    *_bad_type(_scaffold, num_clients=2.0),
    *_bad_type(_scaffold, num_clients=True),
    *_bad(_wolfe, learning_rate=0.0, weight_decay=-0.1, epsilon=-1e-3),
    *_bad(_wolfe, learning_rate=-1.0, momentum=math.nan, objective_at='first'),
    _value("'largest'", _rule, 'line_search_step', 'largest'),
    _value('-0.5', _rule, 'line_search_step', -0.5),
    _value(
        '`min_scale`', _rule, 'fedhyper_global', min_scale=2.0, max_scale=1.0
    ),
    _value('`bias_correction=True`', _rule, 'fedadam', epsilon_hat=True),
    _value('`bias_correction=True`', _rule, 'fedyogi', epsilon_hat=True),
    _value('total_rounds.*0', schedules.build_step_decay, 0),
    _type('rounds.*2.5', schedules.build_step_decay, 2.5),
    _value('decay_rate.*-0.1', schedules.build_exp_decay, -0.1),
    _value('rounds_per_decay', schedules.build_exp_decay, 0.1, 0),
    _value(r'round 0.*\[1\]', schedules.build_table, {1: 1.0}),
    _value('round 0', schedules.build_table, {}),
    _type('found 0.5', schedules.build_table, {0: 1.0, 0.5: 1.0}),
    _value('factors.*-1', schedules.build_table, {0: -1.0}),
)

_moon = _partial(client_works.build_moon, lambda weights, batch: batch['x'])
_work = _partial(
    _of_model(client_works.build_local_training_client_work),
    client_weighting=_UNIFORM,
)
_OTHERS = {'contrl': None}
test_client_works_are_refused = error_testing.refused(
    _value("'contrl'.* nothing", _work, _SGD, shared_aggregators=_OTHERS),
    _value("'contrl'.*ol'", _work, _scaffold(), shared_aggregators=_OTHERS),
    _value('build_mimelite', _work, _rule('mime'), loss_term=_moon()),
    *_bad(client_works.build_fedprox, mu=-1.0),
    *_bad(_moon, mu=-1.0, temperature=0.0),
    *_bad_type(client_works.build_moon, representation_fn='dense'),
    _value('clip_norm', local_training.GradientOptions, clip_norm=0.0),
    _value('decay', local_training.GradientOptions, weight_decay=-1.0),
)

_dp = _partial(
    privacy.DifferentialPrivacy, noise_multiplier=1.0, clients_per_round=10
)
_accountant = _partial(
    privacy.RoundAccountant,
    noise_multiplier=1.0,
    num_clients=100,
    clients_per_round=10,
    sampling=privacy.CohortSampling.POISSON,
)
_PRIVATELY = dict(client_weighting=_UNIFORM, privacy=_dp())
_private = _partial(_trains, **_PRIVATELY)
test_privacy_is_refused = error_testing.refused(
    *_bad(_dp, noise_multiplier=-1.0, clients_per_round=0, clip_norm=0.0),
    *_bad_type(_dp, noise_multiplier='1', clients_per_round=2.5),
    *_bad_type(_dp, payload_clip_norms=1.0, adaptive_clipping=True),
    _value("'control'.*inf", _dp, payload_clip_norms={'control': math.inf}),
    *_bad(privacy.AdaptiveClipping, target_quantile=1.5, learning_rate=-0.1),
    *_bad(privacy.AdaptiveClipping, count_stddev=0.0),
    _value("'control'.*`payload_clip", _dp().build_aggregators, ['control']),
    _value(
        "'a'.*nothing", _dp(payload_clip_norms={'a': 1.0}).build_aggregators
    ),
    *_bad(_accountant, noise_multiplier=-1.0, clients_per_round=101),
    *_bad(_accountant, noise_multiplier=math.nan, clients_per_round=0),
    *_bad_type(_accountant, sampling='fixed', num_clients=10.0),
    _value('found -1', _accountant().get_epsilon, -1, 0.1),
    _value('found 0.0', _accountant().get_epsilon, 1, 0.0),
    _value('found 1.0', _accountant().get_epsilon, 1, 1.0),
    *_bad(_partial(simulation.PrivacySpent, _accountant()), delta=2.0),
    _value('2 clients, found 1', privacy.default_delta, 1),
    _value('=.*UNIFORM', _private, client_weighting=_NUM_EXAMPLES),
    *_bad(_private, model_aggregator=_MEAN, payload_aggregators={'a': _MEAN}),
    *_bad_type(_private, privacy=1.0),
    _value("send .'control'", _fed_opt, _scaffold(), **_PRIVATELY),
    _value(
        "'last_step_size'.*not a sum",
        _fed_opt,
        _rule('armijo'),
        _rule('line_search_step'),
        **_PRIVATELY,
    ),
    _value('Mime averages', _fed_opt, _rule('mime'), **_PRIVATELY),
    _value(
        'Mime averages the .*build_mimelite',
        _fed_opt,
        _rule('mime'),
        client_weighting=_UNIFORM,
        model_aggregator=_PRIVATE_MEAN,
        payload_aggregators={'momentum': _PRIVATE_MEAN},
    ),
)

_ARRAYS = testing.client(4, seed=0)[0]
_EMPTY = {name: array[:0] for name, array in _ARRAYS.items()}
_ONE_LABEL, _LONG = np.zeros([1], np.int32), np.zeros([4], np.int64)
_WIDE = np.zeros([4, 6], np.float32)
_A, _B = (data.PackedClientArrays.from_clients({k: _ARRAYS}) for k in 'ab')
_evaluate = _of_model(evaluation.build_central_evaluation)
_sampled = _partial(_of_model(evaluation.build_sampled_evaluation), None)
_each = _partial(_of_model(evaluation.build_client_evaluation), _A)
_personal = _of_model(evaluation.build_personalized_evaluation)
_steps = _partial(_personal, _A, _A, _SGD)
_of_metrics = _partial(evaluation.ClientMetrics, 'ab')
_cohort_fn: Any = lambda round_num: []
_tuner = _of_model(
    lambda model, **options: tuning.build_rate_tuner(
        _trains(), model, _cohort_fn, **options
    )
)
test_measurements_are_refused = error_testing.refused(
    _type('of a dataset', _evaluate, tf.data.Dataset.range(3)),
    *_bad(_partial(_evaluate, _ARRAYS), batch_size=0),
    *_bad_type(_partial(_evaluate, _ARRAYS), batch_size=2.5),
    _value(r'lengths \[1, 4\]', _evaluate, dict(_ARRAYS, y=_ONE_LABEL)),
    _value('at least one', _evaluate, _EMPTY),
    _value("int64.*'y'", _evaluate, dict(_ARRAYS, y=_LONG)),
    _value("6.*'x'", _evaluate, dict(_ARRAYS, x=_WIDE)),
    _value("'x', 'y', 'z'", _evaluate, dict(_ARRAYS, z=_LONG)),
    *_bad(_sampled, batch_size=0),
    *_bad(_each, batch_size=0, num_clients=2),
    _value('both', _personal, _A, _B, _SGD),
    _value('SCAFFOLD', _personal, _A, _A, _scaffold()),
    _type('`optimizer`', _personal, _A, _A, 'sgd'),
    *_bad(_steps, num_steps=0, num_epochs=0),
    _value("'max' or 'min'", _of_metrics, [1, 1], {'b': [1, 1]}, {'b': 'up'}),
    _value(r'`b`.*2 clients.*\(1,\)', _of_metrics, [1, 1], {'b': [1]}),
    _value('`num_examples`', _of_metrics, [1], {'b': [1.0, 1.0]}),
    *_bad(_tuner, step_size=0.0, num_rounds=0),
    _type('float32.*Dense', layers.BagOfWordsDense(3, 5), tf.ones([2, 5])),
    *_bad(_partial(layers.BagOfWordsDense, vocabulary_size=5), units=0),
    *_bad(_partial(layers.BagOfWordsDense, 3), vocabulary_size=-1),
)

_EYE, _NAN = np.eye(2), np.full([2, 2], np.nan)
_cka, _all_cka = similarity.linear_cka, similarity.pairwise_moments_cka
_plot = _partial(similarity.plot_similarity, path='a.png')
_count = client_plots.count_labels
_plot_labels = _partial(
    client_plots.plot_client_labels, num_classes=5, path='a.png'
)


def _features(**features):
  return data.PackedClientArrays.from_clients({'a': features})


test_analyses_are_refused = error_testing.refused(
    _value('found 3 and 2', _cka, np.ones([3, 2]), _EYE),
    _value(r'`x`.*\(3,\)', _cka, np.ones([3]), _EYE),
    _value('`y`.*nan', _cka, _EYE, _NAN),
    _value('`x`.*inf', _cka, [[np.inf]], [[1.0]]),
    _value('at least one client', _all_cka, []),
    _value('client 0', _all_cka, [[np.ones([3])]]),
    _value('at client 1', _all_cka, [[_EYE], [np.eye(3)]]),
    _value('client 1.*nan', _all_cka, [[_EYE], [_NAN]]),
    _value(r'\(2, 3\) and 2 `labels`', _plot, np.ones([2, 3]), 'ab'),
    _value(r'shape \(0, 0\)', _plot, np.ones([0, 0]), ''),
    _value('3 `labels`', _plot, _EYE, 'abc'),
    _value('found 0 to 2', _plot, 2 * _EYE, 'ab'),
    _value('`matrix`.*nan', _plot, _NAN, 'ab'),
    _value('from 0 to 2, found 5', _count, [0, 5], {'a': [0, 1]}, 3),
    _value('found -1', _count, [0, -1], {'a': [0, 1]}),
    _value('at least one client', _count, [0], {}),
    *_bad(_partial(_plot_labels, _features(y=[0])), max_clients=-1),
    _value("'y' with one", _plot_labels, _features(x=np.zeros([3]))),
    _value("'y' with one", _plot_labels, _features(y=np.zeros([3]))),
    _value("'y' with one", _plot_labels, _features(y=np.zeros([3, 5], int))),
)

_context = runtime.CompiledContext
test_contexts_are_refused = error_testing.refused(
    *_bad(_context, num_parallel_clients=0, max_cache_bytes=-1),
    *_bad(_context, default_num_clients=-1, seed=-1),
    *_bad_type(_context, num_parallel_clients='loop', max_cache_bytes=1.5),
    *_bad_type(_context, max_cache_bytes=True, default_num_clients=2.0),
    *_bad_type(_context, default_num_clients=True, seed=1.5),
    *_bad(runtime.NativeContext, default_num_clients=-1),
    *_bad_type(runtime.NativeContext, default_num_clients=2.0),
    *_bad_type(runtime.NativeContext, default_num_clients=True),
    *_bad(runtime.AsyncCompiledContext, max_cache_bytes=-1),
    *(
        _value(named, _context, devices=devices)
        for named, names in (
            ("'CPU', 'GPU'", ('CPU:1', 'CPUs', '/device:GPU:99', '')),
            ('pip install', ('XLA:CPU:9', 'XLA:CPU:0-1', 'TPU:1', 'TPUs')),
            ('pip install', ('GPU', 'XLA:GPU')),
            ("pass `devices='XLA:CPU'`", ('XLA:CPUs', 'xla:cpus')),
            ("'XLA:CPU'", ('XLA', 'XLA:', 'XLA:NPU', 'XLA:CPU:first')),
            ("'XLA:CPU'", ('XLA:CPUs:1', 'XLA:CPU:0-')),
        )
        for devices in names
    ),
)

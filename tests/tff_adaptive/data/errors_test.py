# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that bad data and arguments are refused, with what is wrong."""

import functools
from typing import Any

import numpy as np
import tensorflow as tf

from tests.tff_adaptive import error_testing
from tff_adaptive import data
from tff_adaptive.data import batching
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import partition
from tff_adaptive.data import random_streams
from tff_adaptive.data import transforms

_partial: Any = functools.partial
_row = error_testing.row
_value, _type = error_testing.value_error, error_testing.type_error
_bad, _bad_type = error_testing.bad_values, error_testing.bad_types

_plan = _partial(data.BatchPlan, batch_size=2)
_IN_ORDER = _plan(shuffle=False)
test_batches_are_refused = error_testing.refused(
    *_bad(_plan, batch_size=0, num_epochs=-3, max_examples=0),
    *_bad_type(_plan, batch_size=2.0, num_epochs='2', max_examples=True),
    *_bad_type(_plan, shuffle=1, drop_remainder=1),
    _value('`generator`', batching.example_order, _plan(), 3),
    _value('`num_examples`.* -1', batching.example_order, _IN_ORDER, -1),
    _value('`num_examples`.* -1', batching.batch_sizes, _IN_ORDER, -1),
)


def _clients(**clients):
  return data.PackedClientArrays.from_clients(clients)


def _lazy(ids=('a',), x=(1.0,), **kwargs):
  spec = {'x': tf.TensorSpec([], tf.float32)}
  examples = {'x': np.asarray(x, np.float32 if x == (1.0,) else np.float64)}
  return data.LazyClientArrays(ids, lambda _: examples, spec, **kwargs)


_cohort = _partial(
    data.Cohort, _lazy(), client_ids='a', round_num=0, seed=0, plan=_plan()
)
test_cohorts_are_refused = error_testing.refused(
    *_bad(_cohort, seed=-1, round_num=-1),
    *_bad_type(_cohort, round_num=1.0),
    _type('plan', _cohort, plan=20),
    _type('source', data.Cohort, {}, ['a'], 0, 0, _plan()),
    _row(KeyError, "'nobody'", _cohort, client_ids=['nobody']),
    _value(r"`step_limits\['a'\]`.* -1", _cohort, step_limits={'a': -1}),
)

_packed = _partial(
    data.PackedClientArrays, {'x': np.zeros([4])}, client_ids='ab'
)
_partitioned = _partial(
    data.PackedClientArrays.from_partition, {'x': np.zeros([4])}
)
test_clients_are_refused = error_testing.refused(
    _value('at least one client', _lazy, []),
    _value("'b' more than once", _lazy, ['a', 'b', 'b']),
    _value('text.*udc80', _lazy, ['a', '\udc80', 'b']),
    _type('string, found 1', _lazy, ['a', 1]),
    *_bad(_lazy, cache_bytes=-1),
    _value(r'3 .*found \[0 2\]', _packed, [0, 2]),
    _value(r'0 to 4.*found \[1 2 4\]', _packed, [1, 2, 4]),
    _value(r'0 to 4.*found \[0 2 3\]', _packed, [0, 2, 3]),
    _value(r'non-decreasing.*\[0 5 4\]', _packed, [0, 5, 4]),
    _value(r'`offsets`.*shape \(1, 3\)', _packed, [[0, 2, 4]]),
    _type('`offsets`.*float64', _packed, [0.0, 2.0, 4.0]),
    _value(r'\[0, 4\), found 0 to 4', _packed, [0, 1, 2], indices=[0, 4]),
    _value('found -1 to 0', _packed, [0, 1, 2], indices=[0, -1]),
    _type('`indices`.*float64', _packed, [0, 1, 2], indices=[0.0, 1.0]),
    _value('from 0 to 1, found', _packed, [0, 1, 2], indices=[0]),
    _value('at least one client', _clients),
    _value("'a'.*number", _clients, a={'x': [1], 'y': []}),
    _value("'b' has float64.*'x'", _clients, a={'x': [1]}, b={'x': [1.0]}),
    _value(r"'b'.*2\].*'x'", _clients, a={'x': [[1]]}, b={'x': [[1, 2]]}),
    _value("'b' has the fields", _clients, a={'x': [1]}, b={'z': [1]}),
    _type("client_indices.'b'.*float64", _partitioned, {'a': [1], 'b': [0.5]}),
    _value(r'\[0, 4\)', _partitioned, {'a': [4]}),
    _value('at least one client', _partitioned, {}),
    _value("'a' must have 9", _lazy(client_sizes={'a': 9}).examples, 'a'),
    _value("'a'.*float64", _lazy(x=[0.5]).examples, 'a'),
)

_examples = _partial(feature_arrays.as_examples, owner='Data')
_match = _partial(
    feature_arrays.check_match, spec={'x': tf.TensorSpec([], tf.float64)}
)
test_features_are_refused = error_testing.refused(
    _type('Data must be a mapping.*list', _examples, [1, 2]),
    _type('strings to arrays, found 1', _examples, {1: [1]}),
    _value('Data must have at least one feature', _examples, {}),
    _value("1.0 for feature 'x'", _examples, {'x': 1.0}),
    _type("'x' with a dict", _examples, {'x': {'a': [1]}}),
    _value("1: .*'x'.*None", _examples, {'x': np.array(['a', None])}),
    _value('Data must .* lists', _examples, {'x': [[1], [1, 2]]}),
    _value(f"Data.* {2**63} .*'x'", _examples, {'x': [1, 2**63]}),
    _value(f"Data.* {2**64} .*'x'", _examples, {'x': [2**64]}),
    _value(f'{2**53 + 1}', _examples, {'x': [[2**53 + 1, 0.5]]}),
    _value("1: .*'x'.*d.udfff", _examples, {'x': np.array(['c', 'd\udfff'])}),
    _value("{'x': 2, 'y': 1}", _examples, {'x': [1, 2], 'y': [1]}),
    _value(
        r"^a has the fields \['z'\]", _match, {'z': np.ones([1])}, owner='a'
    ),
    _value("float32.*'x'.*64", _match, {'x': np.ones([1], 'f')}, owner='a'),
    _value(r"\[\?,2\] in field 'x'", _match, {'x': np.ones([1, 2])}, owner='a'),
)

_ROWS = dict(labels=[0, 1, 0, 1], num_clients=2, seed=1)
_MATRIX = np.zeros([2, 2], int)
_per_client = _partial(partition.dirichlet_per_client, alpha=1.0, **_ROWS)
_per_class = _partial(partition.dirichlet_per_class, alpha=1.0, **_ROWS)
_pachinko = _partial(
    partition.pachinko_allocation, coarse_labels=[0, 1, 0, 1], **_ROWS
)
_scheme = _partial(partition.by_scheme, scheme='iid', **_ROWS)
_shards = _partial(partition.shards, shards_per_client=1, **_ROWS)
test_partitions_are_refused = error_testing.refused(
    *_bad(_per_client, labels=[], num_clients=0, seed=-1, alpha=0.0),
    *_bad(_per_client, labels=_MATRIX, alpha=np.nan),
    *_bad(_per_client, examples_per_client=[1, 1, 1], alpha=np.inf),
    *_bad(_per_client, examples_per_client=[1, 0], alpha=1e-45),
    *_bad(_per_client, alpha=1e308),
    *_bad_type(_per_client, labels=[0.0, 1.0], num_clients=True),
    _value('6 examples .*found 4', _per_client, examples_per_client=3),
    *_bad(_per_class, labels=[], num_clients=0, seed=-1, alpha=-1.0),
    *_bad(_per_class, min_size=-1, max_tries=0),
    *_bad(_per_class, min_size=3),
    *_bad_type(_per_class, min_size=1.0),
    _value(
        '`max_tries`=1',
        _per_class,
        labels=[0] * 4,
        alpha=1e-6,
        min_size=2,
        max_tries=1,
    ),
    _value('4 labels.* 3', _pachinko, coarse_labels=[0, 0, 1]),
    _value('class 1', _pachinko, coarse_labels=[0, 1, 0, 0]),
    *_bad(_pachinko, coarse_alpha=0.0, fine_alpha=np.inf, num_clients=0),
    *_bad(_pachinko, coarse_labels=_MATRIX),
    *_bad_type(_pachinko, coarse_labels=[0.0, 1.0, 0.0, 1.0]),
    _value('6 examples', _pachinko, examples_per_client=3),
    _value("`partition`.*'random'", _scheme, scheme='random'),
    _value("`partition`.*'pachinko'", _scheme, scheme='pachinko'),
    *_bad(_scheme, examples_per_client='0'),
    _value("found 'many'", _scheme, examples_per_client='many'),
    _value("found '5-'", _scheme, examples_per_client='5-'),
    _value('`high`.*9, found 5', _scheme, examples_per_client='9-5'),
    *(
        _value('not apply.*' + s, _scheme, scheme=s, examples_per_client='5')
        for s in ('shards', 'dirichlet_per_class')
    ),
    _value('12 .*found 10', partition.iid, 10, 3, 1, examples_per_client=4),
    _value('`num_examples`.* 0', partition.iid, 0, 3, 1),
    _type('`num_clients`.*3.0', partition.iid, 10, 3.0, 1),
    *_bad(_shards, num_clients=0, shards_per_client=3, seed=-1),
    *_bad_type(_shards, labels=[0.5], shards_per_client=1.0),
    _type('found float64', partition.by_natural_id, [1.0]),
    _type('found object', partition.by_natural_id, np.array(['a', 1], object)),
    _value(r'`ids`.*\(0,\)', partition.by_natural_id, []),
    _value(r'`ids`.*\(1, 1\)', partition.by_natural_id, [[1]]),
    _value('`total`.* 3 .*found 2', partition.equal_sizes, 3, 2),
    _value('`num_clients`.* 0', partition.uniform_sizes, 0, 1, 2, 1),
    _value('`low`.* 0', partition.uniform_sizes, 3, 0, 2, 1),
    _value('`high`.* 5, found 2', partition.uniform_sizes, 3, 5, 2, 1),
    _type('`high`.*2.5', partition.uniform_sizes, 3, 1, 2.5, 1),
    _value('`total`.*30', partition.skewed_sizes, 3, 20, 1, min_size=10),
    _value('`sigma`.* -1.0', partition.skewed_sizes, 3, 20, 1, sigma=-1.0),
    _value('`seed`', partition.skewed_sizes, 3, 20, -1),
    _type('`total`.*20.0', partition.skewed_sizes, 3, 20.0, 1),
)

_CHOICE = dict(client_ids='abcde', clients_per_round=2, seed=1)
_uniform = _partial(data.build_client_sampling, **_CHOICE)
_poisson = _partial(data.build_poisson_client_sampling, **_CHOICE)
_split = _partial(transforms.split_examples, _lazy(), seed=0)
_stream = _partial(random_streams.stream, use='use')
test_random_choices_are_refused = error_testing.refused(
    *_bad(_uniform, client_ids=[], clients_per_round=0, seed=-1),
    *_bad(_uniform, client_ids=['a', 'a'], clients_per_round=6),
    *_bad_type(_uniform, clients_per_round=2.0, seed=None),
    *_bad(_poisson, clients_per_round=6),
    _value('`round_num`.* -1', _uniform(), -1),
    _value('`round_num`.* -1', _poisson(), -1),
    _value('`num_examples`.* 0', data.sample_examples, {'x': [1]}, 0, 1),
    _value('`num_examples`.*-1', data.sample_client_examples, _lazy(), -1, 1),
    _value('`num_examples`.* 0', data.sample_examples_evenly, _lazy(), 0, 1),
    # Also if nothing is left out.
    _value('seed.*-1', data.sample_examples, {'x': np.arange(3)}, 5, -1),
    *_bad_type(_stream, seed=1.0),
    *_bad_type(_stream, seed=True),
    *_bad_type(_stream, seed=None),
    _value('`seed`.* -1', random_streams.derived_seed, -1, 'use'),
    _type('integers or strings', random_streams.stream, 1, 'use', 0.5),
    _type('integers or strings', random_streams.stream, 1, 'use', False),
    _type('integers', random_streams.StreamFamily(7, 'use').start, 0.5),
    _value('1 and 3', transforms.sample_client_ids, 'abc', 0, 0),
    _value('1 and 3', transforms.sample_client_ids, 'abc', 4, 0),
    _value('between 0 and 1', _split, test_fraction=0.0),
    _value('between 0 and 1', _split, test_fraction=1.0),
    _value('between 0 and 1', _split, test_fraction=np.nan),
)

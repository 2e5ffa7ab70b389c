# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The runtimes: where the computations of a run take place."""

from experiments.registry import rows

_PLAN = rows.Argument(
    'plan',
    str,
    'auto',
    "How the clients' work runs: one client after the other (loop), several at "
    'once (parallel), or what suits the device (auto).',
    flag='plan',
    choices=('auto', 'loop', 'parallel'),
)

# Their builders return context managers within which processes run.
RUNTIMES = (
    rows.Row(
        'compiled',
        'tff_adaptive.runtime:compiled_context',
        (
            rows.Argument(
                'devices',
                str,
                'auto',
                "Where the clients' work runs: CPU, GPU or a name such as "
                'GPU:1; auto is the first GPU, or the CPU without one.',
                flag='devices',
            ),
            _PLAN,
        ),
        supplied=(
            'strict',
            'seed',
            'default_num_clients',
            'max_cache_bytes',
        ),
    ),
    rows.Row(
        'native',
        'tff_adaptive.runtime:native_context',
        supplied=(
            'max_concurrent_computation_calls',
            'secure_sums_in_clear',
            'seeded_clients',
            'default_num_clients',
        ),
    ),
    rows.Row(
        'ray',
        'tff_adaptive.runtime.scale_out:ray_context',
        (
            rows.Argument(
                'address',
                str,
                None,
                'Where to find a cluster of Ray: auto for one on this machine, '
                'or host:port of its head. Without it one is started here, for '
                'this run.',
                is_hparam=False,
            ),
            rows.Argument(
                'num_workers',
                int,
                None,
                'How many processes share the clients. By default as many as '
                'there is room for on the cluster.',
                flag='ray_workers',
                minimum=1,
                is_hparam=False,
            ),
            rows.Argument(
                'cpus_per_worker',
                int,
                1,
                'How many cores each worker has, one for a client at a time.',
                flag='ray_cpus_per_worker',
                minimum=1,
                is_hparam=False,
            ),
            rows.Argument(
                'devices',
                str,
                'CPU',
                "Where the clients' work runs: CPU, or GPU, one a worker.",
                flag='devices',
            ),
            _PLAN,
        ),
        supplied=('strict', 'seed', 'max_cache_bytes'),
    ),
)

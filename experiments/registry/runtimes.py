# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rows of the runtimes, which execute the computations of a run."""

from experiments.registry import rows

_PLAN = rows.Argument(
    'plan',
    str,
    'auto',
    'Run clients one after the other (loop), several in parallel (parallel), '
    'or as suits the device (auto).',
    flag='plan',
    choices=('auto', 'loop', 'parallel'),
)

# The builders return context managers.
RUNTIMES = (
    rows.Row(
        'compiled',
        'tff_adaptive.runtime:compiled_context',
        (
            rows.Argument(
                'devices',
                str,
                'auto',
                "The device for the clients' work: CPU, GPU or a name such as "
                'GPU:1; auto is the first GPU, or the CPU if there is none.',
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
                'The address of a Ray cluster: auto for one on this machine, '
                'or host:port of its head. By default a cluster is started on '
                'this machine for the run.',
                is_hparam=False,
            ),
            rows.Argument(
                'num_workers',
                int,
                None,
                'The number of worker processes. By default as many as fit on '
                'the cluster.',
                flag='ray_workers',
                minimum=1,
                is_hparam=False,
            ),
            rows.Argument(
                'cpus_per_worker',
                int,
                1,
                'The number of cores per worker, each running one client at a '
                'time.',
                flag='ray_cpus_per_worker',
                minimum=1,
                is_hparam=False,
            ),
            rows.Argument(
                'devices',
                str,
                'CPU',
                "The device for the clients' work: CPU, or GPU, one per "
                'worker.',
                flag='devices',
            ),
            _PLAN,
        ),
        supplied=('strict', 'seed', 'max_cache_bytes'),
    ),
)

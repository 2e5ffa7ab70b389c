# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rows of the library's rules, algorithms and runtimes.

Every client rule, server rule, loss term and schedule has a function
`build_<name>`. Its folder or its return type identifies its kind.
"""

from collections.abc import Mapping
import dataclasses
from typing import Optional

from experiments.registry import rows
from experiments.registry import signatures

# Arguments that the binaries supply, without flags.
SUPPLIED = ('num_clients', 'total_rounds', 'trace_steps')
_OPTIMIZERS = 'tff_adaptive.optimizers'
_SCHEDULES = f'{_OPTIMIZERS}.schedules'


def kind_of(builder: signatures.Builder) -> str:
  """Returns the flag that chooses a rule; a client rule if nothing tells."""
  if builder.returns.endswith('LossTerm'):
    return rows.LOSS_TERM
  is_server_rule = (
      builder.returns == 'ServerOptimizer'
      or f'{builder.module}.'.startswith(f'{_OPTIMIZERS}.server.')
  )
  return rows.SERVER_OPTIMIZER if is_server_rule else rows.CLIENT_OPTIMIZER


def _row(builder: signatures.Builder, flags: Mapping[str, str]) -> rows.Row:
  arguments, supplied = signatures.to_arguments(
      builder, supplied=SUPPLIED, flags=flags
  )
  return rows.Row(builder.name, builder.reference, arguments, supplied)


def create(kind: str, builder: signatures.Builder) -> rows.Row:
  """Returns the row of a rule.

  Args:
    kind: The flag that chooses it, one of `rows.RULES`.
    builder: Its builder.
  """
  learning_rate = kind.replace('optimizer', 'learning_rate')
  is_optimizer = kind != rows.LOSS_TERM
  return _row(builder, {'learning_rate': learning_rate} if is_optimizer else {})


def create_optimizers(kind: str) -> tuple[rows.Row, ...]:
  """Returns the rows of the optimizers of the clients or of the server.

  Args:
    kind: The flag that chooses one, which ends in `_optimizer`.
  """
  return tuple(
      create(kind, builder)
      for builder in signatures.builders(_OPTIMIZERS)
      if builder.returns.endswith('Optimizer') and kind_of(builder) == kind
  )


def create_loss_terms() -> tuple[rows.Row, ...]:
  """Returns the rows of the loss terms."""
  return (
      rows.Row('none', None),
      *(
          create(rows.LOSS_TERM, builder)
          for builder in signatures.builders('tff_adaptive.client_works')
          if kind_of(builder) == rows.LOSS_TERM
      ),
  )


def create_schedules(kind: str) -> tuple[rows.Row, ...]:
  """Returns the rows of the schedules of a placement's learning rate.

  Args:
    kind: The flag that chooses one, which prefixes the schedules' own flags.

  Returns:
    One row per schedule.
  """
  found = signatures.builders(_SCHEDULES)
  names = {name for builder in found for name in builder.argument_names}
  flags = {name: f'{kind}_{name}' for name in names}
  flags['factors'] = f'{kind}_table'
  return (
      rows.Row('constant', None),
      *(_row(builder, flags) for builder in found),
  )


_ALGORITHMS = 'tff_adaptive.algorithms'
_FLAGS = {
    'clip_norm': 'client_clip_norm',
    'weight_decay': 'client_weight_decay',
    'max_update_norm': 'max_client_update_norm',
}
_CLIENT_WEIGHTING = rows.Argument(
    'client_weighting',
    None,
    'Weight clients by their examples, or all equally. By default as the '
    'client optimizer asks: by examples, unless it needs equal weights.',
    type=str,
    flag='client_weighting',
    choices=('examples', 'uniform'),
    references=(
        'tensorflow_federated:learning.ClientWeighting.NUM_EXAMPLES',
        'tensorflow_federated:learning.ClientWeighting.UNIFORM',
    ),
)


def _algorithm(name: str, *parts: rows.Part) -> rows.Row:
  """Returns the row of `build_fed_opt` with the rules of a paper, if any."""
  row = _row(signatures.find(_ALGORITHMS, 'fed_opt'), _FLAGS)
  return dataclasses.replace(
      row,
      name=name,
      arguments=(_CLIENT_WEIGHTING, *row.arguments),
      supplied=tuple(n for n in row.supplied if n != _CLIENT_WEIGHTING.name),
      parts=parts,
  )


_OF_CLIENTS, _OF_SERVER = rows.CLIENT_OPTIMIZER, rows.SERVER_OPTIMIZER
# The client optimizers that need equal weights, and those whose arguments tell.
_WITH_EQUAL_WEIGHTS = (
    'adaalter',
    'fafed',
    'fedcada_adam',
    'feddyn',
    'fedmuon_lmo',
    'scaffold_sgd',
)
_WITH_SOME_WEIGHTS = ('fedspeed',)
ALGORITHMS = (
    _algorithm('fed_opt'),
    _algorithm('fedcada', rows.Part(_OF_CLIENTS, 'fedcada_adam')),
    _algorithm(
        'fedli_ls',
        rows.Part(_OF_CLIENTS, 'armijo', is_fixed=False),
        rows.Part(_OF_SERVER, 'line_search_step'),
    ),
    _algorithm('fedli_lu', rows.Part(_OF_SERVER, 'frank_wolfe')),
    *(
        _algorithm(
            name,
            rows.Part(_OF_CLIENTS, 'armijo', is_fixed=False),
            rows.Part(_OF_SERVER, server, is_fixed=False),
        )
        for name, server in (('fedsls', 'fedavg'), ('fedexpsls', 'fedexp'))
    ),
    _algorithm('scaffold', rows.Part(_OF_CLIENTS, 'scaffold_sgd')),
    *(
        _algorithm(name, rows.Part(_OF_CLIENTS, name))
        for name in ('feddyn', 'fafed', 'adaalter')
    ),
    dataclasses.replace(
        _row(signatures.find(_ALGORITHMS, 'centralized'), _FLAGS),
        pools_clients=True,
    ),
)

_NUM_PARALLEL_CLIENTS = rows.Argument(
    'num_parallel_clients',
    None,
    'The number of clients that run at once. By default the number of cores on '
    'a CPU; on a GPU or TPU 16 or 1, by the model.',
    type=int,
    flag='num_parallel_clients',
    minimum=1,
)

# The builders return context managers.
RUNTIMES = (
    rows.Row(
        rows.COMPILED,
        'tff_adaptive.runtime:CompiledContext',
        (
            rows.Argument(
                'devices',
                'auto',
                'The device for rounds: CPU, GPU, TPU, a name such as GPU:1, '
                'GPUs for all of them, or XLA:CPU; auto is the first '
                'accelerator, or the CPU if there is none.',
                flag='devices',
            ),
            _NUM_PARALLEL_CLIENTS,
        ),
        supplied=('strict', 'seed', 'default_num_clients', 'max_cache_bytes'),
    ),
    rows.Row(
        rows.NATIVE,
        'tff_adaptive.runtime:NativeContext',
        supplied=(
            'max_concurrent_computation_calls',
            'secure_sums_in_clear',
            'default_num_clients',
        ),
    ),
    rows.Row(
        rows.RAY,
        'tff_adaptive.runtime.scale_out:RayContext',
        (
            rows.Argument(
                'address',
                None,
                'The address of a Ray cluster: auto for one on this machine, '
                'or host:port of its head. By default a cluster is started on '
                'this machine for the run.',
                type=str,
                is_hparam=False,
            ),
            rows.Argument(
                'num_workers',
                None,
                'The number of worker processes. By default as many as fit on '
                'the cluster.',
                type=int,
                flag='ray_workers',
                minimum=1,
                is_hparam=False,
            ),
            rows.Argument(
                'cpus_per_worker',
                1,
                'The number of cores per worker, each running one client at a '
                'time.',
                flag='ray_cpus_per_worker',
                minimum=1,
                is_hparam=False,
            ),
            rows.Argument(
                'devices',
                'CPU',
                "The device for the clients' work: CPU, or GPU, one per "
                'worker.',
                flag='devices',
            ),
            _NUM_PARALLEL_CLIENTS,
        ),
        supplied=('strict', 'seed', 'default_num_clients', 'max_cache_bytes'),
    ),
)


def weighting_of(row: rows.Row) -> Optional[str]:
  """Returns how a client optimizer weights clients, unless the flag tells.

  Args:
    row: The row of the optimizer.

  Returns:
    A value of `--client_weighting`; `None` if only the built rule knows, as one
    of your own.
  """
  if row.digest is not None or row.name in _WITH_SOME_WEIGHTS:
    return None
  return 'uniform' if row.name in _WITH_EQUAL_WEIGHTS else 'examples'

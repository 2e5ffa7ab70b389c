# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of the registry: builders that a flag chooses, with their flags.

Every client rule, server rule, loss term and schedule of the library has a
function `build_<name>`. Its folder or its return type identifies its kind.
"""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any, Optional, Union

import attrs

from experiments.registry import signatures
from tasks import arguments as arguments_lib
from tasks import definitions

TASK = 'task'
ALGORITHM = 'algorithm'
CLIENT_OPTIMIZER = 'client_optimizer'
SERVER_OPTIMIZER = 'server_optimizer'
LOSS_TERM = 'loss_term'
CLIENT_SCHEDULE = 'client_schedule'
SERVER_SCHEDULE = 'server_schedule'
RUNTIME = 'runtime'
# The kinds of rules, which combine freely.
RULES = (CLIENT_OPTIMIZER, SERVER_OPTIMIZER, LOSS_TERM)
# The default runtime.
COMPILED = 'compiled'
NATIVE = 'native'
RAY = 'ray'


@dataclasses.dataclass(frozen=True)
class Part:
  """A row of another kind that belongs to an algorithm.

  Attributes:
    kind: The kind of the row.
    name: The name of the row.
    is_fixed: Whether the algorithm requires it; otherwise it is a default.
  """

  kind: str
  name: str
  is_fixed: bool = True


@dataclasses.dataclass(frozen=True)
class Row:
  """A choice of a flag.

  Attributes:
    name: The name on the command line.
    builder: The function that builds it, or its place, 'module:function'; None
      for a choice such as no loss term.
    arguments: The arguments that have flags.
    supplied: The arguments without flags, which the binary passes or omits.
    task: The definition of a task, from which its row is derived.
    parts: The rows that belong to an algorithm.
    pools_clients: Whether an algorithm trains on the pooled examples of all
      clients, and thus has no cohorts.
    digest: The digest of the file of a user's own rule.
  """

  name: str
  builder: Union[str, Callable[..., Any], None]
  arguments: tuple[signatures.Argument, ...] = ()
  supplied: tuple[str, ...] = ()
  task: Optional[definitions.TaskDefinition] = None
  parts: tuple[Part, ...] = ()
  pools_clients: bool = False
  digest: Optional[str] = None

  @property
  def label(self) -> str:
    """The name without its place; begins its flags and names its runs."""
    if self.task is not None:
      return self.task.name
    # 'sign_descent' of 'package.module:build_sign_descent'.
    return self.name.rpartition(f':{signatures.PREFIX}')[2]

  @property
  def definition(self) -> definitions.TaskDefinition:
    """The definition of a task; for a row of this kind alone."""
    assert self.task is not None
    return self.task

  @property
  def reads_files(self) -> bool:
    """Whether it is a task whose data are read from `--data_dir`."""
    return self.task is not None and self.task.data.reads_files

  @property
  def part_names(self) -> dict[str, str]:
    """The names of an algorithm's parts by kind."""
    return {part.kind: part.name for part in self.parts}

  def flag_name(self, argument: signatures.Argument) -> str:
    """Returns the name of an argument's flag."""
    return argument.flag or f'{self.label}_{argument.name}'


def _to_task_argument(
    task: definitions.TaskDefinition, argument: arguments_lib.Argument
) -> signatures.Argument:
  name = 'model' if argument.name == 'model_id' else argument.name
  fields = attrs.asdict(argument, recurse=False)
  return signatures.Argument(**fields, flag=f'{task.name}_{name}')


def create_task(name: str, task: definitions.TaskDefinition) -> Row:
  """Returns the row of a task.

  Args:
    name: The value of `--task`.
    task: The task.
  """
  data_dir = ('data_dir',) if task.data.reads_files else ()
  return Row(
      name,
      task.create,
      tuple(_to_task_argument(task, argument) for argument in task.arguments),
      supplied=(*data_dir, 'seed', 'protocol'),
      task=task,
  )


# Arguments that the binaries supply, without flags.
SUPPLIED = ('num_clients', 'total_rounds', 'trace_steps')
_OPTIMIZERS = 'tff_adaptive.optimizers'
_SCHEDULES = f'{_OPTIMIZERS}.schedules'


def kind_of(builder: signatures.Builder) -> str:
  """Returns the flag that chooses a rule; a client rule if nothing tells."""
  if builder.returns.endswith('LossTerm'):
    return LOSS_TERM
  is_server_rule = (
      builder.returns == 'ServerOptimizer'
      or f'{builder.module}.'.startswith(f'{_OPTIMIZERS}.server.')
  )
  return SERVER_OPTIMIZER if is_server_rule else CLIENT_OPTIMIZER


def _row(builder: signatures.Builder, flags: Mapping[str, str]) -> Row:
  arguments, supplied = signatures.to_arguments(
      builder, supplied=SUPPLIED, flags=flags
  )
  return Row(builder.name, builder.reference, arguments, supplied)


def create_rule(kind: str, builder: signatures.Builder) -> Row:
  """Returns the row of a rule.

  Args:
    kind: The flag that chooses it, one of `RULES`.
    builder: Its builder.
  """
  learning_rate = kind.replace('optimizer', 'learning_rate')
  is_optimizer = kind != LOSS_TERM
  return _row(builder, {'learning_rate': learning_rate} if is_optimizer else {})


def create_optimizers(kind: str) -> tuple[Row, ...]:
  """Returns the rows of the optimizers of the clients or of the server.

  Args:
    kind: The flag that chooses one, which ends in `_optimizer`.
  """
  return tuple(
      create_rule(kind, builder)
      for builder in signatures.builders(_OPTIMIZERS)
      if builder.returns.endswith('Optimizer') and kind_of(builder) == kind
  )


def create_loss_terms() -> tuple[Row, ...]:
  """Returns the rows of the loss terms."""
  return (
      Row('none', None),
      *(
          create_rule(LOSS_TERM, builder)
          for builder in signatures.builders('tff_adaptive.client_works')
          if kind_of(builder) == LOSS_TERM
      ),
  )


def create_schedules(kind: str) -> tuple[Row, ...]:
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
      Row('constant', None),
      *(_row(builder, flags) for builder in found),
  )


_ALGORITHMS = 'tff_adaptive.algorithms'
_FLAGS = {
    'clip_norm': 'client_clip_norm',
    'weight_decay': 'client_weight_decay',
    'max_update_norm': 'max_client_update_norm',
}
_CLIENT_WEIGHTING = signatures.Argument(
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


def _algorithm(name: str, *parts: Part) -> Row:
  """Returns the row of `build_fed_opt` with the rules of a paper, if any."""
  row = _row(signatures.find(_ALGORITHMS, 'fed_opt'), _FLAGS)
  return dataclasses.replace(
      row,
      name=name,
      arguments=(_CLIENT_WEIGHTING, *row.arguments),
      supplied=tuple(n for n in row.supplied if n != _CLIENT_WEIGHTING.name),
      parts=parts,
  )


_OF_CLIENTS, _OF_SERVER = CLIENT_OPTIMIZER, SERVER_OPTIMIZER
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
    _algorithm('fedcada', Part(_OF_CLIENTS, 'fedcada_adam')),
    _algorithm(
        'fedli_ls',
        Part(_OF_CLIENTS, 'armijo', is_fixed=False),
        Part(_OF_SERVER, 'line_search_step'),
    ),
    _algorithm('fedli_lu', Part(_OF_SERVER, 'frank_wolfe')),
    *(
        _algorithm(
            name,
            Part(_OF_CLIENTS, 'armijo', is_fixed=False),
            Part(_OF_SERVER, server, is_fixed=False),
        )
        for name, server in (('fedsls', 'fedavg'), ('fedexpsls', 'fedexp'))
    ),
    _algorithm('scaffold', Part(_OF_CLIENTS, 'scaffold_sgd')),
    *(
        _algorithm(name, Part(_OF_CLIENTS, name))
        for name in ('feddyn', 'fafed', 'adaalter')
    ),
    dataclasses.replace(
        _row(signatures.find(_ALGORITHMS, 'centralized'), _FLAGS),
        pools_clients=True,
    ),
)

_NUM_PARALLEL_CLIENTS = signatures.Argument(
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
    Row(
        COMPILED,
        'tff_adaptive.runtime:CompiledContext',
        (
            signatures.Argument(
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
    Row(
        NATIVE,
        'tff_adaptive.runtime:NativeContext',
        supplied=(
            'max_concurrent_computation_calls',
            'secure_sums_in_clear',
            'default_num_clients',
        ),
    ),
    Row(
        RAY,
        'tff_adaptive.runtime.scale_out:RayContext',
        (
            signatures.Argument(
                'address',
                None,
                'The address of a Ray cluster: auto for one on this machine, '
                'or host:port of its head. By default a cluster is started on '
                'this machine for the run.',
                type=str,
                is_hparam=False,
            ),
            signatures.Argument(
                'num_workers',
                None,
                'The number of worker processes. By default as many as fit on '
                'the cluster.',
                type=int,
                flag='ray_workers',
                minimum=1,
                is_hparam=False,
            ),
            signatures.Argument(
                'cpus_per_worker',
                1,
                'The number of cores per worker, each running one client at a '
                'time.',
                flag='ray_cpus_per_worker',
                minimum=1,
                is_hparam=False,
            ),
            signatures.Argument(
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


def weighting_of(row: Row) -> Optional[str]:
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

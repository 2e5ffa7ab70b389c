# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""What the binaries can be told by flags: one row a task, optimizer, algorithm.

A row names a builder and the arguments that get a flag, with the builder's own
defaults. Nothing here imports TensorFlow, so that `--help` is quick; a test
compares every row with its builder's signature. A new optimizer is a new row.
"""

import dataclasses
import importlib
from typing import Any, Optional

TASK = 'task'
ALGORITHM = 'algorithm'
CLIENT_OPTIMIZER = 'client_optimizer'
SERVER_OPTIMIZER = 'server_optimizer'
LOSS_TERM = 'loss_term'
CLIENT_SCHEDULE = 'client_schedule'
SERVER_SCHEDULE = 'server_schedule'
RUNTIME = 'runtime'


@dataclasses.dataclass(frozen=True)
class Argument:
  """An argument of a builder that has a flag.

  Attributes:
    name: The builder's name of the argument.
    type: One of float, int, bool and str.
    default: The builder's default, as the flag shows it.
    help: One sentence for `--help`, without the default.
    flag: The flag's name; by default `{row}_{argument}`.
    choices: The values that a str may take; all, if empty.
    references: For choices that stand for an object: where it is found, as
      'module:attribute', in the order of `choices`.
    minimum: The smallest value of a number, if there is one.
    may_be_infinite: Whether infinity is a value of a number.
    parser: Where the function is found that makes the builder's value of the
      flag's text, as 'module:function'.
    is_required: Whether the builder has no default.
    is_hparam: Whether a run with another value is another run; not so where the
      flag says how to come by something.
  """

  name: str
  type: type
  default: Any
  help: str
  flag: Optional[str] = None
  choices: tuple[str, ...] = ()
  references: tuple[str, ...] = ()
  minimum: Optional[float] = None
  may_be_infinite: bool = False
  parser: Optional[str] = None
  is_required: bool = False
  is_hparam: bool = True

  def to_builder_value(self, value: Any) -> Any:
    """Returns what the builder takes for a value of the flag."""
    if self.parser is not None:
      return resolve(self.parser)(value)
    if not self.references:
      return value
    return resolve(self.references[self.choices.index(value)])


@dataclasses.dataclass(frozen=True)
class Row:
  """Something that a flag chooses by name.

  Attributes:
    name: The name on the command line.
    builder: The function that builds it, as 'module:function'; None for a
      choice that stands for nothing.
    arguments: The arguments that get a flag.
    supplied: The arguments that the binary gives, or leaves alone; they have no
      flag.
    protocol: Of a task: where its default protocol is found, as
      'module:attribute'.
  """

  name: str
  builder: Optional[str]
  arguments: tuple[Argument, ...] = ()
  supplied: tuple[str, ...] = ()
  protocol: Optional[str] = None

  def flag_name(self, argument: Argument) -> str:
    """Returns the name of an argument's flag."""
    return argument.flag or f'{self.name}_{argument.name}'


def resolve(reference: str) -> Any:
  """Returns the object at 'module:attribute', attributes joined by dots."""
  module_name, _, path = reference.partition(':')
  value = importlib.import_module(module_name)
  for name in path.split('.'):
    value = getattr(value, name)
  return value


def _client_learning_rate(default: float, what: str) -> Argument:
  return Argument(
      'learning_rate',
      float,
      default,
      what,
      flag='client_learning_rate',
      minimum=0.0,
  )


def _server_learning_rate(default: float, what: str) -> Argument:
  return Argument(
      'learning_rate',
      float,
      default,
      what,
      flag='server_learning_rate',
      minimum=0.0,
  )


_PARTITIONS = (
    'dirichlet_with_replacement',
    'dirichlet_without_replacement',
    'dirichlet_per_class',
    'shards',
    'iid',
)

_TASKS = (
    Row(
        'digits',
        'tasks.digits:create_digits_task',
        (
            Argument(
                'num_clients',
                int,
                50,
                'How many clients share the training images.',
                minimum=1,
            ),
            Argument(
                'alpha',
                float,
                0.3,
                "How alike the clients' labels are: the concentration of a "
                'Dirichlet distribution, inf for i.i.d.',
                minimum=0.0,
                may_be_infinite=True,
            ),
            Argument(
                'model_id',
                str,
                'cnn',
                'The model to train.',
                flag='digits_model',
                choices=('cnn', 'logistic'),
                references=(
                    'tasks.digits:ModelID.CNN',
                    'tasks.digits:ModelID.LOGISTIC',
                ),
            ),
        ),
        supplied=('seed', 'protocol'),
        protocol='tasks.digits.digits_tasks:DEFAULT_PROTOCOL',
    ),
    Row(
        'mnist',
        'tasks.mnist:create_mnist_task',
        (
            Argument(
                'num_clients',
                int,
                100,
                'How many clients there are.',
                minimum=1,
            ),
            Argument(
                'alpha',
                float,
                0.1,
                "How alike the clients' labels are: the concentration of the "
                'Dirichlet partitions.',
                minimum=0.0,
            ),
            Argument(
                'partition',
                str,
                'dirichlet_with_replacement',
                'How the training images are split.',
                choices=_PARTITIONS,
            ),
            Argument(
                'examples_per_client',
                str,
                None,
                'Images of a client: 500, or drawn from a range: 100-500; '
                'unset, 500, or all where the partition divides all.',
            ),
            Argument(
                'shards_per_client',
                int,
                2,
                'Of shards: how many a client gets.',
                minimum=1,
            ),
            Argument(
                'min_size',
                int,
                1,
                'Of dirichlet_per_class: images that a client has at least.',
                minimum=0,
            ),
            Argument(
                'cap',
                bool,
                False,
                'Of dirichlet_per_class: whether a client with its even part '
                'of the images gets nothing of further classes.',
            ),
            Argument(
                'model_id',
                str,
                'cnn',
                'The model to train.',
                flag='mnist_model',
                choices=('cnn', 'logistic'),
                references=(
                    'tasks.mnist:ModelID.CNN',
                    'tasks.mnist:ModelID.LOGISTIC',
                ),
            ),
            Argument(
                'download',
                bool,
                False,
                'Whether the data are downloaded if --data_dir has none.',
                is_hparam=False,
            ),
        ),
        supplied=('data_dir', 'seed', 'protocol'),
        protocol='tasks.mnist.mnist_tasks:DEFAULT_PROTOCOL',
    ),
)

_ALGORITHMS = (
    Row(
        'fed_opt',
        'tff_adaptive.algorithms:build_fed_opt',
        (
            Argument(
                'client_weighting',
                str,
                'examples',
                'Whether a client counts by its examples or all count the '
                'same.',
                flag='client_weighting',
                choices=('examples', 'uniform'),
                references=(
                    'tensorflow_federated:'
                    'learning.ClientWeighting.NUM_EXAMPLES',
                    'tensorflow_federated:learning.ClientWeighting.UNIFORM',
                ),
            ),
            Argument(
                'clip_norm',
                float,
                None,
                'The largest norm of a local gradient; unset, no clipping.',
                flag='client_clip_norm',
                minimum=0.0,
            ),
            Argument(
                'weight_decay',
                float,
                0.0,
                'Times the weights, added to each local gradient.',
                flag='client_weight_decay',
                minimum=0.0,
            ),
        ),
        supplied=(
            'model',
            'client_optimizer',
            'server_optimizer',
            'model_aggregator',
            'metrics_aggregator',
            'loss_term',
            'client_schedule',
            'server_schedule',
            'loop_implementation',
        ),
    ),
)


def _beta(index: int, default: float, what: str) -> Argument:
  return Argument(f'beta_{index}', float, default, what, minimum=0.0)


def _epsilon(default: float, what: str = 'Added to the root.') -> Argument:
  return Argument('epsilon', float, default, what, minimum=0.0)


_AVERAGE = 'Share of the average of gradients that is kept.'
_SQUARES = 'Share of the accumulator of squares that is kept.'


def _server_rule(
    name: str, *arguments: Argument, beta_1: float, bias_correction: bool
) -> Row:
  """The row of an adaptive server rule."""
  correction = Argument(
      'bias_correction',
      bool,
      False,
      'Whether both moments are corrected for their start.',
  )
  return Row(
      name,
      f'tff_adaptive.optimizers:build_{name}',
      (
          _server_learning_rate(0.1, 'Step size of the adaptive step.'),
          _beta(1, beta_1, _AVERAGE),
          *arguments,
          _epsilon(1e-3, 'tau of the paper, added to the root.'),
          Argument(
              'initial_second_moment',
              float,
              None,
              'Start of the accumulator of squares; unset, the square of '
              'epsilon.',
              minimum=0.0,
          ),
          Argument(
              'second_moment_of',
              str,
              'update',
              'Whose square is accumulated.',
              choices=('update', 'momentum'),
          ),
          *([correction] if bias_correction else []),
      ),
  )


_CLIENT_OPTIMIZERS = (
    Row(
        'sgd',
        'tff_adaptive.optimizers:build_sgd',
        (
            _client_learning_rate(0.1, 'Step size.'),
            Argument(
                'momentum',
                float,
                0.0,
                'Decay of the sum of past gradients; 0 is plain SGD.',
                minimum=0.0,
            ),
        ),
    ),
    Row(
        'adam',
        'tff_adaptive.optimizers:build_adam',
        (
            _client_learning_rate(0.001, 'Step size.'),
            _beta(1, 0.9, _AVERAGE),
            _beta(2, 0.999, _SQUARES),
            _epsilon(1e-8),
        ),
    ),
    Row(
        'adagrad',
        'tff_adaptive.optimizers:build_adagrad',
        (_client_learning_rate(0.01, 'Step size.'), _epsilon(1e-10)),
    ),
    Row(
        'yogi',
        'tff_adaptive.optimizers:build_yogi',
        (
            _client_learning_rate(0.01, 'Step size.'),
            _beta(1, 0.9, _AVERAGE),
            _beta(2, 0.999, 'Slows the changes of the accumulator.'),
            _epsilon(1e-3),
            Argument(
                'initial_second_moment',
                float,
                1e-6,
                'Start of the accumulator of squares.',
                minimum=0.0,
            ),
        ),
    ),
    Row(
        'delta_sgd',
        'tff_adaptive.optimizers:build_delta_sgd',
        (
            _client_learning_rate(0.2, "First step size of a client's round."),
            Argument(
                'theta',
                float,
                1.0,
                'Ratio of step sizes that the second step assumes.',
                minimum=0.0,
            ),
            Argument(
                'gamma',
                float,
                2.0,
                'Scales the step size from the estimated smoothness.',
                minimum=0.0,
            ),
            Argument(
                'delta',
                float,
                0.1,
                'Limits how fast the step size grows.',
                minimum=0.0,
            ),
            Argument(
                'previous_gradient',
                str,
                'recompute',
                'The gradient at the point before: on the same batch (two '
                'gradients a step), or the one that was used there.',
                choices=('recompute', 'reuse'),
            ),
            Argument(
                'amplify_first',
                bool,
                False,
                'Whether the first step already grows by theta.',
            ),
        ),
    ),
)

_SERVER_OPTIMIZERS = (
    Row(
        'fedavg',
        'tff_adaptive.optimizers:build_fedavg',
        (
            _server_learning_rate(
                1.0, "Step size on the mean of the clients' changes."
            ),
        ),
    ),
    Row(
        'fedavgm',
        'tff_adaptive.optimizers:build_fedavgm',
        (
            _server_learning_rate(1.0, 'Step size.'),
            Argument(
                'momentum',
                float,
                0.9,
                'Decay of the sum of past changes.',
                minimum=0.0,
            ),
        ),
    ),
    _server_rule('fedadagrad', beta_1=0.0, bias_correction=False),
    _server_rule(
        'fedadam', _beta(2, 0.99, _SQUARES), beta_1=0.9, bias_correction=True
    ),
    _server_rule(
        'fedyogi',
        _beta(2, 0.99, 'Slows the changes of the accumulator.'),
        beta_1=0.9,
        bias_correction=True,
    ),
)

_LOSS_TERMS = (
    Row('none', None),
    Row(
        'fedprox',
        'tff_adaptive.client_works:build_fedprox',
        (
            Argument(
                'mu',
                float,
                0.01,
                'Strength of the pull to the received model.',
                minimum=0.0,
            ),
        ),
    ),
)


def _schedules(kind: str) -> tuple[Row, ...]:
  """The rows of the schedules of a placement's learning rate."""
  module = 'tff_adaptive.optimizers.schedules'
  decay_rate = Argument(
      'decay_rate',
      float,
      0.1,
      'What each step multiplies.',
      flag=f'{kind}_decay_rate',
      minimum=0.0,
  )
  return (
      Row('constant', None),
      Row(
          'step_decay',
          f'{module}:build_step_decay',
          (decay_rate,),
          supplied=('total_rounds',),
      ),
      Row(
          'exp_decay',
          f'{module}:build_exp_decay',
          (
              decay_rate,
              Argument(
                  'rounds_per_decay',
                  int,
                  500,
                  'Rounds between two steps.',
                  flag=f'{kind}_rounds_per_decay',
                  minimum=1,
              ),
          ),
      ),
      Row('inverse_sqrt', f'{module}:build_inverse_sqrt'),
      Row(
          'table',
          f'{module}:build_table',
          (
              Argument(
                  'factors',
                  str,
                  None,
                  'Factors by the round from which they hold, as 0:1,100:0.5.',
                  flag=f'{kind}_table',
                  parser=f'{module}:parse_table',
                  is_required=True,
              ),
          ),
      ),
  )


# Their builders return context managers within which processes run.
_RUNTIMES = (
    Row(
        'compiled',
        'tff_adaptive.runtime:compiled_context',
        (
            Argument(
                'devices',
                str,
                'auto',
                "Where the clients' work runs: CPU, GPU or a name such as "
                'GPU:1; auto is the first GPU, or the CPU without one.',
                flag='devices',
            ),
            Argument(
                'plan',
                str,
                'auto',
                "How the clients' work runs: one client after the other "
                '(loop), several at once (parallel), each op on many of them '
                '(vectorized), several at once with steps that XLA compiles '
                '(xla), or what suits device and model (auto).',
                flag='plan',
                choices=('auto', 'loop', 'parallel', 'vectorized', 'xla'),
            ),
        ),
        supplied=('strict', 'seed'),
    ),
    Row(
        'native',
        'tff_adaptive.runtime:native_context',
        supplied=('max_concurrent_computation_calls', 'secure_sums_in_clear'),
    ),
)

ROWS = {
    kind: {row.name: row for row in rows}
    for kind, rows in (
        (TASK, _TASKS),
        (ALGORITHM, _ALGORITHMS),
        (CLIENT_OPTIMIZER, _CLIENT_OPTIMIZERS),
        (SERVER_OPTIMIZER, _SERVER_OPTIMIZERS),
        (LOSS_TERM, _LOSS_TERMS),
        (CLIENT_SCHEDULE, _schedules(CLIENT_SCHEDULE)),
        (SERVER_SCHEDULE, _schedules(SERVER_SCHEDULE)),
        (RUNTIME, _RUNTIMES),
    )
}

# The builders of runtimes by name.
RUNTIMES = {name: row.builder for name, row in ROWS[RUNTIME].items()}

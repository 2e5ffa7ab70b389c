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
"""The optimizers of the clients."""

from experiments.registry import arguments
from experiments.registry import rows


def _max_step_size(default: float, may_be_infinite: bool) -> rows.Argument:
  return rows.Argument(
      'max_step_size',
      float,
      default,
      'Largest step size.',
      minimum=0.0,
      may_be_infinite=may_be_infinite,
  )


def _growth(batches_per_epoch: int) -> tuple[rows.Argument, ...]:
  """How fast a client's step size may grow."""
  return (
      arguments.number(
          'gamma', 2.0, 'How much the step size may grow in an epoch.'
      ),
      rows.Argument(
          'batches_per_epoch',
          int,
          batches_per_epoch,
          'Local steps of an epoch.',
          minimum=1,
      ),
  )


_SPS = (
    arguments.number('c', 0.5, 'Divides the step size.'),
    arguments.epsilon(1e-8, 'Added to the squared norm that divides the loss.'),
    rows.Argument(
        'optimal_value', float, 0.0, 'Smallest loss that a batch can have.'
    ),
)

CLIENT_OPTIMIZERS = (
    rows.Row(
        'sgd',
        'tff_adaptive.optimizers:build_sgd',
        (
            arguments.client_learning_rate(0.1),
            arguments.number(
                'momentum',
                0.0,
                'Decay of the sum of past gradients; 0 is plain SGD.',
            ),
        ),
    ),
    rows.Row(
        'adam',
        'tff_adaptive.optimizers:build_adam',
        (
            arguments.client_learning_rate(0.001),
            arguments.beta(1, 0.9, arguments.AVERAGE),
            arguments.beta(2, 0.999, arguments.SQUARES),
            arguments.epsilon(1e-8),
        ),
    ),
    rows.Row(
        'adagrad',
        'tff_adaptive.optimizers:build_adagrad',
        (arguments.client_learning_rate(0.01), arguments.epsilon(1e-10)),
    ),
    rows.Row(
        'yogi',
        'tff_adaptive.optimizers:build_yogi',
        (
            arguments.client_learning_rate(0.01),
            arguments.beta(1, 0.9, arguments.AVERAGE),
            arguments.beta(2, 0.999, 'Slows the changes of the accumulator.'),
            arguments.epsilon(1e-3),
            arguments.initial_second_moment(
                1e-6, 'Start of the accumulator of squares.'
            ),
        ),
    ),
    rows.Row(
        'delta_sgd',
        'tff_adaptive.optimizers:build_delta_sgd',
        (
            arguments.client_learning_rate(
                0.2, "First step size of a client's round."
            ),
            arguments.number(
                'theta',
                1.0,
                'Ratio of step sizes that the second step assumes.',
            ),
            arguments.number(
                'gamma',
                2.0,
                'Scales the step size from the estimated smoothness.',
            ),
            arguments.number(
                'delta', 0.1, 'Limits how fast the step size grows.'
            ),
            rows.Argument(
                'previous_gradient',
                str,
                'recompute',
                'The gradient at the point before: on the same batch (two '
                'gradients a step), or the one that was used there.',
                choices=('recompute', 'reuse'),
            ),
            rows.Argument(
                'amplify_first',
                bool,
                False,
                'Whether the first step already grows by theta.',
            ),
        ),
    ),
    rows.Row('sps', 'tff_adaptive.optimizers:build_sps', _SPS),
    rows.Row(
        'sps_max',
        'tff_adaptive.optimizers:build_sps_max',
        (_max_step_size(1.0, may_be_infinite=True), *_SPS),
    ),
    rows.Row(
        'sps_smooth',
        'tff_adaptive.optimizers:build_sps_smooth',
        (
            *_SPS,
            arguments.number(
                'initial_step_size',
                1.0,
                'Step size that the first one grows from.',
            ),
            *_growth(batches_per_epoch=500),
            _max_step_size(float('inf'), may_be_infinite=True),
        ),
    ),
    rows.Row(
        'armijo',
        'tff_adaptive.optimizers:build_armijo',
        (
            _max_step_size(1.0, may_be_infinite=False),
            arguments.number(
                'c', 0.1, 'Share of the promised decrease that is enough.'
            ),
            arguments.number(
                'beta', 0.9, 'Factor of a step size that is not accepted.'
            ),
            *_growth(batches_per_epoch=32),
            rows.Argument(
                'reset',
                str,
                '1',
                'Where a search starts: at the last step size (0), at the last '
                'one, grown (1), at the largest (2).',
                choices=('0', '1', '2'),
                parser='builtins:int',
            ),
            rows.Argument(
                'max_trials',
                int,
                100,
                'How many step sizes are tried.',
                minimum=1,
            ),
            arguments.number(
                'fallback_step_size', 1e-6, 'Step size if none is accepted.'
            ),
        ),
    ),
    rows.Row(
        'fedcada_adam',
        'tff_adaptive.optimizers:build_fedcada_adam',
        (
            arguments.client_learning_rate(0.001),
            arguments.beta(1, 0.9, arguments.AVERAGE),
            arguments.beta(2, 0.99, arguments.SQUARES),
            arguments.epsilon(1e-8),
            rows.Argument(
                'option',
                str,
                'option1',
                'What the moments are divided by: 1 + b^t (option1), 1 + '
                '(b^t)^2 (option2), 1 + sin(b^t) (option3), 1 + sqrt(b^t) '
                "(option4), 1 (none) or Adam's 1 - b^t (adam).",
                choices=(
                    'option1',
                    'option2',
                    'option3',
                    'option4',
                    'none',
                    'adam',
                ),
            ),
            rows.Argument(
                'time',
                str,
                'round',
                'What t is: the number of the round, of the local step, or of '
                'all steps.',
                choices=('round', 'local_step', 'global_step'),
            ),
            rows.Argument(
                'carry_state',
                bool,
                False,
                'Whether clients keep their own moments across rounds, and '
                'send none.',
            ),
        ),
    ),
    rows.Row(
        'fafed',
        'tff_adaptive.optimizers:build_fafed',
        (
            arguments.client_learning_rate(0.01),
            arguments.number(
                'alpha',
                0.1,
                "How much of the momentum's correction is forgotten.",
            ),
            arguments.number('beta', 0.99, arguments.SQUARES),
            arguments.number('rho', 0.01, 'Added to the root.'),
        ),
    ),
    rows.Row(
        'adaalter',
        'tff_adaptive.optimizers:build_adaalter',
        (
            arguments.client_learning_rate(0.1),
            arguments.epsilon(
                1.0, 'Stands for the squares of the steps of this round.'
            ),
            arguments.initial_second_moment(
                1.0, 'Start of the accumulator of squares.'
            ),
        ),
    ),
    rows.Row(
        'scaffold_sgd',
        'tff_adaptive.optimizers:build_scaffold_sgd',
        (arguments.client_learning_rate(0.1),),
        supplied=('num_clients',),
    ),
)

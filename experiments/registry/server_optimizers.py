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
"""The optimizers of the server."""

from experiments.registry import arguments
from experiments.registry import rows


def _server_rule(
    name: str, *others: rows.Argument, beta_1: float, bias_correction: bool
) -> rows.Row:
  """The row of an adaptive server rule."""
  return rows.Row(
      name,
      f'tff_adaptive.optimizers:build_{name}',
      (
          arguments.server_learning_rate(
              0.1, 'Step size of the adaptive step.'
          ),
          arguments.beta(1, beta_1, arguments.AVERAGE),
          *others,
          arguments.epsilon(1e-3, 'tau of the paper, added to the root.'),
          arguments.initial_second_moment(
              None,
              'Start of the accumulator of squares; unset, the square of '
              'epsilon.',
          ),
          rows.Argument(
              'second_moment_of',
              str,
              'update',
              'Whose square is accumulated.',
              choices=('update', 'momentum'),
          ),
          *([arguments.BIAS_CORRECTION] if bias_correction else []),
      ),
  )


SERVER_OPTIMIZERS = (
    rows.Row(
        'fedavg',
        'tff_adaptive.optimizers:build_fedavg',
        (
            arguments.server_learning_rate(
                1.0, "Step size on the mean of the clients' changes."
            ),
        ),
    ),
    rows.Row(
        'fedavgm',
        'tff_adaptive.optimizers:build_fedavgm',
        (
            arguments.server_learning_rate(1.0),
            arguments.number(
                'momentum', 0.9, 'Decay of the sum of past changes.'
            ),
        ),
    ),
    _server_rule('fedadagrad', beta_1=0.0, bias_correction=False),
    _server_rule(
        'fedadam',
        arguments.beta(2, 0.99, arguments.SQUARES),
        beta_1=0.9,
        bias_correction=True,
    ),
    _server_rule(
        'fedyogi',
        arguments.beta(2, 0.99, 'Slows the changes of the accumulator.'),
        beta_1=0.9,
        bias_correction=True,
    ),
    rows.Row(
        'fedams',
        'tff_adaptive.optimizers:build_fedams',
        (
            arguments.server_learning_rate(
                1.0, 'Step size of the adaptive step.'
            ),
            arguments.beta(1, 0.9, arguments.AVERAGE),
            arguments.beta(2, 0.99, arguments.SQUARES),
            arguments.epsilon(
                1e-3,
                'Least value of the largest accumulator (option 1), or added '
                'to its root (option 2).',
            ),
            rows.Argument(
                'option',
                str,
                '1',
                'Max stabilization (1) or AMSGrad (2).',
                choices=('1', '2'),
                parser='builtins:int',
            ),
            arguments.BIAS_CORRECTION,
        ),
    ),
    rows.Row(
        'fedexp',
        'tff_adaptive.finalizers:build_fedexp',
        (
            arguments.epsilon(
                1e-3,
                'Added to the squared norm of the mean change, which divides '
                'the step size.',
            ),
        ),
    ),
    rows.Row(
        'line_search_step',
        'tff_adaptive.finalizers:build_line_search_step',
        (
            rows.Argument(
                'scale',
                str,
                'max',
                "Step size on the mean of the clients' changes: the largest "
                'of their last ones (max), 1 (unit), or this number.',
                parser='tff_adaptive.finalizers.fedli:parse_scale',
            ),
        ),
    ),
    rows.Row(
        'frank_wolfe',
        'tff_adaptive.finalizers:build_frank_wolfe',
        (
            arguments.server_learning_rate(1.0, 'Largest step size.'),
            arguments.number(
                'weight_decay', 0.0, 'Strength of the regularizer.'
            ),
            arguments.number(
                'momentum', 0.0, 'Decay of the sum of past steps.'
            ),
            arguments.epsilon(
                1e-5, 'Added to the squared norm of the mean change.'
            ),
            rows.Argument(
                'objective_at',
                str,
                'local_mean',
                "Where the clients' loss is taken: before each local step, all "
                'of them at the received model, or before the last step.',
                choices=('local_mean', 'received_model', 'last'),
            ),
        ),
    ),
)

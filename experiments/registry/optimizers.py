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
"""The optimizers of the clients and of the server."""

from experiments.registry import rows


def _client_learning_rate(default: float, what: str) -> rows.Argument:
  return rows.Argument(
      'learning_rate',
      float,
      default,
      what,
      flag='client_learning_rate',
      minimum=0.0,
  )


def _server_learning_rate(default: float, what: str) -> rows.Argument:
  return rows.Argument(
      'learning_rate',
      float,
      default,
      what,
      flag='server_learning_rate',
      minimum=0.0,
  )


def _beta(index: int, default: float, what: str) -> rows.Argument:
  return rows.Argument(f'beta_{index}', float, default, what, minimum=0.0)


def _epsilon(default: float, what: str = 'Added to the root.') -> rows.Argument:
  return rows.Argument('epsilon', float, default, what, minimum=0.0)


_AVERAGE = 'Share of the average of gradients that is kept.'
_SQUARES = 'Share of the accumulator of squares that is kept.'


def _server_rule(
    name: str, *arguments: rows.Argument, beta_1: float, bias_correction: bool
) -> rows.Row:
  """The row of an adaptive server rule."""
  correction = rows.Argument(
      'bias_correction',
      bool,
      False,
      'Whether both moments are corrected for their start.',
  )
  return rows.Row(
      name,
      f'tff_adaptive.optimizers:build_{name}',
      (
          _server_learning_rate(0.1, 'Step size of the adaptive step.'),
          _beta(1, beta_1, _AVERAGE),
          *arguments,
          _epsilon(1e-3, 'tau of the paper, added to the root.'),
          rows.Argument(
              'initial_second_moment',
              float,
              None,
              'Start of the accumulator of squares; unset, the square of '
              'epsilon.',
              minimum=0.0,
          ),
          rows.Argument(
              'second_moment_of',
              str,
              'update',
              'Whose square is accumulated.',
              choices=('update', 'momentum'),
          ),
          *([correction] if bias_correction else []),
      ),
  )


CLIENT_OPTIMIZERS = (
    rows.Row(
        'sgd',
        'tff_adaptive.optimizers:build_sgd',
        (
            _client_learning_rate(0.1, 'Step size.'),
            rows.Argument(
                'momentum',
                float,
                0.0,
                'Decay of the sum of past gradients; 0 is plain SGD.',
                minimum=0.0,
            ),
        ),
    ),
    rows.Row(
        'adam',
        'tff_adaptive.optimizers:build_adam',
        (
            _client_learning_rate(0.001, 'Step size.'),
            _beta(1, 0.9, _AVERAGE),
            _beta(2, 0.999, _SQUARES),
            _epsilon(1e-8),
        ),
    ),
    rows.Row(
        'adagrad',
        'tff_adaptive.optimizers:build_adagrad',
        (_client_learning_rate(0.01, 'Step size.'), _epsilon(1e-10)),
    ),
    rows.Row(
        'yogi',
        'tff_adaptive.optimizers:build_yogi',
        (
            _client_learning_rate(0.01, 'Step size.'),
            _beta(1, 0.9, _AVERAGE),
            _beta(2, 0.999, 'Slows the changes of the accumulator.'),
            _epsilon(1e-3),
            rows.Argument(
                'initial_second_moment',
                float,
                1e-6,
                'Start of the accumulator of squares.',
                minimum=0.0,
            ),
        ),
    ),
    rows.Row(
        'delta_sgd',
        'tff_adaptive.optimizers:build_delta_sgd',
        (
            _client_learning_rate(0.2, "First step size of a client's round."),
            rows.Argument(
                'theta',
                float,
                1.0,
                'Ratio of step sizes that the second step assumes.',
                minimum=0.0,
            ),
            rows.Argument(
                'gamma',
                float,
                2.0,
                'Scales the step size from the estimated smoothness.',
                minimum=0.0,
            ),
            rows.Argument(
                'delta',
                float,
                0.1,
                'Limits how fast the step size grows.',
                minimum=0.0,
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
)

SERVER_OPTIMIZERS = (
    rows.Row(
        'fedavg',
        'tff_adaptive.optimizers:build_fedavg',
        (
            _server_learning_rate(
                1.0, "Step size on the mean of the clients' changes."
            ),
        ),
    ),
    rows.Row(
        'fedavgm',
        'tff_adaptive.optimizers:build_fedavgm',
        (
            _server_learning_rate(1.0, 'Step size.'),
            rows.Argument(
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

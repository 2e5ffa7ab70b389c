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
"""The names of what is measured of a run: columns, totals and estimates.

No TensorFlow is imported here.
"""

# How a run's number is made of a column, see `tff_adaptive.analysis.summarize`.
LAST_10_EVALUATIONS = 'last_10_evaluations'
LAST_100_ROUNDS = 'last_100_rounds'
BEST = 'best'
FINAL = 'final'
ESTIMATES = (LAST_10_EVALUATIONS, LAST_100_ROUNDS, BEST, FINAL)

# Columns of metrics.csv.
ROUND_NUM = 'round_num'
SECONDS = 'seconds'
GRADIENT_EVALUATIONS = 'clients/num_gradient_evaluations'
BYTES_UP = 'clients/bytes_up'
BYTES_DOWN = 'clients/bytes_down'

# Those whose sum over the rounds is told of a run, by what it is called.
TOTALS = {
    'seconds': SECONDS,
    'gradient_evaluations': GRADIENT_EVALUATIONS,
    'bytes_up': BYTES_UP,
    'bytes_down': BYTES_DOWN,
}

EVALUATION = 'evaluation/'


def column_of(metric: str) -> str:
  """Returns the column of metrics.csv that holds a metric.

  Args:
    metric: The name of a metric of the evaluation, or that of a column.

  Returns:
    As 'evaluation/accuracy' for 'accuracy'; 'clients/loss' stays.
  """
  return metric if '/' in metric else f'{EVALUATION}{metric}'

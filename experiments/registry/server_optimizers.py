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
"""The optimizers of the server, one name each."""

from experiments.registry import rows
from experiments.registry import signatures

_PACKAGES = {
    'fedavg': 'optimizers',
    'fedavgm': 'optimizers',
    'fedadagrad': 'optimizers',
    'fedadam': 'optimizers',
    'fedyogi': 'optimizers',
    'fedams': 'optimizers',
    'fedexp': 'finalizers',
    'line_search_step': 'finalizers',
    'frank_wolfe': 'finalizers',
}


def _row(name: str) -> rows.Row:
  builder = f'tff_adaptive.{_PACKAGES[name]}:build_{name}'
  return rows.Row(
      name,
      builder,
      signatures.to_arguments(
          builder,
          flags={'learning_rate': 'server_learning_rate'},
          parsers={'scale': 'tff_adaptive.finalizers.fedli:parse_scale'},
      ),
  )


SERVER_OPTIMIZERS = tuple(map(_row, _PACKAGES))

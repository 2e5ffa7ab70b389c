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
"""FedLi-LS: line searches on the clients set the server's step."""

from typing import Any, Optional

import tensorflow_federated as tff

from tff_adaptive.algorithms import fed_opt
from tff_adaptive.client_works import model_adapter
from tff_adaptive.finalizers import line_search_step
from tff_adaptive.optimizers import armijo


def build_fedli_ls(
    model: model_adapter.Model,
    client_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    **options: Any,
) -> tff.learning.templates.LearningProcess:
  """Builds FedLi-LS.

  It is `build_fed_opt` with `optimizers.build_armijo` on the clients and
  `finalizers.build_line_search_step` on the server. With `'max'` the state's
  `finalizer` is an ordered dictionary of `server_step_size`, a float32 scalar,
  the last one.

  The objective of all clients together need not fall, even where each client's
  line search succeeds and all are convex.

  Args:
    model: As in `build_fed_opt`.
    client_optimizer: Default `optimizers.build_armijo()`. Any other that has a
      step size goes with `'max'`, any at all with the other scales.
    server_optimizer: Default `finalizers.build_line_search_step('max')`.
    **options: Further arguments of `build_fed_opt`.

  Returns:
    A `tff.learning.templates.LearningProcess`, see `build_fed_opt`.

  Raises:
    TypeError: See `build_fed_opt`.
    ValueError: See `build_fed_opt`.

  Example:

    ```python
    process = algorithms.build_fedli_ls(
        model, server_optimizer=finalizers.build_line_search_step('unit')
    )
    ```

  References:
    Towards Hyper-parameter-free Federated
    Learning, 2024, https://arxiv.org/abs/2408.17145v1, section 3,
    Algorithm FedLi-LS. Deviation: the global descent of its Remark 1 does not
    hold; the tests have a counterexample. The published code averages the
    models and never takes the step.
  """
  return fed_opt.build_fed_opt(
      model,
      client_optimizer or armijo.build_armijo(),
      server_optimizer or line_search_step.build_line_search_step(),
      **options,
  )

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
"""The threads of this process, as a plan needs them."""

import tensorflow as tf

from tff_adaptive.runtime import devices as devices_lib
from tff_adaptive.runtime import plans


def set_threads(
    devices: devices_lib.Devices = plans.AUTO, plan: str = plans.AUTO
) -> None:
  """Gives every op one thread, where several clients work at once on a CPU.

  Then each client has a core for itself, which is faster than several clients
  that share the cores op by op, and keeps its speed on a busy machine. Where
  one client works after the other, or on a GPU, TensorFlow's choice is best.

  Call it before TensorFlow runs anything; afterwards threads cannot be changed.

  Args:
    devices: As for `create_compiled_context`.
    plan: As for `create_compiled_context`.

  Raises:
    RuntimeError: If TensorFlow has started.
    ValueError: If a device is not known.

  Example:

    ```python
    from tff_adaptive import runtime

    runtime.set_threads()
    runtime.set_compiled_context()
    ```
  """
  if plan == plans.LOOP or 'GPU' in devices_lib.choose(devices):
    return
  tf.config.threading.set_inter_op_parallelism_threads(plans.num_cores())
  tf.config.threading.set_intra_op_parallelism_threads(1)

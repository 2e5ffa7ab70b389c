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
"""Differential privacy of a training run, built from its flags."""

from typing import Any, Optional

from experiments import hparams
from experiments import privacy_flags
from tff_adaptive import privacy as privacy_lib
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation import task as task_lib


def build_privacy(
    settings: hparams.Settings, protocol: task_lib.Protocol
) -> Optional[privacy_lib.DifferentialPrivacy]:
  """Builds the differential privacy of a run.

  Args:
    settings: The flags that belong to no row.
    protocol: The numbers of training.

  Returns:
    The clipping and the noise; None for a run without privacy.
  """
  if settings.dp_noise_multiplier is None:
    return None
  adaptive: dict[str, Any] = {
      'target_quantile': settings.dp_adaptive_clip_quantile,
      'learning_rate': settings.dp_adaptive_clip_learning_rate,
      'count_stddev': settings.dp_adaptive_clip_count_stddev,
  }
  is_adaptive = settings.dp_adaptive_clip_quantile is not None
  clip_norm: Any = settings.dp_clip_norm
  return privacy_lib.DifferentialPrivacy(
      noise_multiplier=settings.dp_noise_multiplier,
      clients_per_round=protocol.clients_per_round,
      clip_norm=clip_norm,
      payload_clip_norms=settings.dp_payload_clip_norms or {},
      adaptive_clipping=(
          privacy_lib.AdaptiveClipping(**adaptive) if is_adaptive else None
      ),
  )


def build_callbacks(
    settings: hparams.Settings, task: task_lib.Task
) -> list[callbacks.Callback]:
  """Builds what reports epsilon, and says what it will be.

  Args:
    settings: The flags that belong to no row.
    task: What is trained on.

  Returns:
    The callback; none for a run without privacy.

  Raises:
    ValueError: If more clients take part in a round than there are.
  """
  if settings.dp_noise_multiplier is None:
    return []
  protocol, num_clients = task.protocol, len(task.train_data.client_ids)
  sampling_name = settings.sampling or privacy_flags.FIXED
  accountant = privacy_lib.RoundAccountant(
      noise_multiplier=settings.dp_noise_multiplier,
      num_clients=num_clients,
      clients_per_round=protocol.clients_per_round,
      sampling=privacy_lib.CohortSampling(sampling_name),
  )
  delta = settings.dp_delta or privacy_lib.default_delta(num_clients)
  epsilon = accountant.get_epsilon(protocol.total_rounds, delta)
  print(
      f'privacy: epsilon {epsilon:.3g} at delta {delta:.2g} after '
      f'{protocol.total_rounds} rounds with {protocol.clients_per_round} of '
      f'{num_clients} clients, {sampling_name} sampling',
      flush=True,
  )
  return [callbacks.PrivacySpent(accountant, delta)]

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
"""How many examples clients hold, for the argument `examples_per_client`."""

import numpy as np

from tff_adaptive.data import random_streams
from tff_adaptive.data.partition import _common


def equal_sizes(num_clients: int, total: int) -> np.ndarray:
  """Divides a number of examples as evenly as possible.

  Args:
    num_clients: Number of clients, a positive integer.
    total: The examples of all clients together, at least one for each.

  Returns:
    The clients' sizes, int64 of shape [num_clients]; the first ones are larger
    by one where there is a rest.

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If there are less examples than clients, or no client.

  Example:

    >>> equal_sizes(3, 10).tolist()
    [4, 3, 3]
  """
  _check_total(num_clients, total, 1)
  return np.array(_common.client_sizes(total, num_clients, None), np.int64)


def uniform_sizes(
    num_clients: int, low: int, high: int, seed: int
) -> np.ndarray:
  """Draws every size uniformly from a range of integers.

  Args:
    num_clients: Number of clients, a positive integer.
    low: The smallest size, a positive integer.
    high: The largest size, at least `low`; it is drawn too.
    seed: The seed of the partition, a non-negative integer.

  Returns:
    The clients' sizes, int64 of shape [num_clients]. A client's size does not
    depend on `num_clients`.

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If a number is not positive, or `high` is less than `low`.

  Example:

    >>> sizes = uniform_sizes(100, 100, 500, seed=1)
    >>> bool(sizes.min() >= 100), bool(sizes.max() <= 500)
    (True, True)

  References:
    Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, Appendix B.3: n_i from 100 to 500, and an
    example-weighted mean.
  """
  _common.check_positive('num_clients', num_clients)
  _common.check_positive('low', low)
  _common.check_integer('high', high)
  if high < low:
    raise ValueError(f'`high` must be at least `low` = {low}, found {high}.')
  return _stream(seed, 'uniform').integers(
      low, high, num_clients, np.int64, endpoint=True
  )


def skewed_sizes(
    num_clients: int,
    total: int,
    seed: int,
    *,
    sigma: float = 1.0,
    min_size: int = 1,
) -> np.ndarray:
  """Divides a number of examples in log-normal shares: few clients have many.

  ```
  n_i = min_size + (total - min_size * num_clients) * w_i / sum(w)
  w_i = exp(sigma * z_i),  z_i ~ Normal(0, 1)
  ```

  rounded down, where those with the largest fractions get what rounding leaves,
  so that the sizes add up to `total`.

  Args:
    num_clients: Number of clients, a positive integer.
    total: The examples of all clients together, at least `min_size` for each.
    seed: The seed of the partition, a non-negative integer.
    sigma: How unequal the sizes are, from 0, where all are equal. Defaults to
      1, where the largest tenth of many clients has 39% of the examples.
    min_size: The smallest size, a positive integer. Defaults to 1.

  Returns:
    The clients' sizes, int64 of shape [num_clients].

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If a number is out of range.

  Example:

    >>> int(skewed_sizes(100, 60_000, seed=1).sum())
    60000
  """
  _common.check_positive('min_size', min_size)
  _check_total(num_clients, total, min_size)
  if not (sigma >= 0 and np.isfinite(sigma)):
    raise ValueError(f'`sigma` must be finite and not negative, found {sigma}.')
  exponents = sigma * _stream(seed, 'skewed').standard_normal(num_clients)
  weights = np.exp(exponents - exponents.max())
  shares = (total - min_size * num_clients) * (weights / weights.sum())
  sizes = np.floor(shares).astype(np.int64) + min_size
  fractions = shares - np.floor(shares)
  order = np.argsort(-fractions, kind='stable')
  sizes[order[: total - int(sizes.sum())]] += 1
  return sizes


def _stream(seed: int, name: str) -> np.random.Generator:
  return random_streams.stream(seed, random_streams.PARTITION, 'sizes', name)


def _check_total(num_clients: int, total: int, min_size: int) -> None:
  _common.check_positive('num_clients', num_clients)
  _common.check_positive('total', total)
  if total < min_size * num_clients:
    raise ValueError(
        f'`total` must be at least {min_size * num_clients} for {num_clients} '
        f'clients, found {total}.'
    )

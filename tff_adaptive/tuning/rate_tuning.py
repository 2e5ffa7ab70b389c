# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tunes the learning rates of a process by hypergradients, as it trains."""

import collections
from collections.abc import Callable, Mapping
import math
from typing import Any
import warnings

import numpy as np
import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.client_works import model_adapter
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import specs
from tff_adaptive.optimizers import arguments
from tff_adaptive.privacy import differential_privacy
from tff_adaptive.runtime.datasets import elements
from tff_adaptive.tuning import hypergradients

_RATE_KEY = tff.learning.optimizers.LEARNING_RATE_KEY


def read_rates(
    process: tff.learning.templates.LearningProcess, state: Any
) -> dict[str, float]:
  """Returns the learning rates in a state.

  Args:
    process: The process.
    state: A state of it.

  Returns:
    `client_learning_rate` and `server_learning_rate`, those that there are.
  """
  hparams = process.get_hparams(state)
  return {
      name: float(hparams[part][_RATE_KEY])
      for name, part in hypergradients.PARTS.items()
      if _RATE_KEY in hparams[part]
  }


def _set_rates(process: Any, state: Any, rates: Mapping[str, float]) -> Any:
  hparams = process.get_hparams(state)
  for name, rate in rates.items():
    fields = hparams[hypergradients.PARTS[name]]
    dtype = np.asarray(fields[_RATE_KEY]).dtype
    fields[_RATE_KEY] = np.asarray(rate, dtype)
  return process.set_hparams(state, hparams)


def next_rates(
    rates: Mapping[str, float],
    found: hypergradients.Hypergradient,
    step_size: float,
) -> dict[str, float]:
  """Returns the rates after one step of normalized descent in their logarithms.

  Args:
    rates: The rates by their names, as in `found`.
    found: The loss and its derivatives.
    step_size: The length of the step, as in `build_rate_tuner`.

  Returns:
    The new rates, see `build_rate_tuner`.

  Example:

    >>> found = hypergradients.Hypergradient(1.0, 3.0, -4.0)
    >>> rates = dict(client_learning_rate=1.0, server_learning_rate=1.0)
    >>> {name: round(rate, 2) for name, rate in next_rates(
    ...     rates, found, 0.1).items()}
    {'client_learning_rate': 0.94, 'server_learning_rate': 1.08}
  """
  if not math.isfinite(found.loss):
    return {name: rate * math.exp(-step_size) for name, rate in rates.items()}
  slopes = {name: rate * getattr(found, name) for name, rate in rates.items()}
  length = math.hypot(*slopes.values())
  if not math.isfinite(length):
    warnings.warn(
        f'The derivatives of the loss by the learning rates, {slopes} times the'
        ' rates, are not finite, so the rate tuner leaves the rates as they '
        'are. Use another client or server optimizer, or constant rates.',
        RuntimeWarning,
        stacklevel=2,
    )
  if not 0.0 < length < math.inf:
    return dict(rates)
  return {
      name: rate * math.exp(-step_size * slopes[name] / length)
      for name, rate in rates.items()
  }


def build_rate_tuner(
    process: tff.learning.templates.LearningProcess,
    model: model_adapter.Model,
    cohort_fn: Callable[[int], cohort_lib.Cohort],
    *,
    step_size: float = 0.1,
    num_rounds: int = 1,
) -> Callable[[Any, int], Any]:
  """Builds a function that adjusts the learning rates between two rounds.

  Before rounds 0, k, 2k and so on, the tuner runs the next k rounds in advance.
  It differentiates the loss L after them, on the examples of the cohort that
  follows, with respect to the logarithms of both rates:

  ```
  p = (a dL/da, b dL/db)           (a: client, b: server learning rate)
  log a = log a - step_size * p_1 / |p|
  log b = log b - step_size * p_2 / |p|
  ```

  The k rounds are then trained with the new rates. So a rate changes by a
  factor of at most exp(step_size) in k rounds, whatever the scale of the loss.
  A loss that is not finite divides both rates by exp(step_size). Derivatives
  that are not finite, which are told in a warning, or all zero, and a next
  cohort without examples leave the rates. The result depends on the state and
  the round alone, so a resumed run is the same.

  A small k favors small rates, as a loss falls fastest at once where noise is
  averaged out ("short-horizon bias", Wu et al., ICLR 2018,
  https://arxiv.org/abs/1803.02021).

  Args:
    process: See `hypergradient`. A rate that is zero stays so.
    model: The model of the process, a `tff.learning.models.FunctionalModel`.
    cohort_fn: A pure function from the number of finished rounds to the cohort
      of the next round.
    step_size: The largest change of the logarithm of a rate, above zero.
      Default 0.1, 10 %.
    num_rounds: k, at least 1. Default 1.

  Returns:
    A function of a state and the number of finished rounds to the state that
    the next round begins with, for `simulation.run_training`.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If a number is out of its range, the process has no learning
      rate in its state, or it is differentially private: the rates would follow
      the clients' data without noise.
    UnsupportedComputationError: See `hypergradient`.

  Example:

    ```python
    tuner = tuning.build_rate_tuner(process, model, cohort_fn)
    simulation.run_training(
        process, cohort_fn=cohort_fn, total_rounds=100, adjust_state_fn=tuner
    )
    ```
  """
  arguments.check('step_size', step_size, 'The rate tuner', ranges.Positive)
  specs.check_positive('num_rounds', num_rounds)
  state_type = process.initialize.type_signature.result.member
  if differential_privacy.is_private(state_type):
    raise ValueError(
        "The rate tuner reads losses and gradients of the clients' data "
        'without noise, which bypasses differential privacy: use a process '
        'without it, or constant rates.'
    )
  find = hypergradients.hypergradient(
      process, hypergradients.build_model_loss(model)
  )
  data_type = process.next.type_signature.parameter[1].member

  def tune(state, round_num):
    if round_num % num_rounds:
      return state
    end = round_num + num_rounds
    examples = _examples(cohort_fn(end))
    if not len(next(iter(examples.values()))):
      return state
    cohorts = list(map(cohort_fn, range(round_num, end)))
    batch = elements.to_element(examples, data_type)
    found = find(state, cohorts, batch)
    rates = next_rates(read_rates(process, state), found, step_size)
    return _set_rates(process, state, rates)

  return tune


def _examples(cohort: cohort_lib.Cohort) -> 'collections.OrderedDict[str, Any]':
  """Returns the examples of a cohort that are finite."""
  packed = cohort.pack()
  examples = feature_arrays.take(packed.rows, packed.order)
  is_finite = [
      np.isfinite(array).all(axis=tuple(range(1, array.ndim)))
      for array in examples.values()
      if specs.kind(array.dtype) == 'f'
  ]
  keep = np.all(is_finite, axis=0) if is_finite else slice(None)
  return collections.OrderedDict(
      (name, array[keep]) for name, array in examples.items()
  )

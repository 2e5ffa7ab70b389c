# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""`build_fed_opt` with the rules and the client weighting of a paper."""

from typing import Any, Optional

import tensorflow_federated as tff

from tff_adaptive.algorithms import fed_opt
from tff_adaptive.client_works import model_adapter
from tff_adaptive.client_works import model_checks
from tff_adaptive.finalizers import fedli
from tff_adaptive.optimizers import adaalter
from tff_adaptive.optimizers import armijo
from tff_adaptive.optimizers import fafed
from tff_adaptive.optimizers import fedcada
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib


def _build(
    model: Any, optimizer: Any, server: Any, weighting: Any, options: Any
) -> tff.learning.templates.LearningProcess:
  """Builds FedOpt with a client rule whose state crosses rounds."""
  if not isinstance(optimizer, federated_optimizer.FederatedOptimizer):
    raise TypeError(
        'The client optimizer of this algorithm must be a '
        '`tff_adaptive.optimizers.FederatedOptimizer`, found '
        f'{optimizer_lib.name_of(optimizer)}. Use `build_fed_opt` for others.'
    )
  return fed_opt.build_fed_opt(
      model, optimizer, server, client_weighting=weighting, **options
  )


@model_checks.builds_models
def build_adaalter(
    model: model_adapter.Model,
    client_optimizer: Optional[federated_optimizer.FederatedOptimizer] = None,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    *,
    client_weighting: tff.learning.ClientWeighting = (
        tff.learning.ClientWeighting.UNIFORM
    ),
    **options: Any,
) -> tff.learning.templates.LearningProcess:
  """Builds local AdaAlter.

  This is `build_fed_opt` with the client rule `optimizers.build_adaalter`. The
  state's `client_work` is an ordered dictionary of `hparams`, `round_num`,
  `shared` with `second_moment`, a tuple with one tensor per trainable weight,
  of its shape, and `aggregator`.

  Args:
    model: As in `build_fed_opt`.
    client_optimizer: Default `optimizers.build_adaalter()`.
    server_optimizer: As in `build_fed_opt`. Default FedAvg with rate 1, as in
      the paper.
    client_weighting: Default `UNIFORM`, as in the paper.
    **options: Further arguments of `build_fed_opt`.

  Returns:
    A `tff.learning.templates.LearningProcess`, see `build_fed_opt`.

  Raises:
    TypeError: See `build_fed_opt`.
    ValueError: See `build_fed_opt`.

  Example:

    ```python
    process = algorithms.build_adaalter(
        model, optimizers.build_adaalter(learning_rate=0.5)
    )
    ```

  References:
    Xie, Koyejo, Gupta, Lin, Local AdaAlter: Communication-Efficient Stochastic
    Gradient Descent with Adaptive Learning Rates, 2019,
    https://arxiv.org/abs/1911.09030, Algorithm 4.
  """
  client_optimizer = client_optimizer or adaalter.build_adaalter()
  return _build(
      model, client_optimizer, server_optimizer, client_weighting, options
  )


@model_checks.builds_models
def build_fafed(
    model: model_adapter.Model,
    client_optimizer: Optional[federated_optimizer.FederatedOptimizer] = None,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    *,
    client_weighting: tff.learning.ClientWeighting = (
        tff.learning.ClientWeighting.UNIFORM
    ),
    **options: Any,
) -> tff.learning.templates.LearningProcess:
  """Builds FAFED, in a form for clients that keep no state.

  This is `build_fed_opt` with the client rule `optimizers.build_fafed`. The
  state's `client_work` is an ordered dictionary of `hparams`, `round_num`,
  `shared` with `momentum` and `second_moment`, tuples with one tensor per
  trainable weight, of its shape, and `aggregator`. Round 0 is the warm-up: one
  step on each client's first batch.

  Args:
    model: As in `build_fed_opt`.
    client_optimizer: Default `optimizers.build_fafed()`.
    server_optimizer: As in `build_fed_opt`. Default FedAvg with rate 1, as in
      the paper.
    client_weighting: Default `UNIFORM`, as in the paper.
    **options: Further arguments of `build_fed_opt`.

  Returns:
    A `tff.learning.templates.LearningProcess`, see `build_fed_opt`.

  Raises:
    TypeError: See `build_fed_opt`.
    ValueError: See `build_fed_opt`.

  Example:

    ```python
    process = algorithms.build_fafed(
        model, optimizers.build_fafed(learning_rate=0.02)
    )
    ```

  References:
    Wu, Huang, Hu, Huang, Faster Adaptive Federated Learning, AAAI 2023,
    https://arxiv.org/abs/2212.00974, Algorithm 1.
  """
  client_optimizer = client_optimizer or fafed.build_fafed()
  return _build(
      model, client_optimizer, server_optimizer, client_weighting, options
  )


@model_checks.builds_models
def build_fedcada(
    model: model_adapter.Model,
    client_optimizer: Optional[federated_optimizer.FederatedOptimizer] = None,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    *,
    client_weighting: tff.learning.ClientWeighting = (
        tff.learning.ClientWeighting.UNIFORM
    ),
    **options: Any,
) -> tff.learning.templates.LearningProcess:
  """Builds FedCAda.

  This is `build_fed_opt` with the client rule `optimizers.build_fedcada_adam`,
  whose moments the server averages, with the weights of the model updates, and
  sends. The state's `client_work` is an ordered dictionary of

  - `hparams`: the hyperparameters of the client rule;
  - `round_num`: the number of rounds with a healthy client, int32;
  - `shared`: `first_moment` and `second_moment`, tuples with one tensor per
    trainable weight, of its shape (and `num_steps` with `time='global_step'`);
    empty with `carry_state`;
  - `aggregator`: the states of their aggregators.

  Args:
    model: As in `build_fed_opt`.
    client_optimizer: Default `optimizers.build_fedcada_adam()`.
    server_optimizer: As in `build_fed_opt`. Default FedAvg with rate 1; the
      paper does not specify it.
    client_weighting: Default `UNIFORM`, Algorithm 2.
    **options: Further arguments of `build_fed_opt`, such as
      `payload_aggregators={'second_moment': ...}`.

  Returns:
    A `tff.learning.templates.LearningProcess`, see `build_fed_opt`.

  Raises:
    TypeError: See `build_fed_opt`.
    ValueError: See `build_fed_opt`.

  Example:

    ```python
    process = algorithms.build_fedcada(
        model, optimizers.build_fedcada_adam(learning_rate=0.01, beta_1=0.1)
    )
    ```

  References:
    Zhou et al., FedCAda: Adaptive Client-Side Optimization for Accelerated and
    Stable Federated Learning, 2024, https://arxiv.org/abs/2405.11811, Algorithm
    2.
  """
  client_optimizer = client_optimizer or fedcada.build_fedcada_adam()
  return _build(
      model, client_optimizer, server_optimizer, client_weighting, options
  )


@model_checks.builds_models
def build_feddyn(
    model: model_adapter.Model,
    client_optimizer: federated_optimizer.FederatedOptimizer,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    *,
    client_weighting: tff.learning.ClientWeighting = (
        tff.learning.ClientWeighting.UNIFORM
    ),
    **options: Any,
) -> tff.learning.templates.LearningProcess:
  """Builds FedDyn, with partial participation.

  This is `build_fed_opt` with the client rule `optimizers.build_feddyn`. The
  state's `finalizer` is that of the server's rule and `mean_dual`, the mean of
  the clients' duals, with the structure of the trainable weights. The duals
  pass through `next` and are kept in a `ClientStateStore`, like the controls of
  `build_scaffold`.

  Args:
    model: As in `build_fed_opt`.
    client_optimizer: `optimizers.build_feddyn(num_clients, ...)`.
    server_optimizer: As in `build_fed_opt`; it steps along the mean update plus
      the mean dual. Default FedAvg with rate 1, as in the paper.
    client_weighting: `UNIFORM`, Algorithm 1; no other is supported.
    **options: Further arguments of `build_fed_opt`.

  Returns:
    A `tff.learning.templates.LearningProcess`, see `build_fed_opt`.

  Raises:
    TypeError: See `build_fed_opt`.
    ValueError: See `build_fed_opt`.

  Example:

    ```python
    process = algorithms.build_feddyn(
        model, optimizers.build_feddyn(num_clients=100, alpha=0.1)
    )
    ```

  References:
    Acar et al., Federated Learning Based on Dynamic Regularization, ICLR 2021,
    https://arxiv.org/abs/2111.04263, Algorithm 1.
  """
  return _build(
      model, client_optimizer, server_optimizer, client_weighting, options
  )


@model_checks.builds_models
def build_fedli_ls(
    model: model_adapter.Model,
    client_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    **options: Any,
) -> tff.learning.templates.LearningProcess:
  """Builds FedLi-LS.

  This is `build_fed_opt` with `optimizers.build_armijo` on the clients and
  `finalizers.build_line_search_step` on the server. With `'max'` the state's
  `finalizer` is an ordered dictionary of `server_step_size`, the last one, a
  float32 scalar.

  The objective of all clients together may increase even if every client's line
  search succeeds and all objectives are convex.

  Args:
    model: As in `build_fed_opt`.
    client_optimizer: Default `optimizers.build_armijo()`. `'max'` needs one
      with a step size; the other scales work with any.
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
    Towards Hyper-parameter-free Federated Learning, 2024,
    https://arxiv.org/abs/2408.17145v1, section 3, Algorithm FedLi-LS.
    Deviation: the global descent of its Remark 1 does not hold; the tests have
    a counterexample. The published code averages the models and never takes the
    step.
  """
  return fed_opt.build_fed_opt(
      model,
      client_optimizer or armijo.build_armijo(),
      server_optimizer or fedli.build_line_search_step(),
      **options,
  )


@model_checks.builds_models
def build_fedli_lu(
    model: model_adapter.Model,
    client_optimizer: tff.learning.optimizers.Optimizer,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    **options: Any,
) -> tff.learning.templates.LearningProcess:
  """Builds FedLi-LU.

  This is `build_fed_opt` with `finalizers.build_frank_wolfe` on the server. The
  state's `finalizer` is an ordered dictionary of the hyperparameters
  `learning_rate`, `weight_decay` and `epsilon`, and of `gamma` and `objective`
  of the last round, scalars; with momentum also of the hyperparameter
  `momentum` and of `velocity`, with the structure of the trainable weights.

  Args:
    model: As in `build_fed_opt`. The paper derives the step for the multi-class
      hinge loss, `tff_adaptive.losses.MulticlassHinge`, and trains with
      cross-entropy; `experiments.train` takes the former by
      `--<task>_loss=multiclass_hinge`.
    client_optimizer: Any; the paper uses SGD.
    server_optimizer: Default `finalizers.build_frank_wolfe()`.
    **options: Further arguments of `build_fed_opt`.

  Returns:
    A `tff.learning.templates.LearningProcess`, see `build_fed_opt`.

  Raises:
    TypeError: See `build_fed_opt`.
    ValueError: See `build_fed_opt`.

  Example:

    ```python
    process = algorithms.build_fedli_lu(
        model,
        optimizers.build_sgd(0.05),
        finalizers.build_frank_wolfe(objective_at='received_model'),
    )
    ```

  References:
    Towards Hyper-parameter-free Federated Learning, 2024,
    https://arxiv.org/abs/2408.17145v1, section 6, Algorithm 2. The published
    code never takes the step, because the loss does not reach its server.
  """
  return fed_opt.build_fed_opt(
      model,
      client_optimizer,
      server_optimizer or fedli.build_frank_wolfe(),
      **options,
  )


@model_checks.builds_models
def build_scaffold(
    model: model_adapter.Model,
    client_optimizer: federated_optimizer.FederatedOptimizer,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    *,
    client_weighting: tff.learning.ClientWeighting = (
        tff.learning.ClientWeighting.UNIFORM
    ),
    **options: Any,
) -> tff.learning.templates.LearningProcess:
  """Builds SCAFFOLD, with option II and partial participation.

  This is `build_fed_opt` with the client rule `optimizers.build_scaffold_sgd`.
  The state's `client_work` is an ordered dictionary of `hparams`, `round_num`,
  `shared` with `control`, c, a tuple with one tensor per trainable weight, of
  its shape, and `aggregator`. The clients' own controls c_i pass through
  `next`: see `tff_adaptive.client_works.build_local_training_client_work` for
  the form of its input, and `tff_adaptive.simulation.run_training`, which keeps
  them in a `ClientStateStore`.

  Args:
    model: As in `build_fed_opt`.
    client_optimizer: `optimizers.build_scaffold_sgd(num_clients, ...)`.
    server_optimizer: As in `build_fed_opt`. Default FedAvg with rate 1, as in
      the paper.
    client_weighting: The weights of the model updates; controls always have
      equal weights. Default `UNIFORM`, Algorithm 1.
    **options: Further arguments of `build_fed_opt`.

  Returns:
    A `tff.learning.templates.LearningProcess`, see `build_fed_opt`.

  Raises:
    TypeError: See `build_fed_opt`.
    ValueError: See `build_fed_opt`.

  Example:

    ```python
    process = algorithms.build_scaffold(
        model, optimizers.build_scaffold_sgd(num_clients=100, learning_rate=0.1)
    )
    simulation.run_training(
        process,
        client_store=simulation.ClientStateStore(),
        cohort_fn=cohort_fn,
        total_rounds=100,
    )
    ```

  References:
    Karimireddy et al., SCAFFOLD: Stochastic Controlled Averaging for Federated
    Learning, ICML 2020, https://arxiv.org/abs/1910.06378, Algorithm 1.
  """
  return _build(
      model, client_optimizer, server_optimizer, client_weighting, options
  )

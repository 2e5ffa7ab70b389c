# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replays reference trajectories through the library's learning processes.

Each run of a file is a small federated training whose step sizes, weights and
server state are known to ten digits. It is trained again with the process that
the library builds for its configuration, and compared round by round. The names
and keys of a file follow the publications, and are translated here to those of
the library's builders; any others are unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
import math
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments import registry
from experiments import rounds as rounds_lib
from experiments.conformance import adapters
from experiments.conformance import goldens
from experiments.conformance import problems
from tff_adaptive import algorithms
from tff_adaptive.optimizers import schedules

# Names in files that differ from those of the registry.
_NAMES = {
    registry.CLIENT_OPTIMIZER: {
        'fedcada': 'fedcada_adam',
        'scaffold': 'scaffold_sgd',
    },
    registry.SERVER_OPTIMIZER: {
        'fedli_ls': 'line_search_step',
        'fedli_lu': 'frank_wolfe',
    },
    registry.LOSS_TERM: {},
}
# Keys in files that differ from the names of arguments.
_KEYS = {
    'b0': 'initial_norm',
    'b0sq': 'initial_second_moment',
    'beta1': 'beta_1',
    'beta2': 'beta_2',
    'beta3': 'beta_3',
    'd0': 'initial_distance',
    'd_coef': 'distance_factor',
    'eps': 'epsilon',
    'eta': 'learning_rate',
    'eta0': 'learning_rate',
    'eta_max': 'max_step_size',
    'f_star': 'optimal_value',
    'fallback': 'fallback_step_size',
    'fstar': 'optimal_value',
    'hyper_lr': 'hyper_learning_rate',
    'init_eta': 'first_step_size',
    'init_sq_dist': 'initial_squared_distance',
    'init_step': 'initial_step_size',
    'lambda': 'proximal_lambda',
    'lr': 'learning_rate',
    'lr_vector': 'vector_learning_rate',
    'max': 'max_scale',
    'min': 'min_scale',
    'n_batches': 'batches_per_epoch',
    'reps_rel': 'relative_distance',
    'tau': 'epsilon',
    'theta0': 'theta',
    'v0': 'initial_second_moment',
}
WEIGHTINGS = {
    'uniform': tff.learning.ClientWeighting.UNIFORM,
    'examples': tff.learning.ClientWeighting.NUM_EXAMPLES,
}


def _build(kind: str, config: dict[str, Any], **supplied: Any) -> Any:
  """Builds a part of a configuration.

  Args:
    kind: The kind of its row in the registry.
    config: The part, such as the client's: its `name` and other keys.
    **supplied: Arguments that no file contains.

  Returns:
    The result of the builder.

  Raises:
    AdapterError: If the name or a key is unknown.
  """
  what = kind.partition('_')[0]
  name = _NAMES[kind].get(config['name'], config['name'])
  row = registry.ROWS[kind].get(name)
  if row is None or row.builder is None:
    raise adapters.AdapterError(f'unknown {what} {config["name"]!r}')
  known = {argument.name: argument for argument in row.arguments}
  arguments = {}
  for key, value in config.items():
    if key == 'name':
      continue
    argument = known.get(_KEYS.get(key, key))
    if argument is None:
      raise adapters.AdapterError(
          f'unknown {what} key {key!r} of {config["name"]!r}'
      )
    # JSON has no infinity.
    is_unlimited = value is None and argument.range.may_be_infinite
    arguments[argument.name] = math.inf if is_unlimited else value
  given = {name: supplied[name] for name in row.supplied}
  return registry.resolve(row.builder)(**arguments, **given)


def _build_client_optimizer(
    config: dict[str, Any], num_clients: int, mean_num_examples: Optional[float]
) -> Any:
  config = dict(config)
  if config.pop('scale_alpha_by_examples', False):
    config['mean_num_examples'] = mean_num_examples
  if config['name'] == 'delta_sgd':
    batch = config.pop('batch', 'same')
    if batch not in ('same', 'different'):
      raise adapters.AdapterError(f'unknown delta_sgd batch {batch!r}')
    if batch == 'different':
      config['previous_gradient'] = 'reuse'
    # The paper's rule, also where no gradient is left.
    config.setdefault('growth', 'always')
  if config['name'] == 'd_adaptation_sgd' and config.get('carry_state'):
    # There, all of the state is kept.
    config.setdefault('moves_anchor', False)
  if config['name'] == 'sps':
    config = _name_sps(config)
  return _build(registry.CLIENT_OPTIMIZER, config, num_clients=num_clients)


def _name_sps(config: dict[str, Any]) -> dict[str, Any]:
  """Returns the configuration with the name of its variant."""
  variant = config.pop('variant', 'constant')
  limited = 'sps_max' if 'eta_max' in config else 'sps'
  names = {'constant': limited, 'smooth': 'sps_smooth'}
  if variant not in names:
    raise adapters.AdapterError(f'unknown sps variant {variant!r}')
  return {**config, 'name': names[variant]}


def _build_server_optimizer(config: dict[str, Any]) -> Any:
  if config['name'] == 'fedadagrad':
    # Adagrad does not decay its accumulator.
    config = {k: v for k, v in config.items() if k != 'beta2'}
  if config['name'] == 'sgd':
    # Without momentum this is FedAvg.
    config = {'momentum': 0.0, **config, 'name': 'fedavgm'}
  return _build(registry.SERVER_OPTIMIZER, config)


def _build_loss_term(
    config: Optional[dict[str, Any]], representation_fn: Any
) -> Any:
  if config is None:
    return None
  if representation_fn is None and config['name'] == 'moon':
    raise adapters.AdapterError("'moon' needs a representation")
  return _build(registry.LOSS_TERM, config, representation_fn=representation_fn)


def _build_schedule(config: dict[str, Any]) -> Any:
  name = config.get('schedule', 'constant')
  if 'decay_every' in config and name != 'exp_decay':
    raise adapters.AdapterError(f"'decay_every' of the schedule {name!r}")
  if name == 'constant':
    return None
  if name == 'step_decay':
    return schedules.build_step_decay(config['rounds'])
  if name == 'exp_decay':
    return schedules.build_exp_decay(rounds_per_decay=config['decay_every'])
  raise adapters.AdapterError(f'unknown schedule {name!r}')


def build_process(
    config: dict[str, Any],
    model: Any,
    representation_fn: Any,
    num_clients: int,
    mean_num_examples: Optional[float] = None,
) -> tff.learning.templates.LearningProcess:
  """Builds the learning process of a run.

  Args:
    config: The configuration of the run, as in the file.
    model: The model of the problem.
    representation_fn: The model's representation of examples, for MOON, or
      `None`.
    num_clients: The number of clients of the problem.
    mean_num_examples: The mean number of examples per client and round, for
      FedDyn. Default `None`.

  Returns:
    A `tff.learning.templates.LearningProcess`.

  Raises:
    AdapterError: If a name or a key is unknown.
  """
  known = {*adapters.COMMON_KEYS, 'loss', 'schedule', 'decay_every'}
  unknown = sorted(set(config) - known)
  if unknown:
    raise adapters.AdapterError(f'unknown key {unknown[0]!r}')
  if config['weighting'] not in WEIGHTINGS:
    raise adapters.AdapterError(f'unknown weighting {config["weighting"]!r}')
  return algorithms.build_fed_opt(
      model,
      _build_client_optimizer(config['client'], num_clients, mean_num_examples),
      _build_server_optimizer(config['server']),
      client_weighting=WEIGHTINGS[config['weighting']],
      loss_term=_build_loss_term(config.get('loss'), representation_fn),
      client_schedule=_build_schedule(config),
  )


def _scale_epsilon(
    process: tff.learning.templates.LearningProcess, state: Any, ratio: float
) -> Any:
  """Returns the state with a multiple of the client rule's `epsilon`."""
  hparams = process.get_hparams(process.initialize())
  # NumPy 1 would make it float64.
  hparams['client_work']['epsilon'] *= np.float32(ratio)
  return process.set_hparams(state, hparams)


def train(
    process: tff.learning.templates.LearningProcess, run: adapters.GoldenRun
) -> Iterator[tuple[Any, Any]]:
  """Trains a run.

  Args:
    process: The process of the run's configuration.
    run: The run.

  Yields:
    The state and the metrics after each round.
  """
  batches = problems.create_client_batches(
      run.problem, run.configuration['batch_size'], run.configuration['epochs']
  )
  rounds = rounds_lib.Rounds(process)
  name = run.configuration['client']['name']
  for before, cohort in zip([(), *run.cohorts], run.cohorts):
    if name == 'fedhyper_client_local' and before and cohort:
      # The rule divides by the number of clients of the round before.
      ratio = len(before) / len(cohort)
      rounds.state = _scale_epsilon(process, rounds.state, ratio)
    metrics = rounds.train([batches[client] for client in cohort], cohort)
    yield rounds.state, metrics


def train_weights(
    process: tff.learning.templates.LearningProcess, run: adapters.GoldenRun
) -> list[np.ndarray]:
  """Trains a run and returns the flat trainable weights after each round."""
  return [
      problems.flatten_weights(process.get_model_weights(state).trainable)
      for state, _ in train(process, run)
  ]


def _process_of(run: adapters.GoldenRun, model: Any = None) -> Any:
  sizes = [len(client['y']) for client in run.problem['clients']]
  return build_process(
      dict(run.configuration),
      model or problems.create_functional_model(run.problem),
      problems.create_representation_fn(run.problem),
      len(sizes),
      run.configuration['epochs'] * float(np.mean(sizes)),
  )


class Library:
  """The adapter of `tff_adaptive`; see `adapters.Adapter`."""

  name = 'tff_adaptive'

  def supports(self, configuration: Mapping[str, Any]) -> Optional[str]:
    del configuration  # Unknown configurations fail.
    return None

  def replay(self, run: adapters.GoldenRun) -> Sequence[Any]:
    return train_weights(_process_of(run), run)


def _shared_fields(client_work: Any, weights: Any) -> dict[str, Any]:
  """Returns the state shared with clients, by the file's names."""
  if isinstance(client_work, Mapping):
    # A schedule wraps the state of the client work.
    client_work = client_work.get('inner', client_work)
  if not isinstance(client_work, Mapping) or 'shared' not in client_work:
    return {}
  shared = client_work['shared']
  names = {
      'first_moment': 'agg_m',
      'momentum': 'agg_m',
      'second_moment': 'agg_v',
      'control': 'c',
      'global_direction': 'global_dir',
      'gram': 'gram',
      'mean_change': 'prev_D',
  }
  fields = {
      name: problems.flatten_weights(shared[key])
      for key, name in names.items()
      if key in shared
  }
  if 'num_steps' in shared:
    fields['t0'] = shared['num_steps']
  if 'mean_second_moment' in shared:
    # There may be one number per tensor; the file has one per weight.
    fields['vbar'] = problems.flatten_weights(
        [
            np.broadcast_to(mean, np.shape(w))
            for mean, w in zip(shared['mean_second_moment'], weights)
        ]
    )
  return fields


def _server_fields(state: Any) -> dict[str, Any]:
  """Returns the server state as vectors and scalars, by the file's names."""
  weights = state.global_model_weights.trainable
  fields = {
      'x': problems.flatten_weights(weights),
      **_shared_fields(state.client_work, tf.nest.flatten(weights)),
  }
  held = state.finalizer
  if 'accumulator' in held:
    # The gradient of a server optimizer is minus the mean change. The file
    # calls momentum `buf` for gradient descent and `m` for adaptive rules.
    momentum = -problems.flatten_weights(held['accumulator'])
    fields['m'] = fields['buf'] = momentum
  for key, name in (
      ('preconditioner', 'v'),
      ('max_preconditioner', 'vhat'),
      ('velocity', 'z'),
      ('previous_change', 'prev'),
      ('mean_dual', 'mean_dual'),
      ('average', 'gpa_x'),
      ('base_weights', 'gpa_z'),
  ):
    if key in held:
      fields[name] = problems.flatten_weights(held[key])
  for key, name in (
      ('server_step_size', 'eta_g'),
      ('server_step_size', 'alpha'),
      ('scale', 'scale'),
      ('tau_eff', 'tau_eff'),
      ('gamma', 'gamma'),
      ('objective', 'fbar'),
  ):
    if key in held:
      fields[name] = held[key]
  return fields


def _scalar_difference(found: Any, expected: Any) -> float:
  """Returns the difference of two scalars, relative if above one.

  Some rules take steps of 50 or more, of which float32 keeps seven digits.
  """
  return abs(found - expected) / max(1.0, abs(expected))


def _compare_round(
    reference: Mapping[str, Any], state: Any, metrics: Any
) -> float:
  """Returns the largest difference of server fields and step sizes."""
  differences = [0.0]
  held = _server_fields(state)
  if 'prev_D' in held:
    # The state has it divided by the number of clients.
    held['prev_D'] = len(reference['clients']) * held['prev_D']
  for name in {'x', *(set(held) & set(reference['server']))}:
    expected = reference['server'][name]
    if isinstance(expected, list):
      expected = np.asarray(tf.nest.flatten(expected))
      differences.append(np.max(np.abs(held[name] - expected)))
    else:
      differences.append(_scalar_difference(held[name], expected))
  reported = metrics['client_work']['clients']
  for key, name in (
      ('etas', 'step_size'),
      ('etas', 'rate'),
      ('d', 'distance'),
      ('scales', 'scale'),
      ('thetas', 'theta'),
      ('backtracks', 'backtracks'),
  ):
    values = [v for c in reference['clients'] for v in c.get(key, ())]
    if values and f'{name}_mean' in reported:
      for reduction in ('mean', 'min', 'max'):
        expected = getattr(np, reduction)(values)
        found = reported[f'{name}_{reduction}']
        differences.append(_scalar_difference(found, expected))
  # `max` could drop a NaN.
  return float('nan') if np.isnan(differences).any() else max(differences)


def replay(
    run: Mapping[str, Any], problems: Mapping[str, Any], model: Any = None
) -> goldens.Result:
  """Trains a run and compares it: weights, server state and step sizes.

  Args:
    run: An entry of `runs`: `config`, `float32_error` and `trajectory`.
    problems: The entries of `problems`, by name.
    model: The model; by default the functional model of the problem.

  Returns:
    A `Result`. An error fails only this run, and is its reason.
  """

  def find_error(golden_run, trajectory):
    outputs = train(_process_of(golden_run, model), golden_run)
    errors = [
        _compare_round(reference, state, metrics)
        for reference, (state, metrics) in zip(trajectory, outputs)
    ]
    return float(np.max(errors))  # Keeps a NaN, unlike `max`.

  return goldens.judge(run, problems, find_error)

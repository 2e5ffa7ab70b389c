# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The flags of a training run that belong to no row of the registry.

No TensorFlow is imported here.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
from typing import Any, Literal, Optional

from experiments import flag_table
from experiments import registry
from experiments.flag_table import field
from tff_adaptive import _packages

# What --evaluations and --final_evaluations can name.
CENTRAL = 'central'
PER_CLIENT = 'per_client'
PERSONALIZED = 'personalized'
EVALUATIONS = (CENTRAL, PER_CLIENT, PERSONALIZED)
# What --evaluation_data can name.
TEST = 'test'
TEST_CLIENTS = 'test_clients'
VALIDATION = 'validation'
TRAIN = 'train'
# What --sampling can name.
FIXED = 'fixed'
POISSON = 'poisson'

# What --early_stopping_patience and --keep_best watch, if nothing else is said.
DEFAULT_METRIC = 'evaluation/accuracy'

_DEFAULT_EVALUATIONS = (CENTRAL,)
# Flags that say how to evaluate, and the evaluations that use them.
_USERS = {
    'evaluation_data': (CENTRAL,),
    'evaluation_examples': (CENTRAL,),
    'evaluation_clients': (PER_CLIENT, PERSONALIZED),
    'personalization_epochs': (PERSONALIZED,),
}
# Where TFF's adaptive clipping starts, and the rate of its paper.
_INITIAL_CLIP_NORM = 0.1
_DEFAULT_CLIP_LEARNING_RATE = 0.2


# The runtime that --tune_rates needs, and the defaults of its flags.
_COMPILED = 'compiled'
_RATE_TUNING = {'tune_rates_step': 0.1, 'tune_rates_rounds': 1}


@dataclasses.dataclass(frozen=True)
class Settings:
  """The flags, each with its help; None is the task's default, or none.

  Attributes:
    total_rounds: Rounds of the run. Default: the task's.
    clients_per_round: Clients in a cohort. Default: the task's.
    client_batch_size: Examples in a batch. Default: the task's.
    client_epochs: Passes of a client over its data in a round. Default: the
      task's.
    max_examples: How many examples of a client count, the first ones in stored
      order. Default: the task's.
    num_clients: Train on this many clients of the task, drawn by --seed.
      Default: all.
    heldout_clients: Keep this many clients, drawn by --seed, for testing only:
      their examples take the place of the task's test data. Default: none.
    heldout_fraction: Keep this part of every client's examples for testing
      only, in place of the task's test data. Default: none.
    drop_clients: Let each sampled client drop out of its round with this
      probability, drawn by --seed. Default: none does.
    straggler_fraction: Let each client be a straggler with this probability,
      drawn by --seed: it finishes only some of its steps of the round, and
      these count. Default: none is.
    sampling: How the cohort of a round is drawn: exactly --clients_per_round
      clients, or every client with the same probability, so that it is as many
      in the mean.
    dp_noise_multiplier: Differential privacy of clients: all that they send for
      the model is clipped and summed, with normal noise of this many times the
      bound; privacy/epsilon is in the metrics. Default: no privacy.
    dp_clip_norm: The bound of the norm of a client's change of the model;
      adaptive clipping starts there, by default at 0.1.
    dp_payload_clip_norms: The bounds of what clients send besides the change,
      such as first_moment:0.5,second_moment:0.1. With adaptive clipping they
      start there, or at --dp_clip_norm if they are not named.
    dp_adaptive_clip_quantile: Adaptive clipping: bounds follow this quantile of
      the clients' norms; the paper has 0.5. Default: bounds are fixed.
    dp_adaptive_clip_learning_rate: Of adaptive clipping: how fast bounds move.
      Default 0.2.
    dp_adaptive_clip_count_stddev: Of adaptive clipping: the standard deviation
      of the noise on how many clients are below a bound. Default:
      --clients_per_round / 20.
    dp_delta: The delta of privacy/epsilon. Default: 1 / (number of
      clients)^1.1.
    tune_rates: Tune the learning rates of clients and server while training, by
      the derivatives of the loss after the coming rounds. Needs
      --runtime=compiled and a functional model. Default: rates stay as given,
      or follow their schedules.
    tune_rates_step: The step of the logarithms of the rates with --tune_rates.
      Default 0.1, which is 10 percent.
    tune_rates_rounds: The rounds that --tune_rates differentiates at once, and
      between two steps of the rates. Default 1.
    evaluations: What is evaluated during the training, of central: all examples
      together; per_client: each client's own test examples, with mean, median
      and worst tenth of the clients; personalized: the same before and after
      fine-tuning. Default: central.
    final_evaluations: The same after the training, and of a run that is
      finished, into evaluation.json and pictures. Default: none.
    evaluation_data: The examples of --evaluations=central; test_clients is
      another sample of the test clients' examples in each evaluation, by --seed
      and round, and train a sample of those that are trained on. Default: test.
    evaluation_examples: Of --evaluations=central: how many examples, drawn by
      --seed; after the last round all test examples count. Default: all of up
      to 100,000, else 10,000; of test_clients and train 10,000.
    evaluation_clients: Of per_client and personalized: how many clients at
      most, drawn by --seed. Default: all.
    personalization_epochs: Of personalized: passes of a client over its
      training examples, with the run's client optimizer. Default: 1.
    rounds_per_evaluation: Evaluate as --evaluations says after every this many
      rounds, and after the last.
    rounds_per_checkpoint: Save after every this many rounds, and after the
      last.
    checkpoints_to_keep: How many of the newest checkpoints stay; they are of
      about the size of the model.
    seed: Fixes initial weights, partition, sampling and shuffling.
    initial_weights: Begin with the weights of this file: one of
      experiments.export, a checkpoint or best.npz of a run; or with those of
      the newest checkpoint in this folder of a run. Default: the task's own,
      from --seed.
    bad_clients: What to do about clients that are empty or hold NaN: stop
      before training, or leave them out. Labels out of range always stop.
    early_stopping_patience: End the training after this many evaluations in a
      row without a better --monitored_metric. Default: train all rounds.
    keep_best: Keep the weights of the round with the best --monitored_metric in
      checkpoints/best.npz.
    monitored_metric: The column of metrics.csv that --early_stopping_patience
      and --keep_best watch. Default: evaluation/accuracy.
    monitored_mode: Whether the largest or the smallest value is the best.
      Default: min for a loss, max for others.
    weights_average_decay: Evaluate also the moving average of the global
      weights over rounds, with this decay; 1 is the mean of all rounds.
      Default: no average.
    weights_average_rounds: Evaluate also the mean of the global weights of this
      many last rounds, all of which are kept. Default: no average.
    client_states_memory_mb: MiB of memory for what clients keep across rounds
      (scaffold, moon); what does not fit is in files of the run.
    data_dir: The folder of the data sets; digits needs none.
    use_synthetic_data: Train on made-up data in the format of the task, to try
      a command without a download; the metrics mean nothing.
    wandb: Send metrics and hyperparameters to Weights & Biases, too. Its
      package and its variables, such as WANDB_PROJECT, say where.
    mlflow: Send metrics and hyperparameters to MLflow, too. Its package and its
      variables, such as MLFLOW_TRACKING_URI, say where.
    output_dir: The folder of all runs.
    experiment_name: The folder of this run in --output_dir; a run that was
      interrupted goes on from there. Default: TASK.ALGORITHM.CLIENT.SERVER, and
      .LOSS_TERM if there is one.
  """

  total_rounds: Optional[int] = field(lower_bound=1)
  clients_per_round: Optional[int] = field(lower_bound=1)
  client_batch_size: Optional[int] = field(lower_bound=1)
  client_epochs: Optional[int] = field(lower_bound=1)
  max_examples: Optional[int] = field(lower_bound=1)
  num_clients: Optional[int] = field(lower_bound=1)
  heldout_clients: Optional[int] = field(lower_bound=1)
  heldout_fraction: Optional[float] = field(lower_bound=0.0, upper_bound=1.0)
  drop_clients: Optional[float] = field(lower_bound=0.0, upper_bound=1.0)
  straggler_fraction: Optional[float] = field(lower_bound=0.0, upper_bound=1.0)
  sampling: Optional[Literal['fixed', 'poisson']] = field(FIXED)
  dp_noise_multiplier: Optional[float] = field()
  dp_clip_norm: Optional[float] = field()
  dp_payload_clip_norms: Optional[Mapping[str, float]] = field()
  dp_adaptive_clip_quantile: Optional[float] = field()
  dp_adaptive_clip_learning_rate: Optional[float] = field()
  dp_adaptive_clip_count_stddev: Optional[float] = field()
  dp_delta: Optional[float] = field()
  tune_rates: Optional[Literal['hypergradient']] = field()
  tune_rates_step: Optional[float] = field()
  tune_rates_rounds: Optional[int] = field(lower_bound=1)
  evaluations: Sequence[str] = field()
  final_evaluations: Sequence[str] = field((), is_hparam=False)
  evaluation_data: Optional[
      Literal['test', 'test_clients', 'validation', 'train']
  ] = field()
  evaluation_examples: Optional[int] = field(lower_bound=1)
  evaluation_clients: Optional[int] = field(lower_bound=1)
  personalization_epochs: Optional[int] = field(lower_bound=1)
  rounds_per_evaluation: int = field(5, lower_bound=1)
  rounds_per_checkpoint: int = field(10, lower_bound=1, is_hparam=False)
  checkpoints_to_keep: int = field(3, lower_bound=1, is_hparam=False)
  # NumPy's own generator takes no larger one.
  seed: int = field(0, lower_bound=0, upper_bound=2**32 - 1)
  initial_weights: Optional[str] = field()
  bad_clients: Literal['error', 'reject'] = field('error')
  early_stopping_patience: Optional[int] = field(lower_bound=1)
  keep_best: bool = field(False)
  monitored_metric: Optional[str] = field()
  monitored_mode: Optional[Literal['max', 'min']] = field()
  weights_average_decay: Optional[float] = field(
      lower_bound=0.0, upper_bound=1.0
  )
  weights_average_rounds: Optional[int] = field(lower_bound=1, upper_bound=1000)
  client_states_memory_mb: int = field(1024, lower_bound=0, is_hparam=False)
  data_dir: Optional[str] = field(is_hparam=False)
  use_synthetic_data: bool = field(False)
  wandb: bool = field(False, is_hparam=False)
  mlflow: bool = field(False, is_hparam=False)
  output_dir: str = field('runs', is_hparam=False)
  experiment_name: str = field(is_hparam=False)

  def hparams(self) -> dict[str, Any]:
    """Returns what a resumed run must have in common with the first one.

    None stands for the default of flags that are younger than the first runs,
    and for what only the final evaluations use.
    """
    values = {
        entry.name: getattr(self, entry.name)
        for entry in dataclasses.fields(self)
        if entry.metadata['is_hparam']
    }
    for flag, users in _USERS.items():
      if not set(users) & set(self.evaluations):
        values[flag] = None
    is_default = self.evaluations == _DEFAULT_EVALUATIONS
    values['evaluations'] = None if is_default else list(self.evaluations)
    values['sampling'] = None if self.sampling == FIXED else POISSON
    return values


def complete(values: dict[str, Any], choices: Mapping[str, Any]) -> Settings:
  """Returns the settings of a run, with defaults that depend on others.

  Args:
    values: The values of the flags.
    choices: The chosen rows, see `hparams.read_choices`.

  Raises:
    HparamError: If a value is out of its range or names nothing, a flag lacks
      another one, or two flags or a flag and the algorithm do not fit.
  """
  algorithm = choices[registry.ALGORITHM]
  _complete_privacy(values, algorithm)
  _complete_rate_tuning(values, choices)
  _complete_faults(values, algorithm.row)
  _complete_evaluations(values)
  _complete_callbacks(values)
  _check_trackers(values)
  return Settings(**values)


# The ranges of numbers, which absl could not name so.
_RANGES: dict[str, tuple[Callable[[float], bool], str]] = {
    'dp_noise_multiplier': (lambda value: value >= 0, 'at least 0'),
    'dp_clip_norm': (lambda value: value > 0, 'above 0'),
    'dp_adaptive_clip_quantile': (lambda value: 0 <= value <= 1, 'from 0 to 1'),
    'dp_adaptive_clip_learning_rate': (lambda value: value >= 0, 'at least 0'),
    'dp_adaptive_clip_count_stddev': (lambda value: value > 0, 'above 0'),
    'dp_delta': (lambda value: 0 < value < 1, 'between 0 and 1'),
    'tune_rates_step': (lambda value: value > 0, 'above 0'),
}
# Flags that mean nothing without another one.
_NEEDS = {
    'tune_rates': tuple(_RATE_TUNING),
    'dp_noise_multiplier': (
        'dp_clip_norm',
        'dp_adaptive_clip_quantile',
        'dp_adaptive_clip_learning_rate',
        'dp_adaptive_clip_count_stddev',
        'dp_delta',
        'dp_payload_clip_norms',
    ),
    'dp_adaptive_clip_quantile': (
        'dp_adaptive_clip_learning_rate',
        'dp_adaptive_clip_count_stddev',
    ),
}


def _complete_privacy(values: dict[str, Any], algorithm: Any):
  for needed, users in _NEEDS.items():
    for flag in users:
      if values[flag] is not None and values[needed] is None:
        raise flag_table.HparamError(f'--{flag} needs --{needed}')
  is_adaptive = values['dp_adaptive_clip_quantile'] is not None
  if values['dp_noise_multiplier'] is not None:
    if values['dp_clip_norm'] is None and not is_adaptive:
      raise flag_table.HparamError(
          '--dp_noise_multiplier needs --dp_clip_norm, or '
          '--dp_adaptive_clip_quantile for bounds that adapt'
      )
  _check_weighting(values, algorithm)
  for flag in _RANGES:
    if values[flag] is not None:
      _check_range(flag, flag, values[flag])
  if values['dp_payload_clip_norms'] is not None:
    values['dp_payload_clip_norms'] = _parse_bounds(
        values['dp_payload_clip_norms']
    )
  if is_adaptive:
    for flag, default in (
        ('dp_clip_norm', _INITIAL_CLIP_NORM),
        ('dp_adaptive_clip_learning_rate', _DEFAULT_CLIP_LEARNING_RATE),
    ):
      if values[flag] is None:
        values[flag] = default


def _complete_rate_tuning(values: dict[str, Any], choices: Mapping[str, Any]):
  if values['tune_rates'] is None:
    return
  runtime = choices[registry.RUNTIME].row.name
  if runtime != _COMPILED:
    raise flag_table.HparamError(
        '--tune_rates differentiates compiled rounds, take '
        f'--runtime={_COMPILED} in the place of --runtime={runtime}'
    )
  if values['dp_noise_multiplier'] is not None:
    raise flag_table.HparamError(
        '--tune_rates looks at the data of clients past differential privacy, '
        'drop it or --dp_noise_multiplier'
    )
  for flag, default in _RATE_TUNING.items():
    if values[flag] is None:
      values[flag] = default


def _check_weighting(values: Mapping[str, Any], algorithm: Any):
  """Raises if an algorithm has no cohorts, or weighs clients by examples."""
  if algorithm.row.pools_clients:
    for flag, off in (('sampling', FIXED), ('dp_noise_multiplier', None)):
      if values[flag] != off:
        raise flag_table.HparamError(
            f'--{registry.ALGORITHM}={algorithm.row.name} trains on the pooled '
            f'examples of all clients and has no cohorts, drop --{flag}'
        )
  elif values['dp_noise_multiplier'] is not None:
    if algorithm.hparams()['client_weighting'] != 'uniform':
      raise flag_table.HparamError(
          '--dp_noise_multiplier needs --client_weighting=uniform: weights by '
          'examples do not bound what a client adds'
      )


def _check_range(flag: str, like: str, value: float):
  """Raises if a number is out of the range of a flag."""
  flag_table.check_size(flag, value)
  is_valid, expected = _RANGES[like]
  if not (math.isfinite(value) and is_valid(value)):
    raise flag_table.HparamError(
        f'--{flag} must be {expected}, found {value:g}'
    )


def _parse_bounds(items: list[str]) -> dict[str, float]:
  """Returns the bounds of payloads by name."""
  flag = 'dp_payload_clip_norms'
  bounds = {}
  for item in items:
    name, _, text = item.partition(':')
    try:
      bounds[name.strip()] = float(text)
    except ValueError:
      raise flag_table.HparamError(
          f'--{flag} takes name:bound, separated by commas, found {item!r}'
      ) from None
    _check_range(flag, 'dp_clip_norm', float(text))
  return bounds


def _complete_faults(values: dict[str, Any], algorithm: registry.Row):
  """Makes None of 0, which is the same, as in runs of before these flags."""
  for flag in ('drop_clients', 'straggler_fraction'):
    probability = values[flag]
    if probability is None:
      continue
    # The bounds of a flag do not catch NaN.
    if not 0.0 <= probability <= 1.0:
      raise flag_table.HparamError(
          f'--{flag} must be from 0 to 1, found {probability}'
      )
    if probability and algorithm.pools_clients:
      raise flag_table.HparamError(
          f'--{registry.ALGORITHM}={algorithm.name} pools the examples of all '
          f'clients, so that no client can fail, drop --{flag}'
      )
    values[flag] = probability or None


def _complete_evaluations(values: dict[str, Any]):
  if values['evaluations'] is None:
    values['evaluations'] = _DEFAULT_EVALUATIONS
  for flag in ('evaluations', 'final_evaluations'):
    for name in values[flag]:
      flag_table.check_name(flag, name, EVALUATIONS)
    # In one order, however they were named.
    values[flag] = tuple(name for name in EVALUATIONS if name in values[flag])
  if not values['evaluations']:
    raise flag_table.HparamError(
        '--evaluations must name one or more of '
        f'{", ".join(EVALUATIONS)}, found none'
    )
  chosen = set(values['evaluations'])
  # The final central evaluation takes all there is.
  chosen.update(set(values['final_evaluations']) - {CENTRAL})
  for flag, users in _USERS.items():
    if values[flag] is not None and not chosen & set(users):
      raise flag_table.HparamError(
          f'--{flag} needs --evaluations={" or ".join(users)}'
      )


def _complete_callbacks(values: dict[str, Any]):
  if None not in (
      values['weights_average_decay'],
      values['weights_average_rounds'],
  ):
    raise flag_table.HparamError(
        '--weights_average_decay and --weights_average_rounds are two averages '
        'of the same name, give one of them'
    )
  if values['early_stopping_patience'] is None and not values['keep_best']:
    for name in ('monitored_metric', 'monitored_mode'):
      if values[name] is not None:
        raise flag_table.HparamError(
            f'--{name} needs --early_stopping_patience or --keep_best'
        )
    return
  if values['monitored_metric'] is None:
    values['monitored_metric'] = DEFAULT_METRIC
  if values['monitored_mode'] is None:
    is_loss = values['monitored_metric'].rpartition('/')[2] == 'loss'
    values['monitored_mode'] = 'min' if is_loss else 'max'


def _check_trackers(values: Mapping[str, Any]):
  """Raises if the package of a tracker that a flag asks for is missing."""
  for package in ('wandb', 'mlflow'):
    if values[package]:
      try:
        _packages.check_installed(package)
      except ImportError as error:
        raise flag_table.HparamError(f'--{package}: {error}') from error

# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The flags of a training run that belong to no row of the registry.

TensorFlow is not imported here.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import typing
from typing import Any, Literal, Optional

from experiments import flag_table
from experiments import registry
from experiments.flag_table import field
from experiments.run_results import run_folder
from tff_adaptive import _metric_modes
from tff_adaptive import _stack
from tff_adaptive import ranges

# The flags that replace numbers of a task's protocol.
PROTOCOL = (
    'total_rounds',
    'clients_per_round',
    'client_batch_size',
    'client_epochs',
    'max_examples',
)
# The values of --evaluations and --final_evaluations.
CENTRAL = 'central'
PER_CLIENT = 'per_client'
PERSONALIZED = 'personalized'
EVALUATIONS = (CENTRAL, PER_CLIENT, PERSONALIZED)
# The values of --evaluation_data.
TEST = 'test'
TEST_CLIENTS = 'test_clients'
VALIDATION = 'validation'
TRAIN = 'train'
# Columns of evaluations of the average of a run's weights.
AVERAGE = 'evaluation_average/'
# Columns of the clients' own test examples, whatever --evaluation_data says.
OF_CLIENTS = tuple(
    f'{evaluation}{kind}/'
    for evaluation in (run_folder.EVALUATION, AVERAGE)
    for kind in ('clients', 'personalized')
)
# The values of --sampling.
FIXED = 'fixed'
POISSON = 'poisson'

# The default metric of --early_stopping_patience and --keep_best.
DEFAULT_METRIC = 'evaluation/accuracy'

_DEFAULT_EVALUATIONS = (CENTRAL,)
# Flags of evaluations, and the evaluations that use them.
_USERS = {
    'evaluation_data': (CENTRAL,),
    'evaluation_examples': (CENTRAL,),
    'evaluation_clients': (PER_CLIENT, PERSONALIZED),
    'personalization_epochs': (PERSONALIZED,),
    'metric_modes': (PER_CLIENT, PERSONALIZED),
}
# Values of flags that give the same run as without the flag.
DEFAULTS: dict[str, Any] = {
    'evaluation_data': TEST,
    'personalization_epochs': 1,
}
# The initial bound of TFF's adaptive clipping, and the paper's learning rate.
_ADAPTIVE_CLIPPING = {
    'dp_clip_norm': 0.1,
    'dp_adaptive_clip_learning_rate': 0.2,
}
# The defaults of the flags of --tune_rates.
_RATE_TUNING = {'tune_rates_step': 0.1, 'tune_rates_rounds': 1}


@dataclasses.dataclass(frozen=True)
class Settings:
  """The flags with their help; None stands for a default, or for no value.

  Attributes:
    total_rounds: The number of rounds. Default: the task's.
    clients_per_round: The number of clients in a cohort. Default: the task's.
    client_batch_size: The number of examples in a batch. Default: the task's.
    client_epochs: The number of local epochs in a round. Default: the task's.
    max_examples: Use at most this many examples of each client, the first ones
      in stored order. Default: the task's.
    num_clients: Train on this many of the task's clients, sampled by --seed.
      Default: all.
    heldout_clients: Hold out this many clients, sampled by --seed, and test on
      their examples instead of the task's test data; copies of these are left
      out of training. Default: none.
    heldout_fraction: Hold out this fraction of every client's examples, with
      all copies, and test on them instead of the task's test data. Default:
      none.
    validation_fraction: Hold out this fraction of every client's training
      examples, with all copies, for --evaluation_data=validation. Default: the
      task's own validation data, if any.
    drop_clients: The probability, keyed by --seed, that a sampled client drops
      out of its round. Default: 0.
    straggler_fraction: The probability, keyed by --seed, that a client is a
      straggler: it finishes only some of its local steps of the round, and
      these count. Default: 0.
    sampling: Sample exactly --clients_per_round clients (fixed), or each client
      with the same probability (poisson), with --clients_per_round as the mean.
    dp_noise_multiplier: Client-level differential privacy: everything that
      clients send for the model is clipped and summed, with Gaussian noise of
      this many times the bound; privacy/epsilon is in the metrics. Default: no
      privacy.
    dp_clip_norm: The bound on the norm of a client's update; with adaptive
      clipping the initial bound, by default 0.1.
    dp_payload_clip_norms: The bounds on what clients send besides the update,
      such as first_moment:0.5,second_moment:0.1; with adaptive clipping the
      initial bounds, by default --dp_clip_norm.
    dp_adaptive_clip_quantile: Adaptive clipping: the bounds follow this
      quantile of the clients' norms; 0.5 in the paper. Default: fixed bounds.
    dp_adaptive_clip_learning_rate: The learning rate of the bounds in adaptive
      clipping. Default 0.2.
    dp_adaptive_clip_count_stddev: The standard deviation of the noise on the
      number of clients below a bound in adaptive clipping. Default:
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
    evaluations: The evaluations during training: central, on all examples
      together; per_client, on each client's own test examples, with the mean,
      the median and the worst tenth of the clients; personalized, the same
      before and after fine-tuning. Default: central.
    final_evaluations: The evaluations after training, also of a finished run;
      they go to evaluation.json and pictures. Default: none.
    evaluation_data: The examples of --evaluations=central; test_clients is a
      new sample of the test clients' examples in each evaluation, by --seed and
      round, and train a sample of the training examples. Default: validation
      for --keep_best, --early_stopping_patience and --compare if there are
      validation examples, otherwise test.
    evaluation_examples: The number of examples of --evaluations=central,
      sampled by --seed; after the last round all test examples are used.
      Default: all if at most 100,000, otherwise 10,000; for test_clients and
      train 10,000.
    evaluation_clients: The maximal number of clients of per_client and
      personalized evaluations, sampled by --seed. Default: all.
    personalization_epochs: The number of fine-tuning epochs of personalized
      evaluations, with the client optimizer of the run. Default: 1.
    metric_modes: Whether the largest or the smallest values are the best, for
      metrics of per_client and personalized evaluations whose names do not
      tell, such as turnover:max,drift:min. Default: what the names say.
    rounds_per_evaluation: Evaluate after every this many rounds, and after the
      last.
    rounds_per_checkpoint: Save after every this many rounds, and after the
      last.
    checkpoints_to_keep: The number of newest checkpoints to keep; each has
      about the size of the model.
    seed: The seed of initial weights, partition, sampling and shuffling.
    initial_weights: Start from the weights in this file of experiments.export,
      checkpoint, best.npz or .keras file, or in the newest checkpoint of this
      run folder.
      Default: the task's own, from --seed.
    bad_clients: If clients are empty or contain NaN, stop before training
      (error) or exclude them (reject). Labels out of range always stop.
    early_stopping_patience: Stop training after this many evaluations in a row
      without a better --monitored_metric. Default: train all rounds.
    keep_best: Keep the weights of the round with the best --monitored_metric in
      checkpoints/best.npz; for a metric of evaluation_average, the average.
    monitored_metric: The column of metrics.csv that --early_stopping_patience
      and --keep_best monitor. Default: evaluation/accuracy.
    monitored_mode: Whether the largest or the smallest value is the best.
      Default: what the name of --monitored_metric says, such as min for a loss
      or an error; required if it does not tell.
    weights_average_decay: Also evaluate the moving average of the global
      weights over rounds, with this decay; 1 is the mean of all rounds.
      Default: no average.
    weights_average_rounds: Also evaluate the mean of the global weights of this
      many last rounds, all of which are kept. Default: no average.
    client_states_memory_mb: The memory in MiB for client states, for methods
      that keep some, such as scaffold; the remaining states are stored in files
      of the run.
    client_states_max_rejections: The number of rejections in a row that discard
      the state of a client, which then starts afresh; 0 keeps all states.
      Default: 3.
    max_rejected_rounds: Stop after this many rounds in a row in which every
      client is rejected, because its results are not finite or its update is
      too large; 0 continues such a run.
    profile: Write a Chrome trace of the third round that the command trains to
      profile.json.gz.
    data_dir: The folder of the data sets; digits needs none.
    use_synthetic_data: Train on synthetic data in the format of the task, to
      try a command without a download; the metrics are meaningless.
    wandb: Also log metrics and hyperparameters to Weights & Biases, as
      configured by its variables, such as WANDB_PROJECT.
    mlflow: Also log metrics and hyperparameters to MLflow, as configured by its
      variables, such as MLFLOW_TRACKING_URI.
    output_dir: The folder of all runs.
    experiment_name: The folder of this run in --output_dir, where an
      interrupted run continues. Default: TASK.ALGORITHM.CLIENT.SERVER, with
      .LOSS_TERM if there is one.
  """

  total_rounds: Optional[int] = field(lower_bound=1)
  clients_per_round: Optional[int] = field(lower_bound=1)
  client_batch_size: Optional[int] = field(lower_bound=1)
  client_epochs: Optional[int] = field(lower_bound=1)
  max_examples: Optional[int] = field(lower_bound=1)
  num_clients: Optional[int] = field(lower_bound=1)
  heldout_clients: Optional[int] = field(lower_bound=1)
  heldout_fraction: Optional[ranges.OpenShare] = field()
  validation_fraction: Optional[ranges.OpenShare] = field()
  drop_clients: Optional[float] = field(lower_bound=0.0, upper_bound=1.0)
  straggler_fraction: Optional[float] = field(lower_bound=0.0, upper_bound=1.0)
  sampling: Optional[Literal['fixed', 'poisson']] = field(FIXED)
  dp_noise_multiplier: Optional[ranges.NotNegative] = field()
  dp_clip_norm: Optional[ranges.Positive] = field()
  dp_payload_clip_norms: Optional[Mapping[str, float]] = field()
  dp_adaptive_clip_quantile: Optional[ranges.ClosedShare] = field()
  dp_adaptive_clip_learning_rate: Optional[ranges.NotNegative] = field()
  dp_adaptive_clip_count_stddev: Optional[ranges.Positive] = field()
  dp_delta: Optional[ranges.OpenShare] = field()
  tune_rates: Optional[Literal['hypergradient']] = field()
  tune_rates_step: Optional[ranges.Positive] = field()
  tune_rates_rounds: Optional[int] = field(lower_bound=1)
  evaluations: Sequence[str] = field()
  final_evaluations: Sequence[str] = field((), is_hparam=False)
  evaluation_data: Optional[
      Literal['test', 'test_clients', 'validation', 'train']
  ] = field()
  evaluation_examples: Optional[int] = field(lower_bound=1)
  evaluation_clients: Optional[int] = field(lower_bound=1, is_addition=True)
  personalization_epochs: Optional[int] = field(lower_bound=1, is_addition=True)
  metric_modes: Optional[Mapping[str, str]] = field(is_addition=True)
  rounds_per_evaluation: int = field(5, lower_bound=1)
  rounds_per_checkpoint: int = field(10, lower_bound=1, is_hparam=False)
  checkpoints_to_keep: int = field(3, lower_bound=1, is_hparam=False)
  # The largest seed of NumPy's global generator.
  seed: int = field(0, lower_bound=0, upper_bound=2**32 - 1)
  initial_weights: Optional[str] = field()
  bad_clients: Literal['error', 'reject'] = field('error')
  early_stopping_patience: Optional[int] = field(
      lower_bound=1, is_addition=True
  )
  keep_best: bool = field(False, is_addition=True)
  monitored_metric: Optional[str] = field(is_addition=True)
  monitored_mode: Optional[Literal['max', 'min']] = field(is_addition=True)
  weights_average_decay: Optional[float] = field(
      lower_bound=0.0, upper_bound=1.0, is_addition=True
  )
  weights_average_rounds: Optional[int] = field(
      lower_bound=1, upper_bound=1000, is_addition=True
  )
  client_states_memory_mb: int = field(1024, lower_bound=0, is_hparam=False)
  client_states_max_rejections: Optional[int] = field(lower_bound=0)
  max_rejected_rounds: int = field(5, lower_bound=0, is_hparam=False)
  profile: bool = field(False, is_hparam=False)
  data_dir: Optional[str] = field(is_hparam=False)
  use_synthetic_data: bool = field(False)
  wandb: bool = field(False, is_hparam=False)
  mlflow: bool = field(False, is_hparam=False)
  output_dir: str = field('runs', is_hparam=False)
  experiment_name: str = field(is_hparam=False)

  @property
  def chooses_on_test_data(self) -> bool:
    """Whether test examples choose the best round, or when to stop."""
    metric = self.monitored_metric or ''
    is_of_test = self.evaluation_data not in (VALIDATION, TRAIN)
    return metric.startswith(OF_CLIENTS) or (
        metric.startswith('evaluation') and is_of_test
    )

  def hparams(self) -> dict[str, Any]:
    """Returns the hyperparameters that a resumed run must not change.

    None stands for the default of flags that older runs do not have, and for
    flags that only the final evaluations use.
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
    for flag, default in DEFAULTS.items():
      if values[flag] == default:
        values[flag] = None
    return values


def complete(values: dict[str, Any], choices: Mapping[str, Any]) -> Settings:
  """Returns the settings of a run, with defaults that depend on other flags.

  Args:
    values: The values of the flags.
    choices: The chosen rows; see `hparams.read_choices`.

  Raises:
    HparamError: If a value is out of range or unknown, a flag needs another
      one, or flags conflict with each other or with the algorithm.
  """
  algorithm = choices[registry.ALGORITHM]
  _check_needs(values)
  _complete_privacy(values, algorithm)
  _check_ranges(values)
  _complete_rate_tuning(values, choices)
  _complete_faults(values, algorithm.row)
  _complete_evaluations(values)
  _complete_callbacks(values, choices[registry.TASK])
  _check_trackers(values)
  return Settings(**values)


def _set_defaults(values: dict[str, Any], defaults: Mapping[str, Any]):
  """Sets the values of flags that are None."""
  for flag, default in defaults.items():
    if values[flag] is None:
      values[flag] = default


_HINTS = typing.get_type_hints(Settings, include_extras=True)
# Ranges of numbers that absl cannot express.
_RANGES = {
    name: allowed
    for name, allowed in ((n, ranges.find(hint)) for n, hint in _HINTS.items())
    if allowed is not None
}
# Flags that are needed by others.
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


def _check_needs(values: Mapping[str, Any]):
  """Raises if a flag is given without one that it needs."""
  for needed, users in _NEEDS.items():
    for flag in users:
      if values[flag] is not None and values[needed] is None:
        raise flag_table.HparamError(f'--{flag} needs --{needed}')


def _complete_privacy(values: dict[str, Any], algorithm: Any):
  is_adaptive = values['dp_adaptive_clip_quantile'] is not None
  if values['dp_noise_multiplier'] is not None:
    if values['dp_clip_norm'] is None and not is_adaptive:
      raise flag_table.HparamError(
          '--dp_noise_multiplier needs --dp_clip_norm, or '
          '--dp_adaptive_clip_quantile for bounds that adapt'
      )
  _check_cohorts(values, algorithm)
  if values['dp_payload_clip_norms'] is not None:
    values['dp_payload_clip_norms'] = _parse_bounds(
        values['dp_payload_clip_norms']
    )
  if is_adaptive:
    _set_defaults(values, _ADAPTIVE_CLIPPING)


def _complete_rate_tuning(values: dict[str, Any], choices: Mapping[str, Any]):
  if values['tune_rates'] is None:
    return
  runtime = choices[registry.RUNTIME].row.name
  if runtime != registry.COMPILED:
    raise flag_table.HparamError(
        f'--tune_rates needs --runtime={registry.COMPILED}, found '
        f'--runtime={runtime}'
    )
  if values['dp_noise_multiplier'] is not None:
    raise flag_table.HparamError(
        '--tune_rates reads losses and gradients of clients without noise; '
        'drop it or --dp_noise_multiplier'
    )
  _set_defaults(values, _RATE_TUNING)


def _check_cohorts(values: Mapping[str, Any], algorithm: Any):
  """Raises if the algorithm has no cohorts, or weights clients by examples."""
  if algorithm.row.pools_clients:
    for flag, off in (('sampling', FIXED), ('dp_noise_multiplier', None)):
      if values[flag] != off:
        raise flag_table.HparamError(
            f'--{registry.ALGORITHM}={algorithm.row.name} trains on the pooled '
            f'examples of all clients and has no cohorts, drop --{flag}'
        )
  elif values['dp_noise_multiplier'] is not None:
    if algorithm.hparams()['client_weighting'] == 'examples':
      raise flag_table.HparamError(
          '--dp_noise_multiplier needs --client_weighting=uniform: weights by '
          'examples do not bound the contribution of a client'
      )


def _check_ranges(values: Mapping[str, Any]):
  for flag in _RANGES:
    if values[flag] is not None:
      _check_range(flag, flag, values[flag])


def _check_range(flag: str, like: str, value: float):
  """Raises if a number is out of the range of a flag."""
  flag_table.check_size(flag, value)
  if value not in _RANGES[like]:
    expected = _RANGES[like].describe(value)
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
          f'--{flag} takes comma-separated name:bound pairs, found {item!r}'
      ) from None
    _check_range(flag, 'dp_clip_norm', float(text))
  return bounds


def _parse_modes(items: list[str]) -> dict[str, str]:
  """Returns the modes of metrics by name."""
  modes = {}
  for item in items:
    name, _, mode = item.partition(':')
    if not name or mode not in _metric_modes.MODES:
      raise flag_table.HparamError(
          '--metric_modes takes comma-separated name:max and name:min pairs, '
          f'found {item!r}'
      )
    modes[name] = mode
  return modes


def _complete_faults(values: dict[str, Any], algorithm: registry.Row):
  """Replaces 0 by None, as recorded by runs older than these flags."""
  for flag in ('drop_clients', 'straggler_fraction'):
    probability = values[flag]
    if probability is None:
      continue
    if probability and algorithm.pools_clients:
      raise flag_table.HparamError(
          f'--{registry.ALGORITHM}={algorithm.name} trains on the pooled '
          f'examples of all clients, so no client can fail, drop --{flag}'
      )
    values[flag] = probability or None


def _complete_evaluations(values: dict[str, Any]):
  _set_defaults(values, {'evaluations': _DEFAULT_EVALUATIONS})
  for flag in ('evaluations', 'final_evaluations'):
    for name in values[flag]:
      flag_table.check_name(flag, name, EVALUATIONS)
    # In a fixed order.
    values[flag] = tuple(name for name in EVALUATIONS if name in values[flag])
  if values['metric_modes'] is not None:
    values['metric_modes'] = _parse_modes(values['metric_modes'])
  if not values['evaluations']:
    raise flag_table.HparamError(
        f'--evaluations takes one or more of {", ".join(EVALUATIONS)}, found '
        'none'
    )
  chosen = set(values['evaluations'])
  # The final central evaluation uses all test examples.
  chosen.update(set(values['final_evaluations']) - {CENTRAL})
  for flag, users in _USERS.items():
    if values[flag] is not None and not chosen & set(users):
      raise flag_table.HparamError(
          f'--{flag} needs --evaluations={" or ".join(users)}'
      )


def _complete_callbacks(values: dict[str, Any], task: Any):
  if None not in (
      values['weights_average_decay'],
      values['weights_average_rounds'],
  ):
    raise flag_table.HparamError(
        '--weights_average_decay and --weights_average_rounds cannot be '
        'combined, drop one of them'
    )
  if values['early_stopping_patience'] is None and not values['keep_best']:
    for name in ('monitored_metric', 'monitored_mode'):
      if values[name] is not None:
        raise flag_table.HparamError(
            f'--{name} needs --early_stopping_patience or --keep_best'
        )
    return
  _set_defaults(values, {'monitored_metric': DEFAULT_METRIC})
  if CENTRAL in values['evaluations'] and has_validation(
      task.row, task.given, values['validation_fraction']
  ):
    _set_defaults(values, {'evaluation_data': VALIDATION})
  try:
    values['monitored_mode'] = _metric_modes.mode_of(
        values['monitored_metric'], values['monitored_mode'], '--monitored_mode'
    )
  except _metric_modes.UnknownModeError as error:
    raise flag_table.HparamError(
        f'--monitored_metric={values["monitored_metric"]}: {error}'
    ) from error


def has_validation(
    task: registry.Row, given: Mapping[str, Any], fraction: Optional[float]
) -> bool:
  """Returns whether a run has validation examples.

  Args:
    task: The task.
    given: The values given for its arguments, by name.
    fraction: The value of --validation_fraction.
  """
  return fraction is not None or task.definition.data.has_validation(given)


def _check_trackers(values: Mapping[str, Any]):
  """Raises if the package of a tracker that a flag asks for is missing."""
  for package in ('wandb', 'mlflow'):
    if values[package]:
      try:
        _stack.check_installed(package)
      except ImportError as error:
        raise flag_table.HparamError(f'--{package}: {error}') from error
